"""Claude Code's hook: as a command against the real server, and as the route that an http hook posts to."""

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from dualwall import cli
from injector import hooks
from injector.neutral import DIRECTIVE, NOTES
from palace.errors import Exit
from tests.server.serving import CANARY, TOKENS, Served

PROMPT = {
    "session_id": "s",
    "transcript_path": "/nowhere/t.jsonl",
    "cwd": "/nowhere",
    "hook_event_name": "UserPromptSubmit",
    "prompt": "When did the fleece come off?",
}
EMPTY = {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": ""}}
BUDGET = 0.08
"""Seconds from the start of the process to its output."""
START = [sys.executable, "-m", "dualwall.start", "hook", "claude-code"]


def hook(
    event: Mapping[str, object] | str, *arguments: str, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    given = event if isinstance(event, str) else json.dumps(event)
    return subprocess.run(
        [*START, *arguments], input=given, capture_output=True, text=True, timeout=30, check=False, cwd=cwd
    )


def told(done: subprocess.CompletedProcess[str]) -> str:
    answer = json.loads(done.stdout)
    assert list(answer) == ["hookSpecificOutput"]
    context: str = answer["hookSpecificOutput"]["additionalContext"]
    return context


# -- the rule --------------------------------------------------------------------------------------------------------------
ASKED: list[str] = []


def remember(message: str) -> dict[str, Any]:
    ASKED.append(message)
    return {"directive": "<d>\nRules.\n</d>", "recall": f"<n>\nPreface.\n\n[daily] a.md\n{message}\n</n>"}


@pytest.mark.parametrize("source", [{}, {"source": None}, {"source": "user"}])
def test_a_persons_prompt_gets_both_blocks(source: dict[str, object]) -> None:
    answer = hooks.claude_code(PROMPT | source, remember)
    output = answer["hookSpecificOutput"]
    assert output == {
        "hookEventName": "UserPromptSubmit",
        "additionalContext": f"<d>\nRules.\n</d>\n\n<n>\nPreface.\n\n[daily] a.md\n{PROMPT['prompt']}\n</n>",
    }


@pytest.mark.parametrize("source", ["agent", "cron", "system", "", "User", 7, ["user"]])
def test_what_no_person_typed_gets_nothing_and_asks_nothing(source: object) -> None:
    ASKED.clear()
    assert hooks.claude_code({**PROMPT, "source": source}, remember) == EMPTY
    assert ASKED == []


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "compact", "fork"])
def test_a_sessions_start_gets_what_needs_no_question(source: str) -> None:
    ASKED.clear()
    answer = hooks.claude_code({"hook_event_name": "SessionStart", "source": source}, remember)
    assert answer["hookSpecificOutput"]["hookEventName"] == "SessionStart"  # type: ignore[index]
    assert ASKED == [""]


@pytest.mark.parametrize("name", ["PreToolUse", "Stop", "", 7])
def test_other_events_get_an_empty_object(name: object) -> None:
    assert hooks.claude_code({**PROMPT, "hook_event_name": name}, remember) == {}


def fenced(*entries: str) -> str:
    return "\n\n".join(("<n>\nPreface.", *entries)) + "\n</n>"


def test_a_long_recall_loses_its_last_entries_and_keeps_its_fence() -> None:
    entries = [f"[diary 2026-11-{day:02}] {day}.md\n{'word ' * 300}\n\nmore" for day in range(1, 9)]
    whole = hooks.context("", fenced(*entries))
    assert whole == fenced(*entries[:5])
    assert len(whole) < hooks.MOST_CHARACTERS
    assert hooks.context("", fenced("[daily] a.md\n" + "x" * 9000)) == ""


def test_a_directive_stands_in_full_or_not_at_all() -> None:
    recall = fenced("[daily] a.md\nshort")
    assert hooks.context("d" * hooks.MOST_CHARACTERS, recall) == recall
    assert hooks.context("d" * (hooks.MOST_CHARACTERS - 1), recall) == "d" * (hooks.MOST_CHARACTERS - 1)
    assert hooks.context("灯" * 100, recall) == f"{'灯' * 100}\n\n{recall}"


