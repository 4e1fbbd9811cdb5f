"""What the agents' tools answer: the library's answers made small enough for a context, by the real tokenizer.

Runs where the library is: in the process that owns the store.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from dualwall import tool_shapes as shapes
from dualwall import tools
from dualwall.common import Json
from dualwall.questions import check_visible
from palace.errors import NotFoundError, UnreachableError, UsageError

if TYPE_CHECKING:  # the engine is loaded by the process that answers, not by those that only list the tools
    from palace.library import Library

_ROOMS_A_PAGE = 40
_NOTES_A_LIST = 20
_RECENT = 30
_READ_TOKENS = 6000
_MOST_QUERY = 2000
_LEAST_TEXT = 20
"""Tokens of a passage that are worth showing."""
_SLACK = 8
"""Tokens by which a whole may count more than its parts."""
_RECEIPT = ("time", "reader", "cubes", "asked", "searched", "fallback", "generation", "dense_share")
_MORE = "{} more hits did not fit: raise max_tokens, name a room, or ask a narrower question."


class Tokens(Protocol):
    """A tokenizer, as far as answers need one."""

    def count(self, text: str) -> int:
        """How many tokens a text has."""

    def starts(self, text: str) -> Sequence[int]:
        """Where each token starts, in characters."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One call: of which palace, and by whom."""

    library: "Library"
    reader: str

    @property
    def tokens(self) -> Tokens:
        """The model's tokenizer; a rough one, which counts too many, where that is not to be had."""
        return self.library.part("tool_tokens", self._load)

    def _load(self) -> Tokens:
        try:
            return cast("Tokens", self.library.counter)
        except UnreachableError:
            return _Rough()


class _Rough:
    def count(self, text: str) -> int:
        return len(text.encode("utf-8", "replace")) // 2 + 1

    def starts(self, text: str) -> Sequence[int]:
        return range(len(text))


def call(library: "Library", reader: str, name: str, arguments: object) -> Json:
    """The answer of a tool, in its own shape. Raises UsageError for a wrong call, and what the library raises."""
    library.reader(reader)
    tool, given = tools.parse(name, arguments, write=library.settings.readers[reader].write)
    answer = _ANSWERS[tool.name](Asked(library, reader), given)
    return tool.answer.model_validate(answer).model_dump(mode="json", exclude_none=True)


