"""Top-level blocks of a body, and where each may be cut. Pure."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from palace.vocabulary import Block, BlockKind

_NO_CUTS: frozenset[str] = frozenset()
_LIST_CUTS = frozenset({"Item"})
_KINDS: dict[str, tuple[BlockKind, frozenset[str]]] = {
    "Heading": ("heading", _NO_CUTS),
    "Paragraph": ("paragraph", _NO_CUTS),
    "List": ("list", _LIST_CUTS),
    "Table": ("table", frozenset({"TableRow"})),
    "CodeBlock": ("code", _NO_CUTS),
    "BlockQuote": ("quote", frozenset({"Paragraph", "Item"})),
    "HtmlBlock": ("html", _NO_CUTS),
    "Rule": ("rule", _NO_CUTS),
}
"""The parser's names: the kind of block, and the names inside it before which it may be cut."""
_OTHER: tuple[BlockKind, frozenset[str]] = ("other", _NO_CUTS)
"""A footnote's definition, and text that has no event of its own."""
_LONG = 256
"""Bytes: a piece longer than this may also be cut at each line."""
_INDENT = 256
_BLANK = frozenset(b" \t\r\n\x0b\x0c")


class Blocks:
    """Collects the spans of top-level blocks in ascending order, offsets within the body."""

    __slots__ = ("_body", "_cut_at", "_cuts", "_found", "end")

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._found: list[tuple[BlockKind, int, int]] = []
        self._cuts: dict[int, list[int]] = {}
        self._cut_at = _NO_CUTS
        self.end = 0

    def start(self, name: str, start: int, end: int) -> bool:
        """Something begins: a new block after the last one's end (True), or what is inside the last one."""
        if start >= self.end:
            kind, self._cut_at = _KINDS.get(name, _OTHER)
            self._found.append((kind, start, end))
            self.end = end
            return True
        if name in self._cut_at:
            self._cut(start)
        return False

    def _cut(self, start: int) -> None:
        """A border inside the last block, moved to its line's start; none when that is the block's first line."""
        cuts = self._cuts.setdefault(len(self._found) - 1, [])
        last = cuts[-1] if cuts else self._found[-1][1]
        line = self._body.rfind(b"\n", max(last, start - _INDENT), start) + 1
        if line > last:
            cuts.append(line)

    def blocks(self, offset: int) -> tuple[Block, ...]:
        """The blocks with `offset` added, blank ends cut off; text between them (link definitions) is `other`."""
        body, at = self._body, 0
        out: list[Block] = []
        for i, (kind, start, end) in enumerate(self._found):
            if at < start and not body[at:start].isspace():
                out.append(self._between(at, start, offset))
            at = end
            while end > start and body[end - 1] in _BLANK:
                end -= 1  # noqa: PLW2901 - most often one step
            if end > start:
                inner = self._inner(i, start, end, offset) if end - start > _LONG or i in self._cuts else ()
                out.append(Block(kind, start + offset, end + offset, inner))
        if at < len(body) and not body[at:].isspace():
            out.append(self._between(at, len(body), offset))
        return tuple(out)

    def _inner(self, index: int, start: int, end: int, offset: int) -> tuple[int, ...]:
        cuts: Sequence[int] = self._cuts.get(index, ())
        if end - start > _LONG:
            cuts = list(_with_lines(self._body, start, end, cuts))
        return tuple([c + offset for c in cuts if c < end])

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
            lines = body[start:border].splitlines(keepends=True)
            yield from accumulate(map(len, lines[1:-1]), initial=start + len(lines[0])) if len(lines) > 1 else ()
        if border < end:
            yield border
        start = border
