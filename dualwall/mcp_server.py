"""The tools over MCP, by the official SDK: one server for stdio and for HTTP, in every version of the protocol.

Who asks never comes from an argument: over HTTP it is the token's reader, over stdio the command line's. Imported late:
the SDK takes a second.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any, Protocol, TypeAlias

import anyio
from anyio import to_thread
from mcp import types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from dualwall import tools
from dualwall.common import Json
from palace.errors import DualwallError
from palace.settings import Settings
from palace.vocabulary import GLOBAL

START_HERE = "dualwall://start-here"
_FRESH_MS = 60_000
_AT_ONCE = 32
"""Calls that are answered at the same time."""

Context: TypeAlias = ServerRequestContext[Any, Any]
Who: TypeAlias = Callable[[Context], str]
"""The reader of a request."""


class Desk(Protocol):
    """Who answers the tools."""

    @property
    def settings(self) -> Settings:
        """The settings as they are now."""

    def call(self, reader: str, name: str, arguments: Json) -> Json:
        """The answer of a tool. Blocks. Raises DualwallError."""


def create_server(desk: Desk, who: Who) -> Server[Any]:
    """An MCP server over a desk. What it answers is one reader's, so no cache may share it."""
    private = CacheHint(ttl_ms=_FRESH_MS, scope="private")
    handlers = _Handlers(desk, who)
    return Server(
        "dualwall",
        version=version("dualwall"),
        title="Dualwall",
        instructions=tools.INSTRUCTIONS,
        cache_hints={"tools/list": private, "resources/list": private, "resources/read": private},
        get_tool_input_schema=lambda _name: None,  # no header mirrors an argument: there is nothing to check in one
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_read_resource=handlers.read_resource,
    )


def run_stdio(desk: Desk, reader: str) -> None:
    """Serve one client over standard input and output until it closes them."""
    server = create_server(desk, lambda _context: reader)

    async def serve() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(serve)


def start_here(settings: Settings, reader: str) -> str | None:
    """START-HERE.md of the palace, for those who see its cube; None for others, and before the first night."""
    entry = settings.readers.get(reader)
    if entry is None or GLOBAL not in entry.cubes:
        return None
    try:
        return (settings.palace / "current" / "START-HERE.md").read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


@dataclass(frozen=True, slots=True)
class _Handlers:
    desk: Desk
    who: Who
    limiter: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_AT_ONCE))

    async def list_tools(self, context: Context, _params: object) -> types.ListToolsResult:
        entry = self.desk.settings.readers.get(self.who(context))
        write = entry is not None and entry.write
        return types.ListToolsResult(tools=[_listed(tool) for tool in tools.offered(write=write)])

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """The answer as text and as structure; what went wrong as a text that a model can mend its call by."""
        ask = partial(self.desk.call, self.who(context), params.name, params.arguments or {})
        try:
            answer = await to_thread.run_sync(ask, limiter=self.limiter)
        except DualwallError as error:
            return types.CallToolResult(content=[_text(f"{error.message} {error.hint}".strip())], is_error=True)
        text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
        return types.CallToolResult(content=[_text(text)], structured_content=answer)

    async def list_resources(self, context: Context, _params: object) -> types.ListResourcesResult:
        found = start_here(self.desk.settings, self.who(context))
        page = types.Resource(
            name="START-HERE",
            uri=START_HERE,
            description="What this memory holds: its rooms, the busiest first, and how to use the tools.",
            mime_type="text/markdown",
        )
        return types.ListResourcesResult(resources=[] if found is None else [page])

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        text = start_here(self.desk.settings, self.who(context)) if params.uri == START_HERE else None
        if text is None:
            raise MCPError(types.INVALID_PARAMS, "There is no such resource.")
        content = types.TextResourceContents(uri=START_HERE, mime_type="text/markdown", text=text)
        return types.ReadResourceResult(contents=[content])


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _listed(tool: tools.Tool) -> types.Tool:
    hints = types.ToolAnnotations(
        read_only_hint=not tool.writes, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema(),
        output_schema=tool.output_schema(),
        annotations=hints,
    )