def dumped(answer: Json) -> str:
    """An answer as the text that a model reads."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def _list_rooms(asked: Asked, given: shapes.ListRooms) -> Json:
    try:
        page = asked.library.rooms(
            asked.reader, _head(given.query) or None, given.wing or None, given.cursor or None, _ROOMS_A_PAGE
        )
    except UsageError as error:
        raise NotFoundError(error.message, error.hint) from error  # a cursor leads to no page
    rooms = [
        {
            **_only(room, "label", "cube", "notes", "description", "score"),
            "room": f"{room['wing']}/{room['room']}",
            "changed": (room["changed"] or "")[:10] or None,
        }
        for room in page["rooms"]
    ]
    return {"rooms": rooms, "next": page["next"], "truncated": page["next"] is not None}


def _search(asked: Asked, given: shapes.Search) -> Json:
    check_visible(given.query)
    rooms, wings = ([name] if name else [] for name in (given.room, given.wing))
    found = asked.library.search(asked.reader, given.query, rooms, wings, given.limit)
    answer = _only(found, "status", "fallback", "reason") | {
        "hits": [],
        "elsewhere": [_only(note, "ref", "title", "rooms", "score") for note in found["elsewhere"]],
        "hints": list(found["hints"]),
        "truncated": False,
        "receipt": _only(found["receipt"], *_RECEIPT),
    }
    spare = given.max_tokens - asked.tokens.count(dumped(answer) + _MORE) - _SLACK
    answer["hits"], answer["truncated"] = _fitting(list(map(_hit, found["hits"])), spare, asked.tokens)
    if left := len(found["hits"]) - len(answer["hits"]):
        answer["hints"].append(_MORE.format(left))
    return answer


def _read(asked: Asked, given: shapes.Read) -> Json:
    first, last = given.lines or (1, None)
    span = None if last is None else (first, last)
    found = asked.library.read(asked.reader, given.ref, span)
    if found["lines"][0] > found["lines"][1]:
        raise NotFoundError(f"The note has {found['lines'][1]} lines.", "Lines count from 1; give first and last.")
    text = _whole_lines(found["text"], _READ_TOKENS, asked.tokens)
    shown = text.count("\n") + 1
    return {
        **_only(found, "ref", "title", "path", "cube", "rooms", "note_sha256"),
        "lines": [found["lines"][0], found["lines"][0] + shown - 1],
        "text": text,
        "stale": found["stale"] or None,
        "truncated": len(text) < len(found["text"]),
    }


def _neighbors(asked: Asked, given: shapes.Neighbors) -> Json:
    found = asked.library.neighbors(asked.reader, given.ref)
    lists = {
        name: [_only(note, "ref", "title", "rooms", "via") for note in found[name][:_NOTES_A_LIST]]
        for name in ("links", "backlinks", "shared_tags")
    }
    unresolved = [link["link"] for link in found["unresolved"][:_NOTES_A_LIST]]
    return {
        **lists,
        "unresolved": unresolved,
        "truncated": any(len(notes) > _NOTES_A_LIST for notes in found.values()),
    }


def _recent(asked: Asked, given: shapes.Recent) -> Json:
    return asked.library.recent(asked.reader, given.room or None, given.days, _RECENT)


def _remember(asked: Asked, given: shapes.Remember) -> Json:
    return asked.library.remember(asked.reader, given.text, given.title or None) | {"status": "candidate"}


def _status(asked: Asked, _given: shapes.Status) -> Json:
    found = asked.library.status_of(asked.reader)
    who = {"reader": asked.reader, "cubes": sorted(asked.library.reader(asked.reader).cubes)}
    return who | _only(found, "notes", "pending", "problems", "generation", "last_success")


_ANSWERS: dict[str, Callable[[Asked, Any], Json]] = {
    "list_rooms": _list_rooms,
    "search": _search,
    "read": _read,
    "neighbors": _neighbors,
    "recent": _recent,
    "remember": _remember,
    "status": _status,
}


def _head(query: str) -> str:
    """What is compared with the rooms' names: a whole prompt names all of them."""
    if len(query) <= _MOST_QUERY:
        return query
    return query[:_MOST_QUERY].rpartition(" ")[0] or query[:_MOST_QUERY]


def _hit(found: Json) -> Json:
    """A hit without what a model cannot use; what is as usual is not said."""
    status = None if found["status"] == "active" else found["status"]
    kept = ("ref", "title", "path", "cube", "rooms", "lines", "text", "score", "note_sha256", "trust")
    return {
        **_only(found, *kept),
        "heading": found["heading"] or None,
        "status": status,
        "stale": found["stale"] or None,
    }


def _fitting(hits: Sequence[Json], spare: int, tokens: Tokens) -> tuple[list[Json], bool]:
    """As many hits as fit, whole, and whether that is not all; the first one is cut if it has to be."""
    kept: list[Json] = []
    for hit in hits:
        cost = tokens.count(dumped(hit)) + 1
        if cost > spare:
            return kept or _cut(hit, spare, tokens), True
        spare -= cost
        kept.append(hit)
    return kept, False


def _cut(hit: Json, spare: int, tokens: Tokens) -> list[Json]:
    """The hit with as much of its text as fits; none when that would say nothing."""
    room = spare - tokens.count(dumped({**hit, "text": "…"}))
    while room >= _LEAST_TEXT:
        shown = {**hit, "text": hit["text"][: tokens.starts(hit["text"])[room]].rstrip() + "…"}
        over = tokens.count(dumped(shown)) - spare  # what JSON escapes takes tokens that the text alone has not
        if over <= 0:
            return [shown]
        room -= over
    return []


def _whole_lines(text: str, most: int, tokens: Tokens) -> str:
    """The text's first lines, of at most so many tokens; a part of the first one if that alone is longer."""
    starts = tokens.starts(text)
    if len(starts) <= most:
        return text
    head = text[: starts[most]]
    return head.rpartition("\n")[0] or head


def _only(value: Json, *keys: str) -> Json:
    return {key: value[key] for key in keys}
