"""Cut a note into chunks that follow its headings. Pure, and linear in the note's size.

The note is tokenised once; every decision after that is a difference of prefix sums. A chunk never crosses a heading,
is about `target` tokens long, keeps blocks whole where they fit, and falls back to items and rows, then lines, then
sentences, then blanks, then token borders for what is longer.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from palace.vocabulary import Block, Chunk, NoteRef, ParsedNote, Sha256

Span = tuple[int, int]
_SENTENCE_END = re.compile(rb"[.!?;:][\"')\]]*\s+|\xe3\x80\x82|\xef\xbc[\x81\x9b\x9f]|\xe2\x80\xa6|\n")
"""After these bytes a sentence may end: Latin marks before a blank, the ideographic full stop, full-width marks."""
_BLANK = re.compile(rb"\s+")
_CONTEXT_CHARACTERS = 200
"""Title and heading path take at most this much of a passage, so that the text keeps its room in the model."""
_CONTEXT_TOKENS = _CONTEXT_CHARACTERS + 12


class TokenCounter(Protocol):
    """A tokenizer as the chunker needs it."""

    def byte_starts(self, text: str) -> npt.NDArray[np.int64]:
        """Where each token starts, in bytes of the text's UTF-8, ascending; special tokens left out."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Token sizes: `target` to aim at, `most` that a chunk's own text may have."""

    target: int
    most: int

    @classmethod
    def of(cls, target: int, limit: int) -> "Sizes":
        """Sizes for a model that takes `limit` tokens, context and special tokens included."""
        most = max(16, min(target + target // 2, limit - min(_CONTEXT_TOKENS, limit // 2)))
        return cls(min(target, most), most)


@dataclass(frozen=True, slots=True)
class _Section:
    heading_path: tuple[str, ...]
    heading: Block | None
    blocks: tuple[Block, ...]
    has_children: bool


class _Tape:
    """The note's bytes with its tokens and lines, for counting in constant time."""

    def __init__(self, data: bytes, counter: TokenCounter) -> None:
        self.data = data
        self._starts = counter.byte_starts(data.decode("utf-8", "replace"))
        self._newlines = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))

    def tokens(self, start: int, end: int) -> int:
        a, b = np.searchsorted(self._starts, (start, end))
        return int(b - a)

    def token_border(self, start: int, tokens: int) -> int:
        """The byte offset where the token `tokens` after `start` begins."""
        at = int(np.searchsorted(self._starts, start)) + tokens
        return int(self._starts[at]) if at < len(self._starts) else len(self.data)

    def counts(self, borders: Sequence[int]) -> npt.NDArray[np.int64]:
        """Tokens before each border."""
        return np.searchsorted(self._starts, np.asarray(borders)).astype(np.int64)

    def lines(self, start: int, end: int) -> tuple[int, int]:
        first, last = np.searchsorted(self._newlines, (start, max(start, end - 1)))
        return int(first) + 1, int(last) + 1

    def stripped(self, start: int, end: int) -> Span:
        piece = self.data[start:end]
        return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


def chunk_note(  # noqa: PLR0913 - the six inputs of a pure function, named by its callers
    note: ParsedNote, data: bytes, ref: NoteRef, title: str, counter: TokenCounter, *, sizes: Sizes
) -> list[Chunk]:
    """Chunks of a note in reading order, each with its span, lines and the passage that is embedded."""
    if not note.text_encoding_ok:
        return []
    tape = _Tape(data, counter)
    ordinals: dict[tuple[str, ...], int] = {}
    chunks = []
    for path, start, end in _pieces(note, tape, sizes):
        ordinal = ordinals.get(path, 0)
        ordinals[path] = ordinal + 1
        raw = data[start:end]
        text = raw.decode("utf-8", "replace")
        passage = passage_of(title, path, text)
        chunks.append(
            Chunk(
                id=ref.chunk_id(path, ordinal),
                note_id=ref.id,
                heading_path=path,
                ordinal=ordinal,
                start=start,
                end=end,
                lines=tape.lines(start, end),
                text=text,
                sha256=_sha256(raw),
                passage=passage,
                passage_sha256=_sha256(passage.encode()),
            )
        )
    return chunks


def passage_of(title: str, heading_path: Sequence[str], text: str) -> str:
    """What is embedded for a chunk: title and heading path (each once, capped), then the text."""
    parts = [title, *(h for h in heading_path if h and h != title)]
    context = " > ".join(p for p in parts if p)
    return f"{context[:_CONTEXT_CHARACTERS]}\n{text}" if context else text


