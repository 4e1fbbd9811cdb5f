"""A small palace in memory, for tests of the search: real stores and words, and a model of hashed words."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from palace.embedding.sparse import Bm25Embedder
from palace.errors import UnreachableError
from palace.search.engine import Searcher
from palace.search.floor import Floor
from palace.search.legs import LEGS, FixedState
from palace.search.lock import MemoryNames
from palace.settings import Search
from palace.stores.memory import MemoryGraph, MemoryVectors
from palace.stores.payload import Payload
from palace.stores.ports import Embedder, NoteNode, Point, Vector, VectorStore
from palace.vocabulary import NoteRef, Sha256
from palace.walls import Reader

ME = Reader("me", frozenset({"global"}))
CAT = Reader("dev-cat", frozenset({"global", "dev-cat"}))
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
MODEL = "hashed-words"
_WORD = re.compile(r"\w+")


class HashedWords:
    """A model that is no model: a unit vector of hashed words, alike where words are shared."""

    fingerprint = MODEL
    dimensions = 64
    max_tokens = 512

    def passages(self, texts: Sequence[str]) -> Iterator[Vector]:
        return map(self.query, texts)

    def query(self, text: str) -> Vector:
        vector = np.full(self.dimensions, 0.05, np.float32)
        for word in _WORD.findall(text.casefold()):
            vector[hashlib.sha256(word.encode()).digest()[0] % self.dimensions] += 1
        return (vector / np.linalg.norm(vector)).astype(np.float32)

    def close(self) -> None:
        """Nothing to give back."""


class Unreachable(HashedWords):
    """A model that has gone away since it was loaded."""

    def query(self, text: str) -> Vector:
        raise UnreachableError("The model does not answer.", text)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A note of some chunks. `places`: `Wing/Room` labels."""

    title: str
    texts: tuple[str, ...]
    places: tuple[str, ...] = ("work/ideas",)
    cube: str = "global"
    status: str = "active"
    aliases: tuple[str, ...] = ()
    embedded: bool = True

    @property
    def ref(self) -> NoteRef:
        return NoteRef(self.cube, "v", f"{self.title}.md")


@dataclass(slots=True)
class SmallPalace:
    """Notes in memory stores, searched by words and hashed words."""

    leaves: Sequence[Leaf]
    embedder: Embedder | None = field(default_factory=HashedWords)
    floor: Floor | None = None
    settings: Search = field(default_factory=Search)
    legs: frozenset[str] = frozenset(LEGS)
    vectors: VectorStore = field(default_factory=MemoryVectors)
    model: str = MODEL

    def searcher(self) -> Searcher:
        graph, sparse = MemoryGraph(), Bm25Embedder()
        for leaf in self.leaves:
            passages = [f"{leaf.title}\n{text}" for text in leaf.texts]
            dense = HashedWords().passages(passages)
            self.vectors.upsert(
                [
                    Point(leaf.ref.chunk_id((), i), payload(leaf, i), words, vector if leaf.embedded else None)
                    for i, (words, vector) in enumerate(zip(sparse.documents(passages), dense, strict=True))
                ]
            )
        nodes = [node(leaf) for leaf in self.leaves]
        graph.upsert(nodes)
        parts = (self.vectors, graph, MemoryNames(nodes), self.embedder, sparse)
        state = FixedState(12, self.model, self.floor)
        return Searcher(*parts, self.settings, lambda: NOON, state, self.legs)


def node(leaf: Leaf) -> NoteNode:
    rooms = tuple(
        (wing.casefold(), room.casefold(), wing, room) for wing, _, room in (p.partition("/") for p in leaf.places)
    )
    chunks = tuple(leaf.ref.chunk_id((), i) for i in range(len(leaf.texts)))
    return NoteNode(
        leaf.ref.id,
        leaf.cube,
        "v",
        leaf.ref.path,
        leaf.title,
        leaf.aliases,
        (),
        rooms,
        "2026-01-01T00:00:00Z",
        chunks,
        leaf.status,
    )


def payload(leaf: Leaf, i: int) -> Payload:
    places = tuple(p.casefold() for p in leaf.places)
    text = leaf.texts[i]
    return Payload(
        cube_id=leaf.cube,
        note_id=leaf.ref.id,
        wing=tuple(p.partition("/")[0] for p in places),
        room=tuple(p.partition("/")[2] for p in places),
        place=places,
        vault="v",
        path=leaf.ref.path,
        title=leaf.title,
        heading_path=("Part", str(i)),
        section="",
        tags=(),
        aliases=leaf.aliases,
        kind="note",
        status=leaf.status,
        trust="owner",
        created=None,
        modified=None,
        valid_from=None,
        invalid_at=None,
        lines=(i + 1, i + 2),
        span=(i, i + 1),
        text=text,
        note_sha256=Sha256("a" * 64),
        chunk_sha256=Sha256("b" * 64),
        passage_sha256=Sha256("c" * 64),
        model=MODEL,
        generation=12,
    )
