"""How much one client may ask: a bucket of tokens each, filled at a steady rate. Pure; the time is given."""

from dataclasses import dataclass, field

_MOST = 10_000
"""Clients that are remembered; full buckets of others say nothing."""


@dataclass(slots=True)
class Rates:
    """`per_minute` requests for each client, all of them at once if it likes."""

    per_minute: int
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)

    def wait(self, client: str, now: float) -> float:
        """0 and one request less, or how many seconds the client has to wait. `now`: seconds of a steady clock."""
        left, since = self._left.get(client, (float(self.per_minute), now))
        left = min(self.per_minute, left + (now - since) * self.per_minute / 60)
        if left < 1:
            return (1 - left) * 60 / self.per_minute
        if len(self._left) >= _MOST and client not in self._left:
            self._forget(now)
        self._left[client] = (left - 1, now)
        return 0.0

    def _forget(self, now: float) -> None:
        """Buckets that are full again, and if that is not enough, the oldest half."""
        self._left = {c: (left, at) for c, (left, at) in self._left.items() if now - at < 60}
        if len(self._left) >= _MOST:
            newest = sorted(self._left.items(), key=lambda item: item[1][1], reverse=True)
            self._left = dict(newest[: _MOST // 2])
