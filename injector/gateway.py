"""Hand: a reverse proxy in front of a model's API. Memory goes into requests; every answer is relayed as it comes.

`create_router` is mounted by the server. A client that leaves ends its request at the upstream, and an upstream that fails
is told as it failed: before the first byte by a problem (RFC 9457), after it by an answer that breaks off.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

import httpx
from fastapi import APIRouter, Depends, FastAPI, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from injector import gateway_headers as headers
from injector.gateway_memory import Memories, Memory, Remember
from injector.gateway_paths import NoPlaceError, place, takes_memory
from palace.settings import Gateway, Settings

TOKEN_HEADER = "X-Dualwall-Token"  # noqa: S105 - the header's name
"""Names the reader here, where `Authorization` belongs to the upstream."""
ReaderOf = Callable[..., str | None] | Callable[..., Awaitable[str | None]]
"""A dependency: the reader of the token; None without a token, where that is allowed; otherwise it raises (401)."""
_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_KEPT_OPEN = httpx.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=30)
_log = logging.getLogger(__name__)


def create_router(settings: Settings, remember: Remember, reader: ReaderOf) -> APIRouter:
    """Everything below `/v1/`. Without an upstream in the settings each request is told so (404)."""
    proxy = _Proxy(settings.gateway, Memories(remember, settings.inject.deadline_ms / 1000))

    @contextlib.asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        await proxy.close()

    router = APIRouter(lifespan=lifespan)

    @router.api_route("/v1/{path:path}", methods=_METHODS, include_in_schema=False)
    async def relay(asker: Annotated[str | None, Depends(reader)]) -> Response:
        return _Exchange(proxy, asker)

    return router


class _Proxy:
    """The upstream and the memory, for all requests."""

    def __init__(self, settings: Gateway, memories: Memories) -> None:
        self.settings = settings
        self.memories = memories
        self.upstream = None if settings.upstream is None else httpx.URL(settings.upstream)
        self._client: httpx.AsyncClient | None = None

    @property
    def client(self) -> httpx.AsyncClient:
        """Connections to the upstream, kept open between requests."""
        if self._client is None:
            for name in ("httpx", "httpcore"):  # they log addresses and headers, where keys are
                logging.getLogger(name).setLevel(logging.WARNING)
            read = self.settings.timeout_read
            timeout = httpx.Timeout(connect=self.settings.timeout_connect, read=read, write=read, pool=None)
            self._client = httpx.AsyncClient(timeout=timeout, limits=_KEPT_OPEN)
        return self._client

    async def close(self) -> None:
        """Give the connections back."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None


