"""The legs of a search: lock, bm25, dense. Every one of them carries the scope into its store."""

import threading
from collections.abc import Hashable
from dataclasses import dataclass, field
from math import log
from typing import Protocol

from palace.errors import UnreachableError, UsageError
from palace.search.floor import Floor
from palace.search.lock import Names, lock
from palace.stores.ports import Embedder, Scored, Sparse, SparseEmbedder, Vector, VectorStore
from palace.walls import Scope

LEGS = ("lock", "bm25", "dense")
MOST_CHARACTERS = 2000
"""Of a question; a whole prompt as a question finds nearly nothing (recall 90 % against 1 % in a peer's report)."""
_ONCE = 1.5
"""BM25's weight of a word that stands once in a short chunk, for words that stand nowhere."""
_REMEMBERED = 50_000
"""Attainable scores kept in memory before the store is asked anew."""


class State(Protocol):
    """What the palace knows of itself."""

    def generation(self) -> int:
        """The generation that is served."""

    def model(self) -> str:
        """Fingerprint of the model whose dense vectors are stored; empty when there are none."""

    def floor(self) -> Floor | None:
        """The floor of the last calibration, if there was one."""

    def stamp(self) -> Hashable:
        """Something that differs after every write to catalogue or stores: what was remembered before it is stale."""


@dataclass(frozen=True, slots=True)
class FixedState:
    """A state that does not change: tests and benches."""

    generation_: int = 0
    model_: str = ""
    floor_: Floor | None = None

    def generation(self) -> int:
        """See `State.generation`."""
        return self.generation_

    def model(self) -> str:
        """See `State.model`."""
        return self.model_

    def floor(self) -> Floor | None:
        """See `State.floor`."""
        return self.floor_

    def stamp(self) -> Hashable:
        """See `State.stamp`."""
        return 0


@dataclass(frozen=True, slots=True)
class Question:
    """A question made ready for the legs. `hints`: what had to be done to it, for the one who asks."""

    text: str
    sparse: Sparse
    dense: Vector | None
    hints: tuple[str, ...] = ()


def clean(query: str) -> tuple[str, tuple[str, ...]]:
    """The question without what no store takes, capped at a word's border. Raises UsageError when nothing is left."""
    text = " ".join("".join(map(_visible, query.encode("utf-8", "replace").decode())).split())
    if not text:
        raise UsageError("The question is empty.", "Ask something: a few words, or a whole question.")
    if len(text) <= MOST_CHARACTERS:
        return text, ()
    capped = text[:MOST_CHARACTERS].rpartition(" ")[0] or text[:MOST_CHARACTERS]
    return capped, (
        f"Only the first {len(capped)} characters were searched: ask the question alone, not all around it.",
    )


def _visible(character: str) -> str:
    if character.isspace() or character < " ":
        return " "
    return character if character.isprintable() else ""


@dataclass(slots=True)
class Asker:
    """Makes questions ready. Where the dense leg is wanted and cannot run, a hint says why and words alone answer."""

    sparse: SparseEmbedder
    embedder: Embedder | None
    state: State
    wanted: bool = True

    def __call__(self, query: str) -> Question:
        """The question with its vectors. Raises UsageError when it is empty."""
        text, hints = clean(query)
        vector, reason = self._vector(text)
        return Question(text, self.sparse.query(text), vector, (*hints, *([reason] if reason else ())))

    def _vector(self, text: str) -> tuple[Vector | None, str | None]:
        if not self.wanted:
            return None, None
        if self.embedder is None:
            return None, "Searched by words alone: no embedding model is loaded."
        stored = self.state.model()
        if stored and stored != self.embedder.fingerprint:
            return None, "Searched by words alone: the stored vectors come from another model than the settings name."
        try:
            return self.embedder.query(text), None
        except UnreachableError as error:
            return None, f"Searched by words alone: {error.message}"


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs the legs of `use` inside a scope, `prefetch` candidates each."""

    vectors: VectorStore
    names: Names
    prefetch: int
    use: frozenset[str] = frozenset(LEGS)

    def __call__(self, question: Question, scope: Scope) -> dict[str, list[Scored]]:
        """Candidates of each leg, best first; an empty list for a leg that did not run."""
        legs: dict[str, list[Scored]] = {name: [] for name in LEGS}
        if "lock" in self.use:
            legs["lock"] = lock(question.text, self.names, scope)
        if "bm25" in self.use and question.sparse.indices:
            legs["bm25"] = self.vectors.sparse(question.sparse, scope, self.prefetch)
        if "dense" in self.use and question.dense is not None:
            legs["dense"] = self.vectors.dense(question.dense, scope, self.prefetch)
        return legs


@dataclass(slots=True)
class Coverage:
    """How much of a question's attainable BM25 one chunk has: 1.0 when its best chunk is the best for every word.

    A word that no chunk has counts with the IDF of an unseen one, so that a question of strange words is covered by
    little. Attainable scores are remembered by cubes and word until the palace changes.
    """

    vectors: VectorStore
    state: State
    _known: dict[tuple[frozenset[str], int], float] = field(default_factory=dict)
    _stamp: Hashable = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, sparse: Sparse, best: float, scope: Scope) -> float:
        """Coverage in [0, 1] of the best chunk's BM25 score; `scope` is the reader's whole one."""
        attainable = sum(
            weight * self._attainable(token, scope) for token, weight in zip(sparse.indices, sparse.values, strict=True)
        )
        return min(1.0, best / attainable) if attainable > 0 else 0.0

    def _attainable(self, token: int, scope: Scope) -> float:
        stamp = self.state.stamp()
        with self._lock:
            if stamp != self._stamp or len(self._known) > _REMEMBERED:
                self._known.clear()
                self._stamp = stamp
            known = self._known.get((scope.cubes, token))
        if known is None:
            top = self.vectors.sparse(Sparse((token,), (1.0,)), scope, 1)
            known = top[0].score if top else _ONCE * log(2 * self.vectors.count(scope) + 2)
            with self._lock:
                self._known[scope.cubes, token] = known
        return known
