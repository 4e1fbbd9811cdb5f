"""The embedded graph: notes, rooms, tags and links as tables of the catalogue's file, in the ledger's transactions."""

# ruff: noqa: S608 - statements are put together from constants and placeholders only

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from palace.stores.database import Database
from palace.stores.graph_rules import Counted, Labels, check_edges, distinct, rooms_of, tag_keys
from palace.stores.ports import Edge, Neighbor, Neighborhood, NoteNode
from palace.vocabulary import ChunkId, NoteId, Room
from palace.walls import Scope

_SCHEMA = """
CREATE TABLE graph_note (
    id TEXT PRIMARY KEY, cube TEXT NOT NULL, vault TEXT NOT NULL, path TEXT NOT NULL, title TEXT NOT NULL,
    status TEXT NOT NULL, changed TEXT NOT NULL, rooms TEXT NOT NULL, tags TEXT NOT NULL, aliases TEXT NOT NULL,
    chunk_ids TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE graph_room (
    note_id TEXT NOT NULL, wing TEXT NOT NULL, room TEXT NOT NULL, wing_label TEXT NOT NULL, room_label TEXT NOT NULL,
    cube TEXT NOT NULL, status TEXT NOT NULL, changed TEXT NOT NULL, PRIMARY KEY (note_id, wing, room)) WITHOUT ROWID;
CREATE INDEX graph_room_changed ON graph_room (cube, wing, room, wing_label, room_label, status, changed);
CREATE TABLE graph_count (
    cube TEXT NOT NULL, wing TEXT NOT NULL, room TEXT NOT NULL, wing_label TEXT NOT NULL, room_label TEXT NOT NULL,
    status TEXT NOT NULL, notes INTEGER NOT NULL,
    PRIMARY KEY (cube, wing, room, wing_label, room_label, status)) WITHOUT ROWID;
CREATE TRIGGER graph_room_added AFTER INSERT ON graph_room BEGIN
    INSERT INTO graph_count VALUES (new.cube, new.wing, new.room, new.wing_label, new.room_label, new.status, 1)
    ON CONFLICT DO UPDATE SET notes = notes + 1;
END;
CREATE TRIGGER graph_room_removed AFTER DELETE ON graph_room BEGIN
    UPDATE graph_count SET notes = notes - 1 WHERE cube = old.cube AND wing = old.wing AND room = old.room
        AND wing_label = old.wing_label AND room_label = old.room_label AND status = old.status;
    DELETE FROM graph_count WHERE cube = old.cube AND wing = old.wing AND room = old.room
        AND wing_label = old.wing_label AND room_label = old.room_label AND status = old.status AND notes = 0;
END;
CREATE TABLE graph_tag (
    tag TEXT NOT NULL, note_id TEXT NOT NULL, cube TEXT NOT NULL, status TEXT NOT NULL,
    PRIMARY KEY (tag, note_id)) WITHOUT ROWID;
CREATE INDEX graph_tag_note ON graph_tag (note_id);
CREATE TABLE graph_edge (
    source TEXT NOT NULL, ord INTEGER NOT NULL, target TEXT, link TEXT NOT NULL, alias TEXT, embed INTEGER NOT NULL,
    line INTEGER NOT NULL, PRIMARY KEY (source, ord)) WITHOUT ROWID;
CREATE INDEX graph_edge_target ON graph_edge (target) WHERE target IS NOT NULL;
"""
_NOTE = "n.id, n.cube, n.vault, n.path, n.title, n.aliases, n.tags, n.rooms, n.changed, n.chunk_ids, n.status"
_NEIGHBOR = "n.id, n.title, n.path, n.cube, n.rooms"
_PAGE = 1000
_MANY = 500  # ids per statement, under SQLite's limit on parameters


