"""What a document names, held against the program. Each check takes text and returns faults, a sentence each."""

import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from palace.configuration import NOT_SETTINGS, PREFIX
from palace.errors import Exit
from palace.settings import Settings
from tests.support import ROOT

FOLDERS = ("palace", "sync", "librarian", "ingest", "injector", "dualwall", "bench", "tests", "docs", "examples")
SUFFIXES = "py|sh|toml|md|json|jsonl|gz|tsv|sqlite|lock|yaml"
_FENCE = re.compile(r"^\s*(```+|~~~+)\s*(\w*)")
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_ASSIGNMENT = re.compile(r"[A-Z_][A-Z0-9_]*=")


def faults(text: str, at: Path = ROOT) -> list[str]:
    """Everything in a document that the program does not have. `at`: the folder that its links start from."""
    return [fault for check in CHECKS for fault in check(text)] + list(links(text, at))


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Fenced blocks as (language, text)."""
    language: str | None = None
    lines: list[str] = []
    for line in text.splitlines():
        fence = _FENCE.match(line)
        if fence and language is None:
            language, lines = fence[2], []
        elif fence and language is not None:
            yield language, "\n".join(lines)
            language = None
        elif language is not None:
            lines.append(line)


def spans(text: str) -> list[str]:
    """Inline code, outside of fenced blocks."""
    outside = re.sub(r"(?ms)^\s*(```+|~~~+).*?^\s*\1\s*$", "", text)
    return _SPAN.findall(outside)


def lines_of_code(text: str) -> Iterator[str]:
    """Shell lines of blocks, and inline code."""
    for language, block in blocks(text):
        if language in {"sh", "console", "bash"}:
            yield from (line.removeprefix("$ ") for line in block.splitlines())
    yield from spans(text)


def calls(text: str, program: str) -> Iterator[list[str]]:
    """Arguments of each call of a program that a document shows."""
    for line in lines_of_code(text):
        for part in re.split(r"\s(?:\||&&|;)\s", line):
            try:
                words = shlex.split(part, comments=True)
            except ValueError:
                words = part.split()
            while words and _ASSIGNMENT.match(words[0]):
                words.pop(0)
            if words and words[0].rpartition("/")[2] == program:
                yield [word.strip("[]") for word in words[1:]]


def commands(text: str) -> Iterator[str]:
    """Calls of `dualwall` that it would refuse."""
    for arguments in calls(text, "dualwall"):
        refusal = _refusal(arguments)
        if refusal:
            yield f"dualwall {' '.join(arguments)}: {refusal}"


def named_commands(text: str) -> set[str]:
    """The commands that a document calls."""
    return {arguments[0] for arguments in calls(text, "dualwall") if arguments and not arguments[0].startswith("-")}


def _refusal(arguments: Sequence[str]) -> str | None:
    from dualwall.cli import cli  # noqa: PLC0415 - the program is what is tested, so its absence is a fault of one test

    rest = [word for word in arguments if word not in {"--help", "-h", "--version"}]
    command: click.Command = cli
    try:
        while isinstance(command, click.Group) and rest:
            found = command.get_command(click.Context(command), rest[0])
            if found is None:
                return f"there is no command {rest[0]}"
            command, rest = found, rest[1:]
        if rest:  # a bare mention of a command is no call
            command.make_context(str(command.name), list(rest))
    except click.ClickException as error:
        return error.format_message()
    except ModuleNotFoundError as error:
        return f"is not written yet ({error.name})"
    return None


def targets(text: str) -> Iterator[str]:
    """Targets and variables of `make` that the Makefile does not have."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    known = {name for line in re.findall(r"(?m)^([\w .-]+):(?!=)", makefile) for name in line.split()}
    variables = set(re.findall(r"(?m)^(\w+)\s*[:?]?=", makefile))
    for arguments in calls(text, "make"):
        for word in arguments:
            name, equals, _ = word.partition("=")
            if name not in (variables if equals else known):
                yield f"make {word}: the Makefile has no {'variable' if equals else 'target'} {name}"


