"""A library that answers with what it was asked: what the socket and the client are tried on."""

from collections.abc import Sequence

from dualwall.common import Json
from palace.errors import NotFoundError, UnreachableError, UsageError


class Echo:
    """Answers each question with its own arguments; some words make it fail."""

    def search(
        self,
        reader_name: str,
        query: str,
        rooms: Sequence[str],
        wings: Sequence[str],
        limit: int | None,
        *,
        explain: bool,
    ) -> Json:
        if query == "down":
            raise UnreachableError("The model cannot be reached.", "Build it.")
        if query == "wrong":
            raise UsageError("That is wrong.", "Do it right.")
        return {"asked": [reader_name, query, list(rooms), list(wings), limit, explain]}

    def rooms(self, reader_name: str, query: str | None, wing: str | None, cursor: str | None) -> Json:
        return {"asked": [reader_name, query, wing, cursor]}

    def read(self, reader_name: str, ref: str, lines: tuple[int, int] | None) -> Json:
        if ref == "none":
            raise NotFoundError("There is no such note.")
        return {"asked": [reader_name, ref, list(lines) if lines else None]}

    def neighbors(self, reader_name: str, ref: str) -> Json:
        return {"asked": [reader_name, ref, "neighbors"]}

    def status(self, *, files: bool) -> Json:
        return {"asked": ["status", files]}

    def verify(self, *, repair: bool) -> Json:
        return {"asked": ["verify", repair]}
