"""Notes, links and rooms in dictionaries: exact, plain, and the yardstick for the other graphs."""

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from palace.stores.graph_rules import (
    Counted,
    Labels,
    admits,
    by_line,
    check_edges,
    distinct,
    neighbor,
    rooms_of,
    tag_keys,
)
from palace.stores.ports import Edge, Neighbor, Neighborhood, NoteNode
from palace.vocabulary import NoteId, Room
from palace.walls import Scope


class MemoryGraph:
    """A graph for as long as the process lives."""

    def __init__(self) -> None:
        self._notes: dict[NoteId, NoteNode] = {}
        self._edges: dict[NoteId, tuple[Edge, ...]] = {}
        self._lock = threading.RLock()

    def upsert(self, notes: Sequence[NoteNode]) -> None:
        """Write notes with their rooms and tags."""
        with self._lock:
            self._notes.update({note.id: note for note in notes})

    def set_rooms(self, note_id: NoteId, rooms: Sequence[Labels]) -> None:
        """Replace the rooms of a note that is there."""
        with self._lock:
            if note_id in self._notes:
                self._notes[note_id] = replace(self._notes[note_id], rooms=tuple(rooms))

    def link(self, links: Mapping[NoteId, Sequence[Edge]]) -> None:
        """Replace the links of these notes."""
        with self._lock:
            check_edges(links, self._notes)
            self._edges.update({source: tuple(edges) for source, edges in links.items()})

    def forget(self, note_ids: Sequence[NoteId]) -> None:
        """Delete notes and their links; links to them stay, unresolved."""
        gone = frozenset(note_ids)
        with self._lock:
            for note_id in gone:
                self._notes.pop(note_id, None)
                self._edges.pop(note_id, None)
            for source, edges in self._edges.items():
                if any(e.target in gone for e in edges):
                    self._edges[source] = tuple(replace(e, target=None) if e.target in gone else e for e in edges)

    def neighbors(self, note_id: NoteId, scope: Scope, limit: int = 100) -> Neighborhood:
        """What stands around a note, as far as the scope admits it."""
        with self._lock:
            seen = {i: n for i, n in self._notes.items() if admits(scope, n)}
            note = seen.get(note_id)
            if note is None:
                return Neighborhood((), (), (), ())
            out = sorted(self._edges.get(note_id, ()), key=by_line)
            others = {i: n for i, n in seen.items() if i != note_id}
            return Neighborhood(
                links=tuple(neighbor(others[e.target], e.link, e.line) for e in out if e.target in others),
                backlinks=self._backlinks(note_id, others),
                shared_tags=_shared(note, others.values(), limit),
                unresolved=tuple((e.link, e.line) for e in out if e.target is None),
            )

    def rooms(self, scope: Scope) -> list[Room]:
        """Every room inside the scope with exact counts."""
        with self._lock:
            notes = [n for n in self._notes.values() if n.cube in scope.cubes and n.status not in scope.hidden]
            rows = [Counted(n.cube, *labels, 1, n.changed) for n in notes for labels in distinct(n.rooms)]
        return rooms_of(rows, scope)

    def notes(self) -> Iterator[NoteNode]:
        """Every note, sorted by id."""
        with self._lock:
            return iter([self._notes[i] for i in sorted(self._notes)])

    def edges(self) -> Iterator[Edge]:
        """Every link, sorted by source, line, link."""
        with self._lock:
            return iter([e for source in sorted(self._edges) for e in sorted(self._edges[source], key=by_line)])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Writes inside become visible together; an exception undoes them."""
        with self._lock:
            before = dict(self._notes), dict(self._edges)
            try:
                yield
            except BaseException:
                self._notes, self._edges = before
                raise

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._notes.clear()
            self._edges.clear()

    def _backlinks(self, note_id: NoteId, others: dict[NoteId, NoteNode]) -> tuple[Neighbor, ...]:
        found = [
            (others[source], edge)
            for source, edges in self._edges.items()
            for edge in edges
            if edge.target == note_id and source in others
        ]
        found.sort(key=lambda f: (f[0].path, f[1].line, f[1].link, f[0].id))
        return tuple(neighbor(note, edge.link, edge.line) for note, edge in found)


def _shared(note: NoteNode, others: Iterable[NoteNode], limit: int) -> tuple[Neighbor, ...]:
    mine = tag_keys(note.tags)
    holders: defaultdict[str, list[NoteNode]] = defaultdict(list)
    for other in others:
        for key in tag_keys(other.tags).keys() & mine.keys():
            holders[key].append(other)
    found: list[Neighbor] = []
    for key in sorted(holders, key=lambda k: (len(holders[k]), k)):
        same = sorted(holders[key], key=lambda n: (n.path, n.id))
        found += [neighbor(other, mine[key], None) for other in same]
    return tuple(found[: max(limit, 0)])
