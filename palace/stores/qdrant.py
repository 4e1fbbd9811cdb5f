"""The vector store on a Qdrant server: the same engine as the embedded one, for many machines and many points."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
from qdrant_client import QdrantClient, models

from palace.settings import Qdrant
from palace.stores.checks import checked
from palace.stores.filters import BM25, DENSE, AnyOf, any_of
from palace.stores.filters import wall as wall_of
from palace.stores.payload import Payload, changes_as_dict
from palace.stores.ports import Point, Record, Scored, Sparse, Vector
from palace.stores.qdrant_collection import BATCH, PAGE, Collections
from palace.stores.qdrant_server import Server
from palace.vocabulary import ChunkId, NoteId
from palace.walls import Scope

__all__ = ["QdrantVectors"]

_Item = TypeVar("_Item")
_Condition = models.FieldCondition | models.Filter | models.HasIdCondition | models.HasVectorCondition
_TRIES = 5
"""How often dense vectors are sent again when points of their batch were deleted meanwhile."""
# What is right for the scan and, where there is one, for the graph, so that no query has to know which it meets.
_NEAREST = models.SearchParams(
    hnsw_ef=256,
    acorn=models.AcornSearchParams(enable=True, max_selectivity=1.0),
    quantization=models.QuantizationSearchParams(rescore=True, oversampling=2.0),
)
_WAITS = models.Filter(must_not=[models.HasVectorCondition(has_vector=DENSE)])
# Up to here one condition a value, beyond a list of them: as in the embedded engine.
_FEW = 12


class QdrantVectors:
    """A palace's chunks in a collection of a server that several processes may write to and search.

    Every write waits until searches see it, and is in the server's log then. Opening raises UnreachableError when the
    server does not answer or refuses the key, ModelMismatchError for vectors of another model, StoreError for a
    collection that is not Dualwall's or a server that is too old. `collection`: the one to use in place of the alias's
    (`palace.stores.qdrant_rebuild`).
    """

    def __init__(
        self, settings: Qdrant, dimensions: int, *, model: str, server: Server | None = None, collection: str = ""
    ) -> None:
        self._server = server or Server(settings)
        self._dimensions = dimensions
        self._server.version()
        self._collections = Collections(self._server, settings, dimensions, model)
        if collection:
            self._collections.make(collection)
        self._name = collection or self._collections.open()

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points whole."""
        ready = [self._struct(p) for p in points]
        self._each("writing", ready, lambda part, client: client.upsert(self._name, part, wait=True))

    def set_dense(self, vectors: Sequence[tuple[ChunkId, Vector]]) -> None:
        """Add dense vectors to points that exist; the server refuses a batch with one that is gone."""
        ready = [models.PointVectors(id=i, vector={DENSE: self._floats(v)}) for i, v in vectors]
        for part in _batches(ready, BATCH):
            self._set_dense(part)

    def set_payload(self, note_id: NoteId, changes: Mapping[str, object]) -> None:
        """Overwrite payload keys of all chunks of a note."""
        new = changes_as_dict(changes)
        if new:
            note = _of_notes([note_id])
            self._server.write("writing", lambda client: client.set_payload(self._name, new, note, wait=True))

    def forget(self, note_ids: Sequence[NoteId]) -> None:
        """Delete all chunks of these notes."""
        self._each("deleting", note_ids, lambda part, client: client.delete(self._name, _of_notes(part), wait=True))

    def forget_chunks(self, chunk_ids: Sequence[ChunkId]) -> None:
        """Delete these chunks."""
        self._each("deleting", chunk_ids, lambda part, client: client.delete(self._name, list(part), wait=True))

    def dense(self, vector: Vector, scope: Scope, limit: int) -> list[Scored]:
        """Nearest chunks inside the scope by cosine: found by int8, ranked by the full vectors."""
        return self._ranked(self._floats(vector), DENSE, scope, limit, _NEAREST)

    def sparse(self, query: Sparse, scope: Scope, limit: int) -> list[Scored]:
        """Best chunks inside the scope by BM25 with IDF over the scope's cubes (of each shard, where there are several)."""
        if not query.indices:
            return []
        asked = models.SparseVector(indices=list(query.indices), values=list(query.values))
        cubes = models.Filter(should=list(_conditions(any_of("cube_id", scope.cubes))))
        params = models.SearchParams(idf=models.IdfCorpusParams(corpus=cubes))
        return self._ranked(asked, BM25, scope, limit, params)

    def retrieve(self, ids: Sequence[ChunkId], scope: Scope) -> list[Record]:
        """Records of those ids that stand inside the scope, in the order asked."""
        asked = list(dict.fromkeys(ids))
        found: dict[ChunkId, Record] = {}
        for part in _batches(asked, PAGE):
            page = self._points(part, whole=True)
            found |= {r.id: r for r in (_record(p, has_dense=bool(p.vector)) for p in page)}
        return [r for i in asked if (r := found.get(i)) is not None and _admits(scope, r.payload)]

    def scroll(self, note_ids: Sequence[NoteId] | None = None) -> Iterator[Record]:
        """Every record (of these notes), read page by page."""
        for condition in _each_of_notes(note_ids):
            for page in self._pages(condition):
                waits = self._waiting_of(page)
                yield from (_record(p, has_dense=str(p.id) not in waits) for p in page)

    def points(self, note_ids: Sequence[NoteId] | None = None) -> Iterator[Point]:
        """Every point (of these notes) whole, read page by page."""
        for condition in _each_of_notes(note_ids):
            for page in self._pages(condition, vectors=True):
                yield from map(_point, page)

    def waiting(self) -> int:
        """How many points wait for their dense vector."""
        return self._counted(_WAITS)

    def share(self, scope: Scope) -> float:
        """Share of the scope's points that have a dense vector."""
        if not self.waiting():
            return 1.0
        inside = self.count(scope)
        return self._counted(_wall(scope, embedded=True)) / inside if inside else 1.0

    def count(self, scope: Scope | None = None) -> int:
        """Exact number of points (inside the scope)."""
        return self._counted(None if scope is None else _wall(scope))

    def flush(self) -> None:
        """Nothing to do: what was written is in the server's log, and it keeps that."""

    def optimize(self, tail: int = 5_000) -> None:  # noqa: ARG002 - the server decides itself when to
        """Begin a graph when the palace has become too large to be scanned; the server builds it, and answers meanwhile."""
        self._collections.grow(self._name, self.count())

    def warm(self) -> None:
        """Nothing to prepare: the server is warm."""

    def delete(self) -> None:
        """Delete the palace's collection and its alias: for the end of a move, and of a test."""
        self._collections.delete()

    def close(self) -> None:
        """Give the connections back; closing twice is no fault."""
        self._server.close()

    # -- writing -----------------------------------------------------------------------------------------------------
    def _each(
        self, doing: str, items: Sequence[_Item], ask: Callable[[list[_Item], QdrantClient], models.UpdateResult]
    ) -> None:
        for part in _batches(items, BATCH):
            self._server.write(doing, partial(ask, part))

    def _set_dense(self, vectors: Sequence[models.PointVectors]) -> None:
        left = list(vectors)
        for _ in range(_TRIES):
            there = {str(p.id) for p in self._points([ChunkId(str(v.id)) for v in left], whole=False)}
            left = [v for v in left if str(v.id) in there]
            if not left or self._unless_gone(left):
                return
        self._server.write("writing", lambda client: client.update_vectors(self._name, left, wait=True))

    def _unless_gone(self, vectors: list[models.PointVectors]) -> bool:
        """Whether they were written; not when a point was deleted between the question and this."""
        done = self._server.unless(404, "writing", lambda client: client.update_vectors(self._name, vectors, wait=True))
        return done is not None

    def _struct(self, point: Point) -> models.PointStruct:
        sparse = models.SparseVector(indices=list(point.sparse.indices), values=list(point.sparse.values))
        dense = {} if point.dense is None else {DENSE: self._floats(point.dense)}
        return models.PointStruct(id=point.id, vector={BM25: sparse, **dense}, payload=point.payload.as_dict())

    def _floats(self, vector: Vector) -> list[float]:
        floats: list[float] = checked(vector, self._dimensions).tolist()
        return floats

    # -- reading -----------------------------------------------------------------------------------------------------
    def _points(self, ids: Sequence[ChunkId], *, whole: bool) -> list[models.Record]:
        vectors: bool | list[str] = [DENSE] if whole else False
        return self._server.read(
            "reading", lambda client: client.retrieve(self._name, ids, with_payload=whole, with_vectors=vectors)
        )

    def _ranked(
        self,
        query: list[float] | models.SparseVector,
        using: str,
        scope: Scope,
        limit: int,
        params: models.SearchParams,
    ) -> list[Scored]:
        if limit < 1:
            return []
        inside = _wall(scope)
        found = self._server.read(
            "searching",
            lambda client: client.query_points(
                self._name,
                query=query,
                using=using,
                query_filter=inside,
                search_params=params,
                limit=limit,
                with_payload=["note_id"],
            ),
        )
        return [Scored(ChunkId(str(p.id)), NoteId((p.payload or {})["note_id"]), p.score) for p in found.points]

    def _pages(self, condition: models.Filter | None, *, vectors: bool = False) -> Iterator[list[models.Record]]:
        offset: models.ExtendedPointId | None = None
        while True:
            page, offset = self._page(condition, offset, vectors=vectors)
            yield page
            if offset is None:
                return

    def _page(
        self,
        condition: models.Filter | None,
        offset: models.ExtendedPointId | None,
        *,
        payload: bool = True,
        vectors: bool = False,
    ) -> tuple[list[models.Record], models.ExtendedPointId | None]:
        page, after = self._server.read(
            "reading",
            lambda client: client.scroll(
                self._name, condition, limit=PAGE, offset=offset, with_payload=payload, with_vectors=vectors
            ),
        )
        return page, after

    def _waiting_of(self, page: Sequence[models.Record]) -> set[str]:
        """Which of a page's points wait for their dense vector: a small question in place of all their vectors."""
        if not page:
            return set()
        ids = models.HasIdCondition(has_id=[p.id for p in page])
        found, _ = self._page(models.Filter(must=[ids], must_not=_WAITS.must_not), None, payload=False)
        return {str(p.id) for p in found}

    def _counted(self, condition: models.Filter | None) -> int:
        return self._server.read("counting", lambda client: client.count(self._name, condition, exact=True)).count


