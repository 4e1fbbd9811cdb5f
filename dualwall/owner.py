"""The process that owns the embedded store: it answers the others over a Unix socket while it works.

The seam for the server: `create_app` takes whatever says who the reader is. On the socket that is a header, since only
the owner of the data folder can open it; over TCP it will be a token.
"""

import hashlib
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Header, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict

from dualwall import questions
from dualwall.questions import API, Answers
from palace import lock
from palace.errors import DualwallError, Exit, NotFoundError, UsageError
from palace.settings import Settings

_LONGEST = 100
"""Bytes of a socket's path: the kernels' limits are 104 and 108."""
_STATUS = {Exit.USAGE: 400, Exit.BUSY: 409, Exit.UNREACHABLE: 503}


class SearchBody(BaseModel):
    """What a search is asked with."""

    model_config = ConfigDict(extra="forbid")

    query: str
    rooms: list[str] = []
    wings: list[str] = []
    limit: int | None = None
    explain: bool = False


class InjectBody(BaseModel):
    """The last user message, and the time that it is (ISO 8601, else now)."""

    model_config = ConfigDict(extra="forbid")

    message: str
    at: str | None = None


class VerifyBody(BaseModel):
    """Whether what differs is mended."""

    model_config = ConfigDict(extra="forbid")

    repair: bool = False


def create_app(library: Callable[[], Answers], reader: Callable[..., str]) -> FastAPI:
    """The HTTP interface over a library; `reader` is the dependency that says who asks, or raises."""
    app = FastAPI(title="Dualwall", docs_url=None, redoc_url=None)
    app.add_exception_handler(DualwallError, _problem)
    app.add_exception_handler(RequestValidationError, _problem)
    app.include_router(_routes(library, reader))
    return app


def socket_reader(x_dualwall_reader: Annotated[str, Header()]) -> str:
    """The reader that a caller on the socket says it is."""
    return x_dualwall_reader


def _routes(library: Callable[[], Answers], reader: Callable[..., str]) -> APIRouter:
    """Plain functions: they run in worker threads, so the event loop never waits for the engine."""
    router = APIRouter(prefix=API, default_response_class=JSONResponse)
    who = Depends(reader)

    @router.get("/rooms")
    def rooms(
        query: str | None = None, wing: str | None = None, cursor: str | None = None, asker: str = who
    ) -> JSONResponse:
        return JSONResponse(questions.rooms(query, wing, cursor).answer(library(), asker))

    @router.post("/search")
    def search(body: SearchBody, asker: str = who) -> JSONResponse:
        question = questions.search(body.query, body.rooms, body.wings, body.limit, explain=body.explain)
        return JSONResponse(question.answer(library(), asker))

    @router.get("/notes/{ref:path}/neighbors")
    def neighbors(ref: str, asker: str = who) -> JSONResponse:
        return JSONResponse(questions.neighbors(ref).answer(library(), asker))

    @router.get("/notes/{ref:path}")
    def read(ref: str, first: int | None = None, last: int | None = None, asker: str = who) -> JSONResponse:
        lines = None if first is None or last is None else (first, last)
        return JSONResponse(questions.read(ref, lines).answer(library(), asker))

    @router.post("/inject")
    def inject(body: InjectBody, asker: str = who) -> JSONResponse:
        return JSONResponse(questions.inject(body.message, body.at).answer(library(), asker))

    @router.get("/status")
    def status(*, files: bool = False, asker: str = who) -> JSONResponse:
        return JSONResponse(questions.status(files=files).answer(library(), asker))

    return router


def _add_owner_routes(app: FastAPI, library: Callable[[], Answers]) -> None:
    """What only the data folder's owner may ask."""

    @app.post(f"{API}/verify")
    def verify(body: VerifyBody, asker: Annotated[str, Depends(socket_reader)]) -> JSONResponse:
        return JSONResponse(questions.verify(repair=body.repair).answer(library(), asker))


async def _problem(_request: Request, error: Exception) -> JSONResponse:
    """RFC 9457, with the exit code, so that the command line says what it would have said here."""
    known = error if isinstance(error, DualwallError) else UsageError(str(error))
    status = 404 if isinstance(known, NotFoundError) else _STATUS.get(known.exit_code, 500)
    body = {
        "type": "about:blank",
        "title": type(known).__name__,
        "status": status,
        "detail": known.message,
        "hint": known.hint,
        "exit_code": int(known.exit_code),
    }
    return JSONResponse(body, status_code=status, media_type="application/problem+json")


@contextmanager
def serve_in_thread(library: Answers, settings: Settings, held: lock.Held) -> Iterator[Path]:
    """Answer questions over a socket of this user while the body runs; `held` is the owner's lock."""
    app = create_app(lambda: library, socket_reader)
    _add_owner_routes(app, lambda: library)
    path = socket_path(settings)
    listener = _listen(path)
    server = uvicorn.Server(
        uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=5)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="owner-socket", daemon=True)
    thread.start()
    held.announce(path)
    try:
        yield path
    finally:
        held.announce(None)
        path.unlink(missing_ok=True)
        server.should_exit = True
        thread.join(timeout=10)
        listener.close()


def socket_path(settings: Settings) -> Path:
    """In the data folder, or, where that path is too long for a socket, in a folder of this user alone."""
    path = settings.data / "owner.sock"
    if len(os.fsencode(path)) <= _LONGEST:
        return path
    base = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    name = hashlib.sha256(os.fsencode(settings.data)).hexdigest()[:16]
    folder = base / f"dualwall-{os.getuid()}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    state = folder.lstat()
    if not folder.is_dir() or folder.is_symlink() or state.st_uid != os.getuid() or state.st_mode & 0o077:
        raise UsageError(
            f"{folder} is not this user's alone.", "Remove it, or set XDG_RUNTIME_DIR to a short folder of yours."
        )
    return folder / "owner.sock"


def _listen(path: Path) -> socket.socket:
    """A listening socket that only this user can open; what a dead owner left there is removed (the lock is held)."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(before)
    listener.listen(128)
    return listener
