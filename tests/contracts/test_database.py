"""The file of ledger and embedded graph: transactions, threads, processes, and files that are none of ours."""

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from palace.errors import BusyError, DualwallError, StoreError, UnreachableError
from palace.stores import database as module
from palace.stores.database import Database, connect

DDL = "CREATE TABLE t (x INTEGER NOT NULL UNIQUE);\nCREATE TABLE u (y TEXT); -- ; in a comment\n"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "store" / "catalogue.sqlite") as opened:
        opened.ensure("toy", DDL)
        yield opened


def rows(database: Database) -> list[int]:
    with database.read() as cx:
        return [r["x"] for r in cx.execute("SELECT x FROM t ORDER BY x")]


def failing(database: Database, *values: int) -> None:
    """Insert, then fail inside the transaction."""
    with database.transaction() as cx:
        for value in values:
            cx.execute("INSERT INTO t VALUES (?)", (value,))
        raise RuntimeError


def test_a_commit_survives_a_power_cut(database: Database) -> None:
    """synchronous=FULL (2): the intent stands on the disk before a vector does."""
    with database.read() as cx:
        assert cx.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert cx.execute("PRAGMA synchronous").fetchone()[0] == 2
        assert cx.execute("PRAGMA foreign_keys").fetchone()[0] == 1


def test_an_inner_transaction_undoes_only_itself(database: Database) -> None:
    with database.transaction() as cx:
        cx.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(RuntimeError):
            failing(database, 2)
        with database.transaction():
            cx.execute("INSERT INTO t VALUES (3)")
    assert rows(database) == [1, 3]


def test_an_outer_failure_undoes_everything(database: Database) -> None:
    def outer() -> None:
        with database.transaction():
            with database.transaction() as cx:
                cx.execute("INSERT INTO t VALUES (1)")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        outer()
    assert rows(database) == []
    with database.transaction() as cx:
        cx.execute("INSERT INTO t VALUES (5)")
    assert rows(database) == [5]


def test_what_sqlite_refuses_is_an_error_of_ours_and_undone(database: Database) -> None:
    with pytest.raises(StoreError, match="UNIQUE"):
        failing(database, 1, 1)
    assert rows(database) == []


def test_a_reader_sees_its_own_writes_and_nobody_elses_half_done_ones(database: Database) -> None:
    seen: list[list[int]] = []
    with database.transaction() as cx:
        cx.execute("INSERT INTO t VALUES (1)")
        other = threading.Thread(target=lambda: seen.append(rows(database)))
        other.start()
        other.join(5)
        assert seen == [[]]
        assert rows(database) == [1]


def test_many_threads_write_without_losing_anything(database: Database) -> None:
    def write(first: int) -> None:
        for n in range(20):
            with database.transaction() as cx:
                cx.execute("INSERT INTO t VALUES (?)", (first + n,))
            rows(database)

    threads = [threading.Thread(target=write, args=(100 * n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(rows(database)) == 120


def test_writes_tells_of_every_commit(database: Database) -> None:
    before = database.writes()
    assert database.writes() == before
    with database.transaction() as cx:
        cx.execute("INSERT INTO t VALUES (1)")
        assert database.writes() == before
    after = database.writes()
    assert after != before
    with Database(database.path) as other, other.transaction() as cx:
        cx.execute("INSERT INTO t VALUES (2)")
    assert database.writes() != after


def test_schemas_grow_by_steps(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with Database(path) as database:
        database.ensure("toy", [DDL])
        database.ensure("other", "CREATE TABLE o (z);")
        with database.transaction() as cx:
            cx.execute("INSERT INTO t VALUES (1)")
    with Database(path) as database:
        database.ensure("toy", [DDL, "ALTER TABLE t ADD COLUMN more TEXT;"])
        with database.read() as cx:
            assert tuple(cx.execute("SELECT x, more FROM t").fetchone()) == (1, None)
        with pytest.raises(StoreError, match="newer"):
            database.ensure("toy", DDL)


def test_a_schema_that_stands_is_not_written_again(database: Database) -> None:
    """Opening must not wait for a process that writes."""
    with database.transaction(), Database(database.path) as other:
        other.ensure("toy", DDL)
        assert rows(other) == []


def test_a_file_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="newer"):
        Database(path)


@pytest.mark.parametrize("content", [b"This is no database at all. " * 100, b"SQLite format 3\x00" + b"\xff" * 4096])
def test_a_damaged_file_is_refused_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "c.sqlite"
    path.write_bytes(content)
    with pytest.raises(StoreError) as error:
        Database(path)
    assert "--rebuild" in error.value.hint


def test_a_folder_in_the_files_place_is_unreachable(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError):
        connect(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UnreachableError):
        Database(tmp_path / "file" / "c.sqlite")


def test_a_writer_that_waits_too_long_is_told_so(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.05)
    with Database(database.path) as other, database.transaction(), pytest.raises(BusyError), other.transaction():
        pass


def test_a_closed_database_says_so(tmp_path: Path) -> None:
    database = Database(tmp_path / "c.sqlite")
    database.close()
    database.close()
    with pytest.raises(DualwallError), database.transaction():
        pass
    with pytest.raises(DualwallError), database.read():
        pass


_WRITER = """
import sys
from pathlib import Path
from palace.stores.database import Database
database = Database(Path(sys.argv[1]))
for n in range(10_000):
    with database.transaction() as cx:
        cx.execute("INSERT INTO t VALUES (?)", (2 * n,))
        cx.execute("INSERT INTO t VALUES (?)", (2 * n + 1,))
    print(n, flush=True)
"""


def test_a_killed_writer_loses_nothing_that_it_committed(database: Database) -> None:
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(database.path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    acked = -1
    for line in writer.stdout:
        acked = int(line)
        if acked == 15:
            writer.kill()
    writer.wait()
    writer.stdout.close()
    found = rows(database)
    assert found == list(range(len(found)))
    assert len(found) % 2 == 0
    assert len(found) >= 2 * (acked + 1)
