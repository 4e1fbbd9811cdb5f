"""One pass of Markdown events over a note's body: tags, links, headings, block ids and blocks. Pure and linear.

Every offset is that of a byte in the file. The tag rule (`tags.py`) sees plain text events only, so that code, math,
HTML, wikilinks and images need no mask.
"""

import re
from collections.abc import Iterator
from typing import TypeAlias, cast

from pyromark import Markdown, Options

from palace.obsidian import links
from palace.obsidian.blocks import Blocks
from palace.obsidian.source import Source
from palace.obsidian.tags import inline_tags
from palace.vocabulary import Heading, Link

_Fields: TypeAlias = dict[str, object]
_Event: TypeAlias = str | dict[str, str | _Fields]
"""A bare name, or one name with what it carries; the library's own types spell out thirty of these."""
OPTIONS = (
    Options.ENABLE_TABLES
    | Options.ENABLE_FOOTNOTES
    | Options.ENABLE_STRIKETHROUGH
    | Options.ENABLE_TASKLISTS
    | Options.ENABLE_MATH
    | Options.ENABLE_WIKILINKS
)
"""What Obsidian's Markdown has over CommonMark."""
_PARSER = Markdown(options=OPTIONS)
_ATX = re.compile(rb"#{1,6}(?:[ \t]+|$)")
_CLOSING = re.compile(rb"(?:^|[ \t])#+$")
_CONTINUED = re.compile(r"\s*\n[ \t>]*")
_BLOCK_ID = re.compile(rb"\^([0-9A-Za-z-]+)[ \t]*")
_LINE_END = re.compile(rb"[ \t]*(?:\r?\n|$)")
_BAR_LINK = re.compile(rb"\[\[(\|[^\[\]\n]*)\]\]")
_INTERNAL = "Inline"
_ADDRESS = frozenset({"Autolink", "Email"})


class Body:
    """What a body holds. `tags`: (name, byte offset of its `#`), every occurrence; `block_ids`: (id, byte offset)."""

    __slots__ = (
        "_bytes",
        "_offset",
        "_opaque_end",
        "_source",
        "block_ids",
        "blocks",
        "headings",
        "id_end",
        "links",
        "tags",
    )

    def __init__(self, source: Source, offset: int) -> None:
        self._source = source
        self._offset = offset
        self._bytes = source.data[offset:] if offset else source.data
        self.blocks = Blocks(self._bytes)
        self._opaque_end = 0
        self.id_end = -1
        self.tags: list[tuple[str, int]] = []
        self.links: list[Link] = []
        self.headings: list[Heading] = []
        self.block_ids: list[tuple[str, int]] = []

    def text(self, start: int, end: int) -> None:
        """Plain text that may hold a tag, a block id or a link of Obsidian's alone."""
        if start < self._opaque_end:
            return
        self.tags += [(name, at + self._offset) for name, at in inline_tags(self._bytes, start, end)]
        for match in _BAR_LINK.finditer(self._bytes, start, end):
            self._link(match[1].decode().strip(), None, *match.span(), embed=False)
        caret = self._bytes.rfind(b"^", start, end)
        if caret >= 0 and (caret == 0 or self._bytes[caret - 1] in b" \t\n"):
            match_id = _BLOCK_ID.fullmatch(self._bytes, caret, end)
            line_end = _LINE_END.match(self._bytes, end)
            if match_id and line_end:
                self.id_end = line_end.end()
                self.block_ids.append((match_id[1].decode(), caret + self._offset))

    def leaf(self, name: str, start: int, end: int) -> None:
        """A rule, or a line's end inside a paragraph: what looked like a block id before it was none."""
        if name == "Rule":
            self.blocks.start(name, start, end)
        elif start <= self.id_end:
            self.block_ids.pop()
        self.id_end = -1

    def start(self, name: str, fields: _Fields, start: int, end: int) -> None:
        """The start of something that carries fields: a heading, a link, a list."""
        if self.blocks.start(name, start, end) and name == "Heading":
            self._heading(str(fields["level"]), start, end)
        elif name == "Link":
            self._linked(fields, start, end, embed=False)
        elif name == "Image":
            self._linked(fields, start, end, embed=True)
        elif name == "CodeBlock":
            self._opaque_end = max(self._opaque_end, end)

    def _heading(self, level: str, start: int, end: int) -> None:
        raw = self._bytes[start:end].rstrip(b"\r\n")
        atx = _ATX.match(raw)
        if atx:
            inner = raw[atx.end() :].rstrip()
            text = (_CLOSING.sub(b"", inner) if inner.endswith(b"#") else inner).strip().decode()
        else:  # underlined
            text = _CONTINUED.sub(" ", raw[: raw.rfind(b"\n")].decode().strip())
        span = start + self._offset, start + self._offset + len(raw)
        self.headings.append(Heading(int(level[1]), text, self._source.line(span[0]), *span))

    def _linked(self, fields: _Fields, start: int, end: int, *, embed: bool) -> None:
        if start < self._opaque_end:
            return
        kind = fields["link_type"]
        if isinstance(kind, dict):
            self._opaque_end = end
            # The parser's own target keeps the backslash of a table's `\|`, so the bytes are asked.
            found = links.wikilink(self._bytes[start + 2 + embed : end - 2].decode())
            if found:
                self._link(*found, start, end, embed=embed)
            return
        if embed or kind in _ADDRESS:
            self._opaque_end = end
        link = links.markdown_link(str(fields["dest_url"])) if kind == _INTERNAL else None
        if link:
            label = self._bytes[start + 1 + embed : self._bytes.rfind(b"](", start, end)].decode()
            self._link(link, _CONTINUED.sub(" ", label), start, end, embed=embed)

    def _link(self, link: str, alias: str | None, start: int, end: int, *, embed: bool) -> None:
        start += self._offset
        line = self._source.line(start)
        self.links.append(Link(link, *links.parts(link), alias, embed, line, start, end + self._offset))


def read_body(source: Source, offset: int) -> Body:
    """Read a note's body, from a byte offset to the end of the file."""
    body = Body(source, offset)
    text = source.text_from(offset)
    bars = "[[|" in text
    events = cast("Iterator[tuple[_Event, dict[str, int]]]", _PARSER.events_with_range(text, merge_text=True))
    for event, span in events:
        if isinstance(event, str):
            if event == "Rule" or body.id_end >= 0:
                body.leaf(event, span["start"], span["end"])
        elif "Text" in event:
            written = event["Text"]
            if "#" in written or "^" in written or (bars and "[[|" in written):
                body.text(span["start"], span["end"])
        elif "Start" in event:
            tag = event["Start"]
            if isinstance(tag, str):
                body.blocks.start(tag, span["start"], span["end"])
            else:
                ((name, fields),) = tag.items()
                body.start(name, cast("_Fields", fields), span["start"], span["end"])
    return body
