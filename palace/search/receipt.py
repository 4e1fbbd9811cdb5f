"""Hits, receipts and answers, and the JSON that leaves the house (docs/design.md, Contract). Pure.

Absent values are null, never left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from palace.search.fuse import Fused
from palace.stores.payload import Payload
from palace.stores.ports import Neighbor, Neighborhood
from palace.vocabulary import Answer, Elsewhere, Hit, NoteId, Room

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Json = dict[str, Any]
_SHOWN_LEGS = ("bm25", "dense")


@dataclass(frozen=True, slots=True)
class Reading:
    """A note as `read` gives it. `lines`: first and last line of `text`, from 1."""

    ref: NoteId
    title: str
    path: str
    cube: str
    rooms: tuple[str, ...]
    text: str
    lines: tuple[int, int]
    note_sha256: str
    stale: bool


def hit(candidate: Fused, payload: Payload, legs: Mapping[str, float]) -> Hit:
    """A candidate with all that is needed to cite and open it."""
    return Hit(
        ref=payload.note_id,
        title=payload.title,
        vault=payload.vault,
        path=payload.path,
        cube=payload.cube_id,
        wings=payload.wing,
        rooms=payload.room,
        heading=" > ".join(payload.heading_path),
        lines=payload.lines,
        text=payload.text,
        score=round(candidate.score, 6),
        legs={leg: round(score, 6) for leg, score in legs.items()},
        note_sha256=payload.note_sha256,
        chunk_sha256=payload.chunk_sha256,
        status=payload.status,
        trust=payload.trust,
        stale=payload.stale,
    )


def elsewhere(candidate: Fused, payload: Payload) -> Elsewhere:
    """A stronger note outside the rooms that were named."""
    return Elsewhere(payload.note_id, payload.title, payload.room, round(candidate.score, 6))


def near(payload: Payload) -> str:
    """A note in a line, for hints."""
    return f"“{payload.title}” in {', '.join(payload.place)} (ref {payload.note_id})"


def answer_json(answer: Answer) -> Json:
    """What `search` prints."""
    return {
        "status": answer.status,
        "fallback": answer.fallback,
        "reason": answer.reason,
        "hits": [hit_json(h) for h in answer.hits],
        "elsewhere": [_plain(_fields(e)) for e in answer.elsewhere],
        "hints": list(answer.hints),
        "receipt": _plain(_fields(answer.receipt)),
    }


def hit_json(found: Hit) -> Json:
    """One hit; a leg that does not have it is null."""
    data = _plain(_fields(found))
    data["legs"] = dict.fromkeys(_SHOWN_LEGS) | dict(found.legs)
    return data


def room_json(room: Room) -> Json:
    """One room as `rooms` lists it."""
    return {
        "cube": room.address.cube,
        "wing": room.address.wing,
        "room": room.address.room,
        "label": room.label,
        "notes": room.notes,
        "changed": room.changed,
        "description": room.description,
        "score": room.score,
    }


def rooms_json(rooms: Sequence[Room], following: str | None) -> Json:
    """What `rooms` prints; `next` is the cursor of the page that follows."""
    return {"rooms": [room_json(r) for r in rooms], "next": following}


def reading_json(reading: Reading) -> Json:
    """What `read` prints."""
    return _plain(_fields(reading))


def neighbors_json(around: Neighborhood) -> Json:
    """What `neighbors` prints."""
    return {
        "links": [_neighbor(n) for n in around.links],
        "backlinks": [_neighbor(n) for n in around.backlinks],
        "shared_tags": [_neighbor(n) for n in around.shared_tags],
        "unresolved": [{"link": link, "line": line} for link, line in around.unresolved],
    }


def _neighbor(neighbor: Neighbor) -> Json:
    data = _plain(_fields(neighbor))
    return {"ref": data.pop("id"), **data}


def _fields(of: "DataclassInstance") -> Json:
    """The fields, one level deep: `asdict` copies all the way down, at a tenth of a millisecond a hit."""
    return {f.name: getattr(of, f.name) for f in fields(of)}


def _plain(data: Json) -> Json:
    return {k: list(v) if isinstance(v, tuple) else _plain(v) if isinstance(v, dict) else v for k, v in data.items()}
