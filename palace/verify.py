"""Whether catalogue, vectors and graph agree, three ways, and one fingerprint for the state that they hold.

Equal state, equal fingerprint, on every machine: it knows no time, no generation, no inode, and a vector counts by its
passage's hash and its model, since the floats of different processors differ in the last digits.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from palace import manifest
from palace.settings import Settings
from palace.stores.catalogue import Catalogue, LedgerRow, placements_from
from palace.stores.ports import Graph, NoteNode, Record, VectorStore
from palace.vocabulary import ChunkId, NoteId, Sha256

_SHOWN = 200
"""Differences that are told one by one; the rest is counted."""


@dataclass(slots=True)
class Report:
    """What a verification found. `broken`: notes that the next ingest must write again."""

    differences: list[str] = field(default_factory=list)
    broken: set[NoteId] = field(default_factory=set)
    strangers: set[NoteId] = field(default_factory=set)
    notes: int = 0
    chunks: int = 0
    edges: int = 0
    pending: int = 0
    fingerprint: str = ""

    def differ(self, note_id: NoteId, what: str) -> None:
        """Note a difference of one note."""
        self.broken.add(note_id)
        if len(self.differences) < _SHOWN:
            self.differences.append(what)


def verify(settings: Settings, catalogue: Catalogue, vectors: VectorStore, graph: Graph) -> Report:
    """Compare the three stores; nothing is changed."""
    report = Report()
    rows = {row.ref.id: row for row in catalogue.all_rows()}
    owned = catalogue.chunks()
    report.notes, report.chunks = len(rows), len(owned)
    report.pending = sum(not dense for _, _, dense in owned.values())
    for row in rows.values():
        if row.state != "done":
            report.differ(row.ref.id, f"{row.ref.path}: a killed run left it half-written")
    points = _points(report, rows, owned, vectors)
    nodes = _nodes(report, rows, owned, graph)
    edges = _edges(report, rows, graph)
    ledger = (_ledger_line(row) for _, row in sorted(rows.items()))
    report.fingerprint = _fingerprint([_palace(settings), sorted(points), sorted(nodes), edges, ledger])
    return report


def _points(
    report: Report,
    rows: dict[NoteId, LedgerRow],
    owned: dict[ChunkId, tuple[NoteId, Sha256, bool]],
    vectors: VectorStore,
) -> list[str]:
    lines = []
    missing = set(owned)
    for record in vectors.scroll():
        note_id = record.payload.note_id
        row = rows.get(note_id)
        if record.id not in missing or row is None:
            report.strangers.add(note_id)
            report.differ(note_id, f"{record.payload.path}: vectors hold a chunk that the catalogue does not own")
            continue
        missing.discard(record.id)
        _, passage, dense = owned[record.id]
        if wrong := _payload_differences(record, row, passage, dense=dense):
            report.differ(note_id, f"{row.ref.path}: its chunk differs in {', '.join(wrong)}")
        lines.append(_point_line(record))
    for chunk_id in missing:
        note_id = owned[chunk_id][0]
        path = rows[note_id].ref.path if note_id in rows else note_id
        report.differ(note_id, f"{path}: vectors lack one of its chunks")
    return lines


def _payload_differences(record: Record, row: LedgerRow, passage: Sha256, *, dense: bool) -> list[str]:
    payload = record.payload
    places = list(_places(row.placements))
    pairs = {
        "cube": (payload.cube_id, row.ref.cube),
        "vault": (payload.vault, row.ref.vault),
        "path": (payload.path, row.ref.path),
        "rooms": (sorted(payload.place), places),
        "note hash": (payload.note_sha256, row.sha256),
        "passage hash": (payload.passage_sha256, passage),
        "dense vector": (record.has_dense, dense),
        "stale mark": (payload.stale, row.stale),
    }
    return [name for name, (stored, known) in pairs.items() if stored != known]


@lru_cache(maxsize=4096)
def _places(placements: str) -> tuple[str, ...]:
    """The places of a ledger's row, sorted; many notes share one text."""
    return tuple(sorted({p.address.place for p in placements_from(placements)}))


def _nodes(
    report: Report,
    rows: dict[NoteId, LedgerRow],
    owned: dict[ChunkId, tuple[NoteId, Sha256, bool]],
    graph: Graph,
) -> list[str]:
    chunks: dict[NoteId, set[ChunkId]] = {}
    for chunk_id, (note_id, _, _) in owned.items():
        chunks.setdefault(note_id, set()).add(chunk_id)
    lines = []
    missing = set(rows)
    for node in graph.notes():
        row = rows.get(node.id)
        if row is None:
            report.strangers.add(node.id)
            report.differ(node.id, f"{node.path}: the graph holds a note that the catalogue does not own")
            continue
        missing.discard(node.id)
        rooms = {(p.address.wing, p.address.room) for p in placements_from(row.placements)}
        same_rooms = rooms == {(wing, room) for wing, room, _, _ in node.rooms}
        if (node.cube, node.path) != (row.ref.cube, row.ref.path) or not same_rooms:
            report.differ(node.id, f"{row.ref.path}: the graph has it in other rooms")
        if set(node.chunk_ids) != chunks.get(node.id, set()):
            report.differ(node.id, f"{row.ref.path}: the graph has other chunks of it")
        lines.append(_node_line(node))
    for note_id in missing:
        report.differ(note_id, f"{rows[note_id].ref.path}: the graph lacks it")
    return lines


def _edges(report: Report, rows: dict[NoteId, LedgerRow], graph: Graph) -> list[str]:
    lines = []
    for edge in graph.edges():
        report.edges += 1
        if edge.source not in rows or (edge.target is not None and edge.target not in rows):
            report.strangers.add(edge.source)
            report.differ(edge.source, f"{edge.source}: a link leads from or to a note that is not there")
        lines.append(_json([edge.source, edge.target, edge.link, edge.alias, edge.embed, edge.line]))
    return sorted(lines)


def _palace(settings: Settings) -> Iterator[str]:
    current = manifest.current(settings)
    if current is None:
        return
    for entry in manifest.read(current.folder / manifest.MANIFEST):
        yield _json([entry.ref.vault, entry.ref.path, entry.sha256, sorted(entry.links)])


def _point_line(record: Record) -> str:
    payload = record.payload.as_dict()
    for key in ("generation", "modified", "model"):
        del payload[key]
    vector = [payload["passage_sha256"], record.payload.model] if record.has_dense else None
    return hashlib.sha256(_json([record.id, payload, vector]).encode()).hexdigest()


def _node_line(node: NoteNode) -> str:
    identity = [node.id, node.cube, node.vault, node.path, node.title, node.aliases, node.status]
    return _json([*identity, sorted(node.tags), sorted(node.rooms), sorted(node.chunk_ids)])


def _ledger_line(row: LedgerRow) -> str:
    return _json([row.ref.id, row.sha256, row.placements, row.state, row.stale, row.title])


def _fingerprint(parts: Iterable[Iterable[str]]) -> str:
    state = hashlib.sha256()
    for name, part in zip(("palace", "vectors", "graph", "edges", "catalogue"), parts, strict=True):
        state.update(f"\x00{name}\x00".encode())
        for line in part:
            state.update(line.encode("utf-8", "surrogateescape"))
            state.update(b"\n")
    return state.hexdigest()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
