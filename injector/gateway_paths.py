"""Where memory goes in a request to a model, path by path. Pure: the request's bytes in, the bytes with memory out.

Nothing is written anew but the memory itself: it is put between bytes that stay as the client sent them, so that what the
client has cached at its model stays cached. A request that is not understood to the last byte has no place for memory.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from injector.gateway_json import Value, elements, members

_TEXTS = frozenset({"text", "input_text"})
_LEADING = frozenset({"system", "developer"})
_ABSENT = Value(None, -1, -1)


class NoPlaceError(Exception):
    """There is no place for memory in this request; the text says why, in ASCII."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where memory stands in a request, and what it is asked for: the last user message's text.

    The characters `at` to `until` of `body` give way; `opening` and `closing` are the JSON around the memory's string.
    """

    question: str
    body: str
    at: int
    until: int
    opening: str
    closing: str

    def with_memory(self, memory: str) -> bytes:
        """The request with that text in its place."""
        put = f"{self.opening}{json.dumps(memory)[1:-1]}{self.closing}"
        return f"{self.body[: self.at]}{put}{self.body[self.until :]}".encode()


def takes_memory(method: str, path: str) -> bool:
    """Whether memory goes to this path at all."""
    return method == "POST" and path in _PATHS


def place(path: str, body: bytes) -> Place:
    """Where memory goes in the body of a request to a path that takes it. Raises NoPlaceError."""
    try:
        return _PATHS[path](_Request(body.decode()))
    except (ValueError, RecursionError) as error:
        raise NoPlaceError("the body is no JSON that can be read in one way only") from error


class _Request:
    """The JSON object that a body is. Raises ValueError for anything else."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._members, self._end = members(text)

    def get(self, name: str) -> Value:
        """A member; None is the value of one that is absent or null."""
        return self._members.get(name, _ABSENT)

    def objects(self, name: str) -> list[Value]:
        """A member that has to be a list of objects. Raises NoPlaceError for any other."""
        found = self.get(name)
        if not isinstance(found.value, list) or not all(isinstance(one, dict) for one in found.value):
            raise NoPlaceError(f"{name} is no list of objects")
        return elements(self.text, found)

    def before(self, at: int, question: str, opening: str, closing: str) -> Place:
        """Memory before a character."""
        return Place(question, self.text, at, at, opening, closing)

    def instead(self, name: str, question: str, opening: str, closing: str) -> Place:
        """Memory as a member: instead of the one that is there, or as the last one."""
        found = self.get(name)
        if found is _ABSENT:
            return self.before(self._end, question, f',"{name}":{opening}', closing)
        return Place(question, self.text, found.start, found.end, opening, closing)

    def source(self, name: str) -> str:
        """A member as it stands in the text."""
        found = self.get(name)
        return self.text[found.start : found.end]


def _chat(request: _Request) -> Place:
    """A message of its own right before the last user message: what stands before it stays cached, turn after turn."""
    messages = request.objects("messages")
    said = [one.value for one in messages]
    last, question = _last_user(said)
    role = "system"
    for message in said[:last]:
        if message.get("role") not in _LEADING:
            break
        role = message["role"]
    return request.before(messages[last].start, question, f'{{"role":"{role}","content":"', '"},')


def _responses(request: _Request) -> Place:
    """At the end of `instructions`, which no later response inherits; where a stored prompt has those, a leading item."""
    if request.get("previous_response_id").value is not None:
        raise NoPlaceError("the request goes on from a stored response")
    given, instructions = request.get("input").value, request.get("instructions")
    question = given if isinstance(given, str) else _last_user([one.value for one in request.objects("input")])[1]
    if isinstance(instructions.value, str):
        return request.before(instructions.end - 1, question, r"\n\n" if instructions.value else "", "")
    if instructions.value is not None:
        raise NoPlaceError("instructions is no text")
    if request.get("prompt").value is None:
        return request.instead("instructions", question, '"', '"')
    opening, closing = '{"type":"message","role":"developer","content":"', '"},'
    if isinstance(given, str):
        item = f'{{"type":"message","role":"user","content":{request.source("input")}}}'
        return request.instead("input", question, f"[{opening}", f"{closing}{item}]")
    return request.before(request.get("input").start + 1, question, opening, closing)


def _messages(request: _Request) -> Place:
    """The last block of `system`, after whatever the client has cached of it."""
    question, system = _last_user([one.value for one in request.objects("messages")])[1], request.get("system").value
    opening, closing = '{"type":"text","text":"', '"}'
    if system is None or system in ("", []):  # a model refuses empty blocks
        return request.instead("system", question, f"[{opening}", f"{closing}]")
    if isinstance(system, str):
        block = f'{{"type":"text","text":{request.source("system")}}}'
        return request.instead("system", question, f"[{block},{opening}", f"{closing}]")
    return request.before(request.objects("system")[-1].end, question, f",{opening}", closing)


_PATHS: Mapping[str, Callable[[_Request], Place]] = {
    "/v1/chat/completions": _chat,
    "/v1/responses": _responses,
    "/v1/messages": _messages,
}


def _last_user(messages: Sequence[dict[str, Any]]) -> tuple[int, str]:
    """Which message is the last of the user, and the text of the last one that has any.

    At `/v1/messages` the results of tools come from the user too, without text. Raises NoPlaceError without a user.
    """
    users = [at for at, message in enumerate(messages) if message.get("role") == "user"]
    if not users:
        raise NoPlaceError("there is no user message")
    texts = (_text(messages[at].get("content")) for at in reversed(users))
    return users[-1], next((text for text in texts if text), "")


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict) and part.get("type") in _TEXTS)
    return "\n".join(text for text in texts if isinstance(text, str))
