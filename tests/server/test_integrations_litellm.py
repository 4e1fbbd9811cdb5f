"""LiteLLM's real proxy with the callback, between a client and the stand-in for a model, and Dualwall beside it."""

import asyncio
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from injector.neutral import DIRECTIVE, NOTES
from tests.server.integrated import free_port, installed, kept, until
from tests.server.serving import CANARY, TOKENS, Served
from tests.server.upstream import TEXT, Upstream, serving
from tests.support import ROOT

pytestmark = pytest.mark.slow

# LiteLLM's own extra, `proxy`, asks for more (databases, clouds), some of it in versions that were never published.
PACKAGES = [
    "litellm==1.110.2", "apscheduler", "backoff", "backports-zstd", "cryptography", "expression", "fastapi-sso", "fastapi<1",
    "mcp<3", "orjson", "pyjwt", "pynacl", "python-multipart", "redis", "restrictedpython", "rich", "semver", "soundfile", "starlette<2", "uvicorn<1", "uvloop",
    "websockets",
]  # fmt: skip
CONFIG = """
model_list:
  - model_name: chat
    litellm_params: {{model: openai/stub, api_base: "{upstream}/v1", api_key: upstreams-key}}
  - model_name: claude
    litellm_params: {{model: anthropic/stub, api_base: "{upstream}", api_key: upstreams-key}}
litellm_settings:
  callbacks: ["dualwall_callback.dualwall"]
  num_retries: 0
general_settings:
  custom_auth: keys.check
"""
KEYS = """
from litellm.proxy._types import UserAPIKeyAuth
KEYS = {"scouts-key": {"dualwall_reader": "scout"}, "plain-key": {}, "strangers-key": {"dualwall_reader": "stranger"}}

async def check(request, api_key):
    return UserAPIKeyAuth(api_key=api_key, metadata=KEYS[api_key])
"""
QUESTION = "When did the fleece come off?"
DEADLINE_MS = 3000
USER = {"role": "user", "content": QUESTION}


@dataclass(frozen=True, slots=True)
class Rig:
    """`url`: of the proxy."""

    url: str
    upstream: Upstream

    def post(self, path: str, body: dict[str, Any], key: str = "scouts-key") -> httpx.Response:
        """Ask the proxy; the request has to have reached the model."""
        self.upstream.seen.clear()
        answer = httpx.post(f"{self.url}{path}", json=body, headers={"Authorization": f"Bearer {key}"}, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer

    @property
    def sent(self) -> dict[str, Any]:
        """What the model was asked."""
        assert len(self.upstream.seen) == 1
        return self.upstream.seen[0].json


@pytest.fixture(scope="module")
def python() -> Path:
    """An environment of LiteLLM's own."""
    folder = kept("litellm-1.110.2")
    python = folder / "bin" / "python"
    if not (folder / "whole").exists():
        why = "needs LiteLLM from the package index"
        installed([sys.executable, "-m", "venv", "--clear", "."], folder, why)
        installed([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], folder, why)
        (folder / "whole").touch()
    return python


@contextmanager
def proxied(python: Path, folder: Path, dualwall: str) -> Iterator[Rig]:
    """The proxy with the callback; `dualwall`: the server's address."""
    upstream, port = Upstream(), free_port()
    folder.mkdir()
    shutil.copy(ROOT / "integrations" / "litellm" / "dualwall_callback.py", folder)
    (folder / "keys.py").write_text(KEYS)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("DUALWALL", "OPENAI", "LITELLM"))
    } | {
        "LITELLM_DUALWALL_URL": dualwall,
        "LITELLM_DUALWALL_TOKEN_SCOUT": TOKENS["scout"],
        "LITELLM_DUALWALL_DEADLINE_MS": str(DEADLINE_MS),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_MASTER_KEY": f"sk-{secrets.token_hex(32)}",
    }
    command = [str(python.parent / "litellm"), "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
    with serving(upstream) as upstream_url, (folder / "log").open("wb") as log:
        (folder / "config.yaml").write_text(CONFIG.format(upstream=upstream_url))
        with subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log) as proxy:
            try:
                url = f"http://127.0.0.1:{port}"
                until(lambda: proxy.poll() is not None or httpx.get(f"{url}/health/liveliness").status_code == 200, 120)
                assert proxy.poll() is None, (folder / "log").read_text(errors="replace")[-2000:]
                yield Rig(url, upstream)
            finally:
                proxy.kill()
        assert TOKENS["scout"] not in (folder / "log").read_text(errors="replace")