def _wall(scope: Scope, *, embedded: bool = False) -> models.Filter:
    """The walls as the server's filter; `embedded`: only points with a dense vector."""
    wall = wall_of(scope)
    must: list[_Condition] = [models.Filter(should=list(_conditions(n))) for n in wall.narrowing]
    if embedded:
        must.append(models.HasVectorCondition(has_vector=DENSE))
    return models.Filter(
        should=list(_conditions(wall.cubes)),
        must=list(must) or None,
        must_not=list(_conditions(wall.hidden)) if wall.hidden else None,
    )


def _each_of_notes(note_ids: Sequence[NoteId] | None) -> Iterator[models.Filter | None]:
    """A filter for each batch of these notes; one of none for all."""
    if note_ids is None:
        yield None
        return
    for part in _batches(note_ids, BATCH):
        yield _of_notes(part)


def _of_notes(note_ids: Sequence[NoteId]) -> models.Filter:
    return models.Filter(should=list(_conditions(any_of("note_id", note_ids))))


def _conditions(wanted: AnyOf) -> list[models.FieldCondition]:
    if len(wanted.values) > _FEW:
        return [models.FieldCondition(key=wanted.key, match=models.MatchAny(any=list(wanted.values)))]
    return [models.FieldCondition(key=wanted.key, match=models.MatchValue(value=v)) for v in wanted.values]


def _record(record: models.Record, *, has_dense: bool) -> Record:
    return Record(ChunkId(str(record.id)), Payload.from_dict(record.payload or {}), has_dense)


def _point(record: models.Record) -> Point:
    """A record that was read with its vectors."""
    vectors = record.vector if isinstance(record.vector, dict) else {}
    words, dense = vectors.get(BM25), vectors.get(DENSE)
    sparse = Sparse((), ())
    if isinstance(words, models.SparseVector):  # by HTTP a float32 comes as its shortest text, which is another float64
        sparse = Sparse(tuple(words.indices), tuple(np.array(words.values, dtype=np.float32).tolist()))
    payload = Payload.from_dict(record.payload or {})
    vector = None if dense is None else np.array(dense, dtype=np.float32)
    return Point(ChunkId(str(record.id)), payload, sparse, vector)


def _admits(scope: Scope, payload: Payload) -> bool:
    return scope.admits(payload.cube_id, payload.place, payload.wing, payload.status)


def _batches(items: Sequence[_Item], size: int) -> Iterator[list[_Item]]:
    for at in range(0, len(items), size):
        yield list(items[at : at + size])