def settings(text: str) -> Iterator[str]:
    """Keys in TOML blocks, dotted keys and table names in code, and variables that the settings do not have."""
    for language, block in blocks(text):
        if language == "toml":
            yield from _table_faults(tomllib.loads(block))
    for span in spans(text):
        table = re.fullmatch(r"\[+([a-z_][a-z0-9_.-]*)\]+", span)
        dotted = re.fullmatch(rf"(?!.*\.(?:{SUFFIXES})$)[a-z_]+(?:\.[a-z_]+)+", span)
        if table or dotted:
            yield from _unknown(nested((table[1] if table else span).split(".")))
    for variable in re.findall(rf"\b{PREFIX}[A-Z0-9_]+", text):
        if variable not in NOT_SETTINGS | _of_the_stack() and not variable.startswith(f"{PREFIX}TEST_"):
            yield from _unknown(nested(variable.removeprefix(PREFIX).lower().split("__")))


def _of_the_stack() -> set[str]:
    """Variables that docker-compose.yml itself reads."""
    return set(re.findall(r"\$\{(\w+):-", (ROOT / "docker-compose.yml").read_text(encoding="utf-8")))


def nested(path: Sequence[str]) -> dict[str, Any]:
    """`["a", "b"]` as `{"a": {"b": None}}`."""
    value: Any = None
    for name in reversed(path):
        value = {name: value}
    return dict(value)


def _table_faults(table: dict[str, Any]) -> Iterator[str]:
    try:
        Settings.model_validate(table)
    except ValidationError as error:
        for fault in error.errors():
            if fault["type"] != "missing":
                yield f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"


def _unknown(table: dict[str, Any]) -> Iterator[str]:
    try:
        Settings.model_validate(table)
    except ValidationError as error:
        for fault in error.errors():
            if fault["type"] == "extra_forbidden":
                yield f"{'.'.join(map(str, fault['loc']))} is no key of the settings"


def exit_codes(text: str) -> Iterator[str]:
    """Exit codes that do not exist, and tables of them that say something else than the program."""
    from dualwall.cli import MEANINGS  # noqa: PLC0415

    for number in re.findall(r"\bexit(?:s with)?(?: code)? (\d+)\b", text):
        if int(number) not in set(Exit):
            yield f"there is no exit code {number}"
    for table in re.findall(r"(?m)^\| exit \|.*\n\|[-| ]+\|\n((?:\|.*\n)+)", text):
        told = {int(code): meaning.strip() for code, meaning in re.findall(r"\| (\d+) \|([^|\n]+)\|", table)}
        meant = {int(code): meaning for code, meaning in MEANINGS.items()}
        for code in sorted(told.keys() | meant.keys()):
            if told.get(code) != meant.get(code):
                yield f"exit code {code}: the table says {told.get(code)!r}, the program {meant.get(code)!r}"


def paths(text: str) -> Iterator[str]:
    """Files and folders of the project, and modules run with `python -m`, that are not there."""
    for span in spans(text):
        whole = re.fullmatch(rf"(?:{'|'.join(FOLDERS)})/[\w./-]*?(?:\.(?:{SUFFIXES})|/)?", span)
        if whole and span.endswith(("/", ".py", ".sh", ".toml", ".md")) and not (ROOT / span).exists():
            yield f"there is no {span}"
    for arguments in calls(text, "python"):
        if arguments[:1] != ["-m"]:
            continue
        file = ROOT / f"{arguments[1].replace('.', '/')}.py"
        if not file.is_file():
            yield f"there is no module {arguments[1]}"
            continue
        source = file.read_text(encoding="utf-8")
        yield from (
            f"{arguments[1]} has no {word}" for word in arguments[2:] if word[:2] == "--" and f'"{word}"' not in source
        )


def links(text: str, at: Path) -> Iterator[str]:
    """Links to files and headings that are not there."""
    for target in _LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = at / name
        if not name:
            yield from _missing_anchor(text, anchor)
        elif not file.exists():
            yield f"the link {target} leads nowhere"
        elif anchor:
            yield from _missing_anchor(file.read_text(encoding="utf-8"), anchor)


def _missing_anchor(text: str, anchor: str) -> Iterator[str]:
    headings = re.findall(r"(?m)^#{1,6} (.+)$", text)
    if anchor not in {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}:
        yield f"there is no heading for #{anchor}"


CHECKS: tuple[Callable[[str], Iterator[str]], ...] = (commands, targets, settings, exit_codes, paths)
