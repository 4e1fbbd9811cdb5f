"""What the gateway adds to a request: `python -m bench.gateway [--notes 12000] [--rounds 150] [--folder KEPT] [--json]`.

Model, gateway and client are three processes. The palace is a generated vault (12 000 notes are about 60 000 chunks), with an
agent's own root that has a diary entry of today. Its passages have random vectors, which take no time to make; questions
are embedded by the real model. Each round asks the model directly and through the gateway, one after the other, so that
both see the same machine; what is added is the difference. Times are milliseconds; `processor`: of the gateway's process.
The issue's bounds: 15 ms at the 95th percentile for the answer and for the first byte of a stream, and none of 200 lost.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path

import httpx
import numpy as np
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from bench.vault import generate, questions
from ingest import worker
from injector.gateway import create_router
from injector.gateway_memory import remembering
from injector.recall import inject
from librarian.build import build
from palace.configuration import load
from palace.library import Library
from palace.stores.edge import EdgeVectors
from palace.stores.ports import Embedder, Vector
from sync.run import sync

PATH = "/v1/chat/completions"
AT_ONCE = 200
_WARM = 20
_TOML = """
data = "data"
[vaults.main]
source = "vault"
[[private]]
cube = "scout"
path = "scout"
rooms = { system_config = ["SOUL.md"], diary = ["memory/*.md"] }
[readers.scout]
cubes = ["global", "scout"]
"""
_context = multiprocessing.get_context("spawn")


class _RandomPassages:
    """The real model for questions, random unit vectors for passages."""

    def __init__(self, model: Embedder) -> None:
        self._model = model
        self._dice = np.random.default_rng(7)
        self.fingerprint, self.dimensions, self.max_tokens = model.fingerprint, model.dimensions, model.max_tokens

    def passages(self, texts: Sequence[str]) -> Iterator[Vector]:
        for _ in texts:
            raw = self._dice.standard_normal(self.dimensions).astype(np.float32)
            yield raw / np.linalg.norm(raw)

    def query(self, text: str) -> Vector:
        return self._model.query(text)

    def close(self) -> None:
        self._model.close()


def furnish(folder: Path, notes: int) -> None:
    """A palace of that many notes in a folder, unless it is there already."""
    if (folder / "ready").exists():
        return
    generate(folder / "vault", notes)
    today = datetime.now(UTC).date().isoformat()
    scout = folder / "scout"
    (scout / "memory").mkdir(parents=True)
    (scout / "SOUL.md").write_text("# Who I am\n\nI am Scout. I answer briefly and never pay anything.\n")
    (scout / "memory" / f"{today}.md").write_text("Mei asked about the fleece, and I counted the ravens.\n")
    (folder / "dualwall.toml").write_text(_TOML)
    settings = load(folder / "dualwall.toml")
    sync(settings, "main")
    build(settings)
    library = Library.open(settings)
    try:
        library.part("embedder", lambda: _RandomPassages(_model(library)))
        worker.run(library, settings)
        library.vectors.optimize()
    finally:
        library.close()
    (folder / "ready").touch()


def _model(library: Library) -> Embedder:
    from palace.embedding import dense  # noqa: PLC0415

    return dense.load(library.settings.embedding)


# -- three processes -----------------------------------------------------------------------------------------------------
def _serve(app: ASGIApp, told: Connection) -> None:
    listener = socket.socket(proto=socket.IPPROTO_TCP)  # told of the protocol, asyncio lets small parts go at once
    listener.bind(("127.0.0.1", 0))
    listener.listen(2048)
    told.send((os.getpid(), listener.getsockname()[1]))
    uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")).run(sockets=[listener])


def serve_model(told: Connection) -> None:
    """A model that answers at once, or in a stream of twenty parts."""
    part = b'data: {"choices":[{"index":0,"delta":{"content":"word "}}]}\n\n'

    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        kind = b"text/event-stream" if b'"stream":true' in body else b"application/json"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
        for _ in range(20 if kind == b"text/event-stream" else 1):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})

    _serve(app, told)


def serve_gateway(folder: Path, upstream: str, told: Connection) -> None:
    """The gateway over the palace in a folder, warm."""
    settings = load(folder / "dualwall.toml")
    gateway = settings.gateway.model_copy(update={"upstream": upstream})
    settings = settings.model_copy(update={"gateway": gateway})
    library = Library.open(settings)
    chunks = library.status()["chunks"]
    if isinstance(library.vectors, EdgeVectors):
        library.vectors.warm()
    inject(library, "scout", "warm", patient=True)
    app = FastAPI()
    app.include_router(create_router(settings, remembering(lambda: library), lambda: "scout"))
    told.send(chunks)
    _serve(app, told)


@dataclass(frozen=True, slots=True)
class Running:
    """The addresses of model and gateway, the gateway's process, and the palace's chunks."""

    direct: str
    gateway: str
    process: int
    chunks: int

    def processor(self) -> float:
        """Seconds of processor time that the gateway's process has taken; 0 where that cannot be told."""
        stat = Path(f"/proc/{self.process}/stat")
        if not stat.exists():
            return 0.0
        fields = stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(folder: Path) -> Iterator[Running]:
    """Model and gateway, each in a process of its own."""
    ours, theirs = _context.Pipe()
    model = _context.Process(target=serve_model, args=(theirs,), daemon=True)
    model.start()
    direct = f"http://127.0.0.1:{ours.recv()[1]}"
    gateway = _context.Process(target=serve_gateway, args=(folder, direct, theirs), daemon=True)
    gateway.start()
    try:
        chunks = ours.recv()
        process, port = ours.recv()
        yield Running(direct, f"http://127.0.0.1:{port}", process, chunks)
    finally:
        for one in (gateway, model):
            one.terminate()
            one.join()


