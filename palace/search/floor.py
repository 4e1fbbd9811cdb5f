"""The miss floor: below which strength of the best candidate nothing is better than noise.

Two signs are added, each standardised by what known questions of the same palace give: the best cosine, and coverage,
the share of the question's attainable BM25 that one chunk has. The floor is the strength that two known questions in
a hundred fail to reach.

A known question is a sentence of a chunk, asked of all other chunks: what stands elsewhere on its matter is what a
true question finds. Titles and headings are none: those of a series find each other, word for word, and a floor drawn
from them loses every true question (docs/decisions/0007-miss-floor.md). What no score tells is a question of the palace's
own field whose answer is not there: a hit means near, never answered.
"""

import hashlib
import heapq
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np

from palace.stores.ports import Record
from palace.vocabulary import ChunkId

LOST = 0.02
"""Share of true questions that the floor may lose."""
_NORMAL_LOST = -2.0537
"""The standard normal distribution's quantile of LOST."""
LEAST = 30
"""Fewer answers than this calibrate nothing: then there is no floor."""
MOST = 200
"""Questions of one calibration."""
_LEAST_SPREAD = 1e-3
_SHORTEST, _LONGEST = 24, 300
"""Characters of a question; ideographs count threefold."""
_LEAST_LETTERS = 0.6
"""Share of letters and blanks in a sentence; less is code or an address. A bar in front is a row of a table."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_LINK = re.compile(r"!?\[\[(?P<target>[^\]|#]*)[^\]|]*(?:\|(?P<alias>[^\]]*))?\]\]")


@dataclass(frozen=True, slots=True)
class Signs:
    """What a question finds: `cosine` of the best chunk, `coverage` in [0, 1]."""

    cosine: float
    coverage: float


@dataclass(frozen=True, slots=True)
class Floor:
    """A calibrated floor. `n`: questions it was drawn from; `model`: fingerprint of the model that gave the cosines."""

    cos_mean: float
    cos_std: float
    cov_mean: float
    cov_std: float
    floor: float
    n: int
    model: str

    def strength(self, signs: Signs) -> float:
        """Standardised cosine plus standardised coverage; below `floor` it is a miss."""
        return (signs.cosine - self.cos_mean) / self.cos_std + (signs.coverage - self.cov_mean) / self.cov_std

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The inverse of `as_dict`. Raises TypeError when a key is absent or unknown."""
        return cls(**data)


@dataclass(frozen=True, slots=True)
class Known:
    """A question that the palace can say something to. `source`: the chunk that it was taken from."""

    text: str
    source: ChunkId


def known_questions(records: Iterable[Record], most: int = MOST) -> list[Known]:
    """A sentence each of `most` chunks, drawn by hash: the same palace asks the same questions."""
    drawn: list[tuple[bytes, ChunkId, str]] = []  # a heap whose first is the next to go, so memory stays small
    for record in records:
        key = hashlib.sha256(record.id.encode()).digest()
        if len(drawn) < most or key > drawn[0][0]:
            sentence = min(_sentences(record.payload.text), key=_hash, default="")
            if sentence:
                (heapq.heappush if len(drawn) < most else heapq.heappushpop)(drawn, (key, record.id, sentence))
    return [Known(text, chunk) for _, chunk, text in sorted(drawn)]


def calibrate(known: Iterable[Known], probe: Callable[[Known], Signs | None], model: str) -> Floor | None:
    """The floor that LOST of the known questions fail to reach; None when fewer than LEAST found anything."""
    found = [signs for question in known if (signs := probe(question)) is not None]
    if len(found) < LEAST:
        return None
    cosines, coverages = np.array([s.cosine for s in found]), np.array([s.coverage for s in found])
    # A palace of one text over and over has no spread; the least there can be keeps the division whole.
    spread = (max(float(v.std()), _LEAST_SPREAD) for v in (cosines, coverages))
    floor = Floor(float(cosines.mean()), next(spread), float(coverages.mean()), next(spread), 0.0, len(found), model)
    strengths = np.array([floor.strength(s) for s in found])
    # The quantile counted hangs on one or two questions, the normal one on a shape; the mean of both errs least.
    normal = _NORMAL_LOST * float(strengths.std())
    return replace(floor, floor=(float(np.quantile(strengths, LOST)) + normal) / 2)


def _sentences(text: str) -> Iterator[str]:
    """Sentences of a chunk that could be asked, links shown as Obsidian shows them."""
    for sentence in _SENTENCE_END.split(_LINK.sub(lambda m: m["alias"] or m["target"], text)):
        words = " ".join(sentence.strip("#>*-+ \t").split())
        letters = sum(c.isalpha() or c == " " for c in words)
        length = len(words) if words.isascii() else 3 * len(words)
        if length >= _SHORTEST and letters >= _LEAST_LETTERS * len(words) and not words.startswith("|"):
            yield words[:_LONGEST]


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()
