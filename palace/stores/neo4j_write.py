"""Notes and links into Neo4j: batched statements inside one transaction, rows sorted by key, nothing left without an owner.

    (Note)-[:IN]->(Room)-[:OF]->(Wing)-[:OF]->(Cube)      (Note)-[:HAS]->(Chunk)      (Note)-[:TAGGED]->(Tag)
    (Note)-[:LINKS_TO]->(Note), or ->(Unresolved) where there is no note of that name

Rooms, wings, tags and unresolved links belong to one cube; their `key` is a hash of cube and name, since an index takes
no long text. A link to a note that has not come yet leads to a Note with an id and nothing else. What a room has under one
spelling and status is counted in a Tally (`palace.stores.neo4j_tally`).
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import itemgetter

from palace.stores.graph_rules import Labels, check_edges, distinct, tag_keys
from palace.stores.neo4j_server import OvertakenError, Tx
from palace.stores.neo4j_tally import Tally
from palace.stores.ports import Edge, NoteNode
from palace.vocabulary import NoteId

Row = dict[str, object]

# The first statement on a note takes its lock, so that two workers on one note come one after the other.
_NOTES = """
UNWIND $rows AS row MERGE (n:Note {id: row.id}) SET n.vault = n.vault WITH n, row, n.cube IS NOT NULL AS known
SET n = row WITH n, known WHERE known RETURN n.id AS key"""
_LOCK = "UNWIND $ids AS id MATCH (n:Note {id: id}) SET n.status = n.status RETURN n.id AS id, n.cube AS cube"
_ROOMS_OF = """
MATCH (n:Note {id: $id}) WHERE n.cube IS NOT NULL SET n.rooms = $rooms
RETURN n.id AS id, n.cube AS cube, n.status AS status, n.changed AS changed"""
_LEAVE = """
UNWIND $ids AS id MATCH (:Note {id: id})-[i:IN]->(r:Room) WITH i, r.key AS key, i.tally AS tally, i.changed AS changed
ORDER BY key DELETE i RETURN key, tally, count(*) AS notes, max(changed) AS changed"""
_UNTAG = "UNWIND $ids AS id MATCH (:Note {id: id})-[r:TAGGED]->(t:Tag) WITH r, t.key AS key ORDER BY key DELETE r RETURN DISTINCT key"
_DROP_CHUNKS = "UNWIND $ids AS id MATCH (:Note {id: id})-[h:HAS]->(c:Chunk) DELETE h, c"
_DROP_NOTES = "UNWIND $ids AS id MATCH (n:Note {id: id}) DELETE n"
_KNOWN_ROOMS = "UNWIND $keys AS key MATCH (r:Room {key: key}) RETURN r.key AS key"
_CUBES = "UNWIND $rows AS row MERGE (:Cube {id: row.cube})"
_WINGS = """
UNWIND $rows AS row MERGE (w:Wing {key: row.key}) ON CREATE SET w.cube = row.cube, w.wing = row.wing
WITH w, row MATCH (c:Cube {id: row.cube}) MERGE (w)-[:OF]->(c)"""
_ROOMS = """
UNWIND $rows AS row MERGE (r:Room {key: row.key})
ON CREATE SET r.cube = row.cube, r.wing = row.wing, r.room = row.room, r.place = row.place
WITH r, row MATCH (w:Wing {key: row.in}) MERGE (r)-[:OF]->(w)"""
_IN = (
    "UNWIND $rows AS row MATCH (n:Note {id: row.id}) MATCH (r:Room {key: row.key}) CREATE (n)-[i:IN]->(r) SET i = row.p"
)
_TAGS = "UNWIND $rows AS row MERGE (t:Tag {key: row.key}) ON CREATE SET t.cube = row.cube, t.tag = row.tag"
_TAGGED = "UNWIND $rows AS row MATCH (n:Note {id: row.id}) MATCH (t:Tag {key: row.key}) CREATE (n)-[:TAGGED]->(t)"
_CHUNKS = """
UNWIND $rows AS row MATCH (n:Note {id: row.id})
UNWIND range(0, size(row.chunks) - 1) AS at CREATE (n)-[:HAS]->(:Chunk {id: row.chunks[at], at: at})"""
_UNLINK = """
UNWIND $ids AS id MATCH (:Note {id: id})-[l:LINKS_TO]->(t) DELETE l
RETURN DISTINCT t.key AS key, CASE WHEN t.cube IS NULL THEN t.id END AS awaited"""
_TURN_AWAY = """
UNWIND $ids AS id MATCH (:Note {id: id})<-[l:LINKS_TO]-(s:Note)
WITH l, s.id AS source, s.cube AS cube, properties(l) AS p ORDER BY source DELETE l RETURN source, cube, p"""
_AWAITED = "UNWIND $ids AS id MERGE (:Note {id: id})"
_LINKS = """
UNWIND $rows AS row MATCH (s:Note {id: row.source}) MATCH (t:Note {id: row.target})
CREATE (s)-[l:LINKS_TO]->(t) SET l = row.p"""
_UNRESOLVED = (
    "UNWIND $rows AS row MERGE (u:Unresolved {key: row.key}) ON CREATE SET u.cube = row.cube, u.link = row.link"
)
_LINKS_NOWHERE = """
UNWIND $rows AS row MATCH (s:Note {id: row.source}) MATCH (u:Unresolved {key: row.key})
CREATE (s)-[l:LINKS_TO]->(u) SET l = row.p"""
# Plain DELETE, never DETACH: it fails where another worker has just begun to use the node, and the write is repeated.
_SWEEP_ROOMS = """
UNWIND $keys AS key MATCH (r:Room {key: key}) WHERE NOT EXISTS { (r)<-[:IN]-() }
MATCH (r)-[o:OF]->(w:Wing) DELETE o, r RETURN DISTINCT w.key AS key"""
_SWEEP_WINGS = """
UNWIND $keys AS key MATCH (w:Wing {key: key}) WHERE NOT EXISTS { (w)<-[:OF]-() }
MATCH (w)-[o:OF]->(c:Cube) DELETE o, w RETURN DISTINCT c.id AS key"""
_SWEEP_CUBES = "UNWIND $keys AS key MATCH (c:Cube {id: key}) WHERE NOT EXISTS { (c)<-[:OF]-() } DELETE c"
_SWEEP_TAGS = "UNWIND $keys AS key MATCH (t:Tag {key: key}) WHERE NOT EXISTS { (t)<-[:TAGGED]-() } DELETE t"
_SWEEP_UNRESOLVED = (
    "UNWIND $keys AS key MATCH (u:Unresolved {key: key}) WHERE NOT EXISTS { (u)<-[:LINKS_TO]-() } DELETE u"
)
_SWEEP_AWAITED = """
UNWIND $keys AS key MATCH (n:Note {id: key}) WHERE n.cube IS NULL AND NOT EXISTS { (n)<-[:LINKS_TO]-() } DELETE n"""


def key(cube: str, *names: str) -> str:
    """The key of what belongs to a cube and has these names."""
    text = "".join(f"{len(part)}:{part}" for part in (cube, *names))
    return hashlib.sha256(text.encode()).hexdigest()


def upsert(tx: Tx, notes: Iterable[NoteNode]) -> None:
    """Notes with their rooms, tags and chunks; each once, whatever stood there."""
    latest = sorted({n.id: n for n in notes}.values(), key=lambda n: n.id)
    known = _keys(tx, _NOTES, rows=[_properties(n) for n in latest])
    tally = Tally()
    left = _leave(tx, known, tally)
    chunks: list[dict[str, object]] = [{"id": n.id, "chunks": list(n.chunk_ids)} for n in latest]
    _create(tx, _CHUNKS, chunks, sum(len(n.chunk_ids) for n in latest))
    _stand(tx, [(n.id, n.cube, n.rooms, n.status, n.changed) for n in latest], tally)
    _tag(tx, latest)
    _sweep(tx, left)
    tally.write(tx)


def set_rooms(tx: Tx, note_id: NoteId, rooms: Sequence[Labels]) -> None:
    """Other rooms for a note that is there."""
    row = tx.run(_ROOMS_OF, id=note_id, rooms=_flat(rooms)).single()
    if row is not None:
        tally = Tally()
        left = _leave_rooms(tx, [note_id], tally)
        _stand(tx, [(note_id, row["cube"], rooms, row["status"], row["changed"])], tally)
        _sweep(tx, left)
        tally.write(tx)


def link(tx: Tx, links: Mapping[NoteId, Sequence[Edge]]) -> None:
    """Other links for these notes. Raises StoreError when one is not there."""
    sources = sorted(links)
    edges = [edge for source in sources for edge in links[source]]
    targets = {e.target for e in edges if e.target is not None}
    # A link takes the locks of both its notes: all in one order, so that workers wait for each other but never in a ring.
    locked = tx.run(_LOCK, ids=sorted(targets.union(sources)))
    cubes = {r["id"]: r["cube"] for r in locked if r["cube"] is not None}
    check_edges(links, cubes)
    left = list(tx.run(_UNLINK, ids=sources))
    _run(tx, _AWAITED, ids=sorted(targets))
    rows: list[Row] = [{"source": e.source, "target": e.target, "p": _link(e)} for e in edges if e.target is not None]
    _create(tx, _LINKS, rows, len(rows))
    _lead_nowhere(tx, [(e.source, cubes[e.source], _link(e)) for e in edges if e.target is None])
    _sweep(tx, [r["key"] for r in left], [r["awaited"] for r in left])


def forget(tx: Tx, note_ids: Iterable[NoteId]) -> None:
    """Delete notes with all that is theirs; links to them lead nowhere."""
    ids = sorted(set(note_ids))
    _run(tx, _LOCK, ids=ids)
    gone = frozenset(ids)
    turned = [(r["source"], r["cube"], r["p"]) for r in tx.run(_TURN_AWAY, ids=ids) if r["source"] not in gone]
    left = list(tx.run(_UNLINK, ids=ids))
    tally = Tally()
    used = _leave(tx, ids, tally)
    _run(tx, _DROP_NOTES, ids=ids)
    _lead_nowhere(tx, turned)
    _sweep(tx, [*used, *(r["key"] for r in left)], [r["awaited"] for r in left])
    tally.write(tx)


def _leave(tx: Tx, ids: Sequence[str], tally: Tally) -> list[str]:
    """Take notes out of their rooms and tags, and their chunks away. Returns keys of what they stood under."""
    if not ids:
        return []
    _run(tx, _DROP_CHUNKS, ids=ids)
    return [*_leave_rooms(tx, ids, tally), *_keys(tx, _UNTAG, ids=ids)]


def _leave_rooms(tx: Tx, ids: Sequence[str], tally: Tally) -> list[str]:
    rows = list(tx.run(_LEAVE, ids=ids))
    for row in rows:
        tally.less(row["tally"], row["notes"], row["changed"])
    return [row["key"] for row in rows]


def _stand(tx: Tx, notes: Iterable[tuple[NoteId, str, Sequence[Labels], str, str]], tally: Tally) -> None:
    """Put notes, given as (id, cube, rooms, status, changed), into their rooms, which are made where they are missing."""
    wings: dict[str, Row] = {}
    rooms: dict[str, Row] = {}
    rows: list[Row] = []
    for note_id, cube, labels, status, changed in notes:
        for wing, room, wing_label, room_label in distinct(labels):
            in_wing, own = key(cube, wing), key(cube, wing, room)
            wings[in_wing] = {"key": in_wing, "cube": cube, "wing": wing}
            rooms[own] = {
                "key": own, "in": in_wing, "cube": cube, "wing": wing, "room": room, "place": f"{wing}/{room}",
            }  # fmt: skip
            counted = key(cube, wing, room, wing_label, room_label, status)
            about = {"in": own, "wing_label": wing_label, "room_label": room_label, "status": status}
            tally.more(counted, changed, {**about, "cube": cube, "wing": wing, "room": room})
            rows.append({"id": note_id, "key": own, "p": {"tally": counted, "changed": changed}})
    known = frozenset(_keys(tx, _KNOWN_ROOMS, keys=sorted(rooms)) if rooms else ())
    if known < rooms.keys():
        _run(tx, _CUBES, rows=[{"cube": cube} for cube in sorted({str(w["cube"]) for w in wings.values()})])
        _run(tx, _WINGS, rows=_by_key(wings))
        _run(tx, _ROOMS, rows=[row for row in _by_key(rooms) if row["key"] not in known])
    _create(tx, _IN, sorted(rows, key=itemgetter("key", "id")), len(rows))


def _tag(tx: Tx, notes: Iterable[NoteNode]) -> None:
    tags: dict[str, Row] = {}
    rows: list[Row] = []
    for note in notes:
        for tag in tag_keys(note.tags):
            own = key(note.cube, tag)
            tags[own] = {"key": own, "cube": note.cube, "tag": tag}
            rows.append({"id": note.id, "key": own})
    _run(tx, _TAGS, rows=_by_key(tags))
    _create(tx, _TAGGED, sorted(rows, key=itemgetter("key", "id")), len(rows))


def _lead_nowhere(tx: Tx, links: Iterable[tuple[NoteId, str, Mapping[str, object]]]) -> None:
    """Links that have no note, given as (source, its cube, properties)."""
    nowhere: dict[str, Row] = {}
    rows: list[Row] = []
    for source, cube, properties in links:
        own = key(cube, str(properties["link"]))
        nowhere[own] = {"key": own, "cube": cube, "link": properties["link"]}
        rows.append({"source": source, "key": own, "p": dict(properties)})
    _run(tx, _UNRESOLVED, rows=_by_key(nowhere))
    _create(tx, _LINKS_NOWHERE, sorted(rows, key=itemgetter("source", "key")), len(rows))


def _sweep(tx: Tx, keys: Iterable[str | None], awaited: Iterable[str | None] = ()) -> None:
    """Delete what these keys name and no note uses any more."""
    found = sorted({k for k in keys if k is not None})
    if found:
        wings = _keys(tx, _SWEEP_ROOMS, keys=found)
        cubes = _keys(tx, _SWEEP_WINGS, keys=sorted(wings)) if wings else []
        _run(tx, _SWEEP_CUBES, keys=sorted(cubes))
        _run(tx, _SWEEP_TAGS, keys=found)
        _run(tx, _SWEEP_UNRESOLVED, keys=found)
    _run(tx, _SWEEP_AWAITED, keys=sorted({a for a in awaited if a is not None}))


def _run(tx: Tx, statement: str, **rows: Sequence[object]) -> None:
    """A statement over rows; none, no statement."""
    if any(rows.values()):
        tx.run(statement, parameters=rows).consume()


def _create(tx: Tx, statement: str, rows: Sequence[Row], relationships: int) -> None:
    """A statement that makes so many relationships; fewer mean that another worker took an end of one away."""
    if rows and tx.run(statement, rows=rows).consume().counters.relationships_created != relationships:
        raise OvertakenError


def _keys(tx: Tx, statement: str, **parameters: object) -> list[str]:
    return [r["key"] for r in tx.run(statement, parameters=parameters)]


def _by_key(rows: Mapping[str, Row]) -> list[Row]:
    return [row for _, row in sorted(rows.items())]


def _properties(note: NoteNode) -> Row:
    return {
        "id": note.id,
        "cube": note.cube,
        "vault": note.vault,
        "path": note.path,
        "title": note.title,
        "aliases": list(note.aliases),
        "tags": list(note.tags),
        "rooms": _flat(note.rooms),
        "changed": note.changed,
        "status": note.status,
    }


def _flat(rooms: Iterable[Labels]) -> list[str]:
    """A property holds a list, but no list of lists."""
    return list(chain.from_iterable(rooms))


def _link(edge: Edge) -> Row:
    return {"link": edge.link, "alias": edge.alias, "embed": edge.embed, "line": edge.line}
