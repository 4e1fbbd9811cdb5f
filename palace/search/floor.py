"""The miss floor: below which strength of the best candidate nothing is better than noise.

Two signs are added, each standardised by what true questions of the same palace give: the best cosine, and coverage,
the share of the question's attainable BM25 that one chunk has. The floor is the strength that a few true questions in
a hundred fail to reach. What no score tells is a question of the palace's own field whose answer is not there: a hit
means near, never answered.
"""

import hashlib
import heapq
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np

from palace.stores.payload import Payload
from palace.vocabulary import NoteId

LOST = 0.02
"""Share of true questions that the floor may lose."""
LEAST = 30
"""Fewer answers than this calibrate nothing: then there is no floor."""
MOST = 200
"""Questions of one calibration."""
_LEAST_SPREAD = 1e-3
_SHORTEST, _LONGEST = 12, 400
"""Characters of a question; ideographs count threefold."""
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
    """A question whose answer the palace has. `source`: the note that it was taken from."""

    text: str
    source: NoteId


def known_questions(payloads: Iterable[Payload], most: int = MOST) -> list[Known]:
    """Questions that the palace's own notes answer: headings, titles and sentences around links; the same every time.

    One of each kind a chunk at most; of all of them `most`, drawn by hash.
    """
    drawn: list[tuple[bytes, str, NoteId]] = []
    for payload in payloads:
        for text in _texts(payload):
            key = hashlib.sha256(f"{payload.note_id}\x00{text}".encode("utf-8", "replace")).digest()
            # A heap of the smallest, so that a large palace costs no memory: its first is the largest of them.
            entry = (bytes(255 - b for b in key), text, payload.note_id)
            if len(drawn) < most:
                heapq.heappush(drawn, entry)
            elif entry > drawn[0] and entry not in drawn:
                heapq.heappushpop(drawn, entry)
    return [Known(text, note) for _, text, note in sorted(set(drawn))]


def calibrate(known: Iterable[Known], probe: Callable[[Known], Signs | None], model: str) -> Floor | None:
    """The floor that LOST of the known questions fail to reach; None when fewer than LEAST found anything."""
    found = [signs for question in known if (signs := probe(question)) is not None]
    if len(found) < LEAST:
        return None
    cosines, coverages = np.array([s.cosine for s in found]), np.array([s.coverage for s in found])
    # A palace of one text over and over has no spread; the least there can be keeps the division whole.
    spread = (max(float(v.std()), _LEAST_SPREAD) for v in (cosines, coverages))
    floor = Floor(float(cosines.mean()), next(spread), float(coverages.mean()), next(spread), 0.0, len(found), model)
    strengths = [floor.strength(s) for s in found]
    return replace(floor, floor=float(np.quantile(strengths, LOST)))


def _texts(payload: Payload) -> Iterator[str]:
    heading = payload.heading_path[-1] if payload.heading_path else ""
    linked = next(iter(_linked_sentences(payload.text)), "")
    for text in dict.fromkeys((payload.title, heading, linked)):
        if len(text) >= (_SHORTEST if text.isascii() else _SHORTEST // 3):
            yield text


def _linked_sentences(text: str) -> Iterator[str]:
    """Sentences that hold a wikilink, the link shown as Obsidian shows it."""
    for sentence in _SENTENCE_END.split(text):
        if "[[" in sentence:
            yield " ".join(_LINK.sub(lambda m: m["alias"] or m["target"], sentence).split())[:_LONGEST]