class SqliteGraph:
    """A graph in a `Database`, which its owner closes. Reads see no unfinished transaction of another thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.ensure("graph", _SCHEMA)

    def upsert(self, notes: Sequence[NoteNode]) -> None:
        """Write notes with their rooms and tags."""
        latest = {n.id: n for n in notes}
        with self._database.transaction() as cx:
            _delete(cx, list(latest), ("graph_room", "graph_tag"))
            cx.executemany(
                "INSERT OR REPLACE INTO graph_note (id, cube, vault, path, title, aliases, tags, rooms, changed, "
                "chunk_ids, status) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (
                        *(n.id, n.cube, n.vault, n.path, n.title, _json(n.aliases), _json(n.tags)),
                        *(_json(n.rooms), n.changed, _json(n.chunk_ids), n.status),
                    )
                    for n in latest.values()
                ),
            )
            cx.executemany(
                "INSERT INTO graph_tag VALUES (?, ?, ?, ?)",
                ((tag, n.id, n.cube, n.status) for n in latest.values() for tag in tag_keys(n.tags)),
            )
            _put_rooms(cx, latest.values())

    def set_rooms(self, note_id: NoteId, rooms: Sequence[Labels]) -> None:
        """Replace the rooms of a note that is there."""
        with self._database.transaction() as cx:
            _delete(cx, [note_id], ("graph_room",))
            cx.execute("UPDATE graph_note SET rooms = ? WHERE id = ?", (_json(rooms), note_id))
            row = cx.execute(f"SELECT {_NOTE} FROM graph_note n WHERE n.id = ?", (note_id,)).fetchone()
            if row is not None:
                _put_rooms(cx, [_node(row)])

    def link(self, links: Mapping[NoteId, Sequence[Edge]]) -> None:
        """Replace the links of these notes."""
        sources = list(links)
        with self._database.transaction() as cx:
            known: set[NoteId] = set()
            for part in _parts(sources):
                known |= {r[0] for r in cx.execute(f"SELECT id FROM graph_note WHERE id IN ({_marks(part)})", part)}
            check_edges(links, known)
            for part in _parts(sources):
                cx.execute(f"DELETE FROM graph_edge WHERE source IN ({_marks(part)})", part)
            cx.executemany(
                "INSERT INTO graph_edge VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    (source, n, e.target, e.link, e.alias, e.embed, e.line)
                    for source, edges in links.items()
                    for n, e in enumerate(edges)
                ),
            )

    def forget(self, note_ids: Sequence[NoteId]) -> None:
        """Delete notes and their links; links to them stay, unresolved."""
        with self._database.transaction() as cx:
            _delete(cx, note_ids, ("graph_room", "graph_tag"))
            for part in _parts(note_ids):
                marks = _marks(part)
                cx.execute(f"DELETE FROM graph_note WHERE id IN ({marks})", part)
                cx.execute(f"DELETE FROM graph_edge WHERE source IN ({marks})", part)
                cx.execute(f"UPDATE graph_edge SET target = NULL WHERE target IN ({marks})", part)

    def neighbors(self, note_id: NoteId, scope: Scope, limit: int = 100) -> Neighborhood:
        """What stands around a note, as far as the scope admits it."""
        wall, bound = _wall(scope, "n", "n.id")
        bound["id"] = note_id
        with self._database.read() as cx:
            row = cx.execute(f"SELECT tags FROM graph_note n WHERE n.id = :id AND {wall}", bound).fetchone()
            if row is None:
                return Neighborhood((), (), (), ())
            links = cx.execute(
                f"SELECT {_NEIGHBOR}, e.link, e.line FROM graph_edge e JOIN graph_note n ON n.id = e.target "
                f"WHERE e.source = :id AND e.target != :id AND {wall} "
                "ORDER BY e.line, e.link, e.target, coalesce(e.alias, ''), e.embed",
                bound,
            )
            backlinks = cx.execute(
                f"SELECT {_NEIGHBOR}, e.link, e.line FROM graph_edge e JOIN graph_note n ON n.id = e.source "
                f"WHERE e.target = :id AND e.source != :id AND {wall} ORDER BY n.path, e.line, e.link, n.id",
                bound,
            )
            unresolved = cx.execute(
                "SELECT link, line FROM graph_edge WHERE source = :id AND target IS NULL "
                "ORDER BY line, link, coalesce(alias, ''), embed",
                bound,
            )
            return Neighborhood(
                links=tuple(_neighbor(r, r["link"], r["line"]) for r in links),
                backlinks=tuple(_neighbor(r, r["link"], r["line"]) for r in backlinks),
                shared_tags=_shared(cx, note_id, json.loads(row["tags"]), scope, limit),
                unresolved=tuple((r["link"], r["line"]) for r in unresolved),
            )

    def rooms(self, scope: Scope) -> list[Room]:
        """Every room inside the scope with exact counts."""
        with self._database.read() as cx:
            rows = cx.execute(
                "SELECT cube, wing, room, wing_label, room_label, notes, ("
                "SELECT max(changed) FROM graph_room r WHERE r.cube = c.cube AND r.wing = c.wing AND r.room = c.room "
                "AND r.wing_label = c.wing_label AND r.room_label = c.room_label AND r.status = c.status) "
                "FROM graph_count c WHERE cube IN (SELECT value FROM json_each(?)) "
                "AND status NOT IN (SELECT value FROM json_each(?))",
                (_json(scope.cubes), _json(scope.hidden)),
            )
            return rooms_of(map(Counted._make, rows), scope)

    def notes(self) -> Iterator[NoteNode]:
        """Every note, sorted by id."""
        last = ""
        while rows := self._page(f"SELECT {_NOTE} FROM graph_note n WHERE n.id > ? ORDER BY n.id LIMIT {_PAGE}", last):
            yield from map(_node, rows)
            last = rows[-1]["id"]

    def edges(self) -> Iterator[Edge]:
        """Every link, sorted by source, line, link."""
        last = ""
        while sources := self._page(
            f"SELECT DISTINCT source FROM graph_edge WHERE source > ? ORDER BY source LIMIT {_MANY}", last
        ):
            part = [r["source"] for r in sources]
            with self._database.read() as cx:
                rows = cx.execute(
                    f"SELECT source, target, link, alias, embed, line FROM graph_edge WHERE source IN ({_marks(part)}) "
                    "ORDER BY source, line, link, coalesce(target, ''), coalesce(alias, ''), embed",
                    part,
                ).fetchall()
            yield from (Edge(s, t, link, alias, bool(embed), line) for s, t, link, alias, embed, line in rows)
            last = part[-1]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Writes inside become visible together, with what else the database's transaction holds."""
        with self._database.transaction():
            yield

    def close(self) -> None:
        """Nothing: the database is its owner's."""

    def _page(self, select: str, after: str) -> list[sqlite3.Row]:
        with self._database.read() as cx:
            return cx.execute(select, (after,)).fetchall()


