"""Points and records as the embedded engine has them: to it and from it."""

from typing import cast

import numpy as np
import qdrant_edge as qe

from palace.stores.checks import checked
from palace.stores.edge_payload import packed, unpacked
from palace.stores.filters import BM25, DENSE
from palace.stores.ports import Point, Record, Sparse, Vector
from palace.vocabulary import ChunkId

WHOLE = (DENSE, BM25)
"""The vectors of a point that is read whole."""


def to_engine(point: Point, dimensions: int) -> qe.Point:
    """The engine's point. Raises StoreError for a vector of another shape."""
    sparse = qe.SparseVector(indices=list(point.sparse.indices), values=list(point.sparse.values))
    dense = {} if point.dense is None else {DENSE: floats(point.dense, dimensions)}
    return qe.Point(id=point.id, vector={BM25: sparse, **dense}, payload=packed(point.payload))


def floats(vector: Vector, dimensions: int) -> list[float]:
    """A checked vector for the engine, which takes a list sooner than an array."""
    found: list[float] = checked(vector, dimensions).tolist()
    return found


def to_record(record: qe.Record, *, embedded: bool) -> Record:
    """A stored chunk; `embedded`: it has its dense vector."""
    return Record(ChunkId(str(record.id)), unpacked(record.payload or {}), embedded)


def to_point(record: qe.Record) -> Point:
    """A record that was read with the vectors of `WHOLE`."""
    vectors = cast("dict[str, list[float] | qe.SparseVector]", record.vector or {})
    words, dense = vectors.get(BM25), vectors.get(DENSE)
    return Point(
        id=ChunkId(str(record.id)),
        payload=unpacked(record.payload or {}),
        sparse=Sparse(tuple(words.indices), tuple(words.values))
        if isinstance(words, qe.SparseVector)
        else Sparse((), ()),
        dense=None if dense is None else np.array(dense, dtype=np.float32),
    )
