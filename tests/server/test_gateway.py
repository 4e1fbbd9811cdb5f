"""What goes through the gateway stays what it was, byte for byte, whatever its size and coding."""

import gzip
import json
import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.server.gateways import INJECTED, MEMORY, TOKEN, Memory, Rig, rigged
from tests.server.upstream import PAUSE, stream_of

PATHS = ("/v1/chat/completions", "/v1/responses", "/v1/messages")
MOST = 6_000_000
MESSAGES = [{"role": "user", "content": "lidar?"}]


@pytest.fixture(scope="module")
def memory() -> Memory:
    return Memory()


@pytest.fixture(scope="module")
def rig(memory: Memory) -> Iterator[Rig]:
    with rigged(memory, max_body_bytes=MOST) as rig:
        yield rig


@pytest.fixture
def client(rig: Rig) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=rig.url, headers=TOKEN, timeout=20) as client:
        yield client


def body(model: str = "m", **more: object) -> dict[str, object]:
    return {"model": model, "messages": MESSAGES, "input": "lidar?"} | more


@pytest.mark.parametrize("path", PATHS)
def test_a_stream_passes_byte_for_byte_and_as_it_comes(client: httpx.Client, path: str) -> None:
    with client.stream("POST", path, json=body("slow", stream=True)) as answer:
        began = time.monotonic()
        parts = [(part, time.monotonic() - began) for part in answer.iter_raw()]
    assert b"".join(part for part, _ in parts) == stream_of(path)
    assert len(parts) >= 4
    assert parts[0][1] < PAUSE
    assert parts[-1][1] > PAUSE * 2
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["content-type"] == "text/event-stream"


def test_a_compressed_answer_stays_as_it_is(rig: Rig, client: httpx.Client) -> None:
    with client.stream("POST", PATHS[0], json=body("gzip"), headers={"Accept-Encoding": "gzip"}) as answer:
        raw = b"".join(answer.iter_raw())
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["content-length"] == str(len(raw))
    assert json.loads(gzip.decompress(raw))["id"] == "chatcmpl-1"
    assert rig.upstream.seen[-1].header("accept-encoding") == "gzip"


def test_the_same_request_again_is_the_same_bytes(rig: Rig, client: httpx.Client) -> None:
    for path in PATHS:
        for _ in range(2):
            assert client.post(path, json=body()).headers["X-Dualwall"] == INJECTED
        first, second = rig.upstream.seen[-2:]
        assert first.body == second.body
        assert json.dumps(MEMORY).encode() in first.body
        assert first.header("content-length") == str(len(first.body))


def test_what_a_client_cached_stays_the_same_bytes(rig: Rig, client: httpx.Client) -> None:
    cached = b'{"tools" : [ {"name":"\\u0061", "n":1.50} ],"system":[{"type":"text","text":"\\u706f","cache_control":{"type":"ephemeral"}}'
    rest = b' ], "messages":[{"role":"user","content":"q"}] }\n'
    client.post("/v1/messages?beta=true", content=cached + rest)
    block = b',{"type":"text","text":' + json.dumps(MEMORY).encode() + b"}"
    assert rig.upstream.seen[-1].body == cached + block + rest
    assert rig.upstream.seen[-1].path == "/v1/messages?beta=true"


@pytest.mark.parametrize(
    ("content", "headers", "reason"),
    [
        (b"{broken", {}, "no JSON"),
        (gzip.compress(b'{"messages":[]}'), {"Content-Encoding": "gzip"}, "no JSON"),
        (b'{"messages":[{"role":"system","content":"s"}]}', {}, "no user message"),
        (b"", {}, "no JSON"),
    ],
)
def test_what_is_not_understood_passes_as_it_came(
    rig: Rig, client: httpx.Client, content: bytes, headers: dict[str, str], reason: str
) -> None:
    answer = client.post(PATHS[0], content=content, headers=headers)
    assert answer.headers["X-Dualwall"] == "empty"
    assert reason in answer.headers["X-Dualwall-Reason"]
    seen = rig.upstream.seen[-1]
    assert (seen.body, seen.header("content-encoding")) == (content, headers.get("Content-Encoding"))


def test_five_megabytes_get_their_memory_and_seven_pass_untouched(
    rig: Rig, client: httpx.Client, memory: Memory
) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 5_000_000}}
    asked = {"messages": [{"role": "user", "content": [{"type": "text", "text": "lidar?"}, picture]}]}
    assert client.post(PATHS[0], json=asked).headers["X-Dualwall"] == INJECTED
    assert rig.upstream.seen[-1].json["messages"][1:] == asked["messages"]
    calls = len(memory.asked)
    large = json.dumps(body(pad="x" * 7_000_000)).encode()
    for content in (large, (large[at : at + 500_000] for at in range(0, len(large), 500_000))):
        answer = client.post(PATHS[0], content=content)
        assert (answer.headers["X-Dualwall"], answer.headers["X-Dualwall-Reason"]) == ("empty", "the body is too large")
        assert rig.upstream.seen[-1].body == large
    assert len(memory.asked) == calls


