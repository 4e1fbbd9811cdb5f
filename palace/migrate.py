"""A palace moved to other stores, without embedding anything: points with their vectors, notes and links are copied.

What the target has already is left alone, and what it has beyond is forgotten, so a move that was killed anywhere is
answered by moving again, and a second move brings over what changed since the first. Memory is bounded by `_NOTES` notes.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Final, Literal, NamedTuple, TypeVar

from palace.errors import ModelMismatchError, StoreError, UnreachableError, UsageError
from palace.library import Library
from palace.progress import Report, silent
from palace.settings import Settings, Stores
from palace.stores.catalogue import Catalogue
from palace.stores.ports import Edge, Graph, NoteNode, VectorStore
from palace.verify import Report as Verified
from palace.verify import verify
from palace.vocabulary import NoteId

_NOTES: Final = 64
"""Notes whose points are read at once."""
_POINTS: Final = 256
"""Points of one write."""
_NODES: Final = 256
_SOURCES: Final = 500
"""Notes, and notes with their links, of one transaction."""
_MEND = "Run: dualwall verify --repair, then dualwall nightly, then this again."
Side = Literal["servers", "embedded"]
_T = TypeVar("_T")


class Pair(NamedTuple):
    """Where a palace is: its vectors and its graph."""

    vectors: VectorStore
    graph: Graph


@dataclass(slots=True)
class Moved:
    """What a move wrote into the target, and what both sides hold at its end."""

    points: int = 0
    notes: int = 0
    links: int = 0
    """Notes whose links were written."""
    forgotten: int = 0
    """Points and notes that the target had beyond the source."""
    held: Verified = field(default_factory=Verified)


def wanted(stores: Stores, to: Side, *, vectors: bool = True, graph: bool = True) -> Stores:
    """The settings' stores after a move of vectors, graph or both. Raises UsageError when there is nothing to move."""
    if "memory" in {stores.vectors, stores.graph}:
        raise UsageError("A store in memory ends with its process: there is nothing to move.", "Name a lasting one.")
    servers = to == "servers"
    moved = {"vectors": "qdrant" if servers else "edge"} if vectors else {}
    moved |= {"graph": "neo4j" if servers else "sqlite"} if graph else {}
    there = stores.model_copy(update=moved)
    if there == stores:
        raise UsageError(
            f"The settings name {stores.vectors} and {stores.graph} already.",
            "Name the stores that the palace is in now; the settings are changed after the move.",
        )
    return there


def migrate(library: Library, stores: Stores, report: Report = silent) -> Moved:
    """Move the palace into these stores; then the ledger tells of them, and a night with them in its settings does nothing.

    Raises what opening and writing them raises, and what `move` raises. The old stores stay as they are.
    """
    source = Pair(library.vectors, library.graph)
    with ExitStack() as opened:
        try:
            target = Pair(*opened.enter_context(library.beside(stores)))
        except ModelMismatchError as error:
            hint = "A move fills what is empty or of this model: remove that first, or name another collection."
            raise UnreachableError(error.message, hint) from error
        moved = move(library.settings, library.catalogue, source, target, report)
    known = library.catalogue.get("ingested") or ""
    before, after = (library.state_key_with(s) for s in (library.settings.stores, stores))
    if known.startswith(before):
        library.catalogue.set({"ingested": after + known.removeprefix(before)})
    return moved


def move(settings: Settings, catalogue: Catalogue, source: Pair, target: Pair, report: Report = silent) -> Moved:
    """Bring the target to the source's state, and prove it: no difference to the ledger, and the same fingerprint.

    A store that both sides share is not copied. Raises StoreError when the source does not fit the ledger (then nothing
    is written), or when the target does not at the end.
    """
    next(target.graph.notes(), None)  # a server that is down is told before anything is copied
    before = _verified(settings, catalogue, source, report)
    if before.differences:
        raise StoreError(f"The stores do not fit the ledger: {before.differences[0]}.", _MEND)
    moved = Moved()
    if target.vectors is not source.vectors:
        _move_points(catalogue, source.vectors, target.vectors, moved, report)
    if target.graph is not source.graph:
        _move_notes(source.graph, target.graph, moved, lambda done: report("moving notes", done, before.notes))
        _move_links(source.graph, target.graph, moved, lambda done: report("moving links", done, before.edges))
    with ThreadPoolExecutor(1, "indexing") as beside:  # in a process of its own, where the store is embedded
        indexed = beside.submit(target.vectors.optimize)
        moved.held = _verified(settings, catalogue, target, report)
        report("indexing", 0, before.chunks)
        indexed.result()
        report("indexing", before.chunks, before.chunks)
    if moved.held.differences or moved.held.fingerprint != before.fingerprint:
        found = moved.held.differences[0] if moved.held.differences else "their fingerprints differ"
        raise StoreError(
            f"The new stores do not hold what the old ones hold: {found}.",
            "Run it again. If it stays so, something else writes there, or the database is not this palace's alone.",
        )
    return moved


