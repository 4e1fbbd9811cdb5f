"""The OpenAI-compatible embedder against a real server on this machine."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palace.embedding import dense
from palace.embedding.openai import KEY_VARIABLE, OpenAIEmbedder, Patience, address
from palace.errors import SettingsError, UnreachableError
from palace.settings import Embedding

Answer = tuple[int, dict[str, Any], dict[str, str]]
SHORT = Patience(answer=2, passages=2, query=2)


class Server:
    """Answers what `answer` makes of a request's body and its number; keeps what it was asked."""

    def __init__(self, answer: Callable[[dict[str, Any], int], Answer]) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.keys.append(self.headers["Authorization"])
                outer.bodies.append(body)
                status, data, headers = answer(body, len(outer.bodies))
                packed = json.dumps(data).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(packed))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(packed)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


Serve = Callable[[Callable[[dict[str, Any], int], Answer]], Server]


@pytest.fixture(name="serve")
def _serve() -> Iterator[Serve]:
    servers: list[Server] = []

    def start(answer: Callable[[dict[str, Any], int], Answer]) -> Server:
        servers.append(Server(answer))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def embeddings(body: dict[str, Any]) -> dict[str, Any]:
    """Vectors of three dimensions that tell a text's length and first letter; last text first."""
    size = int(body.get("dimensions", 3))
    data = [
        {"index": index, "embedding": [float(len(text)), float(ord(text[0])), *[1.0] * (size - 2)]}
        for index, text in enumerate(body["input"])
    ]
    return {"data": data[::-1]}


def good(body: dict[str, Any], _: int) -> Answer:
    return 200, embeddings(body), {}


def made(server: Server, **more: Any) -> OpenAIEmbedder:  # noqa: ANN401 - keys of the settings
    return OpenAIEmbedder(Embedding(provider="openai", model="some-model", url=server.url, **more), SHORT)


def test_vectors_come_in_order_over_many_requests(serve: Serve) -> None:
    server = serve(good)
    embedder = made(server)
    texts = ["x" * (1 + number) for number in range(70)]
    found = np.array(list(embedder.passages(texts)))
    wanted = np.array([[1 + number, ord("x"), 1.0] for number in range(70)])
    np.testing.assert_allclose(found, wanted / np.linalg.norm(wanted, axis=1, keepdims=True), atol=1e-3)
    assert sorted(len(body["input"]) for body in server.bodies) == [1, 6, 32, 32]
    assert embedder.dimensions == 3
    embedder.close()


def test_prefixes_model_and_dimensions_are_sent(serve: Serve) -> None:
    server = serve(good)
    embedder = made(server, dimensions=5, query_prefix="Q: ", passage_prefix="P: ")
    assert len(embedder.query("a")) == 5
    assert len(next(iter(embedder.passages(["b"])))) == 5
    assert [body["input"] for body in server.bodies] == [["Q: a"], ["P: b"]]
    assert {(body["model"], body["dimensions"]) for body in server.bodies} == {("some-model", 5)}
    other = made(server, dimensions=5)
    assert other.fingerprint != embedder.fingerprint
    assert embedder.fingerprint.startswith("some-model-")
    embedder.close()
    other.close()


def test_a_busy_server_is_asked_again(serve: Serve) -> None:
    server = serve(lambda body, number: good(body, number) if number > 2 else (503, {}, {"Retry-After": "0"}))
    embedder = made(server)
    assert len(server.bodies) == 3
    embedder.close()


def test_a_refusal_is_final_and_the_key_is_not_shown(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda _, __: (401, {"error": "bad key"}, {}))
    (tmp_path / "key").write_text("sk-secret\n")
    with pytest.raises(UnreachableError, match="status 401") as caught:
        made(server, api_key_file=tmp_path / "key")
    assert server.keys == ["Bearer sk-secret"]
    assert "sk-secret" not in str(caught.value)
    assert KEY_VARIABLE in caught.value.hint


def test_the_key_may_come_from_the_environment(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "from-env")
    server = serve(good)
    made(server).close()
    assert server.keys == ["Bearer from-env"]


@pytest.mark.parametrize(
    "answer",
    [
        {"data": []},
        {"data": [{"index": 0, "embedding": [0.0, 0.0]}]},
        {"data": [{"index": 0, "embedding": ["x"]}]},
        {"error": "no"},
        [],
    ],
)
def test_an_answer_without_embeddings_is_told(serve: Serve, answer: dict[str, Any]) -> None:
    server = serve(lambda _, __: (200, answer, {}))
    with pytest.raises(UnreachableError, match="embedding server"):
        made(server)


def test_other_dimensions_than_before_are_refused(serve: Serve) -> None:
    server = serve(lambda body, number: good(body | {"dimensions": 3 if number == 1 else 4}, number))
    embedder = made(server)
    with pytest.raises(UnreachableError, match="of 3 dimensions"):
        embedder.query("a")
    embedder.close()


def test_nobody_there_is_told_before_the_deadline() -> None:
    settings = Embedding(provider="openai", model="m", url="http://127.0.0.1:9/v1")
    begun = time.monotonic()
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:9"):
        OpenAIEmbedder(settings, Patience(query=1))
    assert time.monotonic() - begun < 2


@pytest.mark.parametrize(
    ("url", "posted"),
    [
        ("http://host:1", "http://host:1/v1/embeddings"),
        ("http://host:1/v1/", "http://host:1/v1/embeddings"),
        ("https://host/v1/embeddings", "https://host/v1/embeddings"),
        ("https://host/api/v3", "https://host/api/v3/embeddings"),
    ],
)
def test_where_to_post(url: str, posted: str) -> None:
    assert address(url) == posted


@pytest.mark.parametrize("url", [None, "", "host:1", "ftp://host", "http://me:key@host/v1", "http://host:port"])
def test_what_is_no_address_is_refused(url: str | None) -> None:
    with pytest.raises(SettingsError, match="url is no address") as caught:
        address(url)
    assert "me:key" not in str(caught.value)


def test_a_key_file_that_is_missing_is_a_fault_of_the_settings(tmp_path: Path) -> None:
    settings = Embedding(provider="openai", model="m", url="http://127.0.0.1:9", api_key_file=tmp_path / "none")
    with pytest.raises(SettingsError, match="api_key_file"):
        dense.load(settings)
