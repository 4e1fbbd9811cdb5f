"""The embedded vector store: Qdrant's engine in this process, exact by int8 scan and rescoring."""

import threading
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, cast
from uuid import UUID

import qdrant_edge as qe

from palace.errors import StoreError
from palace.stores.edge_filters import any_of, in_cubes, wall
from palace.stores.edge_payload import packed
from palace.stores.edge_points import WHOLE, floats, to_engine, to_point, to_record
from palace.stores.edge_shard import ShardFolder, discard, engine
from palace.stores.filters import BM25, DENSE
from palace.stores.payload import Payload, changes_as_dict
from palace.stores.ports import Point, Record, Scored, Sparse, Vector
from palace.vocabulary import ChunkId, NoteId
from palace.walls import Scope

__all__ = ["EdgeVectors", "discard"]

_Result = TypeVar("_Result")
_Known = tuple[ChunkId, NoteId, str]
"""A chunk, its note, its cube."""
_IDENTITY = ("note_id", "cube_id")

_BATCH = 64
"""Points a call: each holds the interpreter, so searches of other threads come in between."""
_PAGE = 256
_CHUNKS_A_NOTE = 5  # about; only for the hint when to optimise
_LARGE = 20_000
"""Points from which the engine's own IDF statistics stand in for exact ones, where the scope holds every cube."""
_REMEMBERED_NOTES = 400_000
_REMEMBERED_ANSWERS = 256
_MANY = 100
"""Candidates from which int8 finds the best ones without looking at more than are wanted."""


