"""Ports of the stores. Foreign types stop at the adapters; one contract suite holds every adapter to these words."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from palace.stores.payload import Payload
from palace.vocabulary import ChunkId, NoteId, Room
from palace.walls import Scope

Vector = npt.NDArray[np.float32]
"""Shape (dimensions,), unit length."""


@dataclass(frozen=True, slots=True)
class Sparse:
    """A BM25 vector: token ids and weights of equal length."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """What is upserted. `dense` is None in the lexical pass: the point then waits for its dense vector."""

    id: ChunkId
    payload: Payload
    sparse: Sparse
    dense: Vector | None = None


class Scored(NamedTuple):
    """A ranked chunk; higher is better. Dense: cosine. Sparse: BM25."""

    id: ChunkId
    note_id: NoteId
    score: float


@dataclass(frozen=True, slots=True)
class Record:
    """A stored chunk; `has_dense` says whether its dense vector has come."""

    id: ChunkId
    payload: Payload
    has_dense: bool


class VectorStore(Protocol):
    """Chunks with payload, a sparse and (once computed) a dense vector.

    Every write is an upsert with a deterministic id: repeating one changes nothing. Raises StoreError when an
    operation is refused and UnreachableError when the store does not answer.
    """

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points whole; a point without a dense vector loses the one that it had."""

    def set_dense(self, vectors: Sequence[tuple[ChunkId, Vector]]) -> None:
        """Add dense vectors to points that exist; ids that are gone are left out, never made."""

    def set_payload(self, note_id: NoteId, changes: Mapping[str, object]) -> None:
        """Overwrite payload keys of all chunks of a note: a change of rooms embeds nothing."""

    def forget(self, note_ids: Sequence[NoteId]) -> None:
        """Delete all chunks of these notes, by the note's id; an empty list deletes nothing."""

    def forget_chunks(self, chunk_ids: Sequence[ChunkId]) -> None:
        """Delete these chunks; an empty list deletes nothing."""

    def dense(self, vector: Vector, scope: Scope, limit: int) -> list[Scored]:
        """Nearest chunks inside the scope by cosine, best first; only those that have a dense vector."""

    def sparse(self, query: Sparse, scope: Scope, limit: int) -> list[Scored]:
        """Best chunks inside the scope by BM25 with IDF over the scope's cubes, best first."""

    def retrieve(self, ids: Sequence[ChunkId], scope: Scope) -> list[Record]:
        """Records of those ids that stand inside the scope, in the order asked."""

    def scroll(self, note_ids: Sequence[NoteId] | None = None) -> Iterator[Record]:
        """Every record (of these notes), unscoped: for ingest, verify and migration, never for an answer."""

    def points(self, note_ids: Sequence[NoteId] | None = None) -> Iterator[Point]:
        """Every point (of these notes) whole, unscoped, with vectors bit for bit as the store holds them: for a move.

        Written into another store they are the same bits there; the order of a sparse vector's tokens may be another.
        """

    def waiting(self) -> int:
        """How many points wait for their dense vector."""

    def share(self, scope: Scope) -> float:
        """Share of the scope's points that have a dense vector; 1.0 when the scope is empty."""

    def count(self, scope: Scope | None = None) -> int:
        """Exact number of points (inside the scope)."""

    def flush(self) -> None:
        """Make everything written so far survive a power cut."""

    def optimize(self, tail: int = 5_000) -> None:
        """Reorganise for speed and memory when more than `tail` points changed since the last time; results stay the same.

        Searches go on meanwhile, writes wait.
        """

    def warm(self) -> None:
        """Prepare for many searches, for a process that answers for long; changes no answer. May run in a thread."""

    def close(self) -> None:
        """Give the store back."""


