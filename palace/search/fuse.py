"""Fusion of ranked legs. Pure.

Min-max puts each leg's scores on [0, 1] over the candidates at hand; RRF counts ranks alone. A candidate that a leg
does not have gets 0 from it. Each share is then averaged with the best share of its note in that leg, so that a note
whose words stand in one chunk and whose sense in another is not lost; the score is the mean of the legs, in [0, 1].
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from palace.stores.ports import Scored
from palace.vocabulary import ChunkId, NoteId

Method = Literal["minmax", "rrf"]
RRF_K = 60
"""The constant of Cormack et al. 2009, which every engine takes as its default."""


class Fused(NamedTuple):
    """A candidate after fusion: `score` in [0, 1]."""

    id: ChunkId
    note_id: NoteId
    score: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates, best first. By leg and chunk: `raw` its score as the store gave it, `shares` the same on [0, 1]."""

    order: Sequence[Fused]
    raw: Mapping[str, Mapping[ChunkId, float]]
    shares: Mapping[str, Mapping[ChunkId, float]]

    def legs(self, chunk: ChunkId) -> dict[str, float]:
        """Raw score of each leg that has the chunk."""
        return {leg: scores[chunk] for leg, scores in self.raw.items() if chunk in scores}


def min_max(leg: Sequence[Scored]) -> dict[ChunkId, float]:
    """Scores of one leg on [0, 1]; equal scores are all 1, since each of them is the leg's best."""
    if not leg:
        return {}
    low, high = min(s.score for s in leg), max(s.score for s in leg)
    if high <= low:
        return {s.id: 1.0 for s in leg}
    return {s.id: (s.score - low) / (high - low) for s in leg}


def reciprocal_rank(leg: Sequence[Scored]) -> dict[ChunkId, float]:
    """1/(k + rank) of one leg, best first, scaled so that the first rank gives 1."""
    return {s.id: (RRF_K + 1) / (RRF_K + rank) for rank, s in enumerate(leg, start=1)}


_METHODS: Mapping[Method, Callable[[Sequence[Scored]], dict[ChunkId, float]]] = {
    "minmax": min_max,
    "rrf": reciprocal_rank,
}


def fuse(
    legs: Mapping[str, Sequence[Scored]], method: Method = "minmax", weights: Mapping[str, float] | None = None
) -> Ranking:
    """Every candidate of every leg with the mean of its legs' shares, best first; ties by id.

    A leg without candidates takes no part: with one leg alone, its own order stands. `weights`: 1.0 where absent.
    """
    weight = {name: (weights or {}).get(name, 1.0) for name in legs}
    heard = {name: leg for name, leg in legs.items() if leg and weight[name] > 0}
    total = 2 * sum(weight[name] for name in heard)
    notes = {s.id: s.note_id for leg in heard.values() for s in leg}
    shares = {name: _METHODS[method](leg) for name, leg in heard.items()}
    scores = dict.fromkeys(notes, 0.0)
    for name, share in shares.items():
        best = _best(share, notes)
        part = weight[name] / total
        for chunk, note in notes.items():
            scores[chunk] += part * (share.get(chunk, 0.0) + best.get(note, 0.0))
    fused = (Fused(chunk, note, min(1.0, scores[chunk])) for chunk, note in notes.items())
    raw = {name: {s.id: s.score for s in leg} for name, leg in heard.items()}
    return Ranking(sorted(fused, key=lambda f: (-f.score, f.id)), raw, shares)


def _best(share: Mapping[ChunkId, float], notes: Mapping[ChunkId, NoteId]) -> dict[NoteId, float]:
    best: dict[NoteId, float] = {}
    for chunk, value in share.items():
        note = notes[chunk]
        if value > best.get(note, -1.0):
            best[note] = value
    return best


def diverse(ranked: Iterable[Fused], per_note: int, limit: int) -> list[Fused]:
    """The first `limit` candidates with at most `per_note` chunks of one note."""
    seen: Counter[NoteId] = Counter()
    kept: list[Fused] = []
    for candidate in ranked:
        if len(kept) == limit:
            break
        if seen[candidate.note_id] < per_note:
            seen[candidate.note_id] += 1
            kept.append(candidate)
    return kept
