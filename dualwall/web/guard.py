"""The door over TCP: which host, whose token, how often, how much. Then one line in the log, and the figures.

Plain ASGI around the whole app, so that no route can be forgotten: without a token there is 401 and nothing else.
"""

import time
from collections.abc import Iterable
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dualwall.web import hosts, problems
from dualwall.web.live import Live
from dualwall.web.logs import event
from dualwall.web.metrics import Metrics
from dualwall.web.rates import Rates
from palace.errors import DualwallError, UnreachableError, UsageError

MOST_BYTES = 1_000_000
"""Of a request's body; the gateway has its own limit."""
GATEWAY: Final = "/v1/"
"""Below it `Authorization` belongs to the upstream, and `X-Dualwall-Token` names the reader."""
_OPEN: Final = frozenset({"/healthz", "/readyz", "/openapi.json"})
_METRICS: Final = "/metrics"
_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
_KEY: Final = "dualwall.reader"
_PRIVATE: Final = (b"cache-control", b"private, no-store")
"""An answer is one reader's: no cache on its way may give it to another."""


def reader_of(scope: Scope) -> str | None:
    """The reader that a request was let in for; None where none is needed, or at the gateway none was named."""
    found = scope.get(_KEY)
    return found if isinstance(found, str) else None


class Refusal(Exception):  # noqa: N818 - it is no error of ours
    """A request that is not let in: its status, why, and headers."""

    def __init__(self, status: int, error: DualwallError, headers: dict[str, str] | None = None) -> None:
        super().__init__(error.message)
        self.status, self.error, self.headers = status, error, headers or {}


class Guard:
    """An ASGI app that lets requests through to another."""

    def __init__(self, app: ASGIApp, live: Live, metrics: Metrics) -> None:
        self._app = app
        self._live = live
        self._metrics = metrics
        self._rates = Rates(live.settings.serve.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, told of in the log and the figures."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 499  # the client left

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if not scope["path"].startswith(GATEWAY):
                    message = {**message, "headers": [*message.get("headers", ()), _PRIVATE]}
            await send(message)

        try:
            await self._serve(scope, receive, watched)
        finally:
            self._tell(scope, status, time.perf_counter() - began)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._admit(scope, Headers(scope=scope))
            if not scope["path"].startswith(GATEWAY):
                receive = await _bounded(scope, receive)
        except Refusal as refusal:
            response = problems.response(refusal.status, refusal.error, refusal.headers)
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _admit(self, scope: Scope, headers: Headers) -> None:
        """Raises Refusal; else the scope bears the reader."""
        self._check_host(headers)
        path, address = scope["path"], (scope.get("client") or ("", 0))[0]
        if path in _OPEN or (path == _METRICS and hosts.is_local(address)):
            return
        gateway, local = path.startswith(GATEWAY), hosts.is_local(address)
        token = headers.get("x-dualwall-token", "") if gateway else _bearer(headers)
        if gateway and local and (self._live.faulty or not token):
            return  # a model's answer does not wait for a memory that nobody can be given
        if self._live.faulty:
            raise Refusal(503, UnreachableError("The server's settings are at fault.", "Its log says where."))
        reader = self._live.reader_of(token)
        self._check_rate(f"reader:{reader}" if reader else f"address:{address}")
        if reader is None:
            raise Refusal(401, DualwallError("Unauthorized."), {"WWW-Authenticate": 'Bearer realm="dualwall"'})
        scope[_KEY] = reader

    def _check_host(self, headers: Headers) -> None:
        names = self._live.settings.serve.hosts
        host = headers.get("host")
        if not hosts.known_host(host, names):
            hint = "Add the name to `hosts` of [serve] in the settings."
            raise Refusal(421, UsageError("The server is not known by that name.", hint))
        if not hosts.known_origin(headers.get("origin"), host, names):
            raise Refusal(403, UsageError("Pages of that origin may not ask."))

    def _check_rate(self, client: str) -> None:
        if wait := self._rates.wait(client, time.monotonic()):
            seconds = str(int(wait) + 1)
            error = DualwallError("Too many requests.", f"Ask again in {seconds} seconds.")
            raise Refusal(429, error, {"Retry-After": seconds})

    def _tell(self, scope: Scope, status: int, seconds: float) -> None:
        route = _route(scope)
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        self._metrics.request(method, route, status, seconds)
        if route not in _OPEN and route != _METRICS:
            who = reader_of(scope)
            event("request", method=method, route=route, status=status, ms=round(seconds * 1000, 1), reader=who)


def _bearer(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _route(scope: Scope) -> str:
    """The route's pattern, never its address: a ref may be a note's title."""
    path = getattr(scope.get("route"), "path", None)
    if isinstance(path, str):
        return path
    known: Iterable[str] = ("/mcp", *_OPEN, _METRICS)
    return next((one for one in known if one == scope["path"]), "other")


async def _bounded(scope: Scope, receive: Receive) -> Receive:
    """The body, read whole; raises Refusal when it is too large, said so beforehand or not."""
    length = Headers(scope=scope).get("content-length", "")
    if length.isdigit() and int(length) > MOST_BYTES:
        raise _too_large()
    body, more, last = bytearray(), True, None
    while more:
        last = await receive()
        if last["type"] != "http.request":
            break
        body += last.get("body", b"")
        more = last.get("more_body", False)
        if len(body) > MOST_BYTES:
            raise _too_large()
    ready: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]
    if last is not None and last["type"] != "http.request":
        ready = [last]

    async def replay() -> Message:
        return ready.pop(0) if ready else await receive()

    return replay


def _too_large() -> Refusal:
    return Refusal(413, UsageError(f"The request is larger than {MOST_BYTES} bytes.", "Ask for less at once."))
