"""Which line of a TOML file a key stands on: the standard reader keeps no positions. Pure."""

import re
import tomllib
from collections.abc import Mapping
from typing import TypeAlias

KeyPath: TypeAlias = tuple[str | int, ...]
"""`("private", 0, "path")`: keys, and the index inside an array of tables."""

_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_TABLE = re.compile(rf"\s*\[\s*({_DOTTED})\s*\]")
_ARRAY_TABLE = re.compile(rf"\s*\[\[\s*({_DOTTED})\s*\]\]")
_ASSIGNMENT = re.compile(rf"\s*({_DOTTED})\s*=")


def key_lines(text: str) -> dict[KeyPath, int]:
    """Key paths of a valid TOML text with the line (from 1) of their first mention; keys of inline tables are left out."""
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    arrays: dict[KeyPath, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _ARRAY_TABLE.match(line):
            name = _split(match[1])
            lines.setdefault(name, number)
            arrays[name] = arrays.get(name, -1) + 1
            table = (*name, arrays[name])
            lines[table] = number
        elif match := _TABLE.match(line):
            table = _inside_arrays(_split(match[1]), arrays)
            _mention(lines, table, number)
        elif match := _ASSIGNMENT.match(line):
            _mention(lines, (*table, *_split(match[1])), number)
    return lines


def line_of(lines: Mapping[KeyPath, int], path: KeyPath) -> int | None:
    """The line of a key path, or of the nearest thing around it that has one."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


def _inside_arrays(table: KeyPath, arrays: dict[KeyPath, int]) -> KeyPath:
    """`[private.rooms]` after `[[private]]` belongs to the last of them."""
    for name, index in arrays.items():
        if table[: len(name)] == name:
            return (*name, index, *table[len(name) :])
    return table


def _mention(lines: dict[KeyPath, int], path: KeyPath, number: int) -> None:
    for length in range(1, len(path) + 1):
        lines.setdefault(path[:length], number)


def _split(dotted: str) -> KeyPath:
    value = tomllib.loads(f"{dotted} = 0")
    keys: list[str] = []
    while isinstance(value, dict):
        key, value = next(iter(value.items()))
        keys.append(key)
    return tuple(keys)
