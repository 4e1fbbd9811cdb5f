"""Claude Code's hooks: what goes before an answer to a person's prompt, or at a session's start.

Two halves. `claude_code` is the rule that the server's route and the command share. `main` is a client of a Unix socket that
has to end within 80 ms of its start, so this module imports the standard library alone, and of that little: no pydantic,
httpx or click, not http.client (28 ms), argparse (10 ms) or pathlib (5 ms).
"""

import json
import os
import re
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence

ROUTE = "/api/v1/hooks/claude-code"
MOST_CHARACTERS = 8000
"""Of a context: Claude Code cuts longer ones at 10 000, and then it may be half a rule. Counted as JavaScript does."""
MOST_OF_A_PROMPT = 20_000
"""Characters of a prompt that are sent; a question is made of its beginning."""
DEADLINE = 1.0
"""Seconds from the start to the answer, whatever the server does."""
RECALLED = ("diary", "daily")
"""How the heads of a recall's entries begin, in square brackets."""
EVENTS = ("UserPromptSubmit", "SessionStart")
USAGE = "dualwall hook claude-code [--as READER] [--config FILE]"
_MOST_BYTES = 1 << 20
_EMPTY = {"directive": "", "recall": ""}


def claude_code(event: Mapping[str, object], inject: Callable[[str], Mapping[str, object]]) -> dict[str, object]:
    """What a hook answers to an event. `inject` gives contract.md's `inject` for a message.

    Only a prompt that a person typed has memory put before it: its `source` is absent or "user". Other events get `{}`.
    """
    name = event.get("hook_event_name", EVENTS[0])
    if name not in EVENTS:
        return {}
    told = inject(_message(event)) if _from_a_person(event) else _EMPTY
    return _answer(str(name), context(str(told["directive"]), str(told["recall"])))


def context(directive: str, recall: str) -> str:
    """Both blocks below the limit. The directive stands in full or not at all; the recall may lose its last entries."""
    if _length(directive) >= MOST_CHARACTERS:
        directive = ""
    room = MOST_CHARACTERS - 1 - (_length(directive) + 2 if directive else 0)
    return "\n\n".join(block for block in (directive, _shortened(recall, room)) if block)


def _answer(name: str, text: str) -> dict[str, object]:
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}


def _from_a_person(event: Mapping[str, object]) -> bool:
    return event.get("hook_event_name") == EVENTS[1] or event.get("source") in (None, "user")


def _message(event: Mapping[str, object]) -> str:
    prompt = event.get("prompt")
    return prompt[:MOST_OF_A_PROMPT] if isinstance(prompt, str) else ""


def _length(text: str) -> int:
    return len(text) + sum(character > "\uffff" for character in text)


def _shortened(recall: str, most: int) -> str:
    """A fenced recall without the last entries that do not fit, its fence closed; "" when none is left."""
    body, _, close = recall.rpartition("\n")
    while body and _length(body) + 1 + _length(close) > most:
        body = body[: max(0, *(body.rfind(f"\n\n[{room}") for room in RECALLED))]
    return f"{body}\n{close}" if any(f"\n\n[{room}" in body for room in RECALLED) else ""


# -- the command: stdin to the socket to stdout ----------------------------------------------------------------------------
def main(arguments: Sequence[str]) -> int:
    """Read an event from standard input and print what the owner of the store answers. Always 0: 2 would block the prompt.

    Whatever goes wrong is one line on standard error and an empty context.
    """
    name = EVENTS[0]
    try:
        _set_alarm()
        event = _event(sys.stdin.buffer.read())
        name = str(event.get("hook_event_name", name))
        reader, config = _options(arguments)
        answer = _asked(event, reader, config)
    except (OSError, ValueError, LookupError, TypeError) as error:  # the person's prompt goes on, whatever it is
        sys.stderr.write(f"dualwall: no memory: {str(error) or type(error).__name__}\n")
        answer = _answer(name, "") if name in EVENTS else {}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
    sys.stdout.buffer.flush()
    return 0


def _set_alarm() -> None:
    """One deadline over everything: a standard input that nobody closes, a disk that hangs, a server that does not answer."""

    def late(_number: int, _frame: object) -> None:
        raise TimeoutError(f"there was no answer within {DEADLINE:g} s")

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, DEADLINE)


def _event(given: bytes) -> Mapping[str, object]:
    event = json.loads(given)
    if not isinstance(event, dict):
        raise TypeError("the hook's input is no JSON object")
    return event


