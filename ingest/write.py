"""Prepared notes into the stores, in the order that lets every crash be answered by running again.

Intent in the ledger, then vectors, then graph and `done` in one transaction. Forgetting: mark, vectors (by note id),
graph, row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypedDict

from ingest.prepare import Prepared
from ingest.source import Seen
from palace.stores.catalogue import Catalogue, LedgerRow, OwnedChunk, Refusal, Written, placements_json
from palace.stores.payload import Payload
from palace.stores.ports import Graph, NoteNode, Point, Vector, VectorStore
from palace.vocabulary import RESERVED_ROOMS, Chunk, NoteId, Placement, Sha256

FORGET_AT_ONCE = 256
"""Notes per delete."""
_TELLING = 120
"""Characters of a chunk that can stand for its note."""


class Writer:
    """The one hand that writes notes into vectors, graph and ledger."""

    def __init__(self, catalogue: Catalogue, vectors: VectorStore, graph: Graph, model: str, generation: int) -> None:
        self._catalogue = catalogue
        self._vectors = vectors
        self._graph = graph
        self._model = model
        self._generation = generation

    def recover(self) -> int:
        """Finish what a killed run left open: forget half-written notes from the stores. Returns how many."""
        open_notes = self._catalogue.open_intents()
        for part in _parts(open_notes):
            self._vectors.forget(part)
            with self._catalogue.database.transaction():
                self._graph.forget(part)
                self._catalogue.forget(part)
        return len(open_notes)

    def forget(self, ids: Sequence[NoteId]) -> None:
        """Take notes out of every store."""
        for part in _parts(ids):
            self._catalogue.mark_gone(part)
            self._vectors.forget(part)
            with self._catalogue.database.transaction():
                self._graph.forget(part)
                self._catalogue.forget(part)

    def write(self, notes: Sequence[Prepared], cached: Mapping[Sha256, Vector]) -> None:
        """Write a batch of notes; chunks whose passage is in `cached` get their dense vector at once."""
        ids = [note.seen.ref.id for note in notes]
        owned = [
            [OwnedChunk(c.id, c.passage_sha256, c.passage_sha256 in cached) for c in note.chunks] for note in notes
        ]
        rows = map(self._row, notes)
        dropped = self._catalogue.intend(dict(zip(ids, zip(rows, owned, strict=True), strict=True)))
        self._vectors.upsert([point for note in notes for point in self._points(note, cached)])
        self._vectors.forget_chunks(dropped)
        self._vectors.flush()
        written = [Written(note.link_key, note.names, note.links, note.problems) for note in notes]
        with self._catalogue.database.transaction(), self._graph.transaction():
            self._graph.upsert([self._node(note) for note in notes])
            self._catalogue.finish(dict(zip(ids, written, strict=True)))

    def replace_rooms(self, seen: Seen, row: LedgerRow) -> None:
        """The bytes are the same, the rooms are not: payload and graph change, nothing is embedded."""
        rooms = _rooms(seen.placements)
        self._vectors.set_payload(row.ref.id, rooms)
        with self._catalogue.database.transaction(), self._graph.transaction():
            self._graph.set_rooms(row.ref.id, _labels(seen.placements))
            self._catalogue.update([touched(seen, row)])

    def refuse(self, note: Prepared, *, known: bool) -> None:
        """Keep a bad note out; its last good version, if there is one, stays and is marked stale."""
        seen = note.seen
        if known:
            self._vectors.set_payload(seen.ref.id, {"stale": True})
        refusal = Refusal(
            *(seen.ref.id, seen.ref.cube, seen.ref.path, note.sha256, "stale" if known else "quarantined"),
            note.refusal or "",
            seen.stat,
        )
        with self._catalogue.database.transaction():
            if known:
                self._catalogue.set_stale(seen.ref.id, stale=True)
            self._catalogue.refuse(refusal)
            self._catalogue.set_problems(seen.ref.id, note.problems)

    def _row(self, note: Prepared) -> LedgerRow:
        seen = note.seen
        return LedgerRow(
            ref=seen.ref,
            file=seen.file,
            sha256=note.sha256,
            placements=placements_json(seen.placements),
            state="intent",
            stale=False,
            title=note.title,
            modified=note.modified,
            status=note.status,
            lead_chunk=_lead(note.chunks),
            stat=seen.stat,
        )

    def _node(self, note: Prepared) -> NoteNode:
        ref = note.seen.ref
        return NoteNode(
            id=ref.id,
            cube=ref.cube,
            vault=ref.vault,
            path=ref.path,
            title=note.title,
            aliases=note.aliases,
            tags=note.tags,
            rooms=_labels(note.seen.placements),
            changed=note.modified,
            chunk_ids=tuple(c.id for c in note.chunks),
            status=note.status,
        )

    def _points(self, note: Prepared, cached: Mapping[Sha256, Vector]) -> Iterator[Point]:
        seen = note.seen
        of_note = partial(
            Payload,
            cube_id=seen.ref.cube,
            note_id=seen.ref.id,
            **_rooms(seen.placements),
            vault=seen.ref.vault,
            path=seen.ref.path,
            title=note.title,
            tags=note.tags,
            aliases=note.aliases,
            status=note.status,
            trust=seen.trust,
            created=note.created,
            modified=note.modified,
            valid_from=note.valid_from,
            invalid_at=note.invalid_at,
            note_sha256=note.sha256,
            model=self._model,
            generation=self._generation,
        )
        for chunk, sparse in zip(note.chunks, note.sparse, strict=True):
            payload = of_note(
                heading_path=chunk.heading_path,
                lines=chunk.lines,
                span=(chunk.start, chunk.end),
                text=chunk.text,
                chunk_sha256=chunk.sha256,
                passage_sha256=chunk.passage_sha256,
            )
            yield Point(chunk.id, payload, sparse, cached.get(chunk.passage_sha256))


def touched(seen: Seen, row: LedgerRow) -> LedgerRow:
    """The row with what is seen now beside the same bytes."""
    return replace(row, file=seen.file, placements=placements_json(seen.placements), state="done", stat=seen.stat)


class _Rooms(TypedDict):
    """The part of the payload that placements decide."""

    wing: tuple[str, ...]
    room: tuple[str, ...]
    place: tuple[str, ...]
    kind: str
    section: str


def _rooms(placements: Sequence[Placement]) -> _Rooms:
    return {
        "wing": tuple(sorted({p.address.wing for p in placements})),
        "room": tuple(sorted({p.address.room for p in placements})),
        "place": tuple(sorted({p.address.place for p in placements})),
        "kind": min({p.address.room for p in placements} & RESERVED_ROOMS, default="note"),
        "section": min((p.section for p in placements if p.section), default=""),
    }


def _lead(chunks: Sequence[Chunk]) -> str:
    """The first chunk that says something: an image or a list of headings often stands before it."""
    telling = (c.id for c in chunks if len(c.text) >= _TELLING)
    return next(telling, chunks[0].id if chunks else "")


def _labels(placements: Sequence[Placement]) -> tuple[tuple[str, str, str, str], ...]:
    return tuple(sorted({(p.address.wing, p.address.room, p.wing_label, p.room_label) for p in placements}))


def _parts(ids: Sequence[NoteId]) -> list[Sequence[NoteId]]:
    return [ids[i : i + FORGET_AT_ONCE] for i in range(0, len(ids), FORGET_AT_ONCE)]
