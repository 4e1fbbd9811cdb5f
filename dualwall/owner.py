"""The process that owns the embedded store: it answers the others over a Unix socket while it works.

The seam for the server: `create_app` takes whatever says who the reader is. On the socket that is a header, since only
the owner of the data folder can open it; over TCP it is a token.
"""

import hashlib
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from fastapi import APIRouter, Body, Depends, FastAPI, Header, Query
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from dualwall import questions, tools
from dualwall.common import Json
from dualwall.questions import API, Answers
from dualwall.web import problems, shapes
from injector import hooks
from palace import lock
from palace.errors import DualwallError, NotFoundError, UsageError
from palace.settings import Settings

_Line = Annotated[int | None, Query(ge=1, le=10_000_000)]
_LONGEST = 100
"""Bytes of a socket's path: the kernels' limits are 104 and 108."""
_FAILED: dict[int | str, dict[str, Any]] = {
    code: {"model": problems.Problem, "content": {problems.MEDIA_TYPE: {}}, "description": "What went wrong."}
    for code in ("4XX", "5XX")
}


def create_app(library: Callable[[], Answers], reader: Callable[..., str]) -> FastAPI:
    """The HTTP interface over a library; `reader` is the dependency that says who asks, or raises.

    Every answer is one reader's: what is in other cubes is neither named nor counted.
    """
    app = FastAPI(title="Dualwall", docs_url=None, redoc_url=None)
    for kind in (DualwallError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, problems.answer)
    app.include_router(_asking(library, reader))
    app.include_router(_tools(library, reader))
    app.include_router(_reading(library, reader))
    return app


def create_owner_app(library: Callable[[], Answers]) -> FastAPI:
    """The same for the socket: whoever can open it owns the data, and may ask for all of its state."""
    app = create_app(library, socket_reader)
    router = APIRouter(prefix=API)

    @router.get("/owner/status")
    def status(*, files: bool = False) -> JSONResponse:
        return JSONResponse(questions.status(files=files).answer(library(), ""))

    @router.post("/owner/verify")
    def verify(body: shapes.VerifyBody) -> JSONResponse:
        return JSONResponse(questions.verify(repair=body.repair).answer(library(), ""))

    app.include_router(router)
    return app


def socket_reader(x_dualwall_reader: Annotated[str, Header()]) -> str:
    """The reader that a caller on the socket says it is."""
    return x_dualwall_reader


def _asking(library: Callable[[], Answers], reader: Callable[..., str]) -> APIRouter:
    """What is asked with a body. Plain functions: they run in worker threads, so the event loop never waits for the engine."""
    router = APIRouter(prefix=API, responses=_FAILED)
    who = Depends(reader)

    @router.post("/search", responses={200: {"model": shapes.Found}})
    def search(body: shapes.SearchBody, asker: str = who) -> JSONResponse:
        questions.check_visible(body.query)
        question = questions.search(body.query, body.rooms, body.wings, body.limit, explain=body.explain)
        return JSONResponse(question.answer(library(), asker))

    @router.post("/inject", responses={200: {"model": shapes.Injection}})
    def inject(body: shapes.InjectBody, asker: str = who) -> JSONResponse:
        return JSONResponse(questions.inject(body.message, body.at).answer(library(), asker))

    @router.post("/hooks/claude-code", responses={200: {"model": shapes.HookAnswer}})
    def claude_code(body: shapes.HookBody, asker: str = who) -> JSONResponse:
        def remember(message: str) -> Json:
            return questions.inject(message).answer(library(), asker)

        return JSONResponse(hooks.claude_code(body.model_dump(), remember))

    return router


def _tools(library: Callable[[], Answers], reader: Callable[..., str]) -> APIRouter:
    """The agents' tools, for programs that call a model by themselves: the arguments are the body."""
    router = APIRouter(prefix=f"{API}/tools", responses=_FAILED)
    who = Depends(reader)

    def call(name: str, arguments: Annotated[dict[str, Any], Body()], asker: str = who) -> JSONResponse:
        return JSONResponse(questions.tool(name, arguments).answer(library(), asker))

    def one(tool: tools.Tool) -> Callable[..., JSONResponse]:
        def endpoint(arguments: Annotated[dict[str, Any], Body()], asker: str = who) -> JSONResponse:
            return call(tool.name, arguments, asker)

        return endpoint

    for tool in tools.TOOLS:
        body = {"required": True, "content": {"application/json": {"schema": tool.full_schema()}}}
        router.add_api_route(
            f"/{tool.name}",
            one(tool),
            methods=["POST"],
            name=tool.name,
            description=tool.description,
            responses={200: {"model": tool.answer}},
            openapi_extra={"requestBody": body},
        )
    router.add_api_route("/{name}", call, methods=["POST"], include_in_schema=False)
    return router


def _reading(library: Callable[[], Answers], reader: Callable[..., str]) -> APIRouter:
    """What is asked by its address."""
    router = APIRouter(prefix=API, responses=_FAILED)
    who = Depends(reader)

    @router.get("/rooms", responses={200: {"model": shapes.Rooms}})
    def rooms(
        query: str | None = None, wing: str | None = None, cursor: str | None = None, asker: str = who
    ) -> JSONResponse:
        try:
            return JSONResponse(questions.rooms(query, wing, cursor).answer(library(), asker))
        except UsageError as error:
            raise NotFoundError(error.message, error.hint) from error  # a cursor leads to no page

    @router.get("/notes/{ref:path}/neighbors", responses={200: {"model": shapes.Neighborhood}})
    def neighbors(ref: str, asker: str = who) -> JSONResponse:
        return JSONResponse(questions.neighbors(ref).answer(library(), asker))

    @router.get("/notes/{ref:path}", responses={200: {"model": shapes.Reading}})
    def read(ref: str, first: _Line = None, last: _Line = None, asker: str = who) -> JSONResponse:
        lines = None if first is None or last is None else (first, last)
        return JSONResponse(questions.read(ref, lines).answer(library(), asker))

    @router.get("/status", responses={200: {"model": shapes.Status}})
    def status(*, files: bool = False, asker: str = who) -> JSONResponse:
        return JSONResponse(questions.own_status(files=files).answer(library(), asker))

    return router


@contextmanager
def serve_in_thread(library: Answers, settings: Settings, held: lock.Held) -> Iterator[Path]:
    """Answer questions over a socket of this user while the body runs; `held` is the owner's lock."""
    with serve_app_in_thread(create_owner_app(lambda: library), settings, held) as path:
        yield path


@contextmanager
def serve_app_in_thread(app: FastAPI, settings: Settings, held: lock.Held) -> Iterator[Path]:
    """Serve an app over that socket while the body runs."""
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
