"""What the tests of this folder share: short ways to read a text and to see what came out."""

from palace.obsidian.frontmatter import read_properties
from palace.obsidian.markdown import Body, read_body
from palace.obsidian.note import read_note
from palace.obsidian.properties import Compat
from palace.obsidian.source import Source
from palace.vocabulary import ParsedNote


def read(text: str | bytes, compat: Compat = "obsidian") -> ParsedNote:
    return read_note(text.encode() if isinstance(text, str) else text, "a/note.md", compat=compat)


def tags(text: str | bytes, compat: Compat = "obsidian") -> list[str]:
    return [tag.name for tag in read(text, compat).tags]


def codes(text: str | bytes, compat: Compat = "obsidian") -> list[tuple[str, int | None]]:
    return [(problem.code, problem.line) for problem in read(text, compat).problems]


def body(data: bytes) -> tuple[Source, Body]:
    """Every occurrence of each tag with its offset, which a ParsedNote keeps to itself."""
    source = Source(data, "a/note.md")
    properties = read_properties(source)
    return source, read_body(source, properties.body_start or source.start)
