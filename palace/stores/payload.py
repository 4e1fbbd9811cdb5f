"""The payload that every vector store keeps with a chunk: one place for its names and its shapes."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Self

from palace.errors import StoreError
from palace.vocabulary import NoteId, Sha256

INDEXED = ("cube_id", "note_id", "place", "wing", "room", "vault", "status", "trust", "kind")
"""Keyword-indexed keys; `cube_id` is the tenant."""


@dataclass(frozen=True, slots=True)
class Payload:
    """What stands beside a chunk's vectors. Times are ISO 8601; keys are folded, labels live in the graph.

    `passage_sha256`: SHA-256 of the text that is embedded, so that a dense vector counts by it and its model.
    """

    cube_id: str
    note_id: NoteId
    wing: tuple[str, ...]
    room: tuple[str, ...]
    place: tuple[str, ...]
    vault: str
    path: str
    title: str
    heading_path: tuple[str, ...]
    section: str
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    kind: str
    status: str
    trust: str
    created: str | None
    modified: str | None
    valid_from: str | None
    invalid_at: str | None
    lines: tuple[int, int]
    span: tuple[int, int]
    text: str
    note_sha256: Sha256
    chunk_sha256: Sha256
    passage_sha256: Sha256
    model: str
    generation: int
    stale: bool = False

    def values(self) -> dict[str, Any]:
        """Key to value."""
        return dict(zip(_KEYS, _VALUES(self), strict=True))

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: tuples become lists."""
        values = self.values()
        for key in _LISTS:
            values[key] = list(values[key])
        return values

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `as_dict`; unknown keys of a newer version are ignored."""
        values: dict[str, Any] = {k: tuple(v) if isinstance(v := data[k], list) else v for k in _KEYS if k in data}
        return cls(**values)


_KEYS = tuple(f.name for f in fields(Payload))
_VALUES = attrgetter(*_KEYS)
_LISTS = ("wing", "room", "place", "heading_path", "tags", "aliases", "lines", "span")
_IDENTITY = frozenset({"cube_id", "note_id"})


def changes_as_dict(changes: Mapping[str, object]) -> dict[str, Any]:
    """Changes of a note's payload, JSON-ready.

    Raises StoreError for an unknown key and for the identity: a note whose cube changes is forgotten, then written.
    """
    wrong = sorted(k for k in changes if k not in _KEYS or k in _IDENTITY)
    if wrong:
        raise StoreError(f"The payload's {', '.join(wrong)} cannot be changed.", "Forget the note and write it again.")
    return {k: _json_ready(v) for k, v in changes.items()}


def _json_ready(value: object) -> object:
    return list(value) if isinstance(value, tuple | list) else value
