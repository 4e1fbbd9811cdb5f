"""A note as Obsidian sees it: bytes in, a ParsedNote out. Pure, never raises, linear in the note's size."""

from collections.abc import Iterator
from typing import Literal

from palace.names import fold
from palace.obsidian.frontmatter import Properties, read_properties
from palace.obsidian.markdown import Body, read_body
from palace.obsidian.properties import PropertyReader
from palace.obsidian.source import Source
from palace.obsidian.tags import full_width_mark
from palace.vocabulary import ParsedNote, Problem, Tag


def read_note(data: bytes, path: str, *, compat: Literal["obsidian", "lenient"] = "obsidian") -> ParsedNote:
    """Read one note.

    `compat`: "lenient" also takes `tag`, `alias`, and several tags in one text, as Obsidian did before 1.9.
    Tags are distinct, in the spelling met first: those of the properties, then those of the body.
    """
    source = Source(data, path)
    if source.problem:
        return ParsedNote(path, 0, {}, (), (), (), (), (), (), (source.problem,), text_encoding_ok=False)
    properties = read_properties(source)
    reader = PropertyReader(source, properties, compat) if properties.values else None
    tags, problems = reader.tags() if reader else ([], [])
    links = reader.links() if reader else []
    offset = properties.body_start or source.start
    body = read_body(source, offset)
    found = tuple(_distinct(source, tags, body))
    return ParsedNote(
        path=path,
        body_start=properties.body_start,
        properties=properties.values,
        tags=found,
        aliases=reader.aliases() if reader else (),
        headings=tuple(body.headings),
        links=(*links, *body.links),
        blocks=body.blocks.blocks(offset),
        block_ids=tuple([(name, source.line(at)) for name, at in body.block_ids]),
        problems=tuple(_problems(source, properties, problems, found)),
    )


def _distinct(source: Source, written: list[Tag], body: Body) -> Iterator[Tag]:
    seen: set[str] = set()
    for tag in written:
        if (key := fold(tag.name)) not in seen:
            seen.add(key)
            yield tag
    for name, at in body.tags:
        if (key := fold(name)) not in seen:
            seen.add(key)
            yield Tag(name, source.line(at), inline=True)


def _problems(
    source: Source, properties: Properties, of_tags: list[Problem], tags: tuple[Tag, ...]
) -> Iterator[Problem]:
    control = source.control_characters()
    if control:
        yield control
    yield from properties.problems
    yield from of_tags
    for tag in tags:
        mark = full_width_mark(tag.name)
        if mark:
            message = f"The tag `#{tag.name}` holds `{mark}`, which is a letter to Obsidian."
            yield Problem(
                source.path, tag.line, "tag-punctuation", message, "If the tag ends before it, put a space there."
            )
