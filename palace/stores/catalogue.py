"""The ledger: which notes are in the stores, at which version, and what is still open.

Write order (docs/design.md): an intent first, then vectors, then graph and `done` in one transaction. Whatever a crash
leaves open is found here at the next start.
"""

import json
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from palace.stores.database import Database
from palace.stores.ports import Named
from palace.vocabulary import ChunkId, NoteId, NoteRef, Placement, Problem, RoomAddress, Sha256, Stat
from palace.walls import Scope

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS ledger (
    id TEXT PRIMARY KEY, cube TEXT NOT NULL, vault TEXT NOT NULL, path TEXT NOT NULL, file BLOB NOT NULL,
    sha256 TEXT NOT NULL, placements TEXT NOT NULL, device INTEGER, inode INTEGER, size INTEGER, mtime_ns INTEGER,
    ctime_ns INTEGER, state TEXT NOT NULL, stale INTEGER NOT NULL DEFAULT 0, title TEXT NOT NULL DEFAULT '',
    link_key TEXT NOT NULL DEFAULT '', modified TEXT NOT NULL DEFAULT '', status TEXT NOT NULL DEFAULT 'active',
    first_chunk TEXT NOT NULL DEFAULT '');
CREATE INDEX IF NOT EXISTS ledger_open ON ledger (state) WHERE state != 'done';
CREATE INDEX IF NOT EXISTS ledger_path ON ledger (path);
CREATE INDEX IF NOT EXISTS ledger_key ON ledger (link_key, vault);
CREATE INDEX IF NOT EXISTS ledger_modified ON ledger (modified DESC, id);
CREATE TABLE IF NOT EXISTS chunk (
    id TEXT PRIMARY KEY, note_id TEXT NOT NULL, passage_sha256 TEXT NOT NULL, dense INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS chunk_note ON chunk (note_id);
CREATE INDEX IF NOT EXISTS chunk_waiting ON chunk (note_id) WHERE dense = 0;
CREATE TABLE IF NOT EXISTS wikilink (
    note_id TEXT NOT NULL, ord INTEGER NOT NULL, key TEXT NOT NULL, target TEXT NOT NULL, link TEXT NOT NULL,
    alias TEXT, embed INTEGER NOT NULL, line INTEGER NOT NULL, PRIMARY KEY (note_id, ord)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS wikilink_key ON wikilink (key);
CREATE TABLE IF NOT EXISTS unresolved_key (key TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS unresolved_source (note_id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS name (key TEXT NOT NULL, note_id TEXT NOT NULL, PRIMARY KEY (key, note_id)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS name_note ON name (note_id);
CREATE TABLE IF NOT EXISTS problem (
    note_id TEXT NOT NULL, path TEXT NOT NULL, line INTEGER, code TEXT NOT NULL, message TEXT NOT NULL,
    hint TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS problem_note ON problem (note_id);
CREATE TABLE IF NOT EXISTS refused (
    note_id TEXT PRIMARY KEY, cube TEXT NOT NULL, path TEXT NOT NULL, sha256 TEXT NOT NULL, state TEXT NOT NULL,
    reason TEXT NOT NULL, device INTEGER, inode INTEGER, size INTEGER, mtime_ns INTEGER, ctime_ns INTEGER);
CREATE TABLE IF NOT EXISTS skipped (
    path TEXT NOT NULL, cube TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (cube, path))
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
_STAT = "device, inode, size, mtime_ns, ctime_ns"
_ROW = f"id, cube, vault, path, file, sha256, placements, state, stale, title, modified, status, lead_chunk, {_STAT}"
_Text = TypeVar("_Text", bound=str)
_MANY = 500
"""Ids per statement, under SQLite's limit on parameters."""


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One note as the stores have it. `file`: the path that its bytes were read from."""

    ref: NoteRef
    file: str
    sha256: Sha256
    placements: str
    state: str
    stale: bool
    title: str
    modified: str
    status: str
    lead_chunk: str
    stat: Stat


@dataclass(frozen=True, slots=True)
class LinkRow:
    """A link as written, with the key by which a new note may come to answer it."""

    key: str
    target: str
    link: str
    alias: str | None
    embed: bool
    line: int


@dataclass(frozen=True, slots=True)
class OwnedChunk:
    """A chunk of a note. `dense`: it has its dense vector."""

    id: ChunkId
    passage_sha256: Sha256
    dense: bool


@dataclass(frozen=True, slots=True)
class Written:
    """What the ledger keeps of a note that was written, beside its row. `names`: folded title and aliases."""

    link_key: str
    names: Sequence[str]
    links: Sequence[LinkRow]
    problems: Sequence[Problem]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A file that is kept out: quarantined (bad, with its reason) or skipped (by a rule)."""

    id: NoteId
    cube: str
    path: str
    sha256: str
    state: str
    reason: str
    stat: Stat


def placements_json(placements: Iterable[Placement]) -> str:
    """One spelling for a set of placements, so that equal ones compare equal as text."""
    rows = [
        [p.address.cube, p.address.wing, p.address.room, p.wing_label, p.room_label, p.reason, p.section]
        for p in placements
    ]
    return json.dumps(sorted(rows), ensure_ascii=False, separators=(",", ":"))


def placements_from(text: str) -> tuple[Placement, ...]:
    """The inverse of `placements_json`."""
    return tuple(
        Placement(RoomAddress(c, w, r), wl, rl, reason, section)
        for c, w, r, wl, rl, reason, section in json.loads(text)
    )


class Catalogue:
    """Reads and writes of the ledger's tables. Writes stand inside `Database.transaction()`."""

    def __init__(self, database: Database) -> None:
        self.database = database
        database.ensure("ledger", (_SCHEMA, "ALTER TABLE ledger RENAME COLUMN first_chunk TO lead_chunk;"))

    # -- notes -------------------------------------------------------------------------------------------------------
    def rows(self, ids: Sequence[NoteId]) -> dict[NoteId, LedgerRow]:
        """The ledger's rows of these notes."""
        out: dict[NoteId, LedgerRow] = {}
        with self.database.read() as cx:
            for part in _parts(ids):
                found = cx.execute(f"SELECT {_ROW} FROM ledger WHERE id IN ({_marks(part)})", part)
                out.update((NoteId(r[0]), _row(r)) for r in found)
        return out

    def all_rows(self) -> Iterator[LedgerRow]:
        """Every row, sorted by id."""
        last = ""
        while True:
            with self.database.read() as cx:
                page = cx.execute(f"SELECT {_ROW} FROM ledger WHERE id > ? ORDER BY id LIMIT 1000", (last,)).fetchall()
            if not page:
                return
            yield from map(_row, page)
            last = page[-1][0]

    def missing_from(self, seen: Iterable[NoteId]) -> list[tuple[NoteId, str, Sha256]]:
        """(id, cube, sha256) of notes in the ledger that were not seen."""
        with self.database.transaction() as cx:
            cx.execute("CREATE TEMP TABLE IF NOT EXISTS seen (id TEXT PRIMARY KEY) WITHOUT ROWID")
            cx.execute("DELETE FROM seen")
            cx.executemany("INSERT OR IGNORE INTO seen VALUES (?)", ((i,) for i in seen))
            gone = cx.execute(
                "SELECT id, cube, sha256 FROM ledger WHERE id NOT IN (SELECT id FROM seen) ORDER BY id"
            ).fetchall()
            cx.execute(
                "DELETE FROM problem WHERE note_id NOT IN (SELECT id FROM seen) AND note_id NOT IN (SELECT id FROM ledger)"
            )
            cx.execute("DELETE FROM refused WHERE note_id NOT IN (SELECT id FROM seen)")
        return [(NoteId(i), c, Sha256(s)) for i, c, s in gone]

    def intend(self, notes: Mapping[NoteId, tuple[LedgerRow, Sequence[OwnedChunk]]]) -> list[ChunkId]:
        """Announce the notes' versions and their chunks before any store is touched.

        Returns the ids of chunks that they had and will not have any more.
        """
        old: set[ChunkId] = set()
        with self.database.transaction() as cx:
            for part in _parts(list(notes)):
                where = f"FROM chunk WHERE note_id IN ({_marks(part)})"
                old.update(r[0] for r in cx.execute(f"SELECT id {where}", part))
                cx.execute(f"DELETE {where}", part)
            owned = ((c.id, i, c.passage_sha256, c.dense) for i, (_, chunks) in notes.items() for c in chunks)
            cx.executemany("INSERT INTO chunk VALUES (?, ?, ?, ?)", owned)
            _put(cx, (row for row, _ in notes.values()), "intent")
        return sorted(old.difference(c.id for _, chunks in notes.values() for c in chunks))

    def finish(self, notes: Mapping[NoteId, Written]) -> None:
        """Announced notes are in vectors and graph: in the same transaction as the graph's write."""
        ids = list(notes)
        with self.database.transaction() as cx:
            nameless: set[NoteId] = set()
            for part in _parts(ids):
                marks = _marks(part)
                nameless |= {
                    r[0] for r in cx.execute(f"SELECT id FROM ledger WHERE link_key = '' AND id IN ({marks})", part)
                }
                for table in ("name", "wikilink", "problem", "refused"):
                    cx.execute(f"DELETE FROM {table} WHERE note_id IN ({marks})", part)
            cx.executemany(
                "UPDATE ledger SET state = 'done', link_key = ? WHERE id = ?",
                ((w.link_key, i) for i, w in notes.items()),
            )
            cx.executemany(
                "INSERT OR IGNORE INTO name VALUES (?, ?)", ((n, i) for i, w in notes.items() for n in w.names)
            )
            cx.executemany(
                "INSERT INTO wikilink VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (i, n, k.key, k.target, k.link, k.alias, k.embed, k.line)
                    for i, w in notes.items()
                    for n, k in enumerate(w.links)
                ),
            )
            cx.executemany("INSERT OR IGNORE INTO unresolved_source VALUES (?)", ((i,) for i in ids))
            # A new name: links to it, anywhere, may point here now.
            cx.executemany(
                "INSERT OR IGNORE INTO unresolved_key VALUES (?)", ((notes[i].link_key,) for i in sorted(nameless))
            )
            _add_problems(cx, ((i, p) for i, w in notes.items() for p in w.problems))

    def update(self, rows: Iterable[LedgerRow]) -> None:
        """Write the rows of notes whose bytes did not change: other rooms, or another stat."""
        with self.database.transaction() as cx:
            _put(cx, rows, "done")

    def mark_gone(self, ids: Sequence[NoteId]) -> None:
        """Announce that these notes will be forgotten."""
        with self.database.transaction() as cx:
            for part in _parts(ids):
                cx.execute(f"UPDATE ledger SET state = 'forget' WHERE id IN ({_marks(part)})", part)

    def forget(self, ids: Sequence[NoteId]) -> None:
        """Drop the rows of notes that vectors and graph no longer have."""
        with self.database.transaction() as cx:
            for part in _parts(ids):
                marks = _marks(part)
                cx.execute(
                    f"INSERT OR IGNORE INTO unresolved_key SELECT link_key FROM ledger WHERE id IN ({marks})", part
                )
                cx.execute(f"DELETE FROM ledger WHERE id IN ({marks})", part)
                for table in ("chunk", "wikilink", "name", "problem"):
                    cx.execute(f"DELETE FROM {table} WHERE note_id IN ({marks})", part)

    def reopen(self, ids: Sequence[NoteId]) -> None:
        """Mark notes as half-written, so that the next ingest forgets and writes them again."""
        with self.database.transaction() as cx:
            for part in _parts(ids):
                cx.execute(f"UPDATE ledger SET state = 'intent' WHERE id IN ({_marks(part)})", part)

    def open_intents(self) -> list[NoteId]:
        """Notes that a killed run left half-written or half-forgotten."""
        with self.database.read() as cx:
            return [NoteId(r[0]) for r in cx.execute("SELECT id FROM ledger WHERE state != 'done' ORDER BY id")]

    def set_stale(self, note_id: NoteId, *, stale: bool) -> None:
        """The note's last good version stands, but its file can no longer be read."""
        with self.database.transaction() as cx:
            cx.execute("UPDATE ledger SET stale = ? WHERE id = ?", (stale, note_id))

    # -- chunks ------------------------------------------------------------------------------------------------------
    def chunks(self, note_ids: Sequence[NoteId] | None = None) -> dict[ChunkId, tuple[NoteId, Sha256, bool]]:
        """Chunk id to (note, passage hash, has a dense vector), of these notes or all."""
        out: dict[ChunkId, tuple[NoteId, Sha256, bool]] = {}
        select = "SELECT id, note_id, passage_sha256, dense FROM chunk"
        with self.database.read() as cx:
            if note_ids is None:
                return {r[0]: (r[1], r[2], bool(r[3])) for r in cx.execute(f"{select} ORDER BY id")}
            for part in _parts(note_ids):
                for r in cx.execute(f"{select} WHERE note_id IN ({_marks(part)})", part):
                    out[r[0]] = (r[1], r[2], bool(r[3]))
        return out

    def waiting_notes(self, limit: int) -> list[NoteId]:
        """Notes with chunks that wait for a dense vector, newest first."""
        with self.database.read() as cx:
            found = cx.execute(
                "SELECT l.id FROM ledger l WHERE l.state = 'done' AND EXISTS "
                "(SELECT 1 FROM chunk c WHERE c.note_id = l.id AND c.dense = 0) ORDER BY l.modified DESC, l.id LIMIT ?",
                (limit,),
            )
            return [NoteId(r[0]) for r in found]

    def waiting(self) -> int:
        """How many chunks wait for a dense vector."""
        with self.database.read() as cx:
            return int(cx.execute("SELECT count(*) FROM chunk WHERE dense = 0").fetchone()[0])

    def mark_dense(self, ids: Iterable[ChunkId]) -> None:
        """These chunks have their dense vector."""
        with self.database.transaction() as cx:
            cx.executemany("UPDATE chunk SET dense = 1 WHERE id = ?", ((i,) for i in ids))

    def mark_all_waiting(self) -> None:
        """Every chunk waits again: the vectors are of another model."""
        with self.database.transaction() as cx:
            cx.execute("UPDATE chunk SET dense = 0")

    def counts(self) -> tuple[int, int]:
        """(notes, chunks)."""
        with self.database.read() as cx:
            notes = cx.execute("SELECT count(*) FROM ledger").fetchone()[0]
            return int(notes), int(cx.execute("SELECT count(*) FROM chunk").fetchone()[0])

    def group_sizes(self) -> dict[tuple[str, str], int]:
        """Notes of each (cube, vault)."""
        with self.database.read() as cx:
            found = cx.execute("SELECT cube, vault, count(*) FROM ledger GROUP BY cube, vault")
            return {(c, v): int(n) for c, v, n in found}

    def counts_in(self, cubes: Sequence[str]) -> dict[str, int]:
        """`notes`, `chunks`, `pending` (chunks without dense vector), `problems`, `open` (half-written) of these cubes."""
        here = f"cube IN ({_marks(cubes)})"
        counts = {
            "notes": f"SELECT count(*) FROM ledger WHERE {here}",
            "chunks": f"SELECT count(*) FROM chunk WHERE note_id IN (SELECT id FROM ledger WHERE {here})",
            "pending": f"SELECT count(*) FROM chunk WHERE dense = 0 AND note_id IN (SELECT id FROM ledger WHERE {here})",
            "open": f"SELECT count(*) FROM ledger WHERE state != 'done' AND {here}",
        }
        bad = (
            f"SELECT count(*) FROM (SELECT id FROM ledger WHERE stale AND {here} "
            f"UNION SELECT note_id FROM refused WHERE state = 'quarantined' AND {here})"
        )
        with self.database.read() as cx:
            found = {name: int(cx.execute(sql, cubes).fetchone()[0]) for name, sql in counts.items()}
            return found | {"problems": int(cx.execute(bad, (*cubes, *cubes)).fetchone()[0])}

    def changed(self, since: str, scope: Scope, limit: int) -> list[LedgerRow]:
        """Notes inside the scope that changed at `since` (ISO 8601, UTC, to the second) or later, newest first."""
        cubes = sorted(scope.cubes)
        out: list[LedgerRow] = []
        with self.database.read() as cx:
            found = cx.execute(
                f"SELECT {_ROW} FROM ledger WHERE modified >= ? AND state = 'done' AND cube IN ({_marks(cubes)}) "
                "ORDER BY modified DESC, id",
                (since, *cubes),
            )
            for row in map(_row, found):
                here = [p.address for p in placements_from(row.placements)]
                if scope.admits(row.ref.cube, [a.place for a in here], [a.wing for a in here], row.status):
                    out.append(row)
                if len(out) == limit:
                    break
        return out

    # -- links -------------------------------------------------------------------------------------------------------
    def unresolved_sources(self) -> list[NoteId]:
        """Notes whose links may point elsewhere now, since notes of that name came or went."""
        with self.database.read() as cx:
            found = cx.execute(
                "SELECT w.note_id FROM unresolved_key u JOIN wikilink w ON w.key = u.key "
                "UNION SELECT note_id FROM unresolved_source WHERE note_id IN (SELECT id FROM ledger) ORDER BY 1"
            )
            return [NoteId(r[0]) for r in found]

    def links(self, note_ids: Sequence[NoteId]) -> dict[NoteId, list[LinkRow]]:
        """The links of each of these notes as written, in order."""
        out: dict[NoteId, list[LinkRow]] = {i: [] for i in note_ids}
        with self.database.read() as cx:
            for part in _parts(note_ids):
                found = cx.execute(
                    "SELECT note_id, key, target, link, alias, embed, line FROM wikilink "
                    f"WHERE note_id IN ({_marks(part)}) ORDER BY note_id, ord",
                    part,
                )
                for note_id, key, target, link, alias, embed, line in found:
                    out[note_id].append(LinkRow(key, target, link, alias, bool(embed), line))
        return out

    def named(self, link_keys: Iterable[str]) -> dict[tuple[str, str], list[NoteRef]]:
        """(vault, key) to the vault's notes, in every cube, whose file name folds to the key, sorted."""
        out: dict[tuple[str, str], list[NoteRef]] = {}
        with self.database.read() as cx:
            for part in _parts(sorted(link_keys)):
                found = cx.execute(
                    f"SELECT link_key, cube, vault, path FROM ledger WHERE link_key IN ({_marks(part)}) "
                    "AND state = 'done' ORDER BY cube, path",
                    part,
                )
                for key, *ref in found:
                    out.setdefault((ref[1], key), []).append(NoteRef(*ref))
        return out

    def resolved(self) -> None:
        """Every link points where it should."""
        with self.database.transaction() as cx:
            cx.execute("DELETE FROM unresolved_key")
            cx.execute("DELETE FROM unresolved_source")

    # -- names -------------------------------------------------------------------------------------------------------
    def find(self, keys: Sequence[str], scope: Scope) -> list[Named]:
        """Notes inside the scope that bear one of these names (`palace.search.lock.Names`)."""
        cubes = sorted(scope.cubes)
        out = []
        with self.database.read() as cx:
            for part in _parts(keys):
                found = cx.execute(
                    "SELECT n.key, l.id, l.lead_chunk, l.cube, l.placements, l.status FROM name n "
                    f"JOIN ledger l ON l.id = n.note_id WHERE n.key IN ({_marks(part)}) AND l.cube IN ({_marks(cubes)}) "
                    "AND l.lead_chunk != '' ORDER BY n.key, l.id",
                    (*part, *cubes),
                )
                for key, note_id, chunk_id, cube, placements, status in found:
                    rooms = [p.address for p in placements_from(placements)]
                    if scope.admits(cube, [r.place for r in rooms], [r.wing for r in rooms], status):
                        out.append(Named(key, NoteId(note_id), ChunkId(chunk_id)))
        return out

    def standing_in(self, rooms: Collection[str], scope: Scope) -> list[LedgerRow]:
        """Notes inside the scope that stand in a room of one of these keys, in any wing, sorted by cube, vault, path."""
        cubes = sorted(scope.cubes)
        likes = [f'%"{room}"%' for room in sorted(rooms)]
        with self.database.read() as cx:
            found = cx.execute(
                f"SELECT {_ROW} FROM ledger WHERE state = 'done' AND cube IN ({_marks(cubes)}) "
                f"AND ({' OR '.join(['placements LIKE ?'] * len(likes)) or 'FALSE'}) ORDER BY cube, vault, path",
                (*cubes, *likes),
            ).fetchall()
        out = []
        for row in map(_row, found):
            here = [p.address for p in placements_from(row.placements)]
            inside = scope.admits(row.ref.cube, [a.place for a in here], [a.wing for a in here], row.status)
            if inside and any(a.room in rooms for a in here):
                out.append(row)
        return out

    def at_path(self, path: str, cubes: Sequence[str]) -> list[NoteId]:
        """Notes of these cubes with exactly this path."""
        with self.database.read() as cx:
            found = cx.execute(
                f"SELECT id FROM ledger WHERE path = ? AND cube IN ({_marks(cubes)}) ORDER BY id", (path, *cubes)
            )
            return [NoteId(r[0]) for r in found]

    # -- problems and refusals ---------------------------------------------------------------------------------------
    def set_problems(self, note_id: NoteId, problems: Iterable[Problem]) -> None:
        """Replace what is wrong with a note."""
        with self.database.transaction() as cx:
            cx.execute("DELETE FROM problem WHERE note_id = ?", (note_id,))
            _add_problems(cx, ((note_id, p) for p in problems))

    def problems(self) -> list[Problem]:
        """Everything that is wrong with notes now, sorted."""
        with self.database.read() as cx:
            found = cx.execute("SELECT path, line, code, message, hint FROM problem ORDER BY path, line, code, message")
            return [Problem(*r) for r in found]

    def refuse(self, refusal: Refusal) -> None:
        """Keep a file out, with the reason, until its bytes change."""
        s = refusal.stat
        with self.database.transaction() as cx:
            cx.execute(
                "INSERT OR REPLACE INTO refused VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(refusal.id, refusal.cube, refusal.path, refusal.sha256, refusal.state, refusal.reason),
                    *(s.device, s.inode, s.size, s.mtime_ns, s.ctime_ns),
                ),
            )

    def refusals(self, ids: Sequence[NoteId] | None = None) -> dict[NoteId, Refusal]:
        """Files that are kept out (of these, or all)."""
        select = f"SELECT note_id, cube, path, sha256, state, reason, {_STAT} FROM refused"
        with self.database.read() as cx:
            if ids is None:
                found = cx.execute(f"{select} ORDER BY path, note_id").fetchall()
            else:
                found = [r for p in _parts(ids) for r in cx.execute(f"{select} WHERE note_id IN ({_marks(p)})", p)]
        return {NoteId(r[0]): Refusal(NoteId(r[0]), r[1], r[2], r[3], r[4], r[5], Stat(*r[6:])) for r in found}

    def set_skipped(self, files: Iterable[tuple[str, str, str, str]]) -> None:
        """Replace the files of private roots that are not read: (path, cube, state, reason) of each."""
        with self.database.transaction() as cx:
            cx.execute("DELETE FROM skipped")
            cx.executemany("INSERT OR REPLACE INTO skipped VALUES (?, ?, ?, ?)", files)

    def skipped(self) -> list[tuple[str, str, str, str]]:
        """(path, cube, state, reason) of files of private roots that are not read, sorted."""
        with self.database.read() as cx:
            return list(cx.execute("SELECT path, cube, state, reason FROM skipped ORDER BY path, cube"))

    # -- meta --------------------------------------------------------------------------------------------------------
    def get(self, key: str) -> str | None:
        """A remembered value."""
        with self.database.read() as cx:
            row = cx.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
            return None if row is None else str(row[0])

    def set(self, values: Mapping[str, str]) -> None:
        """Remember values."""
        with self.database.transaction() as cx:
            cx.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())


def _add_problems(cx: sqlite3.Connection, problems: Iterable[tuple[NoteId, Problem]]) -> None:
    cx.executemany(
        "INSERT INTO problem VALUES (?, ?, ?, ?, ?, ?)",
        ((i, p.path, p.line, p.code, p.message, p.hint) for i, p in problems),
    )


def _put(cx: sqlite3.Connection, rows: Iterable[LedgerRow], state: str) -> None:
    cx.executemany(
        f"INSERT INTO ledger ({_ROW}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET file = excluded.file, sha256 = excluded.sha256, "
        "placements = excluded.placements, state = excluded.state, stale = excluded.stale, "
        "title = excluded.title, modified = excluded.modified, status = excluded.status, "
        "lead_chunk = excluded.lead_chunk, device = excluded.device, "
        "inode = excluded.inode, size = excluded.size, mtime_ns = excluded.mtime_ns, ctime_ns = excluded.ctime_ns",
        (
            (
                *(row.ref.id, row.ref.cube, row.ref.vault, row.ref.path, os.fsencode(row.file), row.sha256),
                *(row.placements, state, row.stale, row.title, row.modified, row.status, row.lead_chunk),
                *(s.device, s.inode, s.size, s.mtime_ns, s.ctime_ns),
            )
            for row in rows
            for s in (row.stat,)
        ),
    )


def _row(r: sqlite3.Row) -> LedgerRow:
    return LedgerRow(
        ref=NoteRef(r["cube"], r["vault"], r["path"]),
        file=os.fsdecode(r["file"]),
        sha256=Sha256(r["sha256"]),
        placements=r["placements"],
        state=r["state"],
        stale=bool(r["stale"]),
        title=r["title"],
        modified=r["modified"],
        status=r["status"],
        lead_chunk=r["lead_chunk"],
        stat=Stat(r["device"], r["inode"], r["size"], r["mtime_ns"], r["ctime_ns"]),
    )


def _parts(ids: Sequence[_Text]) -> Iterator[Sequence[_Text]]:
    for i in range(0, len(ids), _MANY):
        yield ids[i : i + _MANY]


def _marks(part: Sequence[str]) -> str:
    return ",".join("?" * len(part))
