"""Questions to the graph in Neo4j. Each for an answer carries the scope; those for verify and migration go by pages."""

from collections.abc import Mapping, Sequence

import neo4j

from palace.stores.graph_rules import Counted, by_line, rooms_of, tag_keys
from palace.stores.neo4j_server import Tx
from palace.stores.neo4j_write import key
from palace.stores.ports import Edge, Neighbor, Neighborhood, NoteNode
from palace.vocabulary import ChunkId, NoteId, Room
from palace.walls import Scope

NOTES_A_PAGE = 1000
SOURCES_A_PAGE = 500

_Other = tuple[str, str, str, str, list[str]]
_NEIGHBOR = "[o.id, o.title, o.path, o.cube, o.rooms]"
_LINK = "[l.line, l.link, l.alias, l.embed]"
_ROOMS = """
MATCH (t:Tally) WHERE t.cube IN $cubes AND NOT t.status IN $hidden
RETURN collect([t.cube, t.wing, t.room, t.wing_label, t.room_label, t.notes, t.changed]) AS rows"""
_NOTES = """
MATCH (n:Note) WHERE n.id > $after AND n.cube IS NOT NULL WITH n ORDER BY n.id LIMIT $page
RETURN n, COLLECT { MATCH (n)-[:HAS]->(c:Chunk) RETURN c.id ORDER BY c.at } AS chunks ORDER BY n.id"""
_EDGES = """
MATCH (s:Note) WHERE s.id > $after AND EXISTS { (s)-[:LINKS_TO]->() } WITH s ORDER BY s.id LIMIT $page
MATCH (s)-[l:LINKS_TO]->(t)
RETURN s.id AS source, t.id AS target, l.link AS link, l.alias AS alias, l.embed AS embed, l.line AS line"""


def neighbors(tx: Tx, note_id: NoteId, scope: Scope, limit: int) -> Neighborhood:
    """What stands around a note, as far as the scope admits it."""
    wall, bound = _wall(scope)
    found = tx.run(_around(wall), bound | {"id": note_id}).single()
    if found is None:
        return Neighborhood((), (), (), ())
    links = sorted(found["links"], key=lambda f: (f[1][0], f[1][1], f[0][0], f[1][2] or "", f[1][3]))
    backlinks = sorted(found["backlinks"], key=lambda f: (f[0][2], f[1][0], f[1][1], f[0][0]))
    unresolved = sorted(found["unresolved"], key=lambda f: (f[0], f[1], f[2] or "", f[3]))
    return Neighborhood(
        links=tuple(_neighbor(other, link, line) for other, (line, link, _, _) in links),
        backlinks=tuple(_neighbor(other, link, line) for other, (line, link, _, _) in backlinks),
        shared_tags=_shared(tx, note_id, found["tags"], scope, limit),
        unresolved=tuple((link, line) for line, link, _, _ in unresolved),
    )


def rooms(tx: Tx, scope: Scope) -> list[Room]:
    """Every room inside the scope with exact counts."""
    found = tx.run(_ROOMS, cubes=sorted(scope.cubes), hidden=sorted(scope.hidden)).single(strict=True)
    return rooms_of(map(Counted._make, found["rows"]), scope)


def notes(tx: Tx, after: str) -> list[NoteNode]:
    """The page of notes after an id, by id."""
    return [_node(row["n"], row["chunks"]) for row in tx.run(_NOTES, after=after, page=NOTES_A_PAGE)]


def edges(tx: Tx, after: str) -> list[Edge]:
    """All links of the page of sources after an id, in order."""
    rows = tx.run(_EDGES, after=after, page=SOURCES_A_PAGE)
    found = [Edge(r["source"], r["target"], r["link"], r["alias"], embed=r["embed"], line=r["line"]) for r in rows]
    return sorted(found, key=lambda edge: (edge.source, *by_line(edge)))


def _wall(scope: Scope) -> tuple[str, dict[str, object]]:
    """The condition that the note `o` stands inside the scope."""
    parts = ["o.cube IN $cubes", "NOT o.status IN $hidden"]
    bound: dict[str, object] = {"cubes": sorted(scope.cubes), "hidden": sorted(scope.hidden)}
    for name, values in (("place", scope.places), ("wing", scope.wings)):
        if values is not None:
            parts.append(f"EXISTS {{ MATCH (o)-[:IN]->(r:Room) WHERE r.{name} IN ${name} }}")
            bound[name] = sorted(values)
    return " AND ".join(parts), bound