def _options(arguments: Sequence[str]) -> tuple[str | None, str | None]:
    """(reader, settings file). By hand: argparse takes 10 ms."""
    found: dict[str, str | None] = {"--as": None, "--config": None}
    rest = [part for word in arguments for part in (word.split("=", 1) if word.startswith("--") else [word])]
    rest = [word for word in rest if word != "--json"]
    for name, value in zip(rest[::2], [*rest[1::2], None], strict=False):
        if name not in found or value is None:
            raise ValueError(f"{name} is not understood: {USAGE}")
        found[name] = value
    return found["--as"], found["--config"]


def _asked(event: Mapping[str, object], reader: str | None, config: str | None) -> dict[str, object]:
    """What the owner answers. Only what it needs is sent. Raises what `main` catches."""
    sent = {key: event[key] for key in ("hook_event_name", "source") if key in event} | {"prompt": _message(event)}
    data, asker = _settings(config, reader)
    status, body = _posted(_socket(data), json.dumps(sent).encode(), asker)
    told = json.loads(body)
    if not isinstance(told, dict):
        raise TypeError("the server's answer is no JSON object")
    if status != 200:
        raise ValueError(str(told.get("detail", f"the server answered {status}")))
    return told


def _settings(config: str | None, reader: str | None) -> tuple[str, str]:
    """(data folder, reader or else the first one) as `palace.configuration` finds them; it is the owner who checks them."""
    file = _settings_file(config)
    with open(file, encoding="utf-8-sig") as stream:  # noqa: PTH123 - pathlib takes 5 ms
        text = stream.read()
    data = os.environ.get("DUALWALL_DATA") or _plain_data(text)
    if not data or not reader:
        import tomllib  # noqa: PLC0415 - it takes 15 ms

        table = tomllib.loads(text)
        data, reader = data or table["data"], reader or next(iter(table["readers"]), "")
    folder = os.path.dirname(os.path.abspath(file))  # noqa: PTH100, PTH120 - likewise
    return os.path.join(folder, os.path.expanduser(data)), reader  # noqa: PTH111, PTH118


def _plain_data(text: str) -> str | None:
    """`data` where it stands on a line of its own, in plain quotes, before the first table; None: ask a TOML reader."""
    head = re.split(r"(?m)^[ \t]*\[", text, maxsplit=1)[0]
    found = re.search(r"""(?m)^data[ \t]*=[ \t]*"([^"\\\n]+)"[ \t]*(?:#.*)?$""", head)
    return found[1] if found and not re.search("\"{3}|'{3}", head) else None


def _settings_file(config: str | None) -> str:
    named = config or os.environ.get("DUALWALL_CONFIG")
    if named:
        return os.path.expanduser(named)  # noqa: PTH111
    if os.path.isfile("dualwall.toml"):  # noqa: PTH113
        return "dualwall.toml"
    from platformdirs import user_config_dir  # noqa: PLC0415 - only where no file is named

    return os.path.join(user_config_dir("dualwall", appauthor=False), "dualwall.toml")  # noqa: PTH118


def _socket(data: str) -> str:
    """Where the owner of the store answers. Raises OSError or ValueError when nobody owns it."""
    try:
        with open(os.path.join(data, "owner.lock"), "rb") as stream:  # noqa: PTH118, PTH123
            path = json.loads(stream.read(65536) or b"{}").get("socket")
    except FileNotFoundError:
        path = None
    if not path:
        raise ValueError("no server runs: start `dualwall serve`")
    if os.stat(path).st_uid != os.getuid():  # noqa: PTH116
        raise ValueError("the server's socket is another user's")
    return str(path)


def _posted(path: str, body: bytes, reader: str) -> tuple[int, bytes]:
    """(status, body) of a POST. HTTP/1.0, so that the answer is whole when the connection ends."""
    if not reader.isprintable() or not reader.isascii():
        raise ValueError("a reader's name is ASCII")
    head = (
        f"POST {ROUTE} HTTP/1.0\r\nHost: localhost\r\nX-Dualwall-Reader: {reader}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(head.encode() + body)
        received = bytearray()
        while (part := connection.recv(65536)) and len(received) < _MOST_BYTES:
            received += part
    top, _, rest = bytes(received).partition(b"\r\n\r\n")
    return int(top.split(None, 2)[1]), rest