def test_characters_beyond_the_first_plane_count_twice() -> None:
    assert hooks.context("🦉" * (hooks.MOST_CHARACTERS // 2), "") == ""


# -- the program without a server ------------------------------------------------------------------------------------------
def settings(folder: Path, data: str = "data") -> Path:
    file = folder / "dualwall.toml"
    file.write_text(f'data = "{data}"\n[readers.me]\ncubes = ["global"]\n')
    return file


def test_it_imports_nothing_that_is_slow() -> None:
    code = (
        "import sys, io\nfrom dualwall import start\nsys.argv = ['dualwall', 'hook', 'claude-code', '--config', 'none']\n"
        "try:\n    start.main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "slow = {'click', 'pydantic', 'httpx', 'http', 'pathlib', 'argparse', 'dataclasses', 'numpy', 'asyncio'}\n"
        "print(sorted(name for name in sys.modules if name.split('.')[0] in slow or name.startswith('palace')))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, '.')\n{code}"],
                          input=json.dumps(PROMPT), capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        (json.dumps(PROMPT), ()),
        (json.dumps(PROMPT), ("--as",)),
        (json.dumps(PROMPT), ("--bogus", "x")),
        (json.dumps(PROMPT), ("--as", "ünknown")),
        (json.dumps(PROMPT), ("--as", "a\r\nX-Dualwall-Reader: b")),
        (json.dumps(PROMPT), ("--config", "/nowhere/dualwall.toml")),
        ("", ()),
        ("{", ()),
        ("[1]", ()),
        ('"text"', ()),
        ("\x00", ()),
    ],
)
def test_whatever_is_wrong_no_prompt_is_blocked(tmp_path: Path, given: str, arguments: tuple[str, ...]) -> None:
    settings(tmp_path)
    done = hook(given, *arguments, cwd=tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout) == EMPTY
    assert done.stderr.startswith("dualwall: no memory: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "toml", ["data = ", "", "data = 1", "data = 'd'\nreaders = 3", "data = 'd'\nreaders = {}", "\ufeffdata = 'd'"]
)
def test_faulty_settings_block_no_prompt(tmp_path: Path, toml: str) -> None:
    (tmp_path / "dualwall.toml").write_text(toml, encoding="utf-8")
    done = hook(PROMPT, cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)) == (0, EMPTY)


@pytest.mark.parametrize(
    "toml",
    [
        'data = "{}"',
        "\ufeff# mine\ndata='{}'",
        'data = "{}" # here\ntimezone = "UTC"',
        'timezone = """\ndata = "elsewhere"\n"""\ndata = "{}"',
        'inject = {{ tokens = 1 }}\ndata = "{}"',
        '"data" = "{}"',
    ],
)
@pytest.mark.parametrize("reader", [("--as", "me"), ("--as=me",), ("--json",)])
def test_the_data_folder_is_found_however_it_is_written(tmp_path: Path, toml: str, reader: tuple[str, ...]) -> None:
    file = tmp_path / "dualwall.toml"
    text = toml.format("data") + '\n[readers.me]\ncubes = ["global"]\n[stores]\ndata = "nowhere"\n'
    file.write_text(text, encoding="utf-8")
    with owner(tmp_path, b"HTTP/1.0 200 OK\r\n\r\n" + json.dumps(EMPTY).encode()) as seen:
        done = hook(PROMPT, "--config", str(file), *reader)
    assert (done.returncode, done.stderr) == (0, "")
    assert b"X-Dualwall-Reader: me\r\n" in seen[0]


@contextmanager
def owner(folder: Path, answer: bytes, *, hang: float = 0.0) -> Iterator[list[bytes]]:
    """A socket that answers as it is told, and what it was asked."""
    data, seen = folder / "data", list[bytes]()
    data.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(data / "owner.sock"))
        listener.listen()
        (data / "owner.lock").write_text(json.dumps({"socket": str(data / "owner.sock")}))

        def answered() -> None:
            connection, _ = listener.accept()
            with connection:
                seen.append(connection.recv(1 << 20))
                time.sleep(hang)
                with suppress(OSError):  # the hook may have left
                    connection.sendall(answer)

        thread = threading.Thread(target=answered, daemon=True)
        thread.start()
        yield seen
        thread.join(10)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.0 200 OK\r\n\r\nno json",
        b"HTTP/1.0 200 OK\r\n\r\n[]",
        b"nonsense",
        b'HTTP/1.1 400 Bad\r\n\r\n{"detail": "There is no reader"}',
        b'HTTP/1.0 503 Later\r\nX: y\r\n\r\n{"detail": "down"}',
    ],
)
def test_a_server_that_answers_badly_blocks_no_prompt(tmp_path: Path, answer: bytes) -> None:
    file = settings(tmp_path)
    with owner(tmp_path, answer):
        done = hook(PROMPT, "--config", str(file))
    assert (done.returncode, json.loads(done.stdout)) == (0, EMPTY)


