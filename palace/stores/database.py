"""One SQLite file for ledger and embedded graph, so that both change in one transaction."""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from palace.errors import BusyError, DualwallError, StoreError, UnreachableError

_FORMAT = 1
_PATIENCE = 10.0  # seconds that a writer waits for another process


def connect(path: Path) -> sqlite3.Connection:
    """A connection in autocommit mode: WAL, foreign keys, names for columns.

    A commit is on the disk when it returns (synchronous=FULL): the catalogue's intent has to survive a power cut that
    the vectors after it survive. Raises UnreachableError when the file cannot be opened, StoreError when it is none of ours.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise UnreachableError(f"{path} cannot be opened: {error}.", "Check the folder and its permissions.") from error
    connection.row_factory = sqlite3.Row
    try:
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "fullfsync=ON", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")
        _check_format(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise _translated(error, path) from error
    except StoreError:
        connection.close()
        raise
    return connection


class Database:
    """A SQLite file that several threads use: one writer at a time, readers beside it on connections of their own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer = connect(path)
        self._lock = threading.RLock()
        self._depth = 0
        self._readers: list[sqlite3.Connection] = []
        self._witness = connect(path)
        self._pool_lock = threading.Lock()
        self._closed = False

    def ensure(self, schema_name: str, ddl: str | Sequence[str]) -> None:
        """Bring one schema of the file up to date: each item of `ddl` is a script that runs once, in order.

        Raises StoreError when the file was written by a newer program.
        """
        steps = [ddl] if isinstance(ddl, str) else list(ddl)
        if self._version(schema_name) == len(steps):
            return  # without a write, so that a reader never waits for a writer
        with self.transaction() as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS schemas (name TEXT PRIMARY KEY, version INTEGER NOT NULL)")
            version = self._version(schema_name)
            if version > len(steps):
                raise _newer(self.path)
            for step in steps[version:]:
                for statement in _statements(step):
                    connection.execute(statement)
            connection.execute("INSERT OR REPLACE INTO schemas VALUES (?, ?)", (schema_name, len(steps)))

    def _version(self, schema_name: str) -> int:
        with self.read() as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schemas'").fetchone():
                return 0
            row = connection.execute("SELECT version FROM schemas WHERE name = ?", (schema_name,)).fetchone()
            return int(row["version"]) if row else 0

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything inside becomes visible together, or not at all. May be nested: an inner one undoes only itself.

        Raises BusyError when another process writes for long, StoreError for what SQLite refuses.
        """
        with self._lock, self._errors():
            self._check_open()
            depth = self._depth
            begin, commit, undo = _brackets(depth)
            self._writer.execute(begin)
            self._depth = depth + 1
            try:
                yield self._writer
                self._writer.execute(commit)
            except BaseException:
                _undo(self._writer, undo)
                raise
            finally:
                self._depth = depth

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one state of the file throughout; inside a transaction of this thread, its writes too."""
        with self._errors():
            if self._mine():
                yield self._writer
                return
            connection = self._borrow()
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                _undo(connection, ("ROLLBACK",))
                self._give_back(connection)

    def writes(self) -> int:
        """A number that is another one after every commit, of this process or another; it waits for nobody."""
        with self._pool_lock, self._errors():
            self._check_open()
            return int(self._witness.execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        """Give the file back; closing twice is no fault."""
        with self._lock, self._pool_lock:
            self._closed = True
            for connection in (*self._readers, self._witness, self._writer):
                connection.close()
            self._readers.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _mine(self) -> bool:
        """Whether this thread is inside a transaction."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            return self._depth > 0
        finally:
            self._lock.release()

    def _borrow(self) -> sqlite3.Connection:
        with self._pool_lock:
            self._check_open()
            if self._readers:
                return self._readers.pop()
        return connect(self.path)

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._pool_lock:
            if self._closed:
                connection.close()
            else:
                self._readers.append(connection)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.path} was closed already.", "This is a fault of the program; please report it.")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _translated(error, self.path) from error


def _brackets(depth: int) -> tuple[str, str, tuple[str, ...]]:
    """How a transaction at this depth begins, ends and is undone."""
    if depth == 0:
        return "BEGIN IMMEDIATE", "COMMIT", ("ROLLBACK",)
    point = f"inner{depth}"
    return f"SAVEPOINT {point}", f"RELEASE {point}", (f"ROLLBACK TO {point}", f"RELEASE {point}")


def _undo(connection: sqlite3.Connection, statements: Sequence[str]) -> None:
    # SQLite undoes a transaction by itself after a full disk and the like; then there is nothing left to undo.
    if connection.in_transaction:
        for statement in statements:
            connection.execute(statement)


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found > _FORMAT:
        raise _newer(path)
    if found < _FORMAT:
        connection.execute(f"PRAGMA user_version = {_FORMAT}")


def _statements(script: str) -> Iterator[str]:
    """The script's statements; `executescript` would end the transaction around it."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
    if pending.strip():
        yield pending


def _newer(path: Path) -> StoreError:
    return StoreError(
        f"{path} was written by a newer Dualwall.", "Update Dualwall, or rebuild with `dualwall ingest --rebuild`."
    )


def _translated(error: sqlite3.Error, path: Path) -> DualwallError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return BusyError(f"Another process writes to {path}.", "Wait until it ends, then run the command again.")
    if code in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
        hint = "Move the file away and run `dualwall ingest --rebuild`: it is made again from your notes."
        return StoreError(f"{path} is damaged or no Dualwall catalogue ({error}).", hint)
    if code == sqlite3.SQLITE_FULL:
        return StoreError(
            f"The disk is full: {path} could not be written.", "Free some space and run the command again."
        )
    if code in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR}:
        return UnreachableError(f"{path} cannot be used: {error}.", "Check the folder and its permissions.")
    return StoreError(f"{path} refused an operation: {error}.", "This is a fault of the program; please report it.")