def _wall(scope: Scope, table: str, note_id: str) -> tuple[str, dict[str, object]]:
    """The condition that a row of `table`, with its cube, its status and its note's id, stands inside the scope."""
    parts = [
        f"{table}.cube IN (SELECT value FROM json_each(:cubes))",
        f"{table}.status NOT IN (SELECT value FROM json_each(:hidden))",
    ]
    room = f"EXISTS (SELECT 1 FROM graph_room r WHERE r.note_id = {note_id} AND {{}} IN (SELECT value FROM json_each({{}})))"
    bound: dict[str, object] = {"cubes": _json(scope.cubes), "hidden": _json(scope.hidden)}
    if scope.places is not None:
        parts.append(room.format("r.wing || '/' || r.room", ":places"))
        bound["places"] = _json(scope.places)
    if scope.wings is not None:
        parts.append(room.format("r.wing", ":wings"))
        bound["wings"] = _json(scope.wings)
    return " AND ".join(parts), bound


def _shared(
    cx: sqlite3.Connection, note_id: NoteId, tags: Sequence[str], scope: Scope, limit: int
) -> tuple[Neighbor, ...]:
    """Notes with a tag of this one, the rarest tag first."""
    mine = tag_keys(tags)
    wall, bound = _wall(scope, "t", "t.note_id")
    holding = f"WHERE t.tag = :tag AND t.note_id != :id AND {wall}"
    bound["id"] = note_id
    count = f"SELECT count(*) FROM graph_tag t {holding}"
    sizes = {key: cx.execute(count, {**bound, "tag": key}).fetchone()[0] for key in mine}
    found: list[Neighbor] = []
    for key in sorted(mine, key=lambda k: (sizes[k], k)):
        bound |= {"tag": key, "room": limit - len(found)}
        if bound["room"] == 0:
            break
        rows = cx.execute(
            f"SELECT {_NEIGHBOR} FROM graph_tag t JOIN graph_note n ON n.id = t.note_id {holding} "
            "ORDER BY n.path, n.id LIMIT :room",
            bound,
        )
        found += [_neighbor(r, mine[key], None) for r in rows]
    return tuple(found)


def _neighbor(row: sqlite3.Row, via: str, line: int | None) -> Neighbor:
    rooms = tuple(sorted({room for _, room, _, _ in json.loads(row["rooms"])}))
    return Neighbor(NoteId(row["id"]), row["title"], row["path"], row["cube"], rooms, via, line)


def _put_rooms(cx: sqlite3.Connection, notes: Iterable[NoteNode]) -> None:
    cx.executemany(
        "INSERT INTO graph_room VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        ((n.id, *labels, n.cube, n.status, n.changed) for n in notes for labels in distinct(n.rooms)),
    )


def _node(row: sqlite3.Row) -> NoteNode:
    return NoteNode(
        id=NoteId(row["id"]),
        cube=row["cube"],
        vault=row["vault"],
        path=row["path"],
        title=row["title"],
        aliases=tuple(json.loads(row["aliases"])),
        tags=tuple(json.loads(row["tags"])),
        rooms=tuple((w, r, wl, rl) for w, r, wl, rl in json.loads(row["rooms"])),
        changed=row["changed"],
        chunk_ids=tuple(ChunkId(i) for i in json.loads(row["chunk_ids"])),
        status=row["status"],
    )


def _delete(cx: sqlite3.Connection, note_ids: Sequence[NoteId], tables: Sequence[str]) -> None:
    for part in _parts(note_ids):
        for table in tables:
            cx.execute(f"DELETE FROM {table} WHERE note_id IN ({_marks(part)})", part)


def _json(values: Iterable[object]) -> str:
    return json.dumps(list(values), ensure_ascii=False, separators=(",", ":"))


def _parts(ids: Sequence[NoteId]) -> Iterator[list[NoteId]]:
    yield from (list(ids[at : at + _MANY]) for at in range(0, len(ids), _MANY))


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