def _verified(settings: Settings, catalogue: Catalogue, stores: Pair, report: Report) -> Verified:
    total = catalogue.counts()[1]
    report("comparing with the ledger", 0, total)
    found = verify(settings, catalogue, stores.vectors, stores.graph)
    report("comparing with the ledger", total, total)
    return found


# -- vectors ---------------------------------------------------------------------------------------------------------------
def _move_points(catalogue: Catalogue, source: VectorStore, target: VectorStore, moved: Moved, report: Report) -> None:
    total, done = catalogue.counts()[1], 0
    begun = target.count() > 0  # a first move asks nothing back
    for note_ids in _batches((row.ref.id for row in catalogue.all_rows()), _NOTES):
        there = {r.id: (r.payload, r.has_dense) for r in target.scroll(note_ids)} if begun else {}
        for points in _batches(source.points(note_ids), _POINTS):
            lacking = [p for p in points if there.pop(p.id, None) != (p.payload, p.dense is not None)]
            target.upsert(lacking)
            done += len(points)
            moved.points += len(lacking)
            report("moving chunks", done, total)
        target.forget_chunks(list(there))
        moved.forgotten += len(there)
    if target.count() != total:
        moved.forgotten += _forget_strangers(catalogue, target)
    target.flush()


def _forget_strangers(catalogue: Catalogue, target: VectorStore) -> int:
    """Forget points of notes that the ledger does not know; how many there were."""
    before = target.count()
    strangers: set[NoteId] = set()
    for records in _batches(target.scroll(), _POINTS):
        ids = sorted({r.payload.note_id for r in records})
        strangers.update(set(ids) - catalogue.rows(ids).keys())
    target.forget(sorted(strangers))
    return before - target.count()


# -- the graph -------------------------------------------------------------------------------------------------------------
def _move_notes(source: Graph, target: Graph, moved: Moved, told: Callable[[int], None]) -> None:
    """Both sides come sorted by id, so one walk along both finds what differs."""
    done = 0
    both = _side_by_side(source.notes(), target.notes(), _id)
    for pairs in _batches(both, _NODES):
        lacking = [mine for _, mine, theirs in pairs if mine is not None and _same(mine) != _same(theirs)]
        beyond = [note_id for note_id, mine, _ in pairs if mine is None]
        target.upsert(lacking)
        target.forget(beyond)
        done += len(pairs) - len(beyond)
        moved.notes += len(lacking)
        moved.forgotten += len(beyond)
        told(done)


def _move_links(source: Graph, target: Graph, moved: Moved, told: Callable[[int], None]) -> None:
    done = 0
    both = _side_by_side(_by_source(source), _by_source(target), _source)
    for pairs in _batches(both, _SOURCES):
        links = {note_id: list(mine or ()) for note_id, mine, theirs in pairs if _lines(mine) != _lines(theirs)}
        target.link(links)
        done += sum(len(mine or ()) for _, mine, _ in pairs)
        moved.links += len(links)
        told(done)


def _by_source(graph: Graph) -> Iterator[list[Edge]]:
    for _, edges in groupby(graph.edges(), lambda edge: edge.source):
        yield list(edges)


def _id(note: NoteNode) -> NoteId:
    return note.id


def _source(edges: list[Edge]) -> NoteId:
    return edges[0].source


def _same(note: NoteNode | None) -> object:
    """What makes two notes of a graph the same one, in whatever order a store gives rooms, tags and chunks."""
    if note is None:
        return None
    identity = (note.id, note.cube, note.vault, note.path, note.title, note.aliases, note.changed, note.status)
    return *identity, sorted(note.tags), sorted(note.rooms), sorted(note.chunk_ids)


def _lines(edges: Iterable[Edge] | None) -> list[str]:
    found = ((e.target, e.link, e.alias, e.embed, e.line) for e in edges or ())
    return sorted(map(repr, found))


def _side_by_side(
    mine: Iterator[_T], theirs: Iterator[_T], key: Callable[[_T], NoteId]
) -> Iterator[tuple[NoteId, _T | None, _T | None]]:
    """What two streams, sorted by key, have under each key."""
    left, right = next(mine, None), next(theirs, None)
    while left is not None or right is not None:
        at = min(key(side) for side in (left, right) if side is not None)
        here = left if left is not None and key(left) == at else None
        there = right if right is not None and key(right) == at else None
        yield at, here, there
        left = next(mine, None) if here is not None else left
        right = next(theirs, None) if there is not None else right


def _batches(stream: Iterable[_T], size: int) -> Iterator[list[_T]]:
    iterator = iter(stream)
    while batch := list(islice(iterator, size)):
        yield batch
