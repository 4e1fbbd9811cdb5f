"""Vectors that were computed once, by passage and model, in SQLite. Losing it costs time and nothing else.

An object may be used from several threads, a file by several processes.
"""

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from palace.errors import StoreError
from palace.stores.ports import Vector
from palace.vocabulary import Sha256

_TABLE = """
CREATE TABLE IF NOT EXISTS vectors (model TEXT, passage BLOB, vector BLOB, PRIMARY KEY (model, passage)) WITHOUT ROWID
"""
_LIVE = "CREATE TEMP TABLE live (passage BLOB PRIMARY KEY) WITHOUT ROWID"
_AT_ONCE = 500
"""Questions in one statement; SQLite takes 32 766."""
_WAIT = 30.0
"""Seconds for another process to end its write."""


class VectorCache:
    """Vectors in float16, which is the precision that `palace.embedding.dense` gives them. A broken file is made anew.

    Raises:
        StoreError: the file can't be opened, read or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        with self._told():
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._database = _open(path)
            except sqlite3.DatabaseError as error:
                if error.sqlite_errorcode not in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
                    raise
                for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
                    path.with_name(name).unlink(missing_ok=True)
                self._database = _open(path)

    def get_many(self, passages: Sequence[Sha256], model: str) -> dict[Sha256, Vector]:
        """The vectors that are here, by the SHA-256 of their passage."""
        found: dict[Sha256, Vector] = {}
        with self._told():
            for low in range(0, len(passages), _AT_ONCE):
                keys = [bytes.fromhex(passage) for passage in passages[low : low + _AT_ONCE]]
                marks = ",".join("?" * len(keys))
                rows = self._database.execute(
                    f"SELECT passage, vector FROM vectors WHERE model = ? AND passage IN ({marks})",  # noqa: S608 - marks
                    (model, *keys),
                )
                found |= {Sha256(key.hex()): np.frombuffer(data, "<f2").astype(np.float32) for key, data in rows}
        return found

    def put_many(self, vectors: Iterable[tuple[Sha256, Vector]], model: str) -> None:
        """Keep vectors; all of them or, if killed, none."""
        rows = [(model, bytes.fromhex(passage), vector.astype("<f2").tobytes()) for passage, vector in vectors]
        with self._told(), self._database:
            self._database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)

    def __len__(self) -> int:
        """How many vectors are kept."""
        with self._told():
            return int(self._database.execute("SELECT count(*) FROM vectors").fetchone()[0])

    def prune(self, live: Iterable[Sha256], model: str) -> int:
        """Forget every vector of another model, and those of this one whose passage isn't live; how many those were."""
        with self._told(), self._database:
            self._database.execute(_LIVE)
            self._database.executemany("INSERT OR IGNORE INTO live VALUES (?)", ((bytes.fromhex(p),) for p in live))
            gone = self._database.execute(
                "DELETE FROM vectors WHERE model <> ? OR passage NOT IN (SELECT passage FROM live)", (model,)
            ).rowcount
            self._database.execute("DROP TABLE live")
        return gone

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """One thread at a time; what goes wrong is told with the file's name."""
        with self._lock:
            try:
                yield
            except (sqlite3.Error, OSError) as error:
                raise StoreError(
                    f"The vector cache {self._path} failed: {error}", "Make room or give access there; or delete it."
                ) from error


def _open(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=_WAIT, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(_TABLE)
    except sqlite3.Error:
        database.close()
        raise
    return database