class _Inbound:
    """A request's body as it comes, and its client, who may leave."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._whole = asyncio.Event()

    async def chunks(self) -> AsyncIterator[bytes]:
        """What has not come yet. Raises ClientDisconnect."""
        while not self._whole.is_set():
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            if not message.get("more_body", False):
                self._whole.set()
            yield message.get("body", b"")

    async def beginning(self, most: int) -> tuple[bytes, bool]:
        """The body, or a little more than `most` bytes of it; whether it is whole."""
        body = bytearray()
        async for chunk in self.chunks():
            body += chunk
            if len(body) > most:
                break
        return bytes(body), self._whole.is_set() and len(body) <= most

    async def with_rest(self, beginning: bytes) -> AsyncIterator[bytes]:
        """The body from its beginning, which has come already."""
        yield beginning
        async for chunk in self.chunks():
            yield chunk

    async def left(self) -> None:
        """Return when the client has left."""
        await self._whole.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


@dataclass(frozen=True, slots=True)
class _Outbound:
    """What is sent to the upstream, and what is said about memory."""

    content: bytes | AsyncIterator[bytes] | None
    memory: Memory
    length: bytes | None = None
    """What the client said, for a body that is passed on as it comes."""


class _Exchange(Response):
    """One request and its answer; it speaks ASGI itself, since it has to listen while it waits for the upstream."""

    def __init__(self, proxy: _Proxy, reader: str | None) -> None:
        super().__init__()
        self._proxy = proxy
        self._reader = reader

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Relay, until it is done or the client leaves."""
        inbound = _Inbound(receive)
        work = asyncio.ensure_future(self._relay(Request(scope), inbound, send))
        left = asyncio.ensure_future(inbound.left())
        try:
            await asyncio.wait({work, left}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            left.cancel()
            if not work.done():
                work.cancel()
            with contextlib.suppress(asyncio.CancelledError, ClientDisconnect):
                await work

    async def _relay(self, request: Request, inbound: _Inbound, send: Send) -> None:
        target = self._target(request)
        if isinstance(target, Response):
            await target(request.scope, request.receive, send)
            return
        outbound = await self._outbound(request, inbound)
        _log.info("gateway: %s %s: %s", request.method, request.url.path, outbound.memory.header)
        sent = _to_upstream(request, target, outbound)
        try:
            answer = await self._proxy.client.send(sent, stream=True)
        except httpx.HTTPError as error:
            await _failed(error, outbound.memory)(request.scope, request.receive, send)
            return
        try:
            await _pass_on(answer, outbound.memory, send)
        finally:
            await answer.aclose()

    def _target(self, request: Request) -> httpx.URL | Response:
        """Where the request goes, or why it goes nowhere."""
        upstream = self._proxy.upstream
        if upstream is None:
            return _problem(404, "The gateway has no upstream.", 'Set it: [gateway] upstream = "https://…"')
        path = headers.address(upstream.path, request.scope["raw_path"], request.scope["query_string"])
        try:
            url = None if path is None else upstream.copy_with(raw_path=path)
        except (httpx.InvalidURL, UnicodeDecodeError):
            url = None
        return url or _problem(400, "This path cannot be passed on.", "It has to stay below /v1/, in ASCII.")

    async def _outbound(self, request: Request, inbound: _Inbound) -> _Outbound:
        """What goes on; memory is only looked for where a reader and a place for it are known."""
        has_body = "content-length" in request.headers or "transfer-encoding" in request.headers
        length = request.headers.get("content-length", "").encode() or None
        passed = _Outbound(inbound.chunks() if has_body else None, Memory("empty"), length)
        if not has_body:
            await inbound.beginning(0)
        if not takes_memory(request.method, request.url.path):
            return _about(passed, "no memory goes to this path")
        if self._reader is None:
            return _about(passed, f"there is no {TOKEN_HEADER}")
        body, whole = await inbound.beginning(self._proxy.settings.max_body_bytes)
        if not whole:
            return _about(_Outbound(inbound.with_rest(body), Memory("empty"), length), "the body is too large")
        try:
            found = place(request.url.path, body)
        except NoPlaceError as error:
            return _Outbound(body, Memory("empty", reason=str(error)))
        memory = await self._proxy.memories.of(self._reader, found.question)
        return _Outbound(found.with_memory(memory.text) if memory.text else body, memory)


def _about(outbound: _Outbound, reason: str) -> _Outbound:
    return _Outbound(outbound.content, Memory("empty", reason=reason), outbound.length)


def _to_upstream(request: Request, target: httpx.URL, outbound: _Outbound) -> httpx.Request:
    kept = headers.to_upstream(request.headers.raw)
    if outbound.length is not None:
        kept.append((b"content-length", outbound.length))
    return httpx.Request(request.method, target, headers=kept, content=outbound.content)


async def _pass_on(answer: httpx.Response, memory: Memory, send: Send) -> None:
    """The upstream's bytes as they come. Raises httpx.HTTPError when they break off: so does the client's answer then."""
    raw = headers.to_client(answer.headers.raw, memory.header, memory.reason)
    await send({"type": "http.response.start", "status": answer.status_code, "headers": raw})
    async for chunk in answer.aiter_raw():
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _failed(error: httpx.HTTPError, memory: Memory) -> Response:
    """What is said of an upstream that did not answer. What its error says may hold its address, so that is logged."""
    _log.warning("gateway: the upstream failed: %s", type(error).__name__)
    if isinstance(error, httpx.TimeoutException):
        found = _problem(
            504, "The model's address did not answer in time.", "Try again, or raise [gateway] timeout_read."
        )
    else:
        found = _problem(502, "The model's address could not be reached, or broke off.", "Check [gateway] upstream.")
    found.raw_headers += headers.about(memory.header, memory.reason)
    return found


def _problem(status: int, detail: str, hint: str) -> Response:
    body = {"type": "about:blank", "title": "Gateway", "status": status, "detail": detail, "hint": hint}
    return Response(json.dumps(body), status, media_type="application/problem+json")