def test_only_what_is_needed_is_sent_and_of_a_huge_prompt_the_beginning(tmp_path: Path) -> None:
    file = settings(tmp_path)
    with owner(tmp_path, b"HTTP/1.0 200 OK\r\n\r\n" + json.dumps(EMPTY).encode()) as seen:
        done = hook(PROMPT | {"prompt": "x" * 5_000_000}, "--config", str(file), "--as", "scout")
    assert (done.returncode, done.stderr) == (0, "")
    head, _, body = seen[0].partition(b"\r\n\r\n")
    assert b"X-Dualwall-Reader: scout\r\n" in head
    assert json.loads(body) == {"hook_event_name": "UserPromptSubmit", "prompt": "x" * hooks.MOST_OF_A_PROMPT}


def test_a_server_that_hangs_is_left_in_time(tmp_path: Path) -> None:
    file = settings(tmp_path)
    with owner(tmp_path, b"", hang=3.0):
        began = time.monotonic()
        done = hook(PROMPT, "--config", str(file))
        took = time.monotonic() - began
    assert (done.returncode, json.loads(done.stdout)) == (0, EMPTY)
    assert "no answer within 1 s" in done.stderr
    assert took < hooks.DEADLINE + 1.5


def test_a_stale_lock_is_no_server(tmp_path: Path) -> None:
    file = settings(tmp_path)
    (tmp_path / "data").mkdir()
    for content in ("", "{}", "nonsense", json.dumps({"socket": None}), json.dumps({"socket": str(tmp_path / "gone")})):
        (tmp_path / "data" / "owner.lock").write_text(content)
        done = hook(PROMPT, "--config", str(file))
        assert (done.returncode, json.loads(done.stdout)) == (0, EMPTY), content


def test_by_the_command_line_it_is_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["hook", "claude-code", "--help"]) == Exit.DONE
    assert "UserPromptSubmit" in capfd.readouterr().out
    done = subprocess.run([sys.executable, "-m", "dualwall.cli", "hook", "claude-code", "--bogus"],
                          input=json.dumps(PROMPT), capture_output=True, text=True, check=False)  # fmt: skip
    assert (done.returncode, json.loads(done.stdout)) == (0, EMPTY)


# -- with the real server --------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_the_command_gets_the_readers_memory_and_no_others(served: Served) -> None:
    config = ("--config", str(served.house.settings_file))
    scouts = told(hook(PROMPT, "--as", "scout", *config))
    assert "I am Scout." in scouts
    assert "The fleece came off" in scouts
    assert scouts.index(DIRECTIVE) < scouts.index(NOTES)
    assert CANARY not in scouts
    assert told(hook(PROMPT | {"source": "agent"}, "--as", "scout", *config)) == ""
    first = told(hook(PROMPT, *config))  # the settings' first reader
    assert "The fleece came off" in first
    assert "Scout" not in first
    nobody = hook(PROMPT, "--as", "nobody", *config)
    assert (nobody.returncode, told(nobody)) == (0, "")
    assert "nobody" in nobody.stderr


@pytest.mark.slow
def test_the_http_hook_gets_the_same_by_the_readers_token(served: Served) -> None:
    url = f"{served.url}{hooks.ROUTE}"
    answer = httpx.post(url, json=PROMPT, headers={"Authorization": f"Bearer {TOKENS['scout']}"})
    config = ("--config", str(served.house.settings_file))
    assert answer.json() == json.loads(hook(PROMPT, "--as", "scout", *config).stdout)
    assert httpx.post(url, json=PROMPT).status_code == 401
    assert httpx.post(url, json=PROMPT | {"reader": "scout"}, headers={"Authorization": "Bearer no"}).status_code == 401


@pytest.mark.slow
def test_it_takes_eighty_milliseconds(served: Served) -> None:
    """The fastest of some runs: what the machine's other work adds is not the hook's."""
    given, config = json.dumps(PROMPT).encode(), ["--as", "scout", "--config", str(served.house.settings_file)]
    took: list[float] = []
    while len(took) < 60 and (not took or min(took) > BUDGET):
        began = time.perf_counter()
        subprocess.run([*START, *config], input=given, capture_output=True, check=True)
        took.append(time.perf_counter() - began)
    assert min(took) <= BUDGET, f"{sorted(took)[:5]}"
