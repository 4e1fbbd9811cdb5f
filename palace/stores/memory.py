"""Stores in memory: exact, plain, and the yardstick that the others are held to. For small palaces and for tests."""

import math
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt

from palace.stores.checks import checked
from palace.stores.memory_graph import MemoryGraph
from palace.stores.payload import Payload, changes_as_dict
from palace.stores.ports import Point, Record, Scored, Sparse, Vector
from palace.vocabulary import ChunkId, NoteId
from palace.walls import Scope

__all__ = ["MemoryGraph", "MemoryVectors"]

_Result = TypeVar("_Result")
_REMEMBERED = 64
_UNIT = 1e-6
"""How far from one a length may be and count as one, so that a vector read and written again is the same bits."""


class MemoryVectors:
    """Chunks in a dictionary, searched exactly. The first vector sets the dimensions where they are not given."""

    def __init__(self, dimensions: int | None = None) -> None:
        self._dimensions = dimensions
        self._points: dict[ChunkId, Point] = {}
        self._postings: dict[int, dict[ChunkId, float]] = {}
        self._known: dict[Hashable, object] = {}
        self._lock = threading.RLock()

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points whole."""
        with self._lock:
            ready = [self._with_checked(p) for p in points]
            for point in ready:
                self._drop(point.id)
                self._points[point.id] = point
                for index, value in zip(point.sparse.indices, point.sparse.values, strict=True):
                    self._postings.setdefault(index, {})[point.id] = value
            self._known.clear()

    def set_dense(self, vectors: Sequence[tuple[ChunkId, Vector]]) -> None:
        """Add dense vectors to points that exist."""
        with self._lock:
            for chunk_id, vector in vectors:
                old = self._points.get(chunk_id)
                if old is not None:
                    self._points[chunk_id] = self._with_checked(Point(old.id, old.payload, old.sparse, vector))
            self._known.clear()

    def set_payload(self, note_id: NoteId, changes: Mapping[str, object]) -> None:
        """Overwrite payload keys of all chunks of a note."""
        new = changes_as_dict(changes)
        with self._lock:
            for old in [p for p in self._points.values() if p.payload.note_id == note_id]:
                payload = Payload.from_dict(old.payload.as_dict() | new)
                self._points[old.id] = Point(old.id, payload, old.sparse, old.dense)
            self._known.clear()

    def forget(self, note_ids: Sequence[NoteId]) -> None:
        """Delete all chunks of these notes."""
        gone = frozenset(note_ids)
        with self._lock:
            self.forget_chunks([p.id for p in self._points.values() if p.payload.note_id in gone])

    def forget_chunks(self, chunk_ids: Sequence[ChunkId]) -> None:
        """Delete these chunks."""
        with self._lock:
            for chunk_id in chunk_ids:
                self._drop(chunk_id)
            self._known.clear()

    def dense(self, vector: Vector, scope: Scope, limit: int) -> list[Scored]:
        """Nearest chunks inside the scope by cosine."""
        with self._lock:
            query = self._check(vector)
            ids, matrix = self._matrix(scope)
            if not ids:
                return []
            scores = matrix @ (query / (np.linalg.norm(query) or 1.0))
            return self._best(dict(zip(ids, scores.tolist(), strict=True)), limit)

    def sparse(self, query: Sparse, scope: Scope, limit: int) -> list[Scored]:
        """Best chunks inside the scope by BM25, IDF over the scope's cubes as the engine counts it."""
        with self._lock:
            inside = self._inside(scope)
            corpus = self._corpus(scope.cubes)
            scores: defaultdict[ChunkId, float] = defaultdict(float)
            for index, weight in zip(query.indices, query.values, strict=True):
                posting = self._postings.get(index, {})
                holding = len(posting.keys() & corpus)
                idf = math.log((len(corpus) - holding + 0.5) / (holding + 0.5) + 1)
                for chunk_id in posting.keys() & inside:
                    scores[chunk_id] += weight * idf * posting[chunk_id]
            return self._best(scores, limit)

    def retrieve(self, ids: Sequence[ChunkId], scope: Scope) -> list[Record]:
        """Records of those ids that stand inside the scope, in the order asked."""
        with self._lock:
            inside = self._inside(scope)
            return [_record(self._points[i]) for i in dict.fromkeys(ids) if i in inside]

    def scroll(self, note_ids: Sequence[NoteId] | None = None) -> Iterator[Record]:
        """Every record (of these notes), sorted by id."""
        return map(_record, self.points(note_ids))

    def points(self, note_ids: Sequence[NoteId] | None = None) -> Iterator[Point]:
        """Every point (of these notes) whole, sorted by id."""
        wanted = None if note_ids is None else frozenset(note_ids)
        with self._lock:
            points = [self._points[i] for i in sorted(self._points)]
        return (p for p in points if wanted is None or p.payload.note_id in wanted)

    def waiting(self) -> int:
        """How many points wait for their dense vector."""
        with self._lock:
            return sum(p.dense is None for p in self._points.values())

    def share(self, scope: Scope) -> float:
        """Share of the scope's points that have a dense vector."""
        with self._lock:
            inside = self._inside(scope)
            return sum(self._points[i].dense is not None for i in inside) / len(inside) if inside else 1.0

    def count(self, scope: Scope | None = None) -> int:
        """Exact number of points (inside the scope)."""
        with self._lock:
            return len(self._points) if scope is None else len(self._inside(scope))

    def flush(self) -> None:
        """Nothing survives the process."""

    def optimize(self, tail: int = 5_000) -> None:
        """Nothing to reorganise."""

    def warm(self) -> None:
        """Nothing to prepare."""

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._points.clear()
            self._postings.clear()
            self._known.clear()

    def _with_checked(self, point: Point) -> Point:
        if point.dense is None:
            return point
        vector = self._check(point.dense)
        length = float(np.linalg.norm(vector))
        unit = vector if abs(length - 1.0) < _UNIT else vector / (length or 1.0)
        return Point(point.id, point.payload, point.sparse, unit)

    def _check(self, vector: Vector) -> Vector:
        if self._dimensions is None:
            self._dimensions = len(vector)
        return checked(vector, self._dimensions)

    def _drop(self, chunk_id: ChunkId) -> None:
        point = self._points.pop(chunk_id, None)
        if point is not None:
            for index in point.sparse.indices:
                self._postings[index].pop(chunk_id, None)

    def _inside(self, scope: Scope) -> frozenset[ChunkId]:
        return self._once(
            ("inside", scope), lambda: frozenset(p.id for p in self._points.values() if _admits(scope, p))
        )

    def _corpus(self, cubes: frozenset[str]) -> frozenset[ChunkId]:
        found = (p.id for p in self._points.values() if p.payload.cube_id in cubes)
        return self._once(("corpus", cubes), lambda: frozenset(found))

    def _matrix(self, scope: Scope) -> tuple[list[ChunkId], npt.NDArray[np.float32]]:
        """Ids and vectors, shape (ids, dimensions), of what the scope holds and is embedded."""

        def build() -> tuple[list[ChunkId], npt.NDArray[np.float32]]:
            rows = {i: v for i in sorted(self._inside(scope)) if (v := self._points[i].dense) is not None}
            return list(rows), np.array(list(rows.values()), dtype=np.float32)

        return self._once(("matrix", scope), build)

    def _best(self, scores: Mapping[ChunkId, float], limit: int) -> list[Scored]:
        ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[: max(limit, 0)]
        return [Scored(i, self._points[i].payload.note_id, score) for i, score in ranked]

    def _once(self, key: Hashable, compute: Callable[[], _Result]) -> _Result:
        """What was computed since the last write, else computed now."""
        if key not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = compute()
        return cast("_Result", self._known[key])


def _admits(scope: Scope, point: Point) -> bool:
    payload = point.payload
    return scope.admits(payload.cube_id, payload.place, payload.wing, payload.status)


def _record(point: Point) -> Record:
    return Record(point.id, point.payload, point.dense is not None)
