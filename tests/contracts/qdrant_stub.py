"""A small HTTP server that speaks as Qdrant does where its answers are faults, which a real one gives too rarely."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from palace.stores.payload import INDEXED

Answer = tuple[int, Any]
"""A status and what stands in the body: a sentence of an error, or a result."""
NAME = "dualwall"


@dataclass
class Stub:
    """What the server answers by the start of a request's line; a list is given answer by answer, its last one for ever."""

    url: str = ""
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    keys: set[str | None] = field(default_factory=set)

    def says(self, line: str, *answers: Answer) -> None:
        """From now on a request like `PUT /collections` is answered so."""
        self.answers[line] = list(answers)

    def answer(self, line: str) -> Answer:
        """The answer of the longest start that fits."""
        fits = [start for start in self.answers if line.startswith(start)]
        if not fits:
            return 404, f"Not found: nobody told what to answer to {line}"
        given = self.answers[max(fits, key=len)]
        return given.pop(0) if len(given) > 1 else given[0]


def described(model: str = "toy", dimensions: int = 8, **meta: object) -> dict[str, Any]:
    """A collection of ours as the server describes it."""
    keyword = {"data_type": "keyword", "params": {"type": "keyword"}, "points": 0}
    vector = {"size": dimensions, "distance": "Cosine", "hnsw_config": {"m": 0}}
    own = {"format": 1, "model": model, "dimensions": dimensions} | meta
    return {
        "status": "green",
        "optimizer_status": "ok",
        "points_count": 0,
        "segments_count": 2,
        "config": {
            "params": {"vectors": {"dense": vector}, "sparse_vectors": {"bm25": {"modifier": "idf"}}},
            "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
            "optimizer_config": {
                "deleted_threshold": 0.2,
                "vacuum_min_vector_number": 1000,
                "default_segment_number": 0,
                "flush_interval_sec": 5,
            },
            "metadata": {"dualwall": own},
        },
        "payload_schema": dict.fromkeys(INDEXED, keyword),
    }


@contextmanager
def stub() -> Iterator[Stub]:
    """A server with one empty collection of ours, on a free port."""
    told = Stub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            line = f"{self.command} {self.path}"
            told.asked.append(line)
            told.keys.add(self.headers.get("api-key"))
            status, said = told.answer(line)
            if status < 400:
                body = said if self.path == "/" else {"result": said, "status": "ok", "time": 0.0}
            else:
                body = {"status": {"error": said}, "time": 0.0}
            data = said.encode() if status in {401, 403} else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 - the base class's names

        def log_message(self, *_: object) -> None:
            """Nothing: a test's output is its own."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    told.url = f"http://127.0.0.1:{server.server_port}"
    told.says("GET /", (200, {"title": "qdrant - vector search engine", "version": "1.19.0"}))
    told.says("GET /aliases", (200, {"aliases": [{"alias_name": NAME, "collection_name": f"{NAME}-000001"}]}))
    told.says(f"GET /collections/{NAME}-000001", (200, described()))
    told.says(f"PUT /collections/{NAME}/points", (200, {"operation_id": 1, "status": "completed"}))
    told.says(f"POST /collections/{NAME}/points/count", (200, {"count": 3}))
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
