"""The words of the house, each a type. Imports nothing of the project.

Byte offsets count from the file's first byte, a BOM and the properties included; lines count from 1. What a note is made
of by the dozen (tags, links, headings, blocks) are named tuples: they cost a fraction to make.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Literal, NamedTuple, NewType, TypeAlias

NoteId = NewType("NoteId", str)
"""A UUID as text: uuid5 over (cube, vault, path in NFC)."""
ChunkId = NewType("ChunkId", str)
"""A UUID as text: uuid5 over (cube, vault, path, heading path, ordinal under that heading path)."""
Sha256 = NewType("Sha256", str)
"""64 lower-case hex digits."""

PropertyValue: TypeAlias = "str | int | float | bool | list[PropertyValue] | dict[str, PropertyValue] | None"
"""What a property holds after YAML 1.2; dates and times stay strings, as in Obsidian."""

GLOBAL = "global"
"""The cube that every vault's public notes belong to."""
RESERVED_ROOMS = frozenset({"system_config", "diary", "daily"})
"""Room keys that no tag and no public folder can make."""

_NAMESPACE = uuid.UUID("6f7a1c1e-58c4-5a1b-9a3e-0d1a7c0a11ed")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with one note. It is returned beside the result and stops nothing."""

    path: str
    line: int | None
    code: str
    message: str
    hint: str


class Heading(NamedTuple):
    """An ATX or setext heading. `text` without the marks; `start`, `end`: byte span of the whole heading."""

    level: int
    text: str
    line: int
    start: int
    end: int


class Link(NamedTuple):
    """A link or embed as written. `link` is what Obsidian's cache calls so: `page#a#b`.

    `key` names the property that holds it, for links in properties, else None.
    """

    link: str
    target: str
    heading: str | None
    block: str | None
    alias: str | None
    embed: bool
    line: int
    start: int
    end: int
    key: str | None = None


class Tag(NamedTuple):
    """A tag as written, without `#`. `inline` is False for one from the properties."""

    name: str
    line: int
    inline: bool


BlockKind = Literal["heading", "paragraph", "list", "table", "code", "quote", "html", "rule", "other"]


class Block(NamedTuple):
    """A top-level block of the body with its byte span [start, end).

    `cuts`: byte offsets inside the block where it may be cut if it must be (list items, table rows, code lines,
    paragraphs of a quote), ascending, without start and end.
    """

    kind: BlockKind
    start: int
    end: int
    cuts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedNote:
    """One note as Obsidian sees it. `body_start`: byte offset of the first byte after the properties (0 without).

    `text_encoding_ok` is False when the bytes are no UTF-8; then everything else is empty and a Problem says so.
    `block_ids`: `^id` without the caret, with its line.
    """

    path: str
    body_start: int
    properties: Mapping[str, PropertyValue]
    tags: tuple[Tag, ...]
    aliases: tuple[str, ...]
    headings: tuple[Heading, ...]
    links: tuple[Link, ...]
    blocks: tuple[Block, ...]
    block_ids: tuple[tuple[str, int], ...]
    problems: tuple[Problem, ...]
    text_encoding_ok: bool = True


@dataclass(frozen=True, slots=True, order=True)
class RoomAddress:
    """Where a room is: folded keys. `place` is what filters use: two arrays alone would answer for rooms that aren't."""

    cube: str
    wing: str
    room: str

    @property
    def place(self) -> str:
        """`wing/room`, the key of the payload's place[]."""
        return f"{self.wing}/{self.room}"


@dataclass(frozen=True, slots=True)
class Placement:
    """One room a note stands in. Labels are what people typed; `reason` is `folder:…`, `tag:…`, `rule:…` or `private:…`."""

    address: RoomAddress
    wing_label: str
    room_label: str
    reason: str
    section: str = ""


@dataclass(frozen=True, slots=True)
class Stat:
    """What stat(2) said of a file: a hint that the bytes are the same, never the proof."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


class Status(StrEnum):
    """A note's rung on the status ladder."""

    CANDIDATE = "candidate"
    PROVISIONAL = "provisional"
    ACTIVE = "active"
    SUPERSEDED = "superseded"
    REJECTED = "rejected"
    INVALID = "invalid"


HIDDEN_STATUSES = frozenset({Status.SUPERSEDED, Status.REJECTED, Status.INVALID})
"""Filtered before ranking, unless asked for."""


class Trust(StrEnum):
    """Whose words a note holds: the person's own, or an agent's."""

    OWNER = "owner"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class NoteRef:
    """A note's identity. `path` is in NFC, relative to its vault or private root, with `/`."""

    cube: str
    vault: str
    path: str

    @property
    def id(self) -> NoteId:
        """The note's deterministic id; it is also the opaque `ref` that tools hand out."""
        return NoteId(_uuid5(self.cube, self.vault, self.path))

    def chunk_id(self, heading_path: tuple[str, ...], ordinal: int) -> ChunkId:
        """Id of the `ordinal`-th chunk (from 0) under one heading path of this note."""
        depth = str(len(heading_path))  # tells an empty heading from none
        return ChunkId(_uuid5(self.cube, self.vault, self.path, depth, *heading_path, str(ordinal)))


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a note under one heading path.

    `start`, `end`: byte span in the file; `lines`: first and last line, from 1; `text`: those bytes as text;
    `sha256`: of those bytes; `passage`: what is embedded (title, heading path and text);
    `passage_sha256`: key of the vector cache, of `passage`.
    """

    id: ChunkId
    note_id: NoteId
    heading_path: tuple[str, ...]
    ordinal: int
    start: int
    end: int
    lines: tuple[int, int]
    text: str
    sha256: Sha256
    passage: str
    passage_sha256: Sha256


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was searched, and how. Field meanings: `docs/design.md`, Receipts."""

    time: str
    reader: str
    cubes: tuple[str, ...]
    asked: Mapping[str, tuple[str, ...]]
    searched: Mapping[str, tuple[str, ...]]
    fallback: bool
    legs: Mapping[str, int]
    floors: Mapping[str, float]
    generation: int
    model: str
    dense_share: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that answers, with all that is needed to cite and open it."""

    ref: NoteId
    title: str
    vault: str
    path: str
    cube: str
    wings: tuple[str, ...]
    rooms: tuple[str, ...]
    heading: str
    lines: tuple[int, int]
    text: str
    score: float
    legs: Mapping[str, float]
    note_sha256: Sha256
    chunk_sha256: Sha256
    status: str
    trust: str
    stale: bool


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A stronger note outside the named room."""

    ref: NoteId
    title: str
    rooms: tuple[str, ...]
    score: float


@dataclass(frozen=True, slots=True)
class Answer:
    """A search's answer; `status` is miss when nothing came over the floor."""

    status: Literal["hit", "miss"]
    fallback: bool
    reason: str | None
    hits: tuple[Hit, ...]
    elsewhere: tuple[Elsewhere, ...]
    hints: tuple[str, ...]
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Room:
    """A room as `rooms` lists it. `changed`: ISO 8601 UTC time of the last change; `score`: only with a query."""

    address: RoomAddress
    wing_label: str
    label: str
    notes: int
    changed: str | None
    description: str | None = None
    score: float | None = None


@dataclass(slots=True)
class Counts:
    """What one ingest did."""

    new: int = 0
    changed: int = 0
    rooms_only: int = 0
    moved: int = 0
    touched: int = 0
    gone: int = 0
    chunks: int = 0
    embedded: int = 0
    problems: list[Problem] = field(default_factory=list)


@lru_cache(maxsize=8192)  # a note's id is asked for once a chunk and more
def _uuid5(*parts: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, "\x00".join(parts)))
