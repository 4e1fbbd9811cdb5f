"""The official MCP client over HTTP and over stdio, each against real processes."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import CallToolResult, TextContent

from tests.server.serving import TOKENS, Served

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")


@asynccontextmanager
async def over_http(served: Served, reader: str = "scout", mode: str = "auto") -> AsyncIterator[Client]:
    """A client with the reader's token."""
    headers = {"Authorization": f"Bearer {TOKENS[reader]}"}
    async with create_mcp_http_client(headers=headers) as http:
        transport = streamable_http_client(f"{served.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


@asynccontextmanager
async def over_stdio(config: Path, reader: str = "scout", mode: str = "auto") -> AsyncIterator[Client]:
    """A client that starts `dualwall mcp --as READER`."""
    arguments = ["-m", "dualwall.cli", "mcp", "--as", reader, "--config", str(config)]
    async with Client(StdioServerParameters(command=sys.executable, args=arguments), mode=mode) as client:
        yield client


def answer(result: CallToolResult) -> dict[str, Any]:
    """The structured answer; the text says the same."""
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    assert json.loads(text(result)) == result.structured_content
    return result.structured_content


def text(result: CallToolResult) -> str:
    """The text that a model reads."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text
