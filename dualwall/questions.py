"""Questions to the palace, each in two forms: a call of the library here, and a request to the process that owns it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol, cast
from urllib.parse import quote

from dualwall.common import Json
from palace.errors import BusyError, NotFoundError

if TYPE_CHECKING:
    from palace.library import Library

API = "/api/v1"
READER_HEADER = "X-Dualwall-Reader"
"""Who asks, on the socket; only the user whose data folder it is can open that."""


class Answers(Protocol):
    """What `palace.library.Library` answers; shapes are contract.md's. Raises DualwallError."""

    def search(  # noqa: PLR0913 - the options of a search
        self,
        reader_name: str,
        query: str,
        rooms: Sequence[str],
        wings: Sequence[str],
        limit: int | None,
        *,
        explain: bool,
    ) -> Json:
        """Hits with their receipt."""

    def rooms(self, reader_name: str, query: str | None, wing: str | None, cursor: str | None) -> Json:
        """Rooms with counts, ordered by a query if there is one."""

    def read(self, reader_name: str, ref: str, lines: tuple[int, int] | None) -> Json:
        """A note's text, or some lines of it."""

    def neighbors(self, reader_name: str, ref: str) -> Json:
        """What stands around a note."""

    def status(self, *, files: bool) -> Json:
        """Counts, and each file's state if asked for."""

    def verify(self, *, repair: bool) -> Json:
        """Differences between palace, vectors, graph and catalogue."""


@dataclass(frozen=True, slots=True)
class Question:
    """`answer` here, or `method path?query` with `body` over the socket: the same JSON comes back. `slow`: in its own time."""

    answer: Callable[[Answers, str], Json]
    method: str
    path: str
    query: Mapping[str, str | int] = field(default_factory=dict)
    body: Json | None = None
    slow: bool = False


def check_visible(query: str) -> None:
    """Raises NotFoundError for a question of which nothing can be seen: there is nothing to find."""
    if not any(c.isprintable() and not c.isspace() for c in query):
        raise NotFoundError(
            "The question has no visible character.", "Ask something: a few words, or a whole question."
        )


def search(
    query: str, rooms: Sequence[str] = (), wings: Sequence[str] = (), limit: int | None = None, *, explain: bool = False
) -> Question:
    """Ask for hits."""
    body = {"query": query, "rooms": list(rooms), "wings": list(wings), "limit": limit, "explain": explain}
    return Question(
        lambda library, reader: library.search(reader, query, rooms, wings, limit, explain=explain),
        "POST",
        f"{API}/search",
        body=body,
    )


def rooms(query: str | None = None, wing: str | None = None, cursor: str | None = None) -> Question:
    """Ask for rooms."""
    given = {"query": query, "wing": wing, "cursor": cursor}
    return Question(
        lambda library, reader: library.rooms(reader, query, wing, cursor),
        "GET",
        f"{API}/rooms",
        {name: value for name, value in given.items() if value is not None},
    )


def read(ref: str, lines: tuple[int, int] | None = None) -> Question:
    """Ask for a note."""
    return Question(
        lambda library, reader: library.read(reader, ref, lines),
        "GET",
        f"{API}/notes/{quote(ref, safe='')}",
        {"first": lines[0], "last": lines[1]} if lines else {},
    )


def neighbors(ref: str) -> Question:
    """Ask what stands around a note."""
    return Question(
        lambda library, reader: library.neighbors(reader, ref), "GET", f"{API}/notes/{quote(ref, safe='')}/neighbors"
    )


def inject(message: str, at: str | None = None, *, patient: bool = False) -> Question:
    """Ask what goes before the response to a message; `patient`: when it is answered here, wait for all of it."""

    def answer(library: Answers, reader: str) -> Json:
        from injector import recall  # noqa: PLC0415 - only where it is answered

        return recall.inject(cast("Library", library), reader, message, at, patient=patient)

    return Question(answer, "POST", f"{API}/inject", body={"message": message, "at": at})


def tool(name: str, arguments: Mapping[str, object]) -> Question:
    """Call an agent's tool."""

    def answer(library: Answers, reader: str) -> Json:
        from dualwall import tool_answers  # noqa: PLC0415 - only where it is answered

        return tool_answers.call(cast("Library", library), reader, name, arguments)

    return Question(answer, "POST", f"{API}/tools/{quote(name, safe='')}", body=dict(arguments))


def status(*, files: bool = False) -> Question:
    """Ask what is indexed: the data's owner asks, of every cube."""
    return Question(lambda library, _: library.status(files=files), "GET", f"{API}/owner/status", {"files": int(files)})


def own_status(*, files: bool = False) -> Question:
    """Ask what is indexed of the reader's own cubes."""
    return Question(
        lambda library, reader: cast("Library", library).status_of(reader, files=files),
        "GET",
        f"{API}/status",
        {"files": int(files)},
    )


def verify(*, repair: bool = False) -> Question:
    """Ask for differences."""
    return Question(
        lambda library, _: library.verify(repair=repair), "POST", f"{API}/owner/verify", body={"repair": repair}
    )


def night(*, dry_run: bool = False, older: timedelta | None = None) -> Question:
    """Let a server that owns the store run the night, or only if the last success is that old."""
    body = {"dry_run": dry_run, "older": None if older is None else older.total_seconds()}
    return Question(_servers_own, "POST", f"{API}/owner/night", body=body, slow=True)


def leave() -> Question:
    """Ask a server in the background to give the store up."""
    return Question(_servers_own, "POST", f"{API}/owner/leave")


def _servers_own(_library: Answers, _reader: str) -> Json:
    raise BusyError("The server has just ended.", "Run the command again.")
