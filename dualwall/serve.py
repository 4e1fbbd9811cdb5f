"""`dualwall serve`: one long-lived process that owns the store and answers on a Unix socket and over TCP."""

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import click
import uvicorn
from fastapi import APIRouter, FastAPI
from fastapi.responses import JSONResponse

from dualwall.client import BACKGROUND, PATIENCE, SERVING, make_way
from dualwall.common import common, print_json
from dualwall.owner import create_owner_app, serve_app_in_thread
from dualwall.questions import API
from dualwall.schedule import Nights, Stopping
from dualwall.web import hosts, logs, shapes
from dualwall.web.live import Live
from dualwall.web.logs import event
from dualwall.web.metrics import Metrics
from palace import lock
from palace.configuration import find, load
from palace.errors import BusyError, DualwallError, Exit, UsageError
from palace.library import Library
from palace.settings import Settings

IDLE = 15 * 60.0
"""Seconds after which a server in the background leaves when nobody asked."""
_TAKES = 3.0
"""Seconds that another one may keep the store: a single question of the command line does not."""
_ENDING = 15.0
"""Seconds that a night has to end."""


@click.command()
@click.option("--listen", metavar="HOST:PORT", help="Where (else `serve.listen` of the settings); port 0 picks one.")
@click.option("--background", is_flag=True, hidden=True, help="On the socket alone, no nights, and leave when idle.")
@common
def command(*, listen: str | None, background: bool, config: Path | None, as_json: bool) -> Exit:  # noqa: ARG001 - it prints JSON always
    """Own the palace and answer: MCP at /mcp, REST below /api/v1, health, figures; and run the night when it is due.

    The first line on standard output says where: {"listening": "http://127.0.0.1:8377"}. The log goes to standard error.
    It stops on ctrl-c and SIGTERM, when the requests under way are answered.
    """
    file = find(config)
    settings = load(file)
    logs.set_up()
    if background:
        with _server(settings, file, BACKGROUND) as server:
            server.wait()
    else:
        make_way(settings)
        with _bind(settings, listen or settings.serve.listen) as listener, _server(settings, file, SERVING) as server:
            server.listen(listener)
    return Exit.DONE


@dataclass(slots=True)
class _Server:
    """What runs while the store is owned."""

    live: Live
    metrics: Metrics
    nights: Nights
    stop: threading.Event
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self, *, nights: bool) -> None:
        """Start what goes on beside the answers."""
        jobs = [lambda: self.live.watch(self.stop)] + ([self.nights.loop] if nights else [])
        for job in jobs:
            thread = threading.Thread(target=job, daemon=True)
            thread.start()
            self.threads.append(thread)

    def listen(self, listener: socket.socket) -> None:
        """Answer over TCP until a signal comes."""
        from dualwall.web.app import create  # noqa: PLC0415 - the SDK takes a second

        host, port = listener.getsockname()[:2]
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

        def on_start() -> None:
            print_json({"listening": url})
            event("listening", url=url)

        app = create(self.live, self.metrics, on_start)
        config = uvicorn.Config(
            app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=10
        )
        server = uvicorn.Server(config)

        def end() -> None:  # a signal that comes before the server listens to them is not lost
            self.stop.wait()
            server.should_exit = True

        threading.Thread(target=end, daemon=True).start()
        server.run(sockets=[listener])
        if not server.started:
            raise DualwallError("The server could not start.", "Its log says why.")

    def wait(self) -> None:
        """Answer on the socket until a signal comes, or nobody asks any more."""
        while not self.stop.wait(1.0):
            if time.monotonic() - self.live.asked > IDLE and not self.nights.running:
                event("idle: leaving")
                return

    def end(self) -> bool:
        """Stop what was started; False when something does not end in time."""
        self.stop.set()
        deadline = time.monotonic() + _ENDING
        for thread in self.threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        while self.nights.running and time.monotonic() < deadline:
            time.sleep(0.05)
        return not (self.nights.running or any(thread.is_alive() for thread in self.threads))


@contextmanager
def _server(settings: Settings, file: Path, name: str) -> Iterator[_Server]:
    """Own the store, answer on the socket, and give it all back. Raises BusyError when another process has the store."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    make_way(settings)
    with lock.own(settings, name, PATIENCE if name == SERVING else _TAKES) as held:
        library = Library.open(settings)
        live, metrics = Live(library, file), Metrics()
        server = _Server(live, metrics, Nights(live, metrics, stop), stop)
        ended = False
        try:
            with serve_app_in_thread(_owner_app(server), settings, held):
                server.start(nights=name == SERVING)
                yield server
        finally:
            ended = server.end()
            if ended:
                library.close()
    event("stopped")
    if not ended:  # a thread inside the engine; whatever it leaves half-done, the next start finishes
        event("not everything ended in time", logging.WARNING)
        os._exit(Exit.DONE)


def _owner_app(server: _Server) -> FastAPI:
    """What the socket answers: more than TCP does, since only the data's owner can open it."""
    app = create_owner_app(server.live.library)
    router = APIRouter(prefix=f"{API}/owner")

    @router.post("/night")
    def night(body: shapes.NightBody) -> JSONResponse:
        older = None if body.older is None else timedelta(seconds=body.older)
        try:
            return JSONResponse(server.nights.run(dry_run=body.dry_run, older=older))
        except Stopping as error:
            raise BusyError("The server was stopped before the night was done.", "Run it again.") from error

    @router.post("/leave")
    def leave() -> JSONResponse:
        server.stop.set()
        return JSONResponse({})

    app.include_router(router)
    return app


def _bind(settings: Settings, where: str) -> socket.socket:
    """A listening socket. Raises UsageError for an address that is none, or that others could reach without a token."""
    host, port = hosts.address(where)
    if not any(entry.token_sha256 for entry in settings.readers.values()):
        hint = f"Make one: dualwall token {settings.default_reader} --write"
        if not hosts.is_local(host):
            raise UsageError(f"No reader has a token, so {where} would be open to others.", hint)
        event("no reader has a token: nobody can ask over TCP", logging.WARNING, hint=hint)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(
        family, socket.SOCK_STREAM, socket.IPPROTO_TCP
    )  # told so, asyncio sends small parts at once
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise DualwallError(
            f"{where} cannot be listened on: {error.strerror or error}.", "Another port: --listen 127.0.0.1:0"
        ) from error
    return listener
