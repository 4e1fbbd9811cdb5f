"""The server's app: the REST API, MCP, health and figures, behind the guard."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import APIRouter, FastAPI, Request, Response, Security
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dualwall.mcp_server import Context, create_server
from dualwall.owner import create_app
from dualwall.web import guard
from dualwall.web.guard import Guard
from dualwall.web.live import Live
from dualwall.web.metrics import Metrics
from injector.gateway import create_router
from injector.gateway_memory import remembering
from palace.errors import WallError

_scheme = HTTPBearer(auto_error=False, description="The reader's token, from `dualwall token READER`.")


def create(live: Live, metrics: Metrics, on_start: Callable[[], None]) -> ASGIApp:
    """The whole server; `on_start` is called when it can answer."""
    app = create_app(live.library, token_reader)
    app.include_router(_health(live, metrics))
    app.include_router(create_router(live.settings, remembering(live.library), gateway_reader))
    manager = _mcp(live)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with manager.run():
            on_start()
            yield

    app.include_router(APIRouter(routes=[Route("/mcp", endpoint=_McpDoor(manager))], lifespan=lifespan))
    return Guard(app, live, metrics)


def token_reader(
    request: Request, _token: Annotated[HTTPAuthorizationCredentials | None, Security(_scheme)] = None
) -> str:
    """The reader that the guard let in."""
    return _known(guard.reader_of(request.scope))


def gateway_reader(request: Request) -> str | None:
    """The same at the gateway, where a request of this machine without a token passes without memory."""
    return guard.reader_of(request.scope)


def _known(reader: str | None) -> str:
    if reader is None:
        raise WallError("A request without a reader.", "The guard has to stand before this route.")
    return reader


def _health(live: Live, metrics: Metrics) -> APIRouter:
    router = APIRouter(default_response_class=JSONResponse)

    @router.get("/healthz")
    def healthz() -> JSONResponse:
        """The process answers."""
        return JSONResponse({"status": "ok"})

    @router.get("/readyz", responses={503: {"description": "Not yet, or not any more."}})
    def readyz() -> JSONResponse:
        """A question would be answered."""
        status = live.status()
        if status is None or live.faulty:
            return JSONResponse({"status": "starting" if not live.ready else "failed"}, status_code=503)
        return JSONResponse({"status": "ready", "generation": status["generation"]})

    @router.get("/metrics", response_class=Response, responses={200: {"content": {CONTENT_TYPE_LATEST: {}}}})
    def figures() -> Response:
        """Figures for Prometheus; without a token from this machine only."""
        return Response(metrics.render(live.status()), media_type=CONTENT_TYPE_LATEST)

    return router


def _mcp(live: Live) -> StreamableHTTPSessionManager:
    """MCP without sessions: each request bears its token, so a restart or a revoked token ends nothing half-way."""
    server = create_server(live, _reader)
    return StreamableHTTPSessionManager(
        app=server,
        json_response=True,
        stateless=True,
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the guard has done it
        max_request_body_size=guard.MOST_BYTES,
    )


def _reader(context: Context) -> str:
    request = context.request
    return _known(guard.reader_of(request.scope) if isinstance(request, Request) else None)


class _McpDoor:
    """POST alone: the server has nothing to tell by itself, so there is no stream to open."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            await self._manager.handle_request(scope, receive, send)
        else:
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