def _pieces(note: ParsedNote, tape: _Tape, sizes: Sizes) -> Iterator[tuple[tuple[str, ...], int, int]]:
    found = False
    for section in _sections(note):
        spans = _section_spans(section, tape, sizes)
        for start, end in spans:
            start, end = tape.stripped(start, end)  # noqa: PLW2901 - the blanks around a piece belong to nobody
            if start < end:
                found = True
                yield section.heading_path, start, end
    start, end = tape.stripped(0, note.body_start)
    if not found and start < end:  # properties alone: they are the text
        for piece in _cut(Block("other", start, end), tape, sizes):
            yield (), *piece


def _sections(note: ParsedNote) -> Iterator[_Section]:
    """Runs of blocks under one heading path. Headings inside quotes and lists open no section."""
    headings = {h.start: h for h in note.headings}
    stack: list[tuple[int, str]] = []
    heading: Block | None = None
    level = 0
    blocks: list[Block] = []
    for block in note.blocks:
        opened = headings.get(block.start) if block.kind == "heading" else None
        if opened is None:
            blocks.append(block)
            continue
        yield _Section(tuple(t for _, t in stack), heading, tuple(blocks), opened.level > level)
        while stack and stack[-1][0] >= opened.level:
            stack.pop()
        stack.append((opened.level, opened.text))
        heading, level, blocks = block, opened.level, []
    yield _Section(tuple(t for _, t in stack), heading, tuple(blocks), has_children=False)


def _section_spans(section: _Section, tape: _Tape, sizes: Sizes) -> list[Span]:
    if not section.blocks:
        heading = section.heading
        # A heading without text lives on in its children's heading paths; without children it is its own text.
        return [] if heading is None or section.has_children else [(heading.start, heading.end)]
    return _pack([p for block in section.blocks for p in _cut(block, tape, sizes)], tape, sizes)


def _cut(block: Block, tape: _Tape, sizes: Sizes) -> list[Span]:
    """A block whole where it fits, else in pieces of at most `most` tokens at the gentlest borders there are."""
    whole = sizes.most if block.kind in {"table", "list", "code"} else sizes.target
    if tape.tokens(block.start, block.end) <= whole:
        return [(block.start, block.end)]
    return [
        finer
        for piece in _between(block.start, block.end, block.cuts)
        for finer in ([piece] if tape.tokens(*piece) <= sizes.target else _cut_text(piece, tape, sizes))
    ]


def _cut_text(span: Span, tape: _Tape, sizes: Sizes) -> list[Span]:
    """Sentences; what is still too long by blanks; what is still too long by tokens."""
    out: list[Span] = []
    for sentence in _between(*span, _ends(_SENTENCE_END, tape.data, span)):
        if tape.tokens(*sentence) <= sizes.most:
            out.append(sentence)
            continue
        for word in _between(*sentence, _ends(_BLANK, tape.data, sentence)):
            start, end = word
            while tape.tokens(start, end) > sizes.target:
                border = tape.token_border(start, sizes.target)
                if not start < border < end:
                    break
                out.append((start, border))
                start = border
            out.append((start, end))
    return out


def _pack(pieces: list[Span], tape: _Tape, sizes: Sizes) -> list[Span]:
    """Neighbouring pieces together up to the target; a short last one joins its neighbour if both fit."""
    before = tape.counts([start for start, _ in pieces])
    after = tape.counts([end for _, end in pieces])
    packed: list[tuple[int, int]] = []  # first and last piece of each chunk
    for i in range(len(pieces)):
        if packed and after[i] - before[packed[-1][0]] <= sizes.target:
            packed[-1] = (packed[-1][0], i)
        else:
            packed.append((i, i))
    if len(packed) > 1:
        (first, _), (tail, last) = packed[-2:]
        if after[last] - before[tail] < sizes.target // 4 and after[last] - before[first] <= sizes.most:
            packed[-2:] = [(first, last)]
    return [(pieces[first][0], pieces[last][1]) for first, last in packed]


def _between(start: int, end: int, cuts: Iterable[int]) -> Iterator[Span]:
    for cut in cuts:
        if start < cut < end:
            yield start, cut
            start = cut
    yield start, end


def _ends(pattern: re.Pattern[bytes], data: bytes, span: Span) -> Iterator[int]:
    return (m.end() for m in pattern.finditer(data, *span))


def _sha256(data: bytes) -> Sha256:
    return Sha256(hashlib.sha256(data).hexdigest())
