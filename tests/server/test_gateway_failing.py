"""Whatever fails behind the gateway, or before it: the request goes on, or its failure is told as it was."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from injector.gateway_memory import FAILURES, remembering
from palace.errors import UnreachableError
from palace.stores.memory import MemoryVectors
from palace.stores.ports import Record, Scored, Sparse
from palace.vocabulary import ChunkId
from palace.walls import Scope
from tests.flows.injecting import CANARIES, housed, opened
from tests.server.gateways import INJECTED, TOKEN, Memory, Rig, answer, rigged

PATHS = ("/v1/chat/completions", "/v1/responses", "/v1/messages")
WAIT = 1.0
"""The gateway's patience with its upstream here, in seconds."""


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with rigged(Memory(), timeout_read=WAIT) as rig:
        yield rig


@pytest.fixture
def client(rig: Rig) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=rig.url, headers=TOKEN, timeout=20) as client:
        yield client


def body(model: str = "m", **more: object) -> dict[str, object]:
    return {"model": model, "messages": [{"role": "user", "content": "lidar?"}], "input": "lidar?"} | more


def test_an_upstream_that_hangs_is_a_time_out(client: httpx.Client) -> None:
    told = client.post(PATHS[0], json=body("hang"))
    assert told.status_code == 504
    assert told.headers["content-type"] == "application/problem+json"
    assert told.headers["X-Dualwall"] == INJECTED
    assert told.json()["status"] == 504


def test_an_upstream_that_is_not_there_is_a_bad_gateway() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        with rigged(Memory(), upstream=f"http://127.0.0.1:{nobody.getsockname()[1]}/v1") as rig:
            told = httpx.post(f"{rig.url}{PATHS[2]}", json=body(), headers=TOKEN)
    assert (told.status_code, told.json()["status"]) == (502, 502)
    assert told.json()["hint"]


def test_an_upstream_that_speaks_no_http_is_a_bad_gateway() -> None:
    with socket.create_server(("127.0.0.1", 0)) as odd:

        def speak() -> None:
            connection, _ = odd.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"SSH-2.0-odd\r\n")

        thread = threading.Thread(target=speak, daemon=True)
        thread.start()
        with rigged(Memory(), upstream=f"http://127.0.0.1:{odd.getsockname()[1]}") as rig:
            told = httpx.post(f"{rig.url}{PATHS[0]}", json=body(), headers=TOKEN)
        thread.join(5)
    assert told.status_code == 502


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("model", "stream"), [("break", True), ("break", False), ("silent", True)])
def test_what_breaks_off_ends_broken(client: httpx.Client, path: str, model: str, stream: bool) -> None:  # noqa: FBT001
    got = b""
    with (  # noqa: PT012 - the answer begins well
        pytest.raises(httpx.RemoteProtocolError),
        client.stream("POST", path, json=body(model, stream=stream)) as told,
    ):
        assert told.status_code == 200
        for part in told.iter_raw():
            got += part
    assert got
    assert b"[DONE]" not in got


@pytest.mark.parametrize(("model", "stream"), [("hang", False), ("slow", True)])
def test_a_client_that_leaves_takes_its_request_along(rig: Rig, model: str, stream: bool) -> None:  # noqa: FBT001
    """It leaves before the first byte, or in the midst of a stream, and the upstream learns of it at once."""
    before = len(rig.upstream.seen)
    with httpx.Client(base_url=rig.url, headers=TOKEN) as client:
        if stream:
            with client.stream("POST", PATHS[0], json=body(model, stream=True)) as told:
                next(told.iter_raw())
        else:
            with pytest.raises(httpx.ReadTimeout):
                client.post(PATHS[0], json=body(model), timeout=0.3)
    assert rig.upstream.seen[before].left.wait(WAIT * 0.8)


def test_a_client_that_leaves_while_it_sends_does_no_harm(rig: Rig, client: httpx.Client) -> None:
    before = len(rig.upstream.seen)
    host, port = rig.url.removeprefix("http://").split(":")
    for path in (PATHS[0], "/v1/files"):
        with socket.create_connection((host, int(port))) as half:
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\nX-Dualwall-Token: scouts-token\r\nContent-Length: 99\r\n\r\n"
            half.sendall(head.encode() + b'{"mess')
            time.sleep(0.1)
    assert client.post(PATHS[0], json=body()).status_code == 200
    assert len(rig.upstream.seen) == before + 1


def test_a_palace_that_hangs_costs_its_deadline_and_then_nothing() -> None:
    async def hangs(_reader: str, _message: str) -> dict[str, Any]:
        await asyncio.sleep(30)
        return answer()

    with rigged(hangs, deadline_ms=150) as rig, httpx.Client(base_url=rig.url, headers=TOKEN) as client:
        told = [client.post(PATHS[0], json=body()) for _ in range(FAILURES + 1)]
        assert all(seen.json == body() for seen in rig.upstream.seen)
    assert [one.headers["X-Dualwall"] for one in told] == ["late"] * FAILURES + ["down"]
    assert all(one.status_code == 200 for one in told)
    assert all(one.headers["X-Dualwall-Reason"] for one in told)


class _Store(MemoryVectors):
    """A store that is down, or hangs until it is told to go on."""

    def __init__(self, go: threading.Event | None) -> None:
        super().__init__()
        self._go = go

    def retrieve(self, ids: Sequence[ChunkId], scope: Scope) -> list[Record]:  # noqa: ARG002 - the port's
        self._fail()
        return []

    def sparse(self, query: Sparse, scope: Scope, limit: int) -> list[Scored]:  # noqa: ARG002 - the port's
        self._fail()
        return []

    def _fail(self) -> None:
        if self._go is None:
            raise UnreachableError("The store does not answer.")
        self._go.wait(10)


@pytest.mark.slow
def test_a_real_palace_behind_the_gateway_and_its_walls(tmp_path: Path, embeddings_url: str) -> None:
    with opened(housed(tmp_path, embeddings_url, more="inject = { deadline_ms = 5000 }")) as library:
        remember = remembering(lambda: library)
        with rigged(remember, deadline_ms=5000) as rig, httpx.Client(base_url=rig.url) as client:
            for token, own, other in (("scouts-token", "scout", "owl"), ("owls-token", "owl", "scout")):
                for path in PATHS:
                    told = client.post(path, json=body(), headers={"X-Dualwall-Token": token})
                    assert told.headers["X-Dualwall"].startswith("injected; tokens=")
                    sent = rig.upstream.seen[-1].body.decode()
                    assert CANARIES[own] in sent
                    assert CANARIES[other] not in sent
                    assert "steers by camera" in sent
            go = threading.Event()
            for store, header in ((_Store(None), "injected"), (_Store(go), "late")):
                library._parts.pop("searcher", None)
                library._parts["vectors"] = store
                library.settings = library.settings.model_copy(
                    update={"inject": library.settings.inject.model_copy(update={"deadline_ms": 300})}
                )
                told = client.post(PATHS[0], json=body(), headers=TOKEN)
                assert told.status_code == 200
                assert told.headers["X-Dualwall"].split(";")[0] == header
                assert ("steers by camera" in rig.upstream.seen[-1].body.decode()) is False
            go.set()
            library.database.close()
            told = client.post(PATHS[0], json=body(), headers=TOKEN)
            assert (told.status_code, told.headers["X-Dualwall"]) == (200, "down")
            assert json.loads(rig.upstream.seen[-1].body) == body()
