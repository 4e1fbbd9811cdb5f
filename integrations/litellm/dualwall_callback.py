"""LiteLLM proxy: put an agent's memory into its requests before they go on to the model.

`litellm_settings: {callbacks: ["dualwall_callback.dualwall"]}`, with this file beside the proxy's settings. The README beside
it says how a key names its reader. Whatever happens to Dualwall, the request goes on, without memory, within the deadline.

Environment: LITELLM_DUALWALL_URL (else http://127.0.0.1:8377), LITELLM_DUALWALL_TOKEN_NAME for each reader (its name in upper
case, other characters as _), and LITELLM_DUALWALL_DEADLINE_MS (else 500).
"""

import asyncio
import logging
import os
import re
from collections.abc import Mapping
from typing import Any

import httpx
from litellm.integrations.custom_logger import CustomLogger

READER = "dualwall_reader"
"""The field of a key's metadata that names its reader."""
_TEXTS = frozenset({"text", "input_text"})
_LEADING = frozenset({"system", "developer"})
_log = logging.getLogger("dualwall")

Request = dict[str, Any]


class Dualwall(CustomLogger):  # type: ignore[misc]  # LiteLLM is not installed where this is checked
    """`url`: of `dualwall serve`; `tokens`: by reader; `deadline`: seconds."""

    def __init__(self, url: str, tokens: Mapping[str, str], deadline: float) -> None:
        super().__init__()
        self._url = f"{url.rstrip('/')}/api/v1/inject"
        self._tokens = tokens
        self._deadline = deadline
        self._client: httpx.AsyncClient | None = None

    async def async_pre_call_hook(
        self,
        user_api_key_dict: Any,  # noqa: ANN401 - LiteLLM's UserAPIKeyAuth
        cache: object,  # noqa: ARG002 - LiteLLM's signature
        data: Request,
        call_type: str,
    ) -> Request | None:
        """The request with memory in it, or None, which leaves it alone."""
        placed = _PLACES.get(call_type)
        token = self._token(getattr(user_api_key_dict, "metadata", None))
        if placed is None or token is None or data.get("previous_response_id"):
            return None
        try:
            question = _question(data)
            if question is None:
                return None
            memory = await asyncio.wait_for(self._memory(token, question), self._deadline)
            return placed(data, memory) if memory else None
        except Exception as error:  # noqa: BLE001 - an exception here would fail a person's call
            _log.warning("dualwall: no memory: %s", type(error).__name__)
            return None

    def _token(self, metadata: object) -> str | None:
        """From the key alone: nothing in a request may choose its reader."""
        reader = metadata.get(READER) if isinstance(metadata, dict) else None
        return self._tokens.get(_variable(reader)) if isinstance(reader, str) else None

    async def _memory(self, token: str, question: str) -> str:
        """Both blocks; "" when there is nothing, or not all of it in time."""
        if self._client is None:
            self._client = httpx.AsyncClient(timeout=self._deadline, trust_env=False)
        headers = {"Authorization": f"Bearer {token}"}
        answer = await self._client.post(self._url, json={"message": question}, headers=headers)
        answer.raise_for_status()
        told = answer.json()
        if told["receipt"]["late"]:  # a retry of this request would get other bytes
            return ""
        return "\n\n".join(block for block in (told["directive"], told["recall"]) if block)


def _question(data: Request) -> str | None:
    """The last user message's text; None where no user speaks."""
    said = data["input"] if "input" in data else data.get("messages")
    if isinstance(said, str):
        return said
    users = [one for one in said or [] if isinstance(one, dict) and one.get("role") == "user"]
    texts = (_text(one.get("content")) for one in reversed(users))
    return next((text for text in texts if text), "") if users else None


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict) and part.get("type") in _TEXTS)
    return "\n".join(text for text in texts if isinstance(text, str))


def _chat(data: Request, memory: str) -> Request:
    """A message of its own right before the last user message: what stands before it stays cached, turn after turn."""
    messages = data["messages"]
    last = max(at for at, message in enumerate(messages) if message.get("role") == "user")
    first = messages[0].get("role")
    message = {"role": first if first in _LEADING else "system", "content": memory}
    return {**data, "messages": [*messages[:last], message, *messages[last:]]}


def _responses(data: Request, memory: str) -> Request:
    """At the end of `instructions`, which no later response inherits."""
    instructions = data.get("instructions")
    return {**data, "instructions": f"{instructions}\n\n{memory}" if instructions else memory}


def _messages(data: Request, memory: str) -> Request:
    """The last block of `system`, after whatever the client has cached of it."""
    system = data.get("system") or []
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    return {**data, "system": [*blocks, {"type": "text", "text": memory}]}


_PLACES = {"acompletion": _chat, "completion": _chat, "aresponses": _responses, "anthropic_messages": _messages}


def _variable(reader: str) -> str:
    return f"LITELLM_DUALWALL_TOKEN_{re.sub(r'[^A-Z0-9]', '_', reader.upper())}"


dualwall = Dualwall(
    os.environ.get("LITELLM_DUALWALL_URL", "http://127.0.0.1:8377"),
    {name: token for name, token in os.environ.items() if name.startswith("LITELLM_DUALWALL_TOKEN_")},
    int(os.environ.get("LITELLM_DUALWALL_DEADLINE_MS", "500")) / 1000,
)
