"""Obsidian's own metadata cache of 89 notes: every tag, heading, link, embed, property and resolved link. Needs ../shared."""

import json
from functools import lru_cache
from typing import Any

import pytest

from palace.names import fold
from palace.obsidian.links import LinkIndex, parts
from palace.vocabulary import Link, ParsedNote
from tests.obsidian.reading import body, read
from tests.support import shared

Found = tuple[Any, ...]


@lru_cache(maxsize=1)
def notes() -> tuple[dict[str, Any], ...]:
    files = sorted((shared() / "data" / "obsidian_cache").glob("*.json"))
    return tuple(json.loads(file.read_text(encoding="utf-8")) for file in files)


class Seen:
    """One note of the oracle, its places turned from UTF-16 units to bytes and from line 0 to line 1."""

    def __init__(self, entry: dict[str, Any]) -> None:
        self.path: str = entry["filePath"]
        self.cache: dict[str, Any] = entry["cachedMetadata"]
        self.property_tags: list[str] = entry["parseFrontMatterTags"] or []
        self.all_tags: list[str] = entry["getAllTags"] or []
        self.resolved: dict[str, str | None] = entry["resolveLinkToPath"]
        self.data: bytes = entry["fileContents"].encode()
        self._units: bytes = entry["fileContents"].encode("utf-16-le")

    def _byte(self, offset: int) -> int:
        return len(self._units[: 2 * offset].decode("utf-16-le").encode())

    def place(self, item: dict[str, Any]) -> Found:
        at = item["position"]
        return self._byte(at["start"]["offset"]), self._byte(at["end"]["offset"]), at["start"]["line"] + 1

    def entries(self, kind: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.cache.get(kind, [])
        return found


@pytest.fixture(scope="module")
def oracle() -> list[tuple[Seen, ParsedNote]]:
    seen = [Seen(entry) for entry in notes()]
    return [(entry, read(entry.data)) for entry in seen]


def shown(link: Link) -> str:
    return link.alias if link.alias is not None else link.link.strip("#").replace("#", " > ")


def differences(pairs: list[tuple[str, object, object]]) -> list[tuple[str, object, object]]:
    return [pair for pair in pairs if pair[1] != pair[2]]


def test_every_note_is_there(oracle: list[tuple[Seen, ParsedNote]]) -> None:
    assert len(oracle) == 89


def test_every_tag_at_its_place(oracle: list[tuple[Seen, ParsedNote]]) -> None:
    pairs: list[tuple[str, object, object]] = []
    for seen, _ in oracle:
        source, found = body(seen.data)
        ours = [(f"#{name}", at, at + len(name.encode()) + 1, source.line(at)) for name, at in found.tags]
        pairs.append((seen.path, ours, [(tag["tag"], *seen.place(tag)) for tag in seen.entries("tags")]))
    assert differences(pairs) == []


def test_every_tag_of_a_note_and_of_its_properties(oracle: list[tuple[Seen, ParsedNote]]) -> None:
    pairs: list[tuple[str, object, object]] = []
    for seen, note in oracle:
        distinct = {fold(tag): tag for tag in reversed(seen.all_tags)}
        theirs = [tag for tag in dict.fromkeys(seen.all_tags) if distinct[fold(tag)] == tag]
        pairs.append((seen.path, [f"#{tag.name}" for tag in note.tags], theirs))
        pairs.append((seen.path, [f"#{tag.name}" for tag in note.tags if not tag.inline], seen.property_tags))
    assert differences(pairs) == []


def test_every_heading(oracle: list[tuple[Seen, ParsedNote]]) -> None:
    assert differences([
        (
            seen.path,
            [(h.level, h.text, h.start, h.end, h.line) for h in note.headings],
            [(h["level"], h["heading"], *seen.place(h)) for h in seen.entries("headings")],
        )
        for seen, note in oracle
    ]) == []  # fmt: skip


@pytest.mark.parametrize(("kind", "embed"), [("links", False), ("embeds", True)])
def test_every_link_and_embed(oracle: list[tuple[Seen, ParsedNote]], kind: str, embed: bool) -> None:  # noqa: FBT001
    assert differences([
        (
            seen.path,
            [
                (k.link, shown(k), seen.data[k.start : k.end].decode(), k.start, k.end, k.line)
                for k in note.links if k.key is None and k.embed is embed
            ],
            [(k["link"], k["displayText"], k["original"], *seen.place(k)) for k in seen.entries(kind)],
        )
        for seen, note in oracle
    ]) == []  # fmt: skip


def test_every_property_and_the_links_in_them(oracle: list[tuple[Seen, ParsedNote]]) -> None:
    pairs: list[tuple[str, object, object]] = []
    for seen, note in oracle:
        pairs.append((seen.path, dict(note.properties), seen.cache.get("frontmatter", {})))
        ours = [(k.link, shown(k), k.key, seen.data[k.start : k.end].decode()) for k in note.links if k.key]
        theirs = [(k["link"], k["displayText"], k["key"], k["original"]) for k in seen.entries("frontmatterLinks")]
        pairs.append((seen.path, ours, theirs))
    assert differences(pairs) == []


def test_every_block_id(oracle: list[tuple[Seen, ParsedNote]]) -> None:
    assert differences([
        (
            seen.path,
            dict(note.block_ids),
            {key: block["position"]["start"]["line"] + 1 for key, block in seen.cache.get("blocks", {}).items()},
        )
        for seen, note in oracle
    ]) == []  # fmt: skip


def test_every_alias(oracle: list[tuple[Seen, ParsedNote]]) -> None:
    for seen, note in oracle:
        value = seen.cache.get("frontmatter", {}).get("aliases") or []
        assert list(note.aliases) == ([value] if isinstance(value, str) else value), seen.path


def test_every_link_means_the_same_note(oracle: list[tuple[Seen, ParsedNote]]) -> None:
    known = {path for seen, _ in oracle for path in (seen.path, *seen.resolved.values()) if path}
    index = LinkIndex(known)
    assert differences([
        (f"{seen.path}: {link}", index.resolve(parts(link)[0], seen.path), meant)
        for seen, _ in oracle
        for link, meant in seen.resolved.items()
    ]) == []  # fmt: skip


def test_sections_are_the_same_but_for_comments(oracle: list[tuple[Seen, ParsedNote]]) -> None:
    """Obsidian joins `%% … %%` to one section; two notes have a blank before their quote, which we leave out."""
    names = {"callout": "quote", "blockquote": "quote"}
    for seen, note in oracle:
        sections = [s for s in seen.entries("sections") if s["type"] != "yaml"]
        if any(s["type"] == "comment" for s in sections):
            continue
        theirs = [(names.get(s["type"], s["type"]), *seen.place(s)[:2]) for s in sections]
        ours = [(b.kind, b.start - (seen.data[b.start - 1 : b.start] == b" "), b.end) for b in note.blocks]
        assert ours == theirs, seen.path
