"""The REST API and its door: tokens, names, sizes, rates, health; over a real server."""

import json
import re
import socket
import time
from pathlib import Path

import httpx
import pytest

from dualwall.tokens import digest
from palace.lock import owner
from tests.server.serving import TOKENS, Served, furnished, serving, wait_ready

pytestmark = pytest.mark.slow
ROUTES = [
    ("GET", "/api/v1/rooms"), ("POST", "/api/v1/search"), ("GET", "/api/v1/notes/x"), ("GET", "/api/v1/notes/x/neighbors"),
    ("GET", "/api/v1/status"), ("POST", "/api/v1/inject"), ("POST", "/api/v1/tools/search"), ("POST", "/mcp"), ("GET", "/mcp"),
    ("GET", "/"), ("GET", "/docs"), ("GET", "/nowhere"), ("POST", "/api/v1/owner/verify"), ("POST", "/api/v1/owner/night"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize(
    "header", [None, "Bearer wrong", "Bearer", f"Basic {TOKENS['scout']}", f"Bearer {digest(TOKENS['scout'])}"]
)
def test_without_a_readers_token_there_is_401_and_nothing_else(
    served: Served, method: str, path: str, header: str | None
) -> None:
    headers = {"X-Dualwall-Reader": "scout", "X-Dualwall-Token": TOKENS["scout"]}
    headers |= {} if header is None else {"Authorization": header}
    with served.http(None) as http:
        answer = http.request(method, path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Bearer realm="dualwall"'
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"] == "Unauthorized."
    assert len(answer.content) < 200


def test_health_and_the_api_page_need_no_token(served: Served) -> None:
    with served.http(None) as http:
        assert http.get("/healthz").json() == {"status": "ok"}
        assert http.get("/readyz").json() == {"status": "ready", "generation": 1}
        page = http.get("/openapi.json").json()
        figures = http.get("/metrics").text
    assert {"/api/v1/rooms", "/api/v1/search", "/api/v1/notes/{ref}", "/api/v1/inject"} <= set(page["paths"])
    assert not [path for path in page["paths"] if "owner" in path]
    assert re.search(r"^dualwall_notes 1[0-9]\.0$", figures, re.MULTILINE)
    assert "dualwall_request_seconds_bucket" in figures


def test_what_only_the_datas_owner_may_ask_is_not_there_over_tcp(served: Served) -> None:
    with served.http() as http:
        for path in ("verify", "night", "leave"):
            assert http.post(f"/api/v1/owner/{path}", json={}).status_code == 404
        assert http.get("/api/v1/owner/status").status_code == 404


def test_the_answers_have_the_contracts_shapes(served: Served) -> None:
    with served.http() as http:
        rooms = http.get("/api/v1/rooms", params={"query": "oven"}).json()
        found = http.post("/api/v1/search", json={"query": "oven hinge", "rooms": ["Oven"]}).json()
        hit = found["hits"][0]
        note = http.get(f"/api/v1/notes/{hit['ref']}").json()
        part = http.get(f"/api/v1/notes/{hit['ref']}", params={"first": 2, "last": 2}).json()
        around = http.get(f"/api/v1/notes/{hit['ref']}/neighbors").json()
        listed = http.get("/api/v1/status", params={"files": 1})
        assert listed.headers["cache-control"] == "private, no-store"
        status = listed.json()
        injected = http.post("/api/v1/inject", json={"message": "fleece", "at": "2026-11-30T12:00"}).json()
    assert rooms["rooms"][0]["room"] == "oven"
    assert (found["status"], hit["path"], found["receipt"]["reader"]) == ("hit", "projects/Oven/plan.md", "scout")
    assert note["text"].startswith("# Hinge")
    assert (part["text"], part["lines"]) == ("The oven hinge creaks. #money", [2, 2])
    assert [n["title"] for n in around["links"]] == ["notes"]
    assert {f["cube"] for f in status["files"]} == {"global", "scout"}
    assert "I am Scout" in injected["directive"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/api/v1/search", {"query": ""}, 400),
        ("POST", "/api/v1/search", {"query": "x", "reader": "owl"}, 400),
        ("POST", "/api/v1/search", {"query": "x", "limit": 1000}, 400),
        ("POST", "/api/v1/search", {"query": "x", "rooms": ["y" * 10_000]}, 400),
        ("POST", "/api/v1/search", [], 400),
        ("GET", "/api/v1/rooms?cursor=nonsense", None, 404),
        ("GET", "/api/v1/notes/00000000-0000-0000-0000-000000000000", None, 404),
        ("GET", "/api/v1/notes/..%2F..%2Fetc%2Fpasswd", None, 404),
        ("GET", "/api/v1/notes/" + "a" * 3000, None, 404),
        ("GET", "/api/v1/notes/plan?first=9&last=2", None, 404),
        ("POST", "/api/v1/tools/nothing", {}, 400),
        ("POST", "/api/v1/inject", {"message": "x", "at": "soon"}, 400),
        ("DELETE", "/api/v1/rooms", None, 405),
        ("GET", "/nowhere", None, 404),
    ],
)
def test_what_is_wrong_is_a_problem_with_a_detail(
    served: Served, method: str, path: str, body: object, status: int
) -> None:
    with served.http() as http:
        answer = http.request(method, path, json=body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    assert answer.json()["detail"]
    assert len(answer.content) < 5000


def test_rooms_that_do_not_exist_are_answered_from_everything(served: Served) -> None:
    with served.http() as http:
        for room in ("../../etc", "Oven/../Garden", "owl/diary", "x" * 900, "", "\u202eOven"):
            found = http.post("/api/v1/search", json={"query": "oven hinge", "rooms": [room]}).json()
            assert found["fallback"], room
            assert found["hits"][0]["title"] == "plan"


def test_a_body_of_five_megabytes_is_refused_said_so_or_not(served: Served) -> None:
    with served.http() as http:
        big = b'{"query": "' + b"x" * 5_000_000 + b'"}'
        for content in (big, iter([big[:600_000], big[600_000:]])):
            answer = http.post("/api/v1/search", content=content)
            assert answer.status_code == 413
            assert answer.headers["content-type"] == "application/problem+json"
        assert http.get("/healthz").status_code == 200
    with served.http(None) as http:
        assert http.post("/api/v1/search", content=big).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost.evil.example:8377"}, 421),
        ({"Host": "localhost:9"}, 200),
        ({"Host": "192.168.1.5:8377"}, 200),
        ({"Host": "[::1]:8377"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({"Origin": "http://localhost:6274"}, 200),
    ],
)
def test_only_known_names_and_pages_may_ask(served: Served, headers: dict[str, str], status: int) -> None:
    with served.http() as http:
        for path in ("/api/v1/status", "/healthz"):
            assert http.get(path, headers=headers).status_code == status


def test_a_request_without_a_host_is_refused(served: Served) -> None:
    host, _, port = served.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as raw:
        raw.sendall(b"GET /api/v1/status HTTP/1.0\r\nAuthorization: Bearer token-of-scout\r\n\r\n")
        assert raw.recv(100).split()[1] in {b"400", b"421"}


def test_the_log_is_json_and_holds_no_word_of_a_question_or_a_note(served: Served) -> None:
    word = "unspeakable-word"
    with served.http() as http:
        http.post("/api/v1/search", json={"query": word})
        http.get(f"/api/v1/notes/{word}")
        http.get("/api/v1/rooms", params={"query": word})
        http.get(f"/{word}")
        http.post("/api/v1/tools/search", json={word: word})
    time.sleep(0.3)
    lines = list(served.log)
    assert all(isinstance(json.loads(line), dict) for line in lines)
    assert not [line for line in lines if word in line or "token-of" in line or "oven" in line.lower()]
    requests = [json.loads(line) for line in lines if '"request"' in line]
    assert {"method", "route", "status", "ms", "reader"} <= set(requests[-1])


def test_too_many_requests_of_one_reader_are_told_to_wait(tmp_path: Path, embeddings_url: str) -> None:
    house = furnished(tmp_path, embeddings_url, rate=20)
    with serving(house) as served, served.http() as http:
        codes = [http.get("/api/v1/status").status_code for _ in range(30)]
        answer = http.get("/api/v1/status")
        assert codes.count(200) >= 20
        assert (answer.status_code, int(answer.headers["retry-after"]) >= 1) == (429, True)
        with served.http("me") as other:
            assert other.get("/api/v1/status").status_code == 200
        with served.http(None) as nobody:
            assert [nobody.get("/api/v1/status").status_code for _ in range(30)][-1] == 429
            assert nobody.get("/healthz").status_code == 200


def test_a_revoked_token_a_broken_file_and_a_mended_one(tmp_path: Path, embeddings_url: str) -> None:
    house = furnished(tmp_path, embeddings_url)
    good = house.settings_file.read_text()

    def becomes(http: httpx.Client, status: int) -> None:
        answer = http.get("/api/v1/status")
        for _ in range(60):
            if answer.status_code == status:
                return
            time.sleep(0.1)
            answer = http.get("/api/v1/status")
        raise AssertionError(answer.text)

    with serving(house) as served, served.http() as scout, served.http("me") as me:
        becomes(scout, 200)
        house.settings_file.write_text(good.replace(digest(TOKENS["scout"]), digest("new")))
        becomes(scout, 401)
        becomes(me, 200)
        house.settings_file.write_text(good.replace('cubes = ["global"]', 'cubes = ["nonsense"]'))
        becomes(me, 503)
        becomes(scout, 503)
        assert me.get("/healthz").status_code == 200
        house.settings_file.write_text(good)
        becomes(scout, 200)


def test_a_revoked_cube_is_out_of_reach_at_once(tmp_path: Path, embeddings_url: str) -> None:
    house = furnished(tmp_path, embeddings_url)
    good = house.settings_file.read_text()
    with serving(house) as served:
        assert served.tool("search", {"query": "Mei"})["hits"][0]["cube"] == "scout"
        house.settings_file.write_text(good.replace('["global", "scout"]', '["global"]'))
        for _ in range(60):
            if served.tool("status", {})["cubes"] == ["global"]:
                break
            time.sleep(0.1)
        assert "scout" not in json.dumps(served.tool("search", {"query": "Mei"})["hits"])


def test_it_stops_gracefully_and_gives_the_store_back(tmp_path: Path, embeddings_url: str) -> None:
    house = furnished(tmp_path, embeddings_url)
    with serving(house) as served:
        wait_ready(served)
        holder = owner(house.settings)
        assert holder is not None
        assert (holder.command, holder.pid) == ("serve", served.process.pid)
    assert owner(house.settings) is None
    assert json.loads(list(served.log)[-1])["event"] == "stopped"
