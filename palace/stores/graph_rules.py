"""What every graph answers alike: rooms, labels, neighbours. Pure."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from palace.errors import StoreError
from palace.names import fold
from palace.stores.ports import Edge, Neighbor, NoteNode
from palace.vocabulary import NoteId, Room, RoomAddress
from palace.walls import Scope

Labels = tuple[str, str, str, str]
"""(wing key, room key, wing label, room label)."""


class Counted(NamedTuple):
    """`notes` notes in one room under one spelling; `changed`: the last change among them, "" when unknown."""

    cube: str
    wing: str
    room: str
    wing_label: str
    room_label: str
    notes: int
    changed: str


def rooms_of(rows: Iterable[Counted], scope: Scope) -> list[Room]:
    """The rooms inside the scope, sorted by address; labels are the most frequent spellings, the smaller one of two."""
    wings: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    spelled: defaultdict[tuple[str, str, str], list[Counted]] = defaultdict(list)
    for row in rows:
        wings[row.cube, row.wing][row.wing_label] += row.notes
        spelled[row.cube, row.wing, row.room].append(row)
    wing_labels = {key: _winner(votes) for key, votes in wings.items()}
    out = []
    for key, same in sorted(spelled.items()):
        address = RoomAddress(*key)
        if scope.sees(address):
            votes: Counter[str] = Counter()
            for row in same:
                votes[row.room_label] += row.notes
            changed = max(row.changed for row in same) or None
            out.append(Room(address, wing_labels[key[:2]], _winner(votes), votes.total(), changed))
    return out


def check_edges(links: Mapping[NoteId, Sequence[Edge]], known: Container[NoteId]) -> None:
    """Raise StoreError for links of a note that is not there, or that start at another one."""
    for source, edges in links.items():
        if source not in known:
            raise StoreError(f"There is no note {source} to link from.", "Write the note before its links.")
        if any(e.source != source for e in edges):
            raise StoreError(
                f"A link given for note {source} starts at another note.", "Write each note's links by itself."
            )


def admits(scope: Scope, note: NoteNode) -> bool:
    """Whether a note stands inside the scope."""
    places = [f"{wing}/{room}" for wing, room, _, _ in note.rooms]
    return scope.admits(note.cube, places, [wing for wing, _, _, _ in note.rooms], note.status)


def distinct(rooms: Iterable[Labels]) -> list[Labels]:
    """Each room once, under its first spelling."""
    first: dict[tuple[str, str], Labels] = {}
    for labels in rooms:
        first.setdefault(labels[:2], labels)
    return list(first.values())


def neighbor(note: NoteNode, via: str, line: int | None) -> Neighbor:
    """A note as its neighbour's reader sees it; rooms are keys, sorted."""
    rooms = tuple(sorted({room for _, room, _, _ in note.rooms}))
    return Neighbor(note.id, note.title, note.path, note.cube, rooms, via, line)


def tag_keys(tags: Iterable[str]) -> dict[str, str]:
    """Folded tag to the first spelling of it."""
    keys: dict[str, str] = {}
    for tag in tags:
        keys.setdefault(fold(tag), tag)
    return keys


def by_line(edge: Edge) -> tuple[int, str, str, str, bool]:
    """The order in which a note's links are told."""
    return edge.line, edge.link, edge.target or "", edge.alias or "", edge.embed


def _winner(votes: Counter[str]) -> str:
    return min(votes, key=lambda label: (-votes[label], label))