def _around(wall: str) -> str:
    """Links, backlinks and unresolved links in one question; the note itself has to stand inside the wall too."""
    return f"""
    MATCH (o:Note {{id: $id}}) WHERE {wall} WITH o AS n
    RETURN n.tags AS tags,
    COLLECT {{ MATCH (n)-[l:LINKS_TO]->(o:Note) WHERE o.id <> $id AND {wall} RETURN [{_NEIGHBOR}, {_LINK}] }} AS links,
    COLLECT {{ MATCH (n)<-[l:LINKS_TO]-(o:Note) WHERE o.id <> $id AND {wall} RETURN [{_NEIGHBOR}, {_LINK}] }} AS backlinks,
    COLLECT {{ MATCH (n)-[l:LINKS_TO]->(:Unresolved) RETURN {_LINK} }} AS unresolved"""


def _shared(tx: Tx, note_id: NoteId, tags: Sequence[str], scope: Scope, limit: int) -> tuple[Neighbor, ...]:
    """Notes with a tag of this one, the rarest tag first."""
    mine = tag_keys(tags)
    if not mine or limit <= 0:
        return ()
    wall, bound = _wall(scope)
    bound |= {"id": note_id, "limit": limit}
    keys = {tag: [key(cube, tag) for cube in sorted(scope.cubes)] for tag in mine}
    # Without the hint a few notes with very many tags are gone through once for each tag.
    found = "MATCH (t:Tag {key: key})<-[:TAGGED]-(o:Note) USING INDEX t:Tag(key)"
    holders = f"UNWIND tag.keys AS key {found} WHERE o.id <> $id AND {wall}"
    count = f"UNWIND $tags AS tag {holders} RETURN tag.tag AS tag, count(o) AS size"
    sizes = {r["tag"]: r["size"] for r in tx.run(count, bound | {"tags": _tags(keys, keys)})}
    wanted = _rarest(sizes, limit)
    if not wanted:
        return ()
    first = f"CALL (tag) {{ {holders} RETURN o ORDER BY o.path, o.id LIMIT $limit }}"
    rows = tx.run(f"UNWIND $tags AS tag {first} RETURN tag.tag, {_NEIGHBOR}", bound | {"tags": _tags(keys, wanted)})
    of_tag: dict[str, list[Neighbor]] = {tag: [] for tag in wanted}
    for tag, other in rows:
        of_tag[tag].append(_neighbor(other, mine[tag], None))
    shared = [other for tag in wanted for other in sorted(of_tag[tag], key=lambda n: (n.path, n.id))]
    return tuple(shared[:limit])


def _tags(keys: Mapping[str, list[str]], wanted: Sequence[str] | Mapping[str, object]) -> list[dict[str, object]]:
    return [{"tag": tag, "keys": keys[tag]} for tag in wanted]


def _rarest(sizes: Mapping[str, int], limit: int) -> list[str]:
    """As many of the tags, the rarest first, as are needed to fill the limit."""
    wanted: list[str] = []
    filled = 0
    for tag in sorted(sizes, key=lambda t: (sizes[t], t)):
        if filled >= limit:
            break
        wanted.append(tag)
        filled += sizes[tag]
    return wanted


def _neighbor(other: _Other, via: str, line: int | None) -> Neighbor:
    note_id, title, path, cube, flat = other
    return Neighbor(NoteId(note_id), title, path, cube, tuple(sorted(set(flat[1::4]))), via, line)


def _node(node: neo4j.graph.Node, chunks: Sequence[str]) -> NoteNode:
    flat = node["rooms"]
    return NoteNode(
        id=NoteId(node["id"]),
        cube=node["cube"],
        vault=node["vault"],
        path=node["path"],
        title=node["title"],
        aliases=tuple(node["aliases"]),
        tags=tuple(node["tags"]),
        rooms=tuple(zip(flat[0::4], flat[1::4], flat[2::4], flat[3::4], strict=True)),
        changed=node["changed"],
        chunk_ids=tuple(map(ChunkId, chunks)),
        status=node["status"],
    )
