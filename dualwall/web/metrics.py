"""Figures for Prometheus. No reader, room or path is a label: whoever may see the figures may not see those."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from dualwall.common import Json

_SECONDS = (0.002, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)


class Metrics:
    """Requests, nights, and what is indexed. One registry an app."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter(
            "dualwall_requests", "Requests.", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "dualwall_request_seconds", "Time to answer.", ("route",), buckets=_SECONDS, registry=self._registry
        )
        self._nights = Counter("dualwall_nights", "Nightly runs by outcome.", ("status",), registry=self._registry)
        self._ready = Gauge("dualwall_ready", "Whether questions are answered.", registry=self._registry)
        self._indexed = {
            name: Gauge(f"dualwall_{name}", text, registry=self._registry)
            for name, text in (
                ("notes", "Notes in the index."),
                ("chunks", "Chunks in the index."),
                ("pending", "Chunks that wait for their dense vector."),
                ("problems", "Notes with a Problem."),
                ("generation", "The palace's generation."),
            )
        }

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def night(self, status: str) -> None:
        """A night ended."""
        self._nights.labels(status).inc()

    def render(self, status: Json | None) -> bytes:
        """The figures as text; `status`: the library's, or None while it cannot be asked."""
        self._ready.set(status is not None)
        for name, gauge in self._indexed.items():
            if status is not None:
                gauge.set(status[name])
        return generate_latest(self._registry)
