"""Fusion of ranked legs. Pure.

Each leg's scores become shares on [0, 1] over the candidates at hand; a candidate that a leg does not have gets 0 from
it. Three methods (docs/decisions/0009-fusion.md):

- `zscore`: from the leg's zero to its best; BM25 has a zero of its own (none of the words), a cosine has none, so its
  zero is its last candidate. A leg weighs as many standard deviations as its best stands above that zero.
- `minmax`: from the last candidate to the best; legs weigh the same.
- `rrf`: reciprocal ranks; scores don't count, legs weigh the same.

Each share is then averaged with the best share of its note in that leg, so that a note whose words stand in one chunk
and whose sense in another is not lost.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from palace.stores.ports import Scored
from palace.vocabulary import ChunkId, NoteId

Method = Literal["zscore", "minmax", "rrf"]
RRF_K = 60
"""The constant of Cormack et al. 2009, which every engine takes as its default."""
MOST_DEVIATIONS = 8.0
"""A leg weighs no more than this: a few candidates, or scores all alike, have next to no deviation."""
_ZEROED = frozenset({"bm25"})
"""Legs whose scores have a zero of their own."""


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


def shares(leg: Sequence[Scored], zero: float | None = None) -> dict[ChunkId, float]:
    """Scores of one leg on [0, 1], from `zero` (left out: its lowest) to its best; equal scores are all 1."""
    if not leg:
        return {}
    high = max(s.score for s in leg)
    low = min(s.score for s in leg) if zero is None else zero
    if high <= low:
        return {s.id: 1.0 for s in leg}
    span = high - low
    return {s.id: share if (share := (s.score - low) / span) > 0 else 0.0 for s in leg}


def deviations(leg: Sequence[Scored], zero: float | None = None) -> float:
    """How many standard deviations the best stands above `zero` (left out: the lowest), at most MOST_DEVIATIONS."""
    scores = np.array([s.score for s in leg])
    low = float(scores.min()) if zero is None else zero
    height, spread = float(scores.max()) - low, float(scores.std())
    return MOST_DEVIATIONS if height >= MOST_DEVIATIONS * spread else height / spread


def reciprocal_rank(leg: Sequence[Scored]) -> dict[ChunkId, float]:
    """1/(k + rank) of one leg, best first, scaled so that the first rank gives 1."""
    return {s.id: (RRF_K + 1) / (RRF_K + rank) for rank, s in enumerate(leg, start=1)}


def fuse(
    legs: Mapping[str, Sequence[Scored]], method: Method = "zscore", weights: Mapping[str, float] | None = None
) -> Ranking:
    """Every candidate of every leg with the weighted mean of its legs' shares, best first; ties by id.

    A leg without candidates takes no part: with one leg alone, its own order stands. `weights`: times the method's own,
    1.0 where absent.
    """
    heard = {name: leg for name, leg in legs.items() if leg and (weights or {}).get(name, 1.0) > 0}
    notes = {s.id: s.note_id for leg in heard.values() for s in leg}
    measured = {name: _measured(name, leg, method) for name, leg in heard.items()}
    weight = {name: own * (weights or {}).get(name, 1.0) for name, (_, own) in measured.items()}
    total = 2 * sum(weight.values())
    scores = dict.fromkeys(notes, 0.0)
    for name, (share, _) in measured.items():
        best = _best(share, notes)
        part, own, of_note = weight[name] / total, share.get, best.get
        for chunk, note in notes.items():
            scores[chunk] += part * (own(chunk, 0.0) + of_note(note, 0.0))
    order = sorted([(-score if score < 1 else -1.0, chunk, notes[chunk]) for chunk, score in scores.items()])
    raw = {name: {s.id: s.score for s in leg} for name, leg in heard.items()}
    fused = [Fused(chunk, note, -below) for below, chunk, note in order]
    return Ranking(fused, raw, {name: share for name, (share, _) in measured.items()})


def _measured(name: str, leg: Sequence[Scored], method: Method) -> tuple[dict[ChunkId, float], float]:
    """Shares of a leg and its weight."""
    if method == "rrf":
        return reciprocal_rank(leg), 1.0
    if method == "minmax":
        return shares(leg), 1.0
    zero = min(0.0, *(s.score for s in leg)) if name in _ZEROED else None
    return shares(leg, zero), deviations(leg, zero)


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
