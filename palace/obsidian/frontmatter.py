"""A note's properties: strict fences, YAML 1.2. Pure.

python-frontmatter with a handler of our own: the reader behind it (`yaml12`) is one line to replace.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import frontmatter
import yaml12
from frontmatter.default_handlers import BaseHandler

from palace.obsidian.source import Source
from palace.vocabulary import Problem, PropertyValue

_OPENING = re.compile(rb"---[ \t]*\r?\n")
_CLOSING = re.compile(rb"\n---[ \t]*(?:\r?\n|\Z)")
_ERROR = re.compile(
    r"^YAML parse error: (?P<what>.*?) at byte \d+ line (?P<line>\d+) column (?P<column>\d+)", re.DOTALL
)
# Each line of the properties follows a line feed (the fence's own is kept), so that these begin with a literal.
_TOP_KEY = re.compile(r"\n(?:([^\s#\-\"'\[\]{}][^\n:]*|-[^\s:][^\n:]*)|\"([^\"\n]*)\"[ \t]*|'([^'\n]*)'[ \t]*):(?=\s)")
_TOO_DEEP = re.compile(r"\n(?:[ \t]|[-?:][ \t]){200}")
"""The reader's stack overflows at some ten thousand levels; indents and marks of one line bound the levels."""
_ANCHOR = re.compile(r"(?:[:\-?]\s+|[\[,{]\s*)&([^\s,\[\]{}]+)")
_ALIAS = re.compile(r"(?:[:\-?]\s+|[\[,{]\s*)\*([^\s,\[\]{}]+)")
_MOST_ALIASES = 16
"""Each alias is a copy: this many can multiply a text by a few hundred, not by billions."""
_MOST_LEVELS = 64
_SHOWN = 5
_PLAIN = frozenset({str, int, bool, type(None)})
_LARGEST = 1024 * 1024
_TEMPLATE_MARKS = ("{{", "<%")
_TEMPLATE_HINT = "This looks like a template: keep it in the templates folder, or fill it in."
_QUOTE_HINT = "Put quotes around values that hold `: `, ` #`, `@`, backticks or brackets, and indent by spaces."


@dataclass(frozen=True, slots=True)
class Properties:
    """What stands between the fences. `start`, `end`: its byte span, from the fence's line feed; `body_start`: 0 without properties."""

    values: dict[str, PropertyValue] = field(default_factory=dict)
    start: int = 0
    end: int = 0
    body_start: int = 0
    problems: tuple[Problem, ...] = ()


class _Fault(Exception):  # noqa: N818 - it never leaves this module: it becomes a Problem
    """Why the properties could not be read, and in which line of the file."""

    def __init__(self, code: str, message: str, hint: str, line: int = 1) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.line = line


class _Yaml12(BaseHandler):
    """YAML 1.2 between two lines of `---`, which the caller has found."""

    FM_BOUNDARY = re.compile(r"^---", re.MULTILINE)

    def split(self, text: str) -> tuple[str, str]:
        """The text between the fences from the first line feed on, and no content: the body keeps its bytes.

        So the reader's line numbers are those of the file.
        """
        return text[text.index("\n") : text.rindex("---")], ""

    def load(self, fm: str) -> dict[Any, Any]:
        """The mapping that the YAML holds. Raises _Fault."""
        _refuse_bombs(fm)
        try:
            loaded = yaml12.parse_yaml(fm)
        except ValueError as error:
            raise _syntax_fault(str(error), fm) from None
        if loaded is None:
            return {}
        if not isinstance(loaded, dict):
            raise _Fault(
                "properties-not-mapping",
                "Between the first two lines of `---` stand no properties (`name: value`); it is read as text.",
                "If the first line is a rule, put a blank line before it.",
            )
        return loaded


_HANDLER = _Yaml12()


def read_properties(source: Source) -> Properties:
    """The properties of a note. They begin at its first byte (after a BOM) with a line of `---`."""
    opening = _OPENING.match(source.data, source.start)
    closing = _CLOSING.search(source.data, opening.end() - 1) if opening else None
    if opening is None or closing is None:
        return Properties()
    start, end, body = opening.end() - 1, closing.start() + 1, closing.end()
    try:
        return _read(source, start, end, body)
    except _Fault as fault:
        problem = Problem(source.path, fault.line, fault.code, fault.message, fault.hint)
        if fault.code == "properties-not-mapping":
            return Properties(problems=(problem,))
        return Properties({}, start, end, body, (problem,))


def _read(source: Source, start: int, end: int, body: int) -> Properties:
    if end - start > _LARGEST:
        raise _Fault("properties-too-large", "The properties are larger than 1 MB.", "Move the text into the note.")
    text = source.text(source.start, body)
    loaded, _ = frontmatter.parse(text, handler=_HANDLER)
    values: dict[str, PropertyValue] = {}
    templates = []
    items: Iterable[tuple[object, object]] = loaded.items()  # YAML's keys may be anything
    for key, value in items:
        if type(key) is str and type(value) in _PLAIN:
            values[key] = cast("PropertyValue", value)
            continue
        try:
            values[_key(key)] = _plain(value, 0)
        except _Template:
            name = key if isinstance(key, str) else "{{…}}"
            values[name] = None
            templates.append(name)
    inner = text[text.index("\n") : text.rindex("---")]
    # With a line for each key, none can stand twice.
    plain = inner.count("\n") == len(values) + 1 and "{" not in inner
    twice = [] if plain else list(_twice(inner))
    quiet = not twice and not templates and "*" not in inner
    problems = () if quiet else tuple(_text_problems(source.path, inner, twice, templates))
    return Properties(values, start, end, body, problems)


