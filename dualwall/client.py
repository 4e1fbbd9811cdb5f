"""Asking: over the socket of the process that owns the store, or with a library of one's own when nobody does."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dualwall import questions
from dualwall.common import Json
from dualwall.questions import READER_HEADER, Question
from palace import lock
from palace.errors import BusyError, DualwallError, Exit, UnreachableError, UsageError
from palace.settings import Settings

if TYPE_CHECKING:
    from palace.library import Library

PATIENCE = 30.0
"""Seconds that a question waits for an owner that does not answer yet."""
SERVING, BACKGROUND = "serve", "serve --background"
"""What a server calls itself in the owner's lock: one that a person runs, and one that a client started."""
_STEP = 0.1
_ANSWER_WITHIN = 120.0
"""Seconds for one answer: the engine holds the interpreter while it reorganises."""
_ERRORS: dict[int, type[DualwallError]] = {
    Exit.USAGE: UsageError,
    Exit.BUSY: BusyError,
    Exit.UNREACHABLE: UnreachableError,
}


def ask(settings: Settings, question: Question, reader: str, patience: float = PATIENCE) -> Json:
    """The answer, from the owner if there is one. Raises what the library raises, and BusyError after `patience`."""
    deadline = time.monotonic() + patience
    while True:
        owner = lock.owner(settings)
        answer = over_socket(owner.socket, question, reader) if owner and owner.socket else None
        if answer is None and owner is None:
            answer = _by_oneself(settings, question, reader)
        if answer is not None:
            return answer
        if time.monotonic() > deadline:
            raise BusyError(
                f"The store is owned by {owner or 'another process'}, which does not answer.",
                "Wait until it is done, or stop it, then ask again.",
            )
        time.sleep(_STEP)


@contextmanager
def owning(settings: Settings, command: str, wait: float = PATIENCE) -> "Iterator[Library]":
    """Own the store for a while, and answer the others' questions meanwhile."""
    from dualwall.owner import serve_in_thread  # noqa: PLC0415 - questions don't pay for the server
    from palace.library import Library  # noqa: PLC0415 - nor those that are sent to an owner for the engine

    make_way(settings)
    with lock.own(settings, command, wait) as held:
        library = Library.open(settings)
        try:
            with serve_in_thread(library, settings, held):
                yield library
        finally:
            library.close()


def make_way(settings: Settings) -> None:
    """Let the store become free: a server in the background leaves for whoever comes. Raises BusyError for a lasting one."""
    owner = lock.owner(settings)
    if owner is not None and owner.command == SERVING:
        raise BusyError(
            f"The store is owned by {owner}, for as long as it runs.",
            "`dualwall nightly` lets it do the work. For this command stop it first.",
        )
    if owner is not None and owner.command == BACKGROUND and owner.socket:
        over_socket(owner.socket, questions.leave(), "")


def _by_oneself(settings: Settings, question: Question, reader: str) -> Json | None:
    """None when another process was faster to own the store."""
    if not settings.catalogue.is_file():
        raise DualwallError(f"There is nothing to ask yet in {settings.data}.", "Run: dualwall nightly")
    from palace.library import Library  # noqa: PLC0415 - the engine is only loaded where no owner answers

    try:
        with lock.own(settings, "search"):
            library = Library.open(settings)
            try:
                return question.answer(library, reader)
            finally:
                library.close()
    except BusyError:
        return None


def over_socket(socket: str, question: Question, reader: str) -> Json | None:
    """None when the owner is gone or not there yet; every question may be asked twice."""
    import httpx  # noqa: PLC0415 - only where there is an owner

    timeout = None if question.slow else _ANSWER_WITHIN
    transport = httpx.HTTPTransport(uds=socket, verify=False)  # no TLS: its roots take 50 ms
    with httpx.Client(transport=transport, base_url="http://owner", timeout=timeout, trust_env=False) as client:
        try:
            response = client.request(
                question.method,
                question.path,
                params=dict(question.query),
                json=question.body,
                headers={READER_HEADER: reader},
            )
        except httpx.TransportError:
            return None
    if not response.headers.get("content-type", "").endswith("json"):
        return None  # cut off by an owner that ends
    return _unpack(response.status_code, response.json())


def _unpack(status: int, body: Json) -> Json:
    if status < 400:
        return body
    kind = _ERRORS.get(body.get("exit_code", Exit.FAILED), DualwallError)
    raise kind(str(body.get("detail", body)), str(body.get("hint", "")))
