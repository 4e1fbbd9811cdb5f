"""How long an agent waits for `search`: `python -m bench.server [--notes 12000] [--rounds 200] [--folder KEPT] [--json]`.

A real `dualwall serve` over a generated vault (12 000 notes are about 60 000 chunks) and a client in this process, one
question after the other, each asked once. Passages have random vectors, which take no time to make; questions are
embedded by the real model. Asked are MCP over HTTP (a bare POST, and the official client), REST, and MCP over stdio.
Times are milliseconds; `processor`: of the server's process, for each question over MCP and HTTP, which other work on the
machine changes least. The issue's bound: 15 ms at the median of MCP over HTTP.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import httpx
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from bench.gateway import furnish
from bench.vault import questions
from dualwall.tokens import digest

BOUND = 15.0
_TOKEN = "token-of-the-bench"  # noqa: S105 - it opens a generated vault
_WARM = 20
_T = TypeVar("_T")
_ACCEPT = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, int]]:
    """The address and the process of a server over the palace of a folder, ready."""
    config = folder / "dualwall.toml"
    if "token_sha256" not in config.read_text():
        with config.open("a") as file:
            file.write(f'token_sha256 = "{digest(_TOKEN)}"\n[serve]\nschedule = ""\nrate = 1000000\n')
    command = [sys.executable, "-m", "dualwall.cli", "serve", "--listen", "127.0.0.1:0", "--config", str(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["listening"]
        while httpx.get(f"{url}/readyz").status_code != 200:
            time.sleep(0.1)
        try:
            yield url, process.pid
        finally:
            process.terminate()


def asked_one_by_one(ask: Callable[[_T], object], asked: Sequence[_T]) -> dict[str, float]:
    """The spread of what each takes; the first ones only warm up."""
    times = []
    for number, one in enumerate(asked):
        began = time.perf_counter()
        ask(one)
        if number >= _WARM:
            times.append((time.perf_counter() - began) * 1000)
    return spread(times)


def over_post(http: httpx.Client, question: str) -> None:
    """MCP as a client that adds nothing of its own."""
    call = {"name": "search", "arguments": {"query": question}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    answer = http.post("/mcp", json=message, headers=_ACCEPT).json()
    assert not answer["result"].get("isError"), answer


def over_rest(http: httpx.Client, question: str) -> None:
    """The REST API: every hit with all of its fields."""
    assert http.post("/api/v1/search", json={"query": question}).status_code == 200


async def over_client(url: str, asked: Sequence[str]) -> dict[str, float]:
    """The official client over HTTP."""
    async with (
        create_mcp_http_client(headers={"Authorization": f"Bearer {_TOKEN}"}) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
    ):
        return await _by_client(client, asked)


async def over_stdio(config: Path, asked: Sequence[str]) -> tuple[float, dict[str, float]]:
    """Milliseconds from the start of `dualwall mcp` to its first list of tools; and the spread of its searches."""
    began = time.perf_counter()
    arguments = ["-m", "dualwall.cli", "mcp", "--as", "scout", "--config", str(config)]
    async with Client(StdioServerParameters(command=sys.executable, args=arguments)) as client:
        await client.list_tools()
        first = (time.perf_counter() - began) * 1000
        return round(first, 1), await _by_client(client, asked)


async def _by_client(client: Client, asked: Sequence[str]) -> dict[str, float]:
    times = []
    for number, question in enumerate(asked):
        began = time.perf_counter()
        answer = await client.call_tool("search", {"query": question})
        assert not answer.is_error, answer
        if number >= _WARM:
            times.append((time.perf_counter() - began) * 1000)
    return spread(times)


def processor(process: int) -> float:
    """Seconds of processor time that a process has taken; 0 where that cannot be told."""
    stat = Path(f"/proc/{process}/stat")
    if not stat.exists():
        return 0.0
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def spread(times: Sequence[float]) -> dict[str, float]:
    """Median and 95th percentile."""
    cuts = statistics.quantiles(times, n=20)
    return {"p50": round(cuts[9], 2), "p95": round(cuts[18], 2)}


def measure(folder: Path, notes: int, rounds: int) -> dict[str, object]:
    """All figures of a palace in a folder. No question is asked twice, so nothing remembered helps."""
    asked = [one["question"] for one in questions(notes, count=4 * (rounds + _WARM))]
    parts = [asked[at::4] for at in range(4)]
    with serving(folder) as (url, process):
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {_TOKEN}"}, timeout=60) as http:
            chunks = http.get("/api/v1/status").json()["chunks"]
            began = processor(process)
            mcp = asked_one_by_one(lambda question: over_post(http, question), parts[0])
            spent = (processor(process) - began) * 1000 / len(parts[0])
            rest = asked_one_by_one(lambda question: over_rest(http, question), parts[1])
        client = asyncio.run(over_client(url, parts[2]))
        started, stdio = asyncio.run(over_stdio(folder / "dualwall.toml", parts[3]))
    return {
        "chunks": chunks,
        "MCP over HTTP": mcp,
        "processor": round(spent, 1),
        "official client": client,
        "REST": rest,
        "MCP over stdio": stdio,
        "stdio start": started,
        "held": mcp["p50"] <= BOUND,
    }


def main(arguments: Sequence[str]) -> int:
    """Print the figures; 1 when the issue's bound is not held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=12_000)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--folder", type=Path, help="keep the palace there, or take the one that is there")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.folder or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        furnish(folder, given.notes)
        found = measure(folder, given.notes, given.rounds)
    print(json.dumps(found) if given.json else "\n".join(f"{name:<16} {value}" for name, value in found.items()))
    return 0 if found["held"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
