"""Every store, each by one line, and small notes to put into them."""

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import pytest

from palace.settings import Qdrant
from palace.stores.database import Database
from palace.stores.edge import EdgeVectors
from palace.stores.memory import MemoryGraph, MemoryVectors
from palace.stores.neo4j import Neo4jGraph
from palace.stores.payload import Payload
from palace.stores.ports import Graph, NoteNode, Point, Sparse, Vector, VectorStore
from palace.stores.sqlite import SqliteGraph
from palace.vocabulary import GLOBAL, ChunkId, NoteId, NoteRef, Sha256
from palace.walls import Reader
from tests.servers.neo4j_server import Neo4jServer

DIMENSIONS = 8
MODEL = "toy"
CUBES = (GLOBAL, "dev-cat", "dev-dog")
PLACES = ("work/garden", "work/ideas", "home/garden", "home/ideas")

ME = Reader("me", frozenset({GLOBAL}))
CAT = Reader("dev-cat", frozenset({GLOBAL, "dev-cat"}))
ALL = Reader("all", frozenset(CUBES))


@contextmanager
def memory_vectors(_folder: Path) -> Iterator[VectorStore]:
    store = MemoryVectors(DIMENSIONS)
    yield store
    store.close()


@contextmanager
def edge_vectors(folder: Path) -> Iterator[VectorStore]:
    store = EdgeVectors(folder / "edge", DIMENSIONS, model=MODEL)
    yield store
    store.close()


@contextmanager
def qdrant_vectors(_folder: Path) -> Iterator[VectorStore]:
    """A collection of its own on the server that DUALWALL_TEST_QDRANT_URL names (docs/operations.md)."""
    url = os.environ.get("DUALWALL_TEST_QDRANT_URL")
    if not url:
        pytest.skip("DUALWALL_TEST_QDRANT_URL names no Qdrant server")
    from palace.stores.qdrant import QdrantVectors  # noqa: PLC0415 - as late as the program has it

    server = qdrant_settings(url)
    store = QdrantVectors(server, DIMENSIONS, model=MODEL)
    yield store
    store.delete()
    store.close()


def qdrant_settings(url: str) -> Qdrant:
    """A test's own collection there; port of gRPC and key by further variables."""
    key = os.environ.get("DUALWALL_TEST_QDRANT_KEY_FILE")
    return Qdrant(
        url=url,
        grpc_port=int(os.environ.get("DUALWALL_TEST_QDRANT_GRPC_PORT", "0")),
        api_key_file=Path(key) if key else None,
        collection=f"test-{uuid.uuid4().hex[:12]}",
    )


@contextmanager
def memory_graph(_folder: Path) -> Iterator[Graph]:
    graph = MemoryGraph()
    yield graph
    graph.close()


@contextmanager
def sqlite_graph(folder: Path) -> Iterator[Graph]:
    with Database(folder / "catalogue.sqlite") as database:
        yield SqliteGraph(database)


@contextmanager
def neo4j_graph(server: Neo4jServer) -> Iterator[Graph]:
    server.wipe()
    graph = Neo4jGraph(server.settings)
    yield graph
    graph.close()


VECTORS: dict[str, Callable[[Path], AbstractContextManager[VectorStore]]] = {
    "memory": memory_vectors,
    "edge": edge_vectors,
    "qdrant": qdrant_vectors,
}
GRAPHS: dict[str, Callable[[Path], AbstractContextManager[Graph]]] = {
    "memory": memory_graph,
    "sqlite": sqlite_graph,
}


def unit(*values: float) -> Vector:
    """A vector of length one whose first numbers stand to each other as given."""
    vector = np.zeros(DIMENSIONS, dtype=np.float32)
    vector[: len(values)] = values
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def words(*tokens: int) -> Sparse:
    """A BM25 vector in which a later token weighs a little more."""
    return Sparse(tuple(tokens), tuple(1.0 + 0.1 * n for n in range(len(tokens))))


def ref(path: str, cube: str = GLOBAL) -> NoteRef:
    return NoteRef(cube, "main", path)


def chunk_id(path: str, ordinal: int = 0, cube: str = GLOBAL) -> ChunkId:
    return ref(path, cube).chunk_id((), ordinal)


def payload(
    path: str, ordinal: int = 0, cube: str = GLOBAL, places: Sequence[str] = PLACES[:1], status: str = "active"
) -> Payload:
    wings, rooms = zip(*(p.split("/", 1) for p in places), strict=True) if places else ((), ())
    return Payload(
        cube_id=cube,
        note_id=ref(path, cube).id,
        wing=tuple(dict.fromkeys(wings)),
        room=tuple(dict.fromkeys(rooms)),
        place=tuple(places),
        vault="main",
        path=path,
        title=path,
        heading_path=("A", "b"),
        section="",
        tags=("x/y",),
        aliases=(),
        kind="note",
        status=status,
        trust="owner",
        created=None,
        modified="2026-01-02T03:04:05Z",
        valid_from=None,
        invalid_at=None,
        lines=(1, 3),
        span=(0, 42),
        text=f"{path} – 第 {ordinal} 段",
        note_sha256=Sha256("a" * 64),
        chunk_sha256=Sha256("b" * 64),
        passage_sha256=Sha256("c" * 64),
        model=MODEL,
        generation=1,
    )


def point(  # noqa: PLR0917 - a test names only what it is about
    path: str,
    ordinal: int = 0,
    cube: str = GLOBAL,
    places: Sequence[str] = PLACES[:1],
    status: str = "active",
    dense: Vector | None = None,
    sparse: Sparse | None = None,
) -> Point:
    own = payload(path, ordinal, cube, places, status)
    return Point(chunk_id(path, ordinal, cube), own, words(1, 2) if sparse is None else sparse, dense)


def node(
    path: str, cube: str = GLOBAL, places: Sequence[str] = PLACES[:1], tags: Sequence[str] = (), status: str = "active"
) -> NoteNode:
    """A note in the graph; a place's label is its key in capitals."""
    rooms = tuple((*p.split("/", 1), *p.upper().split("/", 1)) for p in places)
    return NoteNode(
        id=ref(path, cube).id,
        cube=cube,
        vault="main",
        path=path,
        title=path.removesuffix(".md"),
        aliases=(f"alias of {path}",),
        tags=tuple(tags),
        rooms=tuple((w, r, wl, rl) for w, r, wl, rl in rooms),
        changed="2026-01-02T03:04:05Z",
        chunk_ids=(chunk_id(path, 0, cube),),
        status=status,
    )


def note_id(path: str, cube: str = GLOBAL) -> NoteId:
    return ref(path, cube).id


def emptied_vectors(store: VectorStore) -> VectorStore:
    store.forget(sorted({r.payload.note_id for r in store.scroll()}))
    return store


def emptied_graph(graph: Graph) -> Graph:
    graph.forget([n.id for n in graph.notes()])
    return graph