class _Template(Exception):  # noqa: N818 - it never leaves this module
    """A mapping stands where a key should: `{{title}}`."""


def _plain(value: object, level: int) -> PropertyValue:
    """A value with what JSON has no word for written as text."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _not_finite(value)
    if level > _MOST_LEVELS:
        raise _too_deep()
    if isinstance(value, list):
        return [_plain(v, level + 1) for v in value]
    if isinstance(value, dict):
        return {_key(k): _plain(v, level + 1) for k, v in value.items()}
    if isinstance(value, yaml12.Yaml):
        return _plain(value.value, level + 1)
    return str(value)


def _key(key: object) -> str:
    if isinstance(key, yaml12.Yaml):
        if isinstance(key.value, list | dict):
            raise _Template
        key = key.value
    if isinstance(key, str):
        return key
    return json.dumps(key) if key is None or isinstance(key, bool) else str(key)


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    return ".inf" if value > 0 else "-.inf"


def _refuse_bombs(text: str) -> None:
    deep = _TOO_DEEP.search(text)
    if deep:
        raise _too_deep(_line_of(text, deep.start() + 1))
    aliases = _aliases(text)
    if len(aliases) > _MOST_ALIASES:
        message = f"The properties use over {_MOST_ALIASES} YAML aliases (`*name`), each a copy of its anchor."
        raise _Fault("yaml-alias", message, "Write the values out.", _line_of(text, aliases[0]))


def _syntax_fault(error: str, text: str) -> _Fault:
    match = _ERROR.match(error)
    what, line = (match["what"], int(match["line"])) if match else (error, 1)
    template = any(mark in text for mark in _TEMPLATE_MARKS)
    hint = _TEMPLATE_HINT if template else _QUOTE_HINT
    line = min(line, text.count("\n"))
    return _Fault("yaml-invalid", f"The properties are no valid YAML and are left out: {what}.", hint, line)


def _text_problems(path: str, text: str, twice: list[str], templates: list[str]) -> Iterator[Problem]:
    """What the reader passes over without a word: equal keys, copies by anchor and alias, placeholders."""
    if twice:
        message = f"{_listed(twice)} more than once in the properties; the last one counts."
        yield Problem(path, _line_of_key(text, twice[0]), "yaml-duplicate-key", message, "Keep one.")
    for at in _aliases(text)[:1]:
        message = "The properties use YAML anchors (`&name`) and aliases (`*name`); Obsidian loses them when it saves."
        yield Problem(path, _line_of(text, at), "yaml-alias", message, "Write the values out.")
    if templates:
        message = f"{_listed(templates)} in the properties with a template's placeholder and left empty."
        yield Problem(path, _line_of_key(text, templates[0]), "yaml-template", message, _TEMPLATE_HINT)


def _listed(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{shown}{more} {'stands' if len(names) == 1 else 'stand'}"


def _twice(text: str) -> Iterator[str]:
    """Keys of the outermost mapping that stand more than once."""
    if text[:64].lstrip().startswith("{"):
        yield from (name for name, times in _json_keys(text).items() if times > 1)
        return
    keys = [bare.rstrip() or a or b for bare, a, b in _TOP_KEY.findall(text)]
    if len(set(keys)) < len(keys):
        yield from (name for name, times in Counter(keys).items() if times > 1)


def _json_keys(text: str) -> Counter[str]:
    keys: Counter[str] = Counter()

    def count(pairs: list[tuple[str, object]]) -> None:
        keys.clear()  # the outermost mapping is the last to end
        keys.update(name for name, _ in pairs)

    try:
        json.loads(text, object_pairs_hook=count)
    except (ValueError, RecursionError):  # a YAML flow mapping
        keys.clear()
    return keys


def _aliases(text: str) -> list[int]:
    """Where aliases stand that name an anchor of the text."""
    if "*" not in text or "&" not in text:
        return []
    anchors = frozenset(_ANCHOR.findall(text))
    return [m.start(1) for m in _ALIAS.finditer(text) if m[1] in anchors] if anchors else []


def _too_deep(line: int = 1) -> _Fault:
    return _Fault("properties-too-deep", "The properties are nested too deeply.", "Keep lists and mappings flat.", line)


def _line_of_key(text: str, name: str) -> int:
    match = re.search(rf"\n[\"' {{]*{re.escape(name)}[\"']?[ \t]*:", text)
    return _line_of(text, match.end() if match else 0)


def _line_of(text: str, at: int) -> int:
    """The file's line at a character of the text between the fences, which begins at the end of line 1."""
    return text.count("\n", 0, at) + 1
