"""Fusion of ranked legs. Pure.

Min-max puts each leg's scores on [0, 1] over the candidates at hand and takes their mean; a candidate that a leg does
not have gets 0 from it. RRF counts ranks alone. Both end in [0, 1].
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from palace.stores.ports import Scored
from palace.vocabulary import ChunkId, NoteId

Method = Literal["minmax", "rrf"]
RRF_K = 60
"""The constant of Cormack et al. 2009, which every engine takes as its default."""


@dataclass(frozen=True, slots=True)
class Fused:
    """A candidate after fusion: `score` in [0, 1], `legs` the raw score of each leg that has it, `parts` its share of each."""

    id: ChunkId
    note_id: NoteId
    score: float
    legs: Mapping[str, float]
    parts: Mapping[str, float]


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


def fuse(legs: Mapping[str, Sequence[Scored]], method: Method = "minmax") -> list[Fused]:
    """Every candidate of every leg with the mean of its legs' shares, best first; ties by id.

    A leg without candidates takes no part: with one leg alone, its own order and full range stand.
    """
    heard = {name: leg for name, leg in legs.items() if leg}
    parts = {name: _METHODS[method](leg) for name, leg in heard.items()}
    raw = {name: {s.id: s.score for s in leg} for name, leg in heard.items()}
    notes = {s.id: s.note_id for leg in heard.values() for s in leg}
    fused = [
        Fused(
            id=chunk,
            note_id=note,
            score=sum(p.get(chunk, 0.0) for p in parts.values()) / len(heard),
            legs={name: scores[chunk] for name, scores in raw.items() if chunk in scores},
            parts={name: p[chunk] for name, p in parts.items() if chunk in p},
        )
        for chunk, note in notes.items()
    ]
    return sorted(fused, key=lambda f: (-f.score, f.id))


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
