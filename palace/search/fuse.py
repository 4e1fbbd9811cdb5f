"""Fusion of ranked legs. Pure.

Min-max puts each leg's scores on [0, 1] over the candidates at hand; RRF counts ranks alone. A candidate that a leg
does not have gets 0 from it. Each share is then averaged with the best share of its note in that leg, so that a note
whose words stand in one chunk and whose sense in another is not lost; the score is the mean of the legs, in [0, 1].
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


def fuse(
    legs: Mapping[str, Sequence[Scored]], method: Method = "minmax", weights: Mapping[str, float] | None = None
) -> list[Fused]:
    """Every candidate of every leg with the mean of its legs' shares, best first; ties by id.

    A leg without candidates takes no part: with one leg alone, its own order stands. `weights`: 1.0 where absent.
    """
    weight = {name: (weights or {}).get(name, 1.0) for name in legs}
    heard = {name: leg for name, leg in legs.items() if leg and weight[name] > 0}
    total = sum(weight[name] for name in heard)
    notes = {s.id: s.note_id for leg in heard.values() for s in leg}
    parts = {name: _METHODS[method](leg) for name, leg in heard.items()}
    best = {name: _best(part, notes) for name, part in parts.items()}
    raw = {name: {s.id: s.score for s in leg} for name, leg in heard.items()}
    fused = [
        Fused(
            id=chunk,
            note_id=note,
            score=sum(weight[n] * (parts[n].get(chunk, 0.0) + best[n].get(note, 0.0)) for n in heard) / (2 * total),
            legs={name: scores[chunk] for name, scores in raw.items() if chunk in scores},
            parts={name: part[chunk] for name, part in parts.items() if chunk in part},
        )
        for chunk, note in notes.items()
    ]
    return sorted(fused, key=lambda f: (-f.score, f.id))


def _best(part: Mapping[ChunkId, float], notes: Mapping[ChunkId, NoteId]) -> dict[NoteId, float]:
    best: dict[NoteId, float] = {}
    for chunk, share in part.items():
        best[notes[chunk]] = max(share, best.get(notes[chunk], 0.0))
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