@pytest.fixture(scope="module")
def rig(python: Path, tmp_path_factory: pytest.TempPathFactory, served: Served) -> Iterator[Rig]:
    with proxied(python, tmp_path_factory.mktemp("litellm") / "proxy", served.url) as rig:
        yield rig


def is_memory(text: object) -> bool:
    assert isinstance(text, str)
    assert CANARY not in text
    return f"<{DIRECTIVE}>" in text and "I am Scout." in text and f"<{NOTES}>" in text and "fleece" in text


def test_chat_gets_a_message_before_the_last_user_message(rig: Rig) -> None:
    said = [{"role": "system", "content": "Be kind."}, USER, {"role": "assistant", "content": "Monday."}, USER]
    answer = rig.post("/v1/chat/completions", {"model": "chat", "messages": said})
    assert answer.json()["choices"][0]["message"]["content"] == TEXT
    messages = rig.sent["messages"]
    assert [messages[at] for at in (0, 1, 2, 4)] == said
    assert messages[3]["role"] == "system"
    assert is_memory(messages[3]["content"])


def test_a_stream_of_chat_gets_it_too(rig: Rig) -> None:
    answer = rig.post("/v1/chat/completions", {"model": "chat", "messages": [USER], "stream": True})
    events = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")]
    deltas = [json.loads(event)["choices"][0]["delta"].get("content") or "" for event in events]
    assert "".join(deltas) == TEXT
    assert is_memory(rig.sent["messages"][0]["content"])


@pytest.mark.parametrize("given", [QUESTION, [{"type": "message", **USER}]])
@pytest.mark.parametrize("instructions", [{}, {"instructions": "Be kind."}])
def test_responses_get_it_in_their_instructions(
    rig: Rig, given: str | Sequence[object], instructions: dict[str, str]
) -> None:
    rig.post("/v1/responses", {"model": "chat", "input": given} | instructions)
    sent = rig.sent["instructions"]
    assert is_memory(sent)
    assert sent.startswith("Be kind.\n\n<" if instructions else "<")


@pytest.mark.parametrize(
    "system", [None, "Be kind.", [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]]
)
def test_messages_get_it_as_the_last_block_of_system(rig: Rig, system: object) -> None:
    body = {"model": "claude", "max_tokens": 20, "messages": [USER]}
    answer = rig.post("/v1/messages", body if system is None else body | {"system": system})
    assert answer.json()["content"][0]["text"] == TEXT
    sent = rig.sent["system"]
    assert is_memory(sent[-1]["text"])
    assert [block["text"] for block in sent[:-1]] == ([] if system is None else ["Be kind."])
    if isinstance(system, list):
        assert sent[0] == system[0]
    assert "cache_control" not in sent[-1]


@pytest.mark.parametrize("key", ["plain-key", "strangers-key"])
def test_a_key_without_a_reader_gets_no_memory_whatever_the_request_says(rig: Rig, key: str) -> None:
    body = {"model": "chat", "messages": [USER], "metadata": {"dualwall_reader": "scout"}, "user": "scout"}
    rig.post("/v1/chat/completions", body, key)
    assert rig.sent["messages"] == [USER]


def test_a_response_that_goes_on_from_another_is_left_alone(rig: Rig) -> None:
    first = rig.post("/v1/responses", {"model": "chat", "input": QUESTION}).json()["id"]
    rig.post("/v1/responses", {"model": "chat", "input": QUESTION, "previous_response_id": first})
    assert "previous_response_id" in rig.sent
    assert "instructions" not in rig.sent


async def failing(scope: Scope, receive: Receive, send: Send) -> None:
    """A server in Dualwall's place: its first answer is nonsense, its second a refusal, then it says nothing."""
    if scope["type"] != "http":
        return
    assert scope["path"] == "/api/v1/inject"
    FAILED.append(scope["path"])
    if len(FAILED) > 2:
        await asyncio.sleep(600)
    status = 200 if len(FAILED) == 1 else 401
    await Response(b"{}", status, media_type="application/json")(scope, receive, send)


FAILED: list[str] = []


def test_whatever_dualwall_does_the_request_goes_on(python: Path, tmp_path: Path) -> None:
    chat = {"model": "chat", "messages": [USER]}
    with serving(failing) as url, proxied(python, tmp_path / "proxy", url) as rig:
        for number in (1, 2, 3):
            began = time.monotonic()
            rig.post("/v1/chat/completions", chat)
            assert rig.sent["messages"] == [USER]
            assert len(FAILED) == number
            assert time.monotonic() - began < DEADLINE_MS / 1000 + 5
    with proxied(python, tmp_path / "alone", f"http://127.0.0.1:{free_port()}") as rig:
        rig.post("/v1/chat/completions", chat)
        assert rig.sent["messages"] == [USER]
