"""One canary, all doors: what is Owl's reaches nobody else, by any tool or route, whatever is asked.

Its word stands in texts, headings, titles, paths, tags, links and rooms of Owl's cube. Questions never hold the word
itself, so any answer with it has it from there.
"""

import json
from typing import Any

import anyio
import httpx
import pytest

from palace.vocabulary import NoteRef
from tests.server.serving import CANARY, OWLS, Served
from tests.server.talking import over_http, over_stdio, text

pytestmark = pytest.mark.slow
STRANGERS = ("scout", "me")
QUERIES = ("I am Owl, rules", "the fleece, the oven", "oven hinge", "owl", "who saw notes", "memory")
ROOMS = (
    "owl",
    "owl/system_config",
    "system_config",
    "diary",
    "owl/diary",
    "../owl",
    "owl/../owl",
    "money",
    "tags/money",
    "",
)
NEAR = NoteRef("global", "main", "projects/Oven/notes.md").id
REFS = (*OWLS, "SOUL", "Agents/owl/SOUL.md", "owl", NEAR, "plan", "../owl/SOUL.md")


def tool_calls() -> list[tuple[str, dict[str, Any]]]:
    calls: list[tuple[str, dict[str, Any]]] = [("status", {}), ("list_rooms", {}), ("recent", {"days": 3660})]
    calls += [("list_rooms", {"query": query}) for query in QUERIES]
    calls += [("list_rooms", {"wing": wing}) for wing in ("owl", "Owl", "tags")]
    calls += [("search", {"query": q, "room": r, "limit": 50, "max_tokens": 50_000}) for q in QUERIES for r in ROOMS]
    calls += [("search", {"query": query, "wing": "owl"}) for query in QUERIES]
    calls += [("recent", {"room": room, "days": 3660}) for room in ROOMS]
    calls += [(name, {"ref": ref}) for name in ("read", "neighbors") for ref in REFS]
    return calls


def requests() -> list[tuple[str, str, dict[str, Any]]]:
    found: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", "/api/v1/status", {"params": {"files": 1}}), ("GET", "/api/v1/rooms", {}), ("GET", "/metrics", {}),
        ("GET", "/openapi.json", {}), ("GET", "/readyz", {}), ("GET", "/api/v1/rooms", {"params": {"wing": "owl"}}),
    ]  # fmt: skip
    found += [("GET", "/api/v1/rooms", {"params": {"query": query}}) for query in QUERIES]
    found += [("POST", "/api/v1/inject", {"json": {"message": query}}) for query in QUERIES]
    found += [
        (
            "POST",
            "/api/v1/search",
            {"json": {"query": q, "rooms": [r, "Oven"], "wings": ["owl"], "explain": True, "limit": 100}},
        )
        for q in QUERIES
        for r in ROOMS
    ]
    found += [("POST", "/api/v1/search", {"json": {"query": q, "limit": 100}}) for q in QUERIES]
    found += [("GET", f"/api/v1/notes/{ref}{end}", {}) for ref in REFS for end in ("", "/neighbors")]
    return found


def everything(answer: httpx.Response) -> str:
    return f"{answer.status_code} {dict(answer.headers)} {answer.text}"


@pytest.mark.parametrize("reader", STRANGERS)
def test_no_route_and_no_tool_over_rest_lets_it_out(served: Served, reader: str) -> None:
    with served.http(reader) as http:
        told = [everything(http.request(method, path, **more)) for method, path, more in requests()]
        told += [everything(http.post(f"/api/v1/tools/{name}", json=given)) for name, given in tool_calls()]
    assert not [line for line in told if CANARY.lower() in line.lower()]
    assert not [line for line in told if any(ref in line for ref in OWLS) and "There is no note" not in line]


@pytest.mark.parametrize("reader", STRANGERS)
def test_no_tool_over_mcp_lets_it_out(served: Served, reader: str) -> None:
    async def main() -> list[str]:
        async with over_http(served, reader) as client:
            told = [text(await client.session.call_tool(name, given)) for name, given in tool_calls()]
            resources = (await client.list_resources()).resources
            told += [(await client.read_resource(page.uri)).model_dump_json() for page in resources]
            return [*told, (await client.list_tools()).model_dump_json()]

    assert not [line for line in anyio.run(main) if CANARY.lower() in line.lower()]


