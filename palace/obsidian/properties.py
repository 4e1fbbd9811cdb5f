"""Tags, aliases and links that the properties hold. Pure."""

import re
from collections.abc import Iterator
from typing import Literal

from palace.obsidian import links
from palace.obsidian.frontmatter import Properties
from palace.obsidian.source import Source
from palace.obsidian.tags import tag_name
from palace.vocabulary import Link, Problem, PropertyValue, Tag

Compat = Literal["obsidian", "lenient"]

_SEPARATORS = re.compile(r"[,，、\s]+")
_COMMAS = re.compile(r"[,，、]")
_TAGS, _ALIASES = "tags", "aliases"
_KEYS: dict[Compat, dict[str, str]] = {
    "obsidian": {"tags": _TAGS, "aliases": _ALIASES},
    "lenient": {"tags": _TAGS, "tag": _TAGS, "aliases": _ALIASES, "alias": _ALIASES},
}


class PropertyReader:
    """Reads what the properties of one note say, and finds the lines where they say it."""

    def __init__(self, source: Source, properties: Properties, compat: Compat) -> None:
        self._source = source
        self._properties = properties
        self._compat = compat
        self._at = properties.start
        meanings = _KEYS[compat]
        self._keys = [(meanings[name], key) for key in properties.values if (name := key.lower()) in meanings]

    def tags(self) -> tuple[list[Tag], list[Problem]]:
        """Tags with their lines, and Problems for those that Obsidian passes over, or that were read leniently."""
        found: list[Tag] = []
        problems: list[Problem] = []
        for key, value in self._named(_TAGS):
            names, problem = self._tag_names(key, value)
            key_at = self._key_at(key)
            self._at = key_at
            found += [Tag(name, self._source.line(self._find(name, key_at)), inline=False) for name in names]
            if problem:
                message, hint, code = problem
                problems.append(Problem(self._source.path, self._source.line(key_at), code, message, hint))
        return found, problems

    def aliases(self) -> tuple[str, ...]:
        """Aliases as written; blank ones are none."""
        out: list[str] = []
        for _, value in self._named(_ALIASES):
            if isinstance(value, str) and self._compat == "lenient":
                out += _COMMAS.split(value)
            else:
                out += [
                    str(v) for v in (value if isinstance(value, list) else [value]) if isinstance(v, str | int | float)
                ]
        return tuple(dict.fromkeys(a for alias in out if (a := alias.replace("\x00", "").strip())))

    def links(self) -> list[Link]:
        """Properties, and items of lists, that are one wikilink and nothing else."""
        start, end = self._properties.start, self._properties.end
        if self._source.data.find(b"[[", start, end) < 0:
            return []
        self._at = start
        found = []
        for key, text in _strings(self._properties.values, ""):
            inner = text[2:-2]
            link = None if "[[" in inner or "]]" in inner else links.wikilink(inner)
            if link:
                at = self._find(text, start)
                line, stop = self._source.line(at), min(end, at + len(text.encode()))
                found.append(Link(link[0], *links.parts(link[0]), link[1], False, line, at, stop, key))  # noqa: FBT003
        return found

    def _named(self, meaning: str) -> list[tuple[str, PropertyValue]]:
        values = self._properties.values
        return [(key, values[key]) for means, key in self._keys if means == meaning and values[key] is not None]

    def _tag_names(self, key: str, value: PropertyValue) -> tuple[list[str], tuple[str, str, str] | None]:
        items = value if isinstance(value, list) else [value]
        lenient = self._compat == "lenient" and (key.lower() == "tag" or isinstance(value, str))
        problem = None
        if lenient:
            words = [word for item in items if isinstance(item, str) for word in _SEPARATORS.split(item)]
            names = [name for word in words if (name := tag_name(word))]
            if key.lower() == "tag" or len(names) > 1:
                message = f"`{key}` was read leniently: Obsidian itself sees no tags in it."
                problem = (message, "Write `tags` as a list and Obsidian reads them too.", "tags-lenient")
            return names, problem
        names = [name for item in items if isinstance(item, str) and (name := tag_name(item))]
        if isinstance(value, str) and not names and len(_SEPARATORS.split(value.strip())) > 1:
            message = f"`{key}` is one text with several words; Obsidian sees no tags in it."
            problem = (message, 'Write a list, or set compat = "lenient" for this vault.', "tags-ignored")
        return names, problem

    def _key_at(self, key: str) -> int:
        """Where a property's name stands; at the fence when it is written in some odd way."""
        start, end = self._properties.start, self._properties.end
        at = self._source.data.find(b"\n%b:" % key.encode(), start, end)
        if at < 0:
            odd = re.compile(rb"\n[\"' \t{]*" + re.escape(key.encode()) + rb"[\"']?[ \t]*:")
            match = odd.search(self._source.data, start, end)
            at = match.start() if match else start - 1
        return at + 1

    def _find(self, text: str, otherwise: int) -> int:
        """Where a text stands after the last one found. Escaped in the YAML it is not found, nor is any after it."""
        at = self._source.data.find(text.encode(), self._at, self._properties.end)
        self._at = at + 1 if at >= 0 else self._properties.end
        return at if at >= 0 else otherwise


def _strings(value: PropertyValue, key: str) -> Iterator[tuple[str, str]]:
    """Texts of the shape `[[…]]` with their keys, as `list.0` and `outer.inner`."""
    if isinstance(value, str):
        if value.startswith("[[") and value.endswith("]]"):
            yield key, value
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _strings(item, f"{key}.{i}")
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _strings(item, f"{key}.{name}" if key else name)