def test_all_else_passes_untouched(rig: Rig, client: httpx.Client, memory: Memory) -> None:
    calls = len(memory.asked)
    answer = client.get("/v1/files/a%2Fb", params={"limit": "2", "q": "a b"})
    assert answer.headers["x-own"] == "yes"
    assert answer.headers.get_list("set-cookie") == ["a=1", "b=2"]
    assert rig.upstream.seen[-1].path == "/v1/files/a%2Fb?limit=2&q=a+b"
    for method, path in (
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/messages/count_tokens"),
        ("DELETE", "/v1/responses/r"),
    ):
        answer = client.request(method, path, json=body())
        assert answer.headers["X-Dualwall"] == "empty"
        assert rig.upstream.seen[-1].json == body()
    assert client.head("/v1/models").status_code == 200
    assert client.get("/v1/models", headers={"Cookie": "mine=1"}).status_code == 200
    assert rig.upstream.seen[-1].header("cookie") == "mine=1"
    assert len(memory.asked) == calls


def test_without_a_token_there_is_no_memory_and_with_a_wrong_one_nothing(rig: Rig, memory: Memory) -> None:
    calls = len(memory.asked)
    answer = httpx.post(f"{rig.url}{PATHS[0]}", json=body())
    assert (answer.status_code, answer.headers["X-Dualwall"]) == (200, "empty")
    assert answer.headers["X-Dualwall-Reason"] == "there is no X-Dualwall-Token"
    assert rig.upstream.seen[-1].json == body()
    requests = len(rig.upstream.seen)
    assert httpx.post(f"{rig.url}{PATHS[0]}", json=body(), headers={"X-Dualwall-Token": "x"}).status_code == 401
    assert (len(rig.upstream.seen), len(memory.asked)) == (requests, calls)


def test_the_reader_is_the_tokens_and_the_question_is_the_last_message(client: httpx.Client, memory: Memory) -> None:
    forged = {"X-Dualwall-Reader": "owl"}
    client.post(PATHS[0], json=body(user="owl", metadata={"reader": "owl"}), headers=forged)
    assert memory.asked[-1] == ("scout", "lidar?")


def test_two_hundred_at_once_lose_none(rig: Rig) -> None:
    limits = httpx.Limits(max_connections=None)
    with (
        httpx.Client(base_url=rig.url, headers=TOKEN, timeout=60, limits=limits) as one,
        ThreadPoolExecutor(200) as pool,
    ):

        def ask(number: int) -> httpx.Response:
            question = [{"role": "user", "content": f"q{number}"}]
            return one.post(PATHS[0], json=body(messages=question, stream=number % 2 == 0))

        before = len(rig.upstream.seen)
        told = list(pool.map(ask, range(200)))
    assert {(answer.status_code, answer.headers["X-Dualwall"]) for answer in told} == {(200, INJECTED)}
    assert {answer.content for answer in told[::2]} == {stream_of(PATHS[0])}
    questions = {seen.json["messages"][-1]["content"] for seen in rig.upstream.seen[before:]}
    assert questions == {f"q{number}" for number in range(200)}


def test_no_key_and_no_word_of_a_message_is_logged(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    secrets = {"Authorization": "Bearer sk-secret", "x-api-key": "sk-secret"}
    with caplog.at_level(logging.DEBUG):
        for path in (*PATHS, "/v1/models", "/v1/%2e%2e/x"):
            client.post(
                f"{path}?key=sk-secret", json=body(messages=[{"role": "user", "content": "sk-secret"}]), headers=secrets
            )
    # This thread's lines are the client's; the access log is off, and only pytest gives it a handler.
    servers = [record for record in caplog.records if record.threadName != "MainThread"]
    own = [record.getMessage() for record in servers if record.name != "uvicorn.access"]
    assert any(INJECTED in line for line in own)
    assert not [line for line in own if "sk-secret" in line or "scouts-token" in line]


@pytest.mark.parametrize("path", ["/v1/%2e%2e/%2e%2e/admin", "/v1/..%2f..%2fadmin", "/v1/a%2F..%2F..%2F..%2Fb"])
def test_no_request_leaves_its_path(rig: Rig, client: httpx.Client, path: str) -> None:
    before = len(rig.upstream.seen)
    assert client.get(path).status_code in {400, 404}
    assert len(rig.upstream.seen) == before


def test_without_an_upstream_it_says_how_to_get_one() -> None:
    with rigged(Memory(), upstream=None) as rig:
        answer = httpx.post(f"{rig.url}{PATHS[0]}", json=body(), headers=TOKEN)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert "[gateway] upstream" in answer.json()["hint"]