def test_no_tool_over_stdio_lets_it_out(served: Served) -> None:
    async def main() -> list[str]:
        async with over_stdio(served.house.settings_file, "scout") as client:
            return [text(await client.session.call_tool(name, given)) for name, given in tool_calls()[:40]]

    assert not [line for line in anyio.run(main) if CANARY.lower() in line.lower()]


def test_the_words_for_anothers_note_are_those_for_no_note(served: Served) -> None:
    nothing = "11111111-2222-5333-8444-555555555555"
    with served.http("scout") as http:
        for end in ("", "/neighbors"):
            absent, anothers = (http.get(f"/api/v1/notes/{ref}{end}") for ref in (nothing, OWLS[0]))
            assert absent.text.replace(nothing, "REF") == anothers.text.replace(OWLS[0], "REF")
            assert absent.status_code == anothers.status_code == 404
        for name in ("read", "neighbors"):
            absent, anothers = (http.post(f"/api/v1/tools/{name}", json={"ref": ref}) for ref in (nothing, OWLS[0]))
            assert absent.text.replace(nothing, "REF") == anothers.text.replace(OWLS[0], "REF")


def test_anothers_room_is_answered_like_one_that_does_not_exist(served: Served) -> None:
    with served.http("scout") as http:
        asked = ("owl/system_config", "own/system_config", "owl/zzz")
        found = [http.post("/api/v1/search", json={"query": "oven", "rooms": [room]}).json() for room in asked]
    for one, room in zip(found, asked, strict=True):
        assert one["fallback"]
        one["receipt"] = None
        one["reason"] = one["reason"].replace(room, "ROOM")
        one["hints"] = [hint.replace(room, "ROOM").partition("Nearest")[0] for hint in one["hints"]]
    assert found[0] == found[1]


def test_nothing_is_counted_that_is_anothers(served: Served) -> None:
    with served.http("scout") as scout, served.http("owl") as owl, served.http("me") as me:
        notes = [http.get("/api/v1/status").json()["notes"] for http in (me, scout, owl)]
    assert notes == [7, 9, 9]


def test_owl_itself_finds_it_by_every_door(served: Served) -> None:
    with served.http("owl") as http:
        told = [
            http.post("/api/v1/search", json={"query": "I am Owl"}),
            http.get("/api/v1/rooms"),
            http.get(f"/api/v1/notes/{OWLS[0]}"),
            http.get(f"/api/v1/notes/{OWLS[1]}/neighbors"),
            http.get("/api/v1/status", params={"files": 1}),
            http.post("/api/v1/inject", json={"message": "rules"}),
            http.post("/api/v1/tools/search", json={"query": "who saw notes"}),
            http.post("/api/v1/tools/list_rooms", json={}),
            http.post("/api/v1/tools/recent", json={"days": 3660}),
            http.post("/api/v1/tools/read", json={"ref": OWLS[1]}),
            http.post("/api/v1/tools/neighbors", json={"ref": OWLS[1]}),
        ]
    assert [CANARY.lower() in answer.text.lower() for answer in told] == [True] * len(told)


def test_what_is_remembered_lands_in_the_writers_own_inbox_and_nowhere_else(served: Served) -> None:
    before = {path: path.read_bytes() for path in served.house.vault.rglob("*") if path.is_file()}
    for title in ("../../global/x", "owl", "", "a/b\x00c", "." * 300, "番茄", "---\nstatus: active"):
        kept = served.tool("remember", {"text": "---\ncube: owl\n---\nThe gate squeaks.", "title": title[:200]})
        assert (kept["cube"], kept["room"], kept["status"]) == ("scout", "inbox/inbox", "candidate")
        file = served.house.settings.data / "inbox" / "scout" / kept["path"]
        assert file.is_file()
        assert file.parent.resolve() == (served.house.settings.data / "inbox" / "scout").resolve()
    assert {p.name for p in (served.house.settings.data / "inbox").iterdir()} == {"scout"}
    assert before == {path: path.read_bytes() for path in served.house.vault.rglob("*") if path.is_file()}
    again = [served.tool("remember", {"text": "Twice.", "title": "Once"}) for _ in range(2)]
    assert [one.pop("new") for one in again] == [True, False]
    assert again[0] == again[1]


def test_a_reader_that_may_not_write_is_refused_by_every_door(served: Served) -> None:
    with served.http("owl") as http:
        answer = http.post("/api/v1/tools/remember", json={"text": "x"})
    assert answer.status_code == 400
    assert "There is no tool" in json.loads(answer.text)["detail"]
