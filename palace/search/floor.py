"""The miss floor: below which strength of the best candidate nothing is better than noise.

Two signs are added, each standardised by what true questions of the same palace give: the best cosine, and coverage,
the share of the question's attainable BM25 that one chunk has. The floor is the strength that a few true questions in
a hundred fail to reach. What no score tells is a question of the palace's own field whose answer is not there: a hit
means near, never answered.
"""

from dataclasses import asdict, dataclass
from typing import Any, Self

from palace.vocabulary import NoteId

LOST = 0.02
"""Share of true questions that the floor may lose."""
LEAST = 30
"""Fewer answers than this calibrate nothing: then there is no floor."""
MOST = 200
"""Questions of one calibration."""


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
