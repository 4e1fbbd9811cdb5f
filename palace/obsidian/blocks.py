"""Top-level blocks of a body, and where each may be cut. Pure."""

import re
from collections.abc import Iterator, Sequence

from palace.vocabulary import Block, BlockKind

KINDS: dict[str, BlockKind] = {
    "Heading": "heading",
    "Paragraph": "paragraph",
    "List": "list",
    "Table": "table",
    "CodeBlock": "code",
    "BlockQuote": "quote",
    "HtmlBlock": "html",
    "Rule": "rule",
}
"""Names of the parser's events to kinds; a footnote's definition and what has no event of its own are `other`."""
CUT_AT: dict[BlockKind, frozenset[str]] = {
    "list": frozenset({"Item"}),
    "table": frozenset({"TableRow"}),
    "quote": frozenset({"Paragraph", "Item"}),
}
"""Events inside a block of this kind before which it may be cut."""
_LONG = 256
"""Bytes: a piece longer than this may also be cut at each line."""
_INDENT = 256
_NEWLINE = re.compile(rb"\n")
_BLANK = frozenset(b" \t\r\n\x0b\x0c")


class Blocks:
    """Collects the spans of top-level blocks in ascending order, offsets within the body."""

    __slots__ = ("_body", "_cuts", "_found", "cut_at", "end")

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._found: list[tuple[BlockKind, int, int, list[int]]] = []
        self._cuts: list[int] = []
        self.cut_at: frozenset[str] = frozenset()
        self.end = 0

    def open(self, name: str, start: int, end: int) -> None:
        """A block begins after the last one's end."""
        kind = KINDS.get(name, "other")
        self._cuts = []
        self._found.append((kind, start, end, self._cuts))
        self.cut_at = CUT_AT.get(kind, frozenset())
        self.end = end

    def cut(self, start: int) -> None:
        """A border inside the open block, moved to its line's start; none when that is the block's first line."""
        last = self._cuts[-1] if self._cuts else self._found[-1][1]
        line = self._body.rfind(b"\n", max(last, start - _INDENT), start) + 1
        if line > last:
            self._cuts.append(line)

    def blocks(self, offset: int) -> tuple[Block, ...]:
        """The blocks with `offset` added, blank ends cut off; text between them (link definitions) is `other`."""
        body, at = self._body, 0
        out: list[Block] = []
        for kind, start, end, cuts in self._found:
            if at < start and not body[at:start].isspace():
                out.append(self._between(at, start, offset))
            at = end
            while end > start and body[end - 1] in _BLANK:
                end -= 1  # noqa: PLW2901 - most often one step
            if end - start > _LONG:
                cuts = list(_with_lines(body, start, end, cuts))  # noqa: PLW2901 - the finer ones
            if end > start:
                inner = tuple([c + offset for c in cuts if c < end]) if cuts else ()
                out.append(Block(kind, start + offset, end + offset, inner))
        if at < len(body) and not body[at:].isspace():
            out.append(self._between(at, len(body), offset))
        return tuple(out)

    def _between(self, start: int, end: int, offset: int) -> Block:
        raw = self._body[start:end]
        start += len(raw) - len(raw.lstrip())
        end = start + len(raw.strip())
        cuts = _with_lines(self._body, start, end, ())
        return Block("other", start + offset, end + offset, tuple([c + offset for c in cuts]))


def _with_lines(body: bytes, start: int, end: int, cuts: Sequence[int]) -> Iterator[int]:
    """The cuts, and line starts inside the pieces that are still long."""
    for border in (*cuts, end):
        if border - start > _LONG:
            yield from (m.end() for m in _NEWLINE.finditer(body, start, border - 1))
        if border < end:
            yield border
        start = border
