"""JSON with the places of its values, so that a text can be changed in one place and nowhere else. Pure.

The values are the standard library's. What two readers could understand in two ways is refused with ValueError: a name
that stands twice, NaN, anything after the end.
"""

import json
import re
from typing import Any, NamedTuple, NoReturn

_BLANK = re.compile(r"[ \t\n\r]*")


class Value(NamedTuple):
    """A value, and the characters of the text that it takes."""

    value: Any
    start: int
    end: int


def members(text: str) -> tuple[dict[str, Value], int]:
    """The members of the object that a text is, and where its closing brace stands."""
    found: dict[str, Value] = {}
    at = _after(text, 0, "{")
    while text[at : at + 1] != "}":
        name = _read(text, _after(text, at, ",") if found else at)
        if not isinstance(name.value, str) or name.value in found:
            raise ValueError("no name, or one that stands twice")
        found[name.value] = value = _read(text, _after(text, name.end, ":"))
        at = _blanks(text, value.end)
    if _blanks(text, at + 1) != len(text):
        raise ValueError("something stands after the end")
    return found, at


def elements(text: str, whole: Value) -> list[Value]:
    """The elements of a list that was read from the text."""
    found: list[Value] = []
    at = _after(text, whole.start, "[")
    for _ in whole.value:
        found.append(_read(text, at if not found else _after(text, at, ",")))
        at = _blanks(text, found[-1].end)
    return found


def _read(text: str, at: int) -> Value:
    value, end = _DECODER.raw_decode(text, at)
    return Value(value, at, end)


def _after(text: str, at: int, sign: str) -> int:
    """Behind a sign that has to come next, blanks on both sides."""
    at = _blanks(text, at)
    if text[at : at + 1] != sign:
        raise ValueError(f"there is no {sign}")
    return _blanks(text, at + 1)


def _blanks(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return at if match is None else match.end()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
