"""MCP by the official client, over stdio and over HTTP, in old versions of the protocol and in the newest."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError

from dualwall.client import BACKGROUND
from palace import lock
from tests.server.serving import Served, furnished
from tests.server.talking import VERSIONS, answer, over_http, over_stdio, text

pytestmark = pytest.mark.slow
NAMES = ["list_rooms", "search", "read", "neighbors", "recent", "remember", "status"]


@pytest.fixture(params=["http", "stdio"])
def connect(served: Served, request: pytest.FixtureRequest) -> Callable[..., AbstractAsyncContextManager[Client]]:
    """Opens a client of a reader, over HTTP or over stdio to the same palace."""
    if request.param == "http":
        return lambda reader="scout", mode="auto": over_http(served, reader, mode)
    return lambda reader="scout", mode="auto": over_stdio(served.house.settings_file, reader, mode)


def run(connect: Callable[..., AbstractAsyncContextManager[Client]], talk: Any, *given: Any) -> Any:  # noqa: ANN401
    async def main() -> Any:  # noqa: ANN401 - what the talk brought
        async with connect(*given) as client:
            return await talk(client)

    return anyio.run(main)


def test_every_tool_is_listed_and_answers(connect: Callable[..., AbstractAsyncContextManager[Client]]) -> None:
    async def talk(client: Client) -> None:
        assert "never invent one" in (client.instructions or "")
        assert client.server_info is not None
        assert client.server_info.name == "dualwall"
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == NAMES
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools if tool.name != "remember")
        assert all(tool.output_schema and tool.input_schema["additionalProperties"] is False for tool in tools)
        rooms = answer(await client.call_tool("list_rooms", {"query": "oven hinge"}))["rooms"]
        found = answer(await client.call_tool("search", {"query": "oven hinge", "room": rooms[0]["room"]}))
        hit = found["hits"][0]
        assert (found["status"], hit["title"], found["receipt"]["searched"]["rooms"]) == (
            "hit",
            "plan",
            ["projects/oven"],
        )
        note = answer(await client.call_tool("read", {"ref": hit["ref"], "lines": hit["lines"]}))
        assert "hinge creaks" in note["text"]
        around = answer(await client.call_tool("neighbors", {"ref": hit["ref"]}))
        assert ([n["title"] for n in around["links"]], around["unresolved"]) == (["notes"], ["nowhere"])
        recent = answer(await client.call_tool("recent", {"room": "Garden", "days": 3660}))
        assert {note["title"] for note in recent["notes"]} == {"index", "beds", "番茄"}
        state = answer(await client.call_tool("status", {}))
        assert (state["reader"], state["cubes"]) == ("scout", ["global", "scout"])

    run(connect, talk)


def test_a_wrong_call_comes_back_as_words_to_mend_it_by(
    connect: Callable[..., AbstractAsyncContextManager[Client]],
) -> None:
    calls: list[tuple[str, dict[str, Any], str]] = [
        ("search", {}, "search needs 'query'. search takes: query, room?"),
        ("search", {"query": "  "}, "search needs 'query'"),
        ("search", {"query": "x", "rooms": ["a"]}, "search has no argument 'rooms'"),
        ("search", {"query": "x", "reader": "owl"}, "search has no argument 'reader'"),
        ("search", {"query": "x", "cube": "owl"}, "search has no argument 'cube'"),
        ("search", {"query": "x", "limit": 0}, "limit: Input should be greater than or equal to 1"),
        ("search", {"query": "x", "room": "y" * 10_000}, "room: String should have at most 300"),
        ("read", {"ref": "nowhere"}, "There is no note 'nowhere' for this reader."),
        ("read", {"ref": "plan", "lines": [9, 2]}, "no lines 9 to 2"),
        ("read", {"ref": "plan", "lines": [5000, 6000]}, "The note has"),
        ("read", {"ref": "plan", "lines": "soon"}, "lines: Input should be a valid list"),
        ("list_rooms", {"cursor": "nonsense"}, "That is no cursor of this list."),
        ("forget", {}, "There is no tool 'forget'. There are: list_rooms"),
    ]

    async def talk(client: Client) -> None:
        for name, arguments, words in calls:
            result = await client.session.call_tool(name, arguments)
            assert result.is_error, (name, arguments)
            assert words in text(result)
            assert len(text(result)) < 600

    run(connect, talk)


def test_empty_strings_and_null_count_as_left_out(connect: Callable[..., AbstractAsyncContextManager[Client]]) -> None:
    async def talk(client: Client) -> None:
        empty = {"query": "oven hinge", "room": "", "wing": " ", "limit": None}
        assert answer(await client.call_tool("search", empty)) | {"receipt": 0} == answer(
            await client.call_tool("search", {"query": "oven hinge"})
        ) | {"receipt": 0}

    run(connect, talk)


def test_who_may_not_write_does_not_see_remember(connect: Callable[..., AbstractAsyncContextManager[Client]]) -> None:
    async def talk(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == [n for n in NAMES if n != "remember"]
        result = await client.session.call_tool("remember", {"text": "x"})
        assert result.is_error
        assert "There is no tool 'remember'" in text(result)

    run(connect, talk, "me")


def test_start_here_is_a_resource_for_those_who_see_the_palace(
    connect: Callable[..., AbstractAsyncContextManager[Client]],
) -> None:
    async def talk(client: Client) -> None:
        (page,) = (await client.list_resources()).resources
        (content,) = (await client.read_resource(page.uri)).contents
        assert "# Start here" in content.model_dump()["text"]
        with pytest.raises(MCPError, match="no such resource"):
            await client.read_resource("dualwall://owl")

    run(connect, talk)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_both_eras_of_the_protocol_are_spoken(
    connect: Callable[..., AbstractAsyncContextManager[Client]], mode: str
) -> None:
    async def talk(client: Client) -> None:
        assert answer(await client.call_tool("search", {"query": "oven hinge"}))["status"] == "hit"

    run(connect, talk, "scout", mode)


@pytest.mark.parametrize("version", VERSIONS[:4])
def test_an_old_client_shakes_hands_and_asks(served: Served, version: str) -> None:
    accept = {"Accept": "application/json, text/event-stream"}
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    with served.http() as http:
        first = http.post(
            "/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}, headers=accept
        )
        assert first.json()["result"]["protocolVersion"] == version
        headers = accept if version == VERSIONS[0] else accept | {"MCP-Protocol-Version": version}
        done = http.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
        assert done.status_code == 202
        call = {"name": "search", "arguments": {"query": "oven hinge"}}
        asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
        found = http.post("/mcp", json=asked, headers=headers).json()["result"]
    assert json.loads(found["content"][0]["text"])["hits"][0]["title"] == "plan"


@pytest.mark.parametrize("version", ["1999-01-01", "2099-01-01", "x" * 5000])
def test_a_version_that_is_not_spoken_is_refused_in_words(served: Served, version: str) -> None:
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": version}
    with served.http() as http:
        answer = http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=headers)
    assert answer.status_code == 400
    assert "error" in answer.json()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"jsonrpc":"2.0"}', b"\xff" * 100, b"[" * 50_000])
def test_what_is_no_message_is_refused(served: Served, body: bytes) -> None:
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    with served.http() as http:
        assert http.post("/mcp", content=body, headers=headers).status_code in {400, 202}
        assert http.post("/mcp", content=body, headers=headers | {"Accept": "text/html"}).status_code in {400, 406}
        assert http.get("/mcp").status_code == 405
        assert http.get("/healthz").status_code == 200


def test_stdio_starts_an_owner_when_there_is_none_and_it_makes_way(tmp_path: Path, embeddings_url: str) -> None:
    house = furnished(tmp_path, embeddings_url)

    async def talk(client: Client) -> None:
        assert answer(await client.call_tool("search", {"query": "oven hinge"}))["status"] == "hit"
        holder = lock.owner(house.settings)
        assert holder is not None
        assert holder.command == BACKGROUND
        (house.vault / "new.md").write_text("A brand-new anvil.\n")
        night = [sys.executable, "-m", "dualwall.cli", "nightly", "--config", str(house.settings_file)]
        done = await anyio.run_process(night, check=False)
        assert done.returncode == 0, done.stderr
        assert answer(await client.call_tool("search", {"query": "anvil"}))["hits"][0]["title"] == "new"

    run(over_stdio, talk, house.settings_file)
    _leave(house.settings_file)
    assert lock.owner(house.settings) is None


def test_stdio_says_why_no_owner_can_be_started(tmp_path: Path, embeddings_url: str) -> None:
    house = furnished(tmp_path, embeddings_url)
    (house.settings.store / "catalogue.sqlite").write_bytes(b"no database" * 100)

    async def talk(client: Client) -> None:
        result = await client.session.call_tool("status", {})
        assert result.is_error
        assert text(result)

    run(over_stdio, talk, house.settings_file)
    _leave(house.settings_file)


def test_a_client_that_hangs_up_ends_the_process_and_nothing_but_protocol_was_said(served: Served) -> None:
    command = [
        sys.executable,
        "-m",
        "dualwall.cli",
        "mcp",
        "--as",
        "scout",
        "--config",
        str(served.house.settings_file),
    ]
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    lines: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "search", "arguments": {"query": "oven"}},
        },
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers = []
        for line in lines:
            process.stdin.write(json.dumps(line) + "\n")
            process.stdin.flush()
            if "id" in line:
                answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.stdout.read() == ""
        assert process.wait(20) == 0
    assert [one["id"] for one in answers] == [1, 2]


@pytest.mark.parametrize("wrong", [("--as", "nobody"), ("--config", "/nowhere.toml")])
def test_wrong_use_of_the_command_is_exit_2_with_nothing_on_standard_output(
    served: Served, wrong: tuple[str, str]
) -> None:
    command = [sys.executable, "-m", "dualwall.cli", "mcp", "--config", str(served.house.settings_file), *wrong]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("dualwall: ")


def test_neither_the_command_nor_the_sdk_imports_the_engine() -> None:
    code = (
        "import sys, dualwall.mcp, dualwall.mcp_server\n"
        "print([m for m in sys.modules if m.partition('.')[0] in "
        "{'qdrant_edge', 'fastembed', 'onnxruntime', 'onnx', 'numpy', 'sentencepiece', 'fastapi', 'tokenizers'}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def _leave(config: Path) -> None:
    """End the owner in the background, as a command that needs the store does."""
    from dualwall.client import make_way  # noqa: PLC0415
    from palace.configuration import load  # noqa: PLC0415

    settings = load(config)
    make_way(settings)
    for _ in range(100):
        if lock.owner(settings) is None:
            return
        time.sleep(0.1)
