"""A stand-in for a model's API: real HTTP in the three dialects, plain and streaming, with the faults that models have.

What a request's `model` says decides: "hang" never answers, "silent" stops in its stream, "error" refuses, "break" breaks off
half-way, "gzip" compresses, "slow" takes its time between two parts.
"""

import asyncio
import gzip
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

WORDS = ("I ", "remember ", "灯.")
TEXT = "".join(WORDS)
PAUSE = 0.4
"""Seconds between two parts of a slow stream."""
Json = dict[str, Any]


@dataclass(slots=True)
class Seen:
    """A request as it came, and whether its client left before its answer was complete."""

    path: str
    headers: list[tuple[bytes, bytes]]
    body: bytes
    left: threading.Event = field(default_factory=threading.Event)

    @property
    def json(self) -> Json:
        told: Json = json.loads(self.body)
        return told

    def header(self, name: str) -> str | None:
        found = [value.decode() for key, value in self.headers if key.decode() == name]
        return ", ".join(found) if found else None


@dataclass(slots=True)
class Upstream:
    """An ASGI app that keeps what it was asked."""

    seen: list[Seen] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        path = scope["raw_path"].decode() + (f"?{scope['query_string'].decode()}" if scope["query_string"] else "")
        asked = Seen(path, list(scope["headers"]), bytes(body))
        self.seen.append(asked)
        work = asyncio.ensure_future(_answer(asked, scope, send))
        leaving = asyncio.ensure_future(_left(receive))
        await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            asked.left.set()
            work.cancel()
        leaving.cancel()
        if not work.cancelled() and work.done() and (error := work.exception()):
            raise error


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class BrokenError(Exception):
    """The upstream breaks off."""


async def _answer(asked: Seen, scope: Scope, send: Send) -> None:
    path = scope["path"]
    if scope["method"] != "POST" or path not in _DIALECTS:
        await _send(
            send,
            200,
            b'{"object": "list", "data": []}',
            [(b"x-own", b"yes"), (b"set-cookie", b"a=1"), (b"set-cookie", b"b=2")],
        )
        return
    body = _read(asked.body)
    kind = body.get("model", "")
    if kind == "hang":
        await asyncio.sleep(600)
    if kind == "error":
        await _send(send, 429, b'{"error": {"message": "Slow down.", "type": "rate"}}', [(b"retry-after", b"7")])
        return
    plain, events = _DIALECTS[path]
    if not body.get("stream"):
        await _plain(kind, json.dumps(plain).encode(), send)
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    async for part in _parts(kind, events):
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _parts(kind: str, events: list[bytes]) -> AsyncIterator[bytes]:
    for number, event in enumerate(events):
        if number == 2 and kind == "break":
            await asyncio.sleep(0.05)
            raise BrokenError
        if number == 2 and kind == "silent":
            await asyncio.sleep(600)
        if number and kind == "slow":
            await asyncio.sleep(PAUSE)
        yield event


async def _plain(kind: str, body: bytes, send: Send) -> None:
    if kind == "gzip":
        await _send(send, 200, gzip.compress(body, mtime=0), [(b"content-encoding", b"gzip")])
        return
    if kind == "break":
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body[:40], "more_body": True})
        await asyncio.sleep(0.05)
        raise BrokenError
    await _send(send, 200, body, [])


async def _send(send: Send, status: int, body: bytes, more: list[tuple[bytes, bytes]]) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _read(body: bytes) -> Json:
    try:
        told = json.loads(body)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


# -- the dialects ----------------------------------------------------------------------------------------------------------
def _data(event: Json, name: str | None = None) -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


def _chat() -> tuple[Json, list[bytes]]:
    base = {"id": "chatcmpl-1", "created": 1, "model": "stub"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    message = {"role": "assistant", "content": TEXT}
    plain = base | {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": usage,
    }
    chunk = base | {"object": "chat.completion.chunk"}
    events = [
        _data(chunk | {"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]}) for word in WORDS
    ]
    last = _data(chunk | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return plain, [*events, last, b"data: [DONE]\n\n"]


def _responses() -> tuple[Json, list[bytes]]:
    text = {"type": "output_text", "text": TEXT, "annotations": []}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    usage = {
        "input_tokens": 1,
        "output_tokens": 1,
        "total_tokens": 2,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    plain = {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "stub", "status": "completed", "output": [message],
        "parallel_tool_calls": False, "tool_choice": "auto", "tools": [], "usage": usage, "error": None,
        "incomplete_details": None, "instructions": None, "metadata": {}, "temperature": 1.0, "top_p": 1.0,
    }  # fmt: skip
    delta = {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0}
    told: list[Json] = [{"type": "response.created", "response": plain | {"status": "in_progress", "output": []}}]
    told += [delta | {"delta": word} for word in WORDS]
    told += [{"type": "response.completed", "response": plain}]
    return plain, [_data(event | {"sequence_number": n}, str(event["type"])) for n, event in enumerate(told)]


def _messages() -> tuple[Json, list[bytes]]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    plain = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "stub", "content": [{"type": "text", "text": TEXT}],
        "stop_reason": "end_turn", "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    delta = {"type": "content_block_delta", "index": 0}
    told: list[Json] = [
        {"type": "message_start", "message": plain | {"content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        *(delta | {"delta": {"type": "text_delta", "text": word}} for word in WORDS),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]  # fmt: skip
    return plain, [_data(event, str(event["type"])) for event in told]


_DIALECTS = {"/v1/chat/completions": _chat(), "/v1/responses": _responses(), "/v1/messages": _messages()}


def stream_of(path: str) -> bytes:
    """All bytes of a whole stream."""
    return b"".join(_DIALECTS[path][1])


@contextmanager
def serving(app: ASGIApp) -> Iterator[str]:
    """Run an app on a free port of localhost, in a thread; yields its address."""
    config = uvicorn.Config(app, port=0, log_config=None, access_log=False, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)
