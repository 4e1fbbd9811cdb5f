"""Claude Code itself, with the ready files of `integrations/claude-code/`, and a stand-in for its model."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from injector.neutral import DIRECTIVE, NOTES
from tests.server.integrated import free_port, installed, kept
from tests.server.serving import CANARY, TOKENS, Served
from tests.server.upstream import TEXT, Upstream, serving
from tests.support import ROOT

pytestmark = pytest.mark.slow
FILES = ROOT / "integrations" / "claude-code"
VERSION = "2.1.197"
QUESTION = "When did the fleece come off?"
TRIES = 5
"""Claude Code waits five seconds for a server's tools, which a busy machine may miss."""
TOOLS = ("list_rooms", "search", "read", "neighbors", "recent", "status")


@pytest.fixture(scope="module")
def claude() -> Path:
    folder = kept(f"claude-code-{VERSION}")
    if not (folder / "whole").exists():
        npm = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", f"@anthropic-ai/claude-code@{VERSION}"]
        installed(npm, folder, "needs Claude Code by npm")
        (folder / "whole").touch()
    found = next(folder.glob("node_modules/@anthropic-ai/claude-code-*/claude"), None)
    if found is None:
        pytest.skip("needs Claude Code for this machine")
    return found


def asked(claude: Path, folder: Path, files: dict[str, str], model: str) -> str:
    """What Claude Code prints to a question, in a project with these files and a home of its own."""
    project = folder / "project"
    for name, text in files.items():
        file = project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    environment = {
        "HOME": str(folder),
        "CLAUDE_CONFIG_DIR": str(folder / "claude"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "ANTHROPIC_BASE_URL": model,
        "ANTHROPIC_API_KEY": "stand-in",
        "DUALWALL_TOKEN": TOKENS["scout"],
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "MCP_CONNECTION_NONBLOCKING": "0",
    }
    command = [str(claude), "-p", QUESTION, "--strict-mcp-config", "--mcp-config", ".mcp.json"]
    done = subprocess.run(
        command,
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ready(name: str, *changes: tuple[str, str]) -> str:
    """A file of the folder, with what a person changes in it."""
    text = (FILES / name).read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("kind", ["http", "command"])
def test_memory_and_tools_arrive_at_the_model(claude: Path, served: Served, tmp_path: Path, kind: str) -> None:
    config = str(served.house.settings_file)
    settings = {
        "http": lambda: ready("settings.json", ("http://127.0.0.1:8377", served.url)),
        "command": lambda: ready("settings.command.json", ("--as me", f"--as scout --config {config}")),
    }[kind]()
    tools = ready(".mcp.json", ('"me"', f'"scout", "--config", {json.dumps(config)}'))
    upstream = Upstream()
    with serving(upstream) as model:
        for _ in range(TRIES):
            upstream.seen.clear()
            shown = asked(claude, tmp_path, {".claude/settings.json": settings, ".mcp.json": tools}, model)
            body = next(seen.body.decode() for seen in upstream.seen if QUESTION.encode() in seen.body)
            assert TEXT in shown
            assert (
                body.index(f"<{DIRECTIVE}>")
                < body.index("I am Scout. I never pay for an oven.")
                < body.index(f"<{NOTES}>")
            )
            assert "The fleece came off bed two." in body
            assert CANARY not in body
            assert TOKENS["scout"] not in body
            if all(f"mcp__dualwall__{tool}" in body for tool in TOOLS):
                return
    raise AssertionError("the tools did not arrive")


@pytest.mark.parametrize("kind", ["http", "command"])
def test_without_a_server_the_prompt_goes_on(claude: Path, tmp_path: Path, kind: str) -> None:
    settings = {
        "http": lambda: ready("settings.json", ("127.0.0.1:8377", f"127.0.0.1:{free_port()}")),
        "command": lambda: ready("settings.command.json", ("--as me", "--config none.toml")),
    }[kind]()
    upstream = Upstream()
    with serving(upstream) as model:
        files = {".claude/settings.json": settings, ".mcp.json": '{"mcpServers": {}}'}
        assert TEXT in asked(claude, tmp_path, files, model)
    assert any(QUESTION.encode() in seen.body for seen in upstream.seen)