class EdgeVectors:
    """A store in a folder of its own, which one process holds at a time.

    Usable from several threads: engine calls exclude each other by the interpreter's lock, which they hold; writes wait
    for `optimize`, searches do not. `update` reaches the engine's log, which survives a killed process; `flush` survives
    a power cut. Opening raises what `ShardFolder.open` raises.
    """

    def __init__(self, path: Path, dimensions: int, *, model: str) -> None:
        self._folder = ShardFolder(path, dimensions, model)
        self._dimensions = dimensions
        self._writing = threading.RLock()
        self._live: qe.EdgeShard | None = self._folder.open()
        self._tail = self._folder.read_tail()
        self._writes = self._flushed = 0
        self._answers: dict[Hashable, tuple[int, object]] = {}
        self._known: dict[int, _Known] = {}  # a UUID's own hash and comparison are slow

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points whole."""
        with engine("writing"):
            ready = [to_engine(p, self._dimensions) for p in points]
        self._write(qe.UpdateOperation.upsert_points, ready)

    def set_dense(self, vectors: Sequence[tuple[ChunkId, Vector]]) -> None:
        """Add dense vectors to points that exist; the engine refuses to update one that is gone."""
        with engine("writing"):
            ready = {i: qe.PointVectors(id=i, vector={DENSE: floats(v, self._dimensions)}) for i, v in vectors}
        with self._writing:
            there = [str(r.id) for r in self._records(list(ready), payload=False, vector=False)]
            self._write(qe.UpdateOperation.update_vectors, [ready[ChunkId(i)] for i in there])

    def set_payload(self, note_id: NoteId, changes: Mapping[str, object]) -> None:
        """Overwrite payload keys of all chunks of a note."""
        new = changes_as_dict(changes)
        if not new:
            return
        with self._writing:
            for record in list(self._pages(_of_notes([note_id]))):
                payload = Payload.from_dict(record.payload.as_dict() | new)
                self._write_one(qe.UpdateOperation.set_payload([record.id], packed(payload)), 1)

    def forget(self, note_ids: Sequence[NoteId]) -> None:
        """Delete all chunks of these notes."""
        for at in range(0, len(note_ids), _BATCH):
            part = note_ids[at : at + _BATCH]
            operation = qe.UpdateOperation.delete_points_by_filter(_of_notes(part))
            self._write_one(operation, len(part) * _CHUNKS_A_NOTE)

    def forget_chunks(self, chunk_ids: Sequence[ChunkId]) -> None:
        """Delete these chunks."""
        ids: list[int | UUID | str] = list(chunk_ids)
        self._write(qe.UpdateOperation.delete_points, ids)

    def dense(self, vector: Vector, scope: Scope, limit: int) -> list[Scored]:
        """Nearest chunks inside the scope by cosine: found by int8, ranked by the full vectors."""
        int8 = qe.QuantizationSearchParams(rescore=True, oversampling=1.0 if limit >= _MANY else 2.0)
        nearest = qe.Query.Nearest(floats(vector, self._dimensions), using=DENSE)
        return self._ranked(nearest, scope, limit, qe.SearchParams(quantization=int8))

    def sparse(self, query: Sparse, scope: Scope, limit: int) -> list[Scored]:
        """Best chunks inside the scope by BM25 with IDF over the scope's cubes.

        Counting a corpus costs more than the search. So where the scope holds every cube of a large store the engine's own
        statistics are used, which know the same points and, until the next `optimize`, some that were deleted.
        """
        if not query.indices:
            return []
        nearest = qe.Query.Nearest(qe.SparseVector(indices=list(query.indices), values=list(query.values)), using=BM25)
        exact = self.count() < _LARGE or self._strangers(scope) > 0
        corpus = qe.IdfParams(corpus=qe.Filter(should=list(in_cubes(scope)))) if exact else None
        return self._ranked(nearest, scope, limit, qe.SearchParams(idf=corpus))

    def retrieve(self, ids: Sequence[ChunkId], scope: Scope) -> list[Record]:
        """Records of those ids that stand inside the scope, in the order asked."""
        unsure = self.waiting() > 0  # else every point has its vector, and none has to be read to know it
        records = self._records(list(dict.fromkeys(ids)), payload=True, vector=unsure)
        found = {r.id: r for r in (to_record(r, embedded=not unsure or bool(r.vector)) for r in records)}
        return [r for i in dict.fromkeys(ids) if (r := found.get(i)) is not None and _admits(scope, r.payload)]

    def scroll(self, note_ids: Sequence[NoteId] | None = None) -> Iterator[Record]:
        """Every record (of these notes), read page by page."""
        for condition in _each_of_notes(note_ids):
            yield from self._pages(condition)

    def points(self, note_ids: Sequence[NoteId] | None = None) -> Iterator[Point]:
        """Every point (of these notes) whole, read page by page."""
        for condition in _each_of_notes(note_ids):
            for page in self._raw_pages(condition, payload=True, vectors=WHOLE):
                yield from map(to_point, page)

    def waiting(self) -> int:
        """How many points wait for their dense vector."""
        return self._counted(qe.Filter(must_not=[qe.HasVectorCondition(DENSE)]), "waiting")

    def share(self, scope: Scope) -> float:
        """Share of the scope's points that have a dense vector."""
        inside = self.count(scope)
        if not inside or not self.waiting():
            return 1.0
        return self._counted(wall(scope, embedded=True), ("embedded", scope)) / inside

    def count(self, scope: Scope | None = None) -> int:
        """Exact number of points (inside the scope)."""
        return self._counted(None if scope is None else wall(scope), ("count", scope))

    def flush(self) -> None:
        """Make everything written so far survive a power cut."""
        with self._writing, engine("writing"):
            if self._flushed == self._writes:
                return
            flushed = self._writes
            self._shard().flush()
            self._folder.write_tail(self._tail)
            self._flushed = flushed

    def optimize(self, tail: int = 5_000) -> None:
        """Bring what changed into the int8 scan, when it is more than `tail` points (seconds, in a child process).

        Needs the store's size on the disk once more while it works.
        """
        with self._writing:
            if self._tail <= tail:
                return
            self.flush()
            # The old shard is not closed here: a search of another thread may hold it, the last one gives it back.
            self._live = self._folder.made_over()
            self._folder.sweep()
            self._tail = 0
            self._folder.write_tail(0)

    def close(self) -> None:
        """Give the store back; closing twice is no fault."""
        with self._writing:
            if self._live is not None:
                self.flush()
                with engine("closing"):
                    self._live.close()
                self._live = None

    def warm(self) -> None:
        """Remember every chunk's note (about 300 bytes each), so that no search has to read payloads for it."""
        texts: dict[str, str] = {}  # one text a note and a cube, not one a chunk
        for page in self._raw_pages(None, payload=list(_IDENTITY)):
            for record in page:
                chunk, note, cube = _known_of(record)
                self._known[_number(record)] = chunk, NoteId(texts.setdefault(note, note)), texts.setdefault(cube, cube)

    # -- writing -----------------------------------------------------------------------------------------------------
    def _write(self, operation: Callable[[list[_Result]], qe.UpdateOperation], items: list[_Result]) -> None:
        for at in range(0, len(items), _BATCH):
            self._write_one(operation(items[at : at + _BATCH]), len(items[at : at + _BATCH]))

    def _write_one(self, operation: qe.UpdateOperation, points: int) -> None:
        with self._writing:
            try:
                with engine("writing"):
                    self._shard().update(operation)
            finally:  # after it, so that no answer from before is taken for one from after
                self._writes += 1
                self._tail += points

    # -- reading -----------------------------------------------------------------------------------------------------
    def _shard(self) -> qe.EdgeShard:
        if self._live is None:
            raise StoreError(
                "The vector store was closed already.", "This is a fault of the program; please report it."
            )
        return self._live

    def _ranked(self, query: qe.Query, scope: Scope, limit: int, params: qe.SearchParams) -> list[Scored]:
        if limit < 1:
            return []
        inside, most = self._filter(scope, limit)
        with engine("searching"):
            request = qe.QueryRequest(limit=most, query=query, filter=inside, params=params, with_payload=False)
            found = [(cast("UUID", p.id).int, p.score) for p in self._shard().query(request)]
        known = self._known
        missing = [i for i, _ in found if i not in known]
        fresh = self._learn(missing) if missing else {}
        seen = ((known.get(i) or fresh.get(i), score) for i, score in found)
        ranked = [Scored(one[0], one[1], score) for one, score in seen if one is not None and one[2] in scope.cubes]
        return ranked[:limit]

    def _filter(self, scope: Scope, limit: int) -> tuple[qe.Filter | None, int]:
        """The engine's filter, and how many points to ask it for.

        A filter by cubes takes as long as half of the scan. Where at most `limit` points stand outside the scope, asking
        for that many more and leaving those out, as is done with every answer, gives the same points without one.
        """
        hide = self._hides(scope)
        if not hide and scope.places is None and scope.wings is None and (strangers := self._strangers(scope)) <= limit:
            return None, limit + strangers
        return wall(scope, hide=hide), limit

    def _learn(self, ids: Sequence[int]) -> dict[int, _Known]:
        """The chunks' notes and cubes, remembered: reading them from payloads takes longer than the search itself.

        A chunk's id is made of them, so what is remembered never changes.
        """
        found = self._records([ChunkId(str(UUID(int=i))) for i in ids], payload=list(_IDENTITY), vector=False)
        fresh = {_number(r): _known_of(r) for r in found}
        if len(self._known) > _REMEMBERED_NOTES:
            self._known = {}
        self._known.update(fresh)
        return fresh

    def _records(self, ids: list[ChunkId], *, payload: bool | list[str], vector: bool) -> list[qe.Record]:
        with engine("reading"):
            return self._shard().retrieve(list(ids), payload, [DENSE] if vector else False)

    def _pages(self, condition: qe.Filter | None) -> Iterator[Record]:
        unsure = self.waiting() > 0  # as in `retrieve`
        for page in self._raw_pages(condition, payload=True, vectors=[DENSE] if unsure else ()):
            yield from (to_record(r, embedded=not unsure or bool(r.vector)) for r in page)

    def _raw_pages(
        self, condition: qe.Filter | None, *, payload: bool | list[str], vectors: Sequence[str] = ()
    ) -> Iterator[list[qe.Record]]:
        offset = None
        while True:
            with engine("reading"):
                request = qe.ScrollRequest(
                    limit=_PAGE,
                    offset=offset,
                    filter=condition,
                    with_payload=payload,
                    with_vector=list(vectors) or False,
                )
                page, offset = self._shard().scroll(request)
            yield page
            if offset is None:
                return

    def _hides(self, scope: Scope) -> bool:
        """Whether there is any note of a status that this scope hides."""
        if not scope.hidden:
            return False
        return self._counted(qe.Filter(should=list(any_of("status", scope.hidden))), ("hidden", scope.hidden)) > 0

    def _strangers(self, scope: Scope) -> int:
        """How many points stand outside the scope's cubes."""
        return self._counted(qe.Filter(must_not=list(in_cubes(scope))), ("strangers", scope.cubes))

    def _counted(self, condition: qe.Filter | None, key: Hashable) -> int:
        """A count, remembered until the next write."""
        writes = self._writes
        known = self._answers.get(key)
        if known is None or known[0] != writes:
            if len(self._answers) > _REMEMBERED_ANSWERS:
                self._answers = {}
            with engine("counting"):
                known = writes, self._shard().count(qe.CountRequest(exact=True, filter=condition))
            self._answers[key] = known
        return cast("int", known[1])


def _each_of_notes(note_ids: Sequence[NoteId] | None) -> Iterator[qe.Filter | None]:
    """A filter for each batch of these notes; one of none for all."""
    if note_ids is None:
        yield None
        return
    for at in range(0, len(note_ids), _BATCH):
        yield _of_notes(note_ids[at : at + _BATCH])


def _of_notes(note_ids: Collection[NoteId]) -> qe.Filter:
    if len(note_ids) == 1:
        return qe.Filter(must=[qe.FieldCondition(key="note_id", match=qe.MatchValue(value=next(iter(note_ids))))])
    return qe.Filter(should=list(any_of("note_id", note_ids)))


def _known_of(record: qe.Record) -> _Known:
    payload = record.payload or {}
    return ChunkId(str(record.id)), NoteId(payload["note_id"]), payload["cube_id"]


def _number(record: qe.Record) -> int:
    return cast("UUID", record.id).int


def _admits(scope: Scope, payload: Payload) -> bool:
    return scope.admits(payload.cube_id, payload.place, payload.wing, payload.status)