# -- the client ------------------------------------------------------------------------------------------------------------
def _request(question: str, *, stream: bool) -> bytes:
    system = {"role": "system", "content": "You are a helpful assistant. " * 100}
    body = {"model": "m", "stream": stream, "messages": [system, {"role": "user", "content": question}]}
    return json.dumps(body, separators=(",", ":")).encode()


def _ask(client: httpx.Client, path: str, content: bytes) -> tuple[float, float, str]:
    """Milliseconds to the first byte and to the last one; and what was done about memory."""
    began = time.perf_counter()
    with client.stream("POST", path, content=content) as answer:
        parts = answer.iter_raw()
        next(parts)
        first = time.perf_counter()
        for _ in parts:
            pass
    last = time.perf_counter()
    return (first - began) * 1000, (last - began) * 1000, answer.headers.get("X-Dualwall", "").split(";")[0]


def compare(servers: Running, asked: Sequence[str], *, path: str = PATH, stream: bool = False) -> dict[str, object]:
    """Milliseconds to the answer, or to the first byte of a stream, without and with the gateway, round by round."""
    rows: list[tuple[float, float]] = []
    told, began = Counter[str](), 0.0
    with (
        httpx.Client(base_url=servers.direct, timeout=60) as one,
        httpx.Client(base_url=servers.gateway, timeout=60) as other,
    ):
        for number, question in enumerate(asked):
            if number == _WARM:
                began = servers.processor()
            content = _request(question, stream=stream)
            without, through = _ask(one, path, content), _ask(other, path, content)
            if number >= _WARM:
                rows.append((without[0], through[0]) if stream else (without[1], through[1]))
                told[through[2]] += 1
    return {
        "direct": _spread([without for without, _ in rows]),
        "gateway": _spread([through for _, through in rows]),
        "added": _spread([through - without for without, through in rows]),
        "processor": round((servers.processor() - began) * 1000 / len(rows), 2),
        "memory": dict(told),
    }


async def together(gateway: str, asked: Sequence[str]) -> dict[str, object]:
    """All at once: how many came back whole, in which time."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=gateway, timeout=60, limits=limits) as client:
        began = time.perf_counter()
        sent = [client.post(PATH, content=_request(question, stream=True)) for question in asked]
        answers = await asyncio.gather(*sent)
    whole = [a for a in answers if a.status_code == 200 and a.content.endswith(b"[DONE]\n\n")]
    told = Counter(a.headers["X-Dualwall"].split(";")[0] for a in whole)
    return {
        "asked": len(asked),
        "whole": len(whole),
        "seconds": round(time.perf_counter() - began, 2),
        "memory": dict(told),
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    cuts = statistics.quantiles(values, n=20)
    return {"p50": round(cuts[9], 2), "p95": round(cuts[18], 2)}


def main(arguments: Sequence[str]) -> int:
    """Print the figures; 1 when the issue's bounds are not held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=12_000)
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--folder", type=Path, help="keep the palace there, or take the one that is there")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.folder or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        furnish(folder, given.notes)
        found = measure(folder, given.notes, given.rounds)
    print(json.dumps(found) if given.json else "\n".join(f"{name:<14} {value}" for name, value in found.items()))
    return 0 if found["held"] else 1


def measure(folder: Path, notes: int, rounds: int) -> dict[str, object]:
    """All figures of a palace in a folder; `untouched`: a path that takes no memory."""
    # No question is asked twice, so nothing remembered helps.
    both = [one["question"] for one in questions(notes, count=2 * (rounds + _WARM))]
    asked, streamed = both[::2], both[1::2]
    with running(folder) as servers:
        untouched = compare(servers, asked, path="/v1/embeddings")
        plain = compare(servers, asked)
        stream = compare(servers, streamed, stream=True)
        parallel = asyncio.run(together(servers.gateway, [f"{asked[n % len(asked)]} {n}" for n in range(AT_ONCE)]))
    p95 = [part["p95"] for one in (plain, stream) if isinstance(part := one["added"], dict)]
    return {
        "chunks": servers.chunks,
        "untouched": untouched,
        "plain": plain,
        "first byte": stream,
        "parallel": parallel,
        "held": max(p95) <= 15 and parallel["whole"] == AT_ONCE,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
