"""Rooms: which ones a name means, which are near it, and the list of them. Live data, exact counts, paged, no cap."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from rapidfuzz import fuzz, process

from palace.errors import UsageError
from palace.names import room_key
from palace.search.lock import Names, name_key
from palace.stores.ports import Graph, VectorStore
from palace.vocabulary import Room, RoomAddress
from palace.walls import Reader

PAGE = 100
"""Rooms of a page, when nobody says otherwise; at most ten times as many."""
INDEX_NAMES = ("index", "readme", "_index", "moc")
"""Names of a room's own index note, beside the room's own name."""
_LEAST_LIKE = 60.0
"""Spellings less alike than this (of 100) are no suggestion."""
_SENTENCE = re.compile(r"(?<=[.!?])\s|(?<=[。！？])|\n\s*\n")
_MARKS = re.compile(r"^\s*(?:#{1,6}\s.*|[-*_=]{3,}|!\[\[.*\]\]|)\s*$")
_LONGEST_DESCRIPTION = 160
_REMEMBERED = 16_384
"""Rooms whose names are kept folded: each search that names a room looks at all of them."""

Describe = Callable[[Sequence[Room]], Mapping[RoomAddress, str]]
Holding = Mapping[RoomAddress, float]


@dataclass(frozen=True, slots=True)
class Choice:
    """What the named rooms and wings come to. `unknown`: names that mean nothing to this reader.

    `places` None: not narrowed by room; `wings` None: nor by wing.
    """

    places: frozenset[str] | None
    wings: frozenset[str] | None
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoomsPage:
    """One page of rooms, and the cursor of the next one."""

    rooms: tuple[Room, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class RoomsQuery:
    """What is asked of the list. `wing`: a key or any spelling of its label."""

    query: str | None = None
    wing: str | None = None
    cursor: str | None = None
    limit: int = PAGE


def choose(listed: Sequence[Room], rooms: Sequence[str], wings: Sequence[str]) -> Choice:
    """Which of the reader's rooms the names mean.

    A room named without its wing is that room in every wing. With wings named too, rooms outside them do not count.
    """
    wing_keys = {key for r in listed for key in _wing_names(r)} if wings else set()
    known_wings = frozenset(room_key(w) for w in wings) & wing_keys
    unknown = [w for w in wings if room_key(w) not in wing_keys]
    inside = [r for r in listed if not wings or not known_wings.isdisjoint(_wing_names(r))]
    places: set[str] = set()
    for name in rooms:
        key = room_key(name)
        meant = {r.address.place for r in inside if key in _room_names(r)}
        places |= meant
        if not meant:
            unknown.append(name)
    in_wings = frozenset(r.address.wing for r in inside) if known_wings else None
    return Choice(frozenset(places) or None, None if places else in_wings, tuple(dict.fromkeys(unknown)))


def nearest(listed: Sequence[Room], name: str, most: int = 3) -> list[str]:
    """Places whose spelling is nearest to a name, best first."""
    places = {r.address.place: f"{room_key(r.wing_label)}/{room_key(r.label)}" for r in listed}
    rooms = {r.address.place: room_key(r.label) for r in listed}
    near: dict[str, float] = {}
    for spellings in (places, rooms):
        for _, score, place in process.extract(room_key(name), spellings, scorer=fuzz.WRatio, limit=most + 5):
            near[place] = max(score, near.get(place, 0.0))
    alike = [(score, place) for place, score in near.items() if score >= _LEAST_LIKE]
    return [place for _, place in sorted(alike, key=lambda a: (-a[0], a[1]))[:most]]


def list_rooms(
    graph: Graph, reader: Reader, asked: RoomsQuery, describe: Describe | None = None, holding: Holding | None = None
) -> RoomsPage:
    """A page of the reader's rooms, by address, or with a query by how well they suit it.

    `holding`: for each room, how much of what suits the query it holds, in [0, 1]. Raises UsageError for a cursor that
    this function did not give, or a limit outside 1 to 1000.
    """
    if not 1 <= asked.limit <= 10 * PAGE:
        raise UsageError(f"A page of {asked.limit} rooms cannot be given.", f"Ask for 1 to {10 * PAGE}.")
    listed = _scored(_in_wing(graph.rooms(reader.scope()), asked.wing), asked.query, holding or {})
    after = _read_cursor(asked.cursor) if asked.cursor else None
    rest = sorted((r for r in listed if after is None or _order(r) > after), key=_order)
    page = rest[: asked.limit]
    if describe is not None:
        texts = describe(page)
        page = [replace(r, description=texts.get(r.address)) for r in page]
    following = _cursor(page[-1]) if len(rest) > asked.limit else None
    return RoomsPage(tuple(page), following)


def likeness(query: str, room: Room) -> float:
    """How much a query names a room, in [0, 1]: words in common, or a near spelling; 0 below what tells anything."""
    asked, label = room_key(query), room_key(room.label)
    if not asked or not label:
        return 0.0
    if asked in _room_names(room):
        return 1.0
    whole = f"{room_key(room.wing_label)} {label}".replace("-", " ").replace("_", " ").replace("/", " ")
    words = fuzz.token_set_ratio(asked, whole)
    inside = 95.0 if len(label) > 1 and not label.isascii() and label in asked else 0.0
    best = max(words, inside, fuzz.ratio(asked, label))
    return best / 100 if best >= _LEAST_LIKE else 0.0


@dataclass(frozen=True, slots=True)
class Describer:
    """One line on a room: the first sentence of its own index note, if it has one."""

    vectors: VectorStore
    names: Names
    reader: Reader

    def __call__(self, rooms: Sequence[Room]) -> Mapping[RoomAddress, str]:
        """Descriptions of those rooms that have an index note."""
        found = ((room.address, self._of(room)) for room in rooms)
        return {address: text for address, text in found if text}

    def _of(self, room: Room) -> str | None:
        scope = self.reader.scope(places=[room.address.place])
        keys = list(dict.fromkeys(map(name_key, (room.label, room.address.room, *INDEX_NAMES))))
        named = self.names.find(keys, scope)
        ranked = sorted(named, key=lambda n: (keys.index(n.key), n.note_id))
        for record in self.vectors.retrieve([n.chunk_id for n in ranked[:8]], scope):
            # A place is `wing/room` in any cube; this room is of one.
            if record.payload.cube_id == room.address.cube and (text := first_sentence(record.payload.text)):
                return text
        return None


def first_sentence(text: str) -> str | None:
    """The first sentence of Markdown text that is no heading, rule, embed or property; capped. None when there is none."""
    if text.startswith("---\n"):  # a note of properties alone
        return None
    lines = text.splitlines()
    while lines and _MARKS.match(lines[0]):
        lines.pop(0)
    prose = _SENTENCE.split("\n".join(lines), maxsplit=1)[0]
    prose = " ".join(prose.split()).lstrip("->*+ ")
    if len(prose) > _LONGEST_DESCRIPTION:
        prose = prose[: _LONGEST_DESCRIPTION - 1].rstrip() + "…"
    return prose or None


def _scored(rooms: Iterable[Room], query: str | None, holding: Holding) -> list[Room]:
    if not query or not query.strip():
        return list(rooms)
    return [replace(r, score=round((likeness(query, r) + holding.get(r.address, 0.0)) / 2, 6)) for r in rooms]


def _in_wing(rooms: Iterable[Room], wing: str | None) -> list[Room]:
    return [r for r in rooms if wing is None or room_key(wing) in _wing_names(r)]


def _wing_names(room: Room) -> frozenset[str]:
    return _spellings(room.address.wing, room.wing_label)


def _room_names(room: Room) -> frozenset[str]:
    return _addresses(room.address.wing, room.wing_label, room.address.room, room.label)


@lru_cache(_REMEMBERED)
def _spellings(key: str, label: str) -> frozenset[str]:
    return frozenset((key, room_key(label)))


@lru_cache(_REMEMBERED)
def _addresses(wing: str, wing_label: str, room: str, label: str) -> frozenset[str]:
    names, wings = _spellings(room, label), _spellings(wing, wing_label)
    return names | {f"{one}/{name}" for one in wings for name in names}


_Order = tuple[float, str, str, str]


def _order(room: Room) -> _Order:
    return (-(room.score or 0.0), room.address.cube, room.address.wing, room.address.room)


def _cursor(room: Room) -> str:
    return base64.urlsafe_b64encode(json.dumps(_order(room)).encode()).decode()


def _read_cursor(cursor: str) -> _Order:
    try:
        score, cube, wing, room = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        return (float(score), str(cube), str(wing), str(room))
    except (ValueError, TypeError, binascii.Error) as error:
        raise UsageError(
            "That is no cursor of this list.", "Take `next` of the page before, or leave it out."
        ) from error