@dataclass(frozen=True, slots=True)
class NoteNode:
    """A note in the graph, with the rooms and tags that it stands under. `names`: title and aliases."""

    id: NoteId
    cube: str
    vault: str
    path: str
    title: str
    aliases: tuple[str, ...]
    tags: tuple[str, ...]
    rooms: tuple[tuple[str, str, str, str], ...]
    """(wing key, room key, wing label, room label) of each."""
    changed: str
    """ISO 8601 UTC time of the note's last change."""
    chunk_ids: tuple[ChunkId, ...]
    status: str


@dataclass(frozen=True, slots=True)
class Named:
    """A note found by one of its names (`palace.search.lock.name_key`). `chunk_id`: its lead chunk, the first that says something."""

    key: str
    note_id: NoteId
    chunk_id: ChunkId


@dataclass(frozen=True, slots=True)
class Edge:
    """A link of a note. `target` None: no note of that name (an unresolved link is kept as such)."""

    source: NoteId
    target: NoteId | None
    link: str
    alias: str | None
    embed: bool
    line: int


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A note beside another, as one reader may see it. `via`: the link as written, or the shared tag."""

    id: NoteId
    title: str
    path: str
    cube: str
    rooms: tuple[str, ...]
    via: str
    line: int | None


@dataclass(frozen=True, slots=True)
class Neighborhood:
    """What stands around a note inside the reader's cubes; `unresolved`: links as written, with their lines."""

    links: tuple[Neighbor, ...]
    backlinks: tuple[Neighbor, ...]
    shared_tags: tuple[Neighbor, ...]
    unresolved: tuple[tuple[str, int], ...]


class Graph(Protocol):
    """Notes, links, tags and rooms. Every read carries the scope."""

    def upsert(self, notes: Sequence[NoteNode]) -> None:
        """Write notes with their rooms and tags (not their links); what a note no longer has is gone."""

    def set_rooms(self, note_id: NoteId, rooms: Sequence[tuple[str, str, str, str]]) -> None:
        """Replace the rooms of a note that is there: (wing key, room key, wing label, room label) of each."""

    def link(self, links: Mapping[NoteId, Sequence[Edge]]) -> None:
        """Replace the links of these notes, in one go. Raises StoreError when a note is unknown or an edge starts elsewhere; then nothing is replaced."""

    def forget(self, note_ids: Sequence[NoteId]) -> None:
        """Delete notes, their links, and what is left without a note; links to them stay, unresolved."""

    def neighbors(self, note_id: NoteId, scope: Scope, limit: int = 100) -> Neighborhood:
        """What stands around a note, as far as the scope admits it; empty when the note is outside the scope.

        A link to a note outside the scope is not shown at all. Links come by line, backlinks by path; of the notes that
        share a tag at most `limit` come, those of the rarest tag first. A note is no neighbour of itself.
        """

    def rooms(self, scope: Scope) -> list[Room]:
        """Every room inside the scope with exact counts of the notes that a search would find, sorted by address.

        Labels are the most frequent spellings; a room without such a note is not listed.
        """

    def notes(self) -> Iterator[NoteNode]:
        """Every note, unscoped, sorted by id: for verify and migration."""

    def edges(self) -> Iterator[Edge]:
        """Every link, unscoped, sorted by source, line, link: for verify and migration."""

    def transaction(self) -> AbstractContextManager[None]:
        """Writes inside become visible together (where the store can)."""

    def close(self) -> None:
        """Give the store back."""


class SparseEmbedder(Protocol):
    """Texts to BM25 vectors."""

    fingerprint: str

    def documents(self, texts: Iterable[str]) -> list[Sparse]:
        """One vector a text, in order."""

    def query(self, text: str) -> Sparse:
        """The vector of a question."""


class Embedder(Protocol):
    """Texts to dense vectors. The fingerprint names weights, vocabulary, prefixes and pooling."""

    fingerprint: str
    dimensions: int
    max_tokens: int

    def passages(self, texts: Sequence[str]) -> Iterator[Vector]:
        """One vector a text, in order, computed by as many workers as the settings allow."""

    def query(self, text: str) -> Vector:
        """The vector of a question."""

    def close(self) -> None:
        """Give the workers back."""
