"""OpenClaw with the plugin loaded: in the real program with a stand-in for a model behind it, and hook by hook in its Node."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from injector.neutral import DIRECTIVE, NOTES
from tests.server.integrated import free_port, installed, kept, silent
from tests.server.serving import CANARY, TOKENS, Served
from tests.server.upstream import serving
from tests.support import ROOT

pytestmark = pytest.mark.slow
PLUGIN = ROOT / "integrations" / "openclaw"
QUESTION = "When did the fleece come off?"
PATIENCE = 180
"""Seconds for one turn of an agent; on a quiet machine it takes 20."""


@dataclass(frozen=True, slots=True)
class OpenClaw:
    """The program with a Node that it runs on."""

    node: Path
    modules: Path

    def run(self, *arguments: str, cwd: Path, **environment: str) -> str:
        """Run the program in a folder of its own; what it printed."""
        own = {"PATH": f"{self.node.parent}:{os.environ['PATH']}", "HOME": str(cwd), "NO_COLOR": "1"}
        done = subprocess.run(
            [str(self.node), str(self.modules / "openclaw" / "openclaw.mjs"), *arguments],
            cwd=cwd, env=own | environment, capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def openclaw() -> OpenClaw:
    node, program = kept("node-24"), kept("openclaw-2026.9.6")
    why, npm = "needs Node 24 and OpenClaw by npm", ["npm", "install", "--no-audit", "--no-fund"]
    if not (node / "whole").exists():
        installed([*npm, "node@24"], node, why)
        (node / "whole").touch()
    if not (program / "whole").exists():
        installed([*npm, "--ignore-scripts", "openclaw@2026.9.6"], program, why)
        (program / "whole").touch()
    return OpenClaw(node / "node_modules" / "node" / "bin" / "node", program / "node_modules")


@dataclass(slots=True)
class Model:
    """A model that first searches its memory, then reads what it found, then answers; and what it was told."""

    seen: list[list[dict[str, Any]]] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        messages = (await Request(scope, receive).json())["messages"]
        self.seen.append(messages)
        tools = [text_of(message) for message in messages if message["role"] == "tool"]
        body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in self._chunks(tools)) + "data: [DONE]\n\n"
        await Response(body, media_type="text/event-stream")(scope, receive, send)

    def _chunks(self, tools: list[str]) -> Iterator[dict[str, Any]]:
        base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "stub"}
        delta: dict[str, Any] = {"role": "assistant", "content": "On Monday."}
        if len(tools) < 2:
            asked = {"id": "memory_search", "args": {"query": QUESTION, "corpus": "wiki"}}
            if tools:
                asked = {"id": "memory_get", "args": {"path": found(tools[0])[0]["path"], "corpus": "wiki"}}
            function = {"name": "tool_call", "arguments": json.dumps(asked)}
            call = {"index": 0, "id": f"call_{len(tools)}", "type": "function", "function": function}
            delta = {"role": "assistant", "tool_calls": [call]}
        yield base | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        reason = "stop" if "content" in delta else "tool_calls"
        yield base | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def found(tool: str) -> list[dict[str, Any]]:
    """The hits in what OpenClaw tells the model about a call of memory_search."""
    whole = json.loads(tool)
    stack: list[Any] = [whole]
    while stack:
        one = stack.pop()
        if isinstance(one, dict) and isinstance(one.get("results"), list):
            hits: list[dict[str, Any]] = one["results"]
            return hits
        stack += one.values() if isinstance(one, dict) else one if isinstance(one, list) else []
    raise AssertionError(tool)


def settings(folder: Path, dualwall: str, model: str) -> Path:
    """OpenClaw's settings: the plugin, one agent with Scout's token, and the model."""
    provider = {"id": "stub", "name": "stub", "contextWindow": 100_000, "maxTokens": 1000}
    config = {"url": dualwall, "timeoutMs": 5000, "agents": {"main": {"token": "${DUALWALL_TOKEN_MAIN}"}}}
    entry = {"enabled": True, "hooks": {"allowConversationAccess": True}, "config": config}
    plugins = {"load": {"paths": [str(PLUGIN)]}, "allow": ["dualwall", "memory-core"], "entries": {"dualwall": entry}}
    stub = {"baseUrl": f"{model}/v1", "apiKey": "x", "api": "openai-completions", "models": [provider]}
    agents = {"defaults": {"model": {"primary": "stub/stub"}, "workspace": str(folder / "workspace")}}
    whole = {"plugins": plugins, "models": {"providers": {"stub": stub}}, "agents": agents}
    file = folder / "openclaw.json"
    file.write_text(json.dumps(whole))
    return file


def test_the_memory_arrives_at_the_model_and_the_model_finds_more(
    openclaw: OpenClaw, served: Served, tmp_path: Path
) -> None:
    model = Model()
    with serving(model) as url:
        environment = {
            "OPENCLAW_CONFIG_PATH": str(settings(tmp_path, served.url, url)),
            "OPENCLAW_STATE_DIR": str(tmp_path / "state"),
            "DUALWALL_TOKEN_MAIN": TOKENS["scout"],
        }
        shown = openclaw.run("agent", "--local", "--agent", "main", "--message", QUESTION, cwd=tmp_path, **environment)
    assert "On Monday." in shown
    assert len(model.seen) == 3
    for messages in model.seen:
        assert CANARY not in json.dumps(messages)
        assert TOKENS["scout"] not in json.dumps(messages)
        system = next(text_of(message) for message in messages if message["role"] == "system")
        assert f"<{DIRECTIVE}>\n" in system
        assert "I am Scout. I never pay for an oven." in system
        user = next(
            text for message in messages if message["role"] == "user" and QUESTION in (text := text_of(message))
        )
        assert user.index(f"<{NOTES}>") < user.index("The fleece came off bed two.") < user.index(f"\n</{NOTES}>")
        assert user.index(f"\n</{NOTES}>") < user.index(QUESTION)
    searched, read = [text_of(message) for message in model.seen[-1] if message["role"] == "tool"]
    hits = found(searched)
    assert any("fleece" in hit["snippet"] for hit in hits)
    assert any(word in read for word in ("fleece", "beans"))


# -- hook by hook ----------------------------------------------------------------------------------------------------------
HOST = """
import { readFileSync } from "node:fs";
import plugin from "./index.js";
const {config, calls} = JSON.parse(readFileSync(0, "utf8"));
const warned = [], found = {};
plugin.register({
  pluginConfig: config,
  logger: {warn: (text) => warned.push(text)},
  on: (name, handler, options) => { found[name] = handler; found.options = options; },
  registerMemoryCorpusSupplement: (corpus) => { Object.assign(found, corpus); },
});
const told = [];
for (const [name, ...given] of calls) {
  const began = Date.now();
  const answer = await found[name](...given).catch((error) => ({error: String(error)}));
  told.push({answer: answer ?? null, ms: Date.now() - began});
}
console.log(JSON.stringify({told, warned, timeoutMs: found.options.timeoutMs}));
process.exit(0);
"""
HOOK = "before_prompt_build"
EVENT = {"prompt": QUESTION, "messages": []}


@dataclass(frozen=True, slots=True)
class Host:
    """Runs the plugin's hooks in OpenClaw's Node, with its SDK."""

    openclaw: OpenClaw
    folder: Path

    def call(self, url: str, *calls: list[Any], **more: object) -> tuple[list[Any], dict[str, Any]]:
        """Each call's answer, and what else was told."""
        agents = {
            "main": {"token": TOKENS["scout"]},
            "wrong": {"token": "wrong"},
            "unset": {"token": {"source": "env"}},
        }
        given = {"config": {"url": url, "timeoutMs": 5000, "agents": agents} | more, "calls": calls}
        done = subprocess.run(
            [str(self.openclaw.node), "host.mjs"], cwd=self.folder, input=json.dumps(given), capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        whole: dict[str, Any] = json.loads(done.stdout)
        return [one["answer"] for one in whole["told"]], whole


@pytest.fixture(scope="module")
def host(openclaw: OpenClaw, tmp_path_factory: pytest.TempPathFactory) -> Host:
    folder = tmp_path_factory.mktemp("host")
    shutil.copytree(PLUGIN, folder, dirs_exist_ok=True)
    (folder / "node_modules").symlink_to(openclaw.modules)
    (folder / "host.mjs").write_text(HOST)
    return Host(openclaw, folder)


def test_only_people_get_memory(host: Host, served: Served) -> None:
    people: list[dict[str, Any]] = [
        {},
        {"trigger": "user"},
        {"trigger": "manual"},
        {"inputProvenance": {"kind": "external_user"}},
    ]
    machines: list[dict[str, Any]] = [
        {"trigger": "heartbeat"}, {"trigger": "cron"}, {"trigger": "memory"},
        {"inputProvenance": {"kind": "inter_session"}}, {"inputProvenance": {"kind": "internal_system"}},
    ]  # fmt: skip
    contexts = [{"agentId": "main"} | context for context in [*people, *machines]]
    answers, told = host.call(served.url, *([HOOK, EVENT, context] for context in contexts))
    for answer in answers[: len(people)]:
        assert set(answer) == {"appendSystemContext", "prependContext"}
        assert "I am Scout." in answer["appendSystemContext"]
        assert "fleece" in answer["prependContext"]
    assert answers[len(people) :] == [None] * len(machines)
    assert (told["warned"], told["timeoutMs"]) == ([], 5500)


def test_nothing_but_the_agents_id_chooses_the_reader(host: Host, served: Served) -> None:
    claims = {"prompt": "agentId: main", "currentUserMessage": "I am the agent main", "agentId": "main"}
    others = [{"agentId": name} for name in ("owl", "__proto__", "constructor", "", "unset")] + [{}]
    answers, told = host.call(served.url, *([HOOK, claims, context] for context in others))
    assert answers == [{}] * len(others)
    searches = [["search", {"query": QUESTION, **context}] for context in others]
    gets = [["get", {"lookup": "daily/2026-11-30.md", **context}] for context in others]
    assert host.call(served.url, *searches)[0] == [[]] * len(others)
    assert host.call(served.url, *gets)[0] == [None] * len(others)
    refused, told = host.call(served.url, [HOOK, EVENT, {"agentId": "wrong"}])
    assert refused == [None]
    assert told["warned"] == ["dualwall: no memory: dualwall answered 401"]


def test_the_current_message_counts_before_the_prompt(host: Host, served: Served) -> None:
    main = {"agentId": "main"}
    huge = EVENT | {"currentUserMessage": "fleece " * 500_000}
    empty = {"prompt": "never looked at", "currentUserMessage": ""}
    answers, _ = host.call(served.url, *([HOOK, event, main] for event in (huge, empty, {"prompt": None}, {})))
    assert all("I am Scout." in answer["appendSystemContext"] for answer in answers)


def test_the_corpus_finds_and_reads(host: Host, served: Served) -> None:
    main = {"agentId": "main"}
    [hits], _ = host.call(served.url, ["search", {"query": "fleece", "maxResults": 2, **main}])
    assert 0 < len(hits) <= 2
    hit = next(hit for hit in hits if "fleece" in hit["snippet"])
    lookup = {"lookup": hit["path"], **main}
    answers, _ = host.call(
        served.url,
        ["get", lookup],
        ["get", lookup | {"fromLine": 1, "lineCount": 1}],
        ["get", lookup | {"lookup": "no-such-ref"}],
        ["get", lookup | {"lookup": "../../owner/status"}],
        ["search", {"query": "fleece", "maxResults": 100_000, **main}],
    )
    assert "fleece" in answers[0]["content"]
    assert (answers[1]["fromLine"], answers[1]["lineCount"], answers[1]["path"]) == (1, 1, hit["path"])
    assert answers[2:4] == [None, None]
    assert not any(CANARY in json.dumps(answer) for answer in answers)


def test_whatever_dualwall_does_the_prompt_is_built(host: Host) -> None:
    context = {"agentId": "main"}
    with silent() as hanging:
        [late], told = host.call(hanging, [HOOK, EVENT, context], timeoutMs=300)
    assert (late, len(told["warned"])) == (None, 1)
    assert told["told"][0]["ms"] < 2000
    [down], told = host.call(f"http://127.0.0.1:{free_port()}", [HOOK, EVENT, context])
    assert (down, len(told["warned"])) == (None, 1)
