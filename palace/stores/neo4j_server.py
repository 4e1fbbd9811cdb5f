"""The way to a Neo4j server: sessions, retries with a deadline, what is refused, and the driver's errors in our words."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias, TypeVar
from urllib.parse import urlsplit

import neo4j
from neo4j.exceptions import AuthError, DatabaseError, DriverError, IncompleteCommit, Neo4jError, TransientError

from palace.errors import DualwallError, SettingsError, StoreError, UnreachableError
from palace.settings import Neo4j

Tx: TypeAlias = neo4j.ManagedTransaction | neo4j.Transaction
_T = TypeVar("_T")

VERSION = 1
"""Of the labels, keys and relationships (docs/operations.md); another one is refused."""
_KEYS = {
    "Note": "id",
    "Chunk": "id",
    "Cube": "id",
    "Wing": "key",
    "Room": "key",
    "Tag": "key",
    "Unresolved": "key",
    "Tally": "key",
    "Dualwall": "version",  # without it, workers that begin together would each make one
}
_TURN = "MATCH (d:Dualwall) SET d.version = d.version"
"""Takes the lock of the one node that every graph has: writes of several workers come one after the other.

Rooms, tags and targets are shared by all notes, so that crossing writes met in deadlocks over and over, where each takes
milliseconds by itself. Reads take no lock.
"""
_SCHEMA = [
    *(f"CREATE CONSTRAINT IF NOT EXISTS FOR (n:{label}) REQUIRE n.{key} IS UNIQUE" for label, key in _KEYS.items()),
    "CREATE INDEX IF NOT EXISTS FOR (t:Tally) ON (t.cube)",
]
PATIENCE = 30.0
"""Seconds that a write is retried: an ingest outlasts a restart of the server."""
_READ_SECONDS = 3.0  # an answer soon goes on without the graph
_OVERTAKEN = {"Neo.ClientError.Statement.EntityNotFound", "Neo.ClientError.Schema.ConstraintValidationFailed"}
"""Another worker took away what a write had just found, or began to use what it took away: the write is repeated."""
_ATTEMPTS = 8
_AGAIN = "Then run the command again: it goes on where it stopped."


class OvertakenError(Exception):
    """A write did less than it should, since another worker took away what it had just found."""


class Server:
    """One database of a server. Opening it asks nothing; the first read or write finds out whether it is there and ours."""

    def __init__(self, settings: Neo4j, patience: float = PATIENCE) -> None:
        self._settings = settings
        self._patience = patience
        self._lock = threading.Lock()
        self._known = self._ready = False
        self._bookmarks = neo4j.GraphDatabase.bookmark_manager()
        with self._errors():
            self._driver = neo4j.GraphDatabase.driver(
                settings.url,
                auth=_auth(settings),
                connection_timeout=3.0,
                connection_acquisition_timeout=10.0,
                notifications_min_severity="OFF",
                telemetry_disabled=True,
            )

    def read(self, work: Callable[[Tx], _T]) -> _T:
        """What `work` reads in one transaction; it may be called more than once."""
        with self._errors(), self._session(min(_READ_SECONDS, self._patience)) as session:
            if not self._known:
                self._known = session.execute_read(self._check)
            return session.execute_read(work)

    def write(self, work: Callable[[Tx], _T]) -> _T:
        """Do `work` in one transaction, whole or not at all; it may be called more than once."""
        with self._errors(), self._session(self._patience) as session:
            if not self._ready:
                with self._lock:
                    self._prepare(session)
            return _repeated(lambda: session.execute_write(lambda tx: (tx.run(_TURN).consume(), work(tx))[1]))

    @contextmanager
    def undone(self) -> Iterator[Tx]:
        """A transaction whose writes are undone at the end: to read what they would make."""
        with self._errors(), self._session(self._patience) as session:
            if not self._ready:
                with self._lock:
                    self._prepare(session)
            with session.begin_transaction() as tx:
                yield tx

    def version(self) -> str:
        """The server's version. Raises as a read does, also for a database that is not ours."""
        return self.read(
            lambda tx: str(tx.run("CALL dbms.components() YIELD versions").single(strict=True)["versions"][0])
        )

    def warnings(self) -> list[str]:
        """What is risky about the address and the password, a sentence each."""
        parts = urlsplit(self._settings.url)
        if parts.hostname in {"127.0.0.1", "::1", "localhost"}:
            return []
        found = []
        if self._settings.password_file is None:
            found.append(
                "Whoever reaches that server reads every cube: give it a password (stores.neo4j.password_file)."
            )
        if "." in str(parts.hostname) and "+s" not in parts.scheme:
            found.append(
                "Notes' titles and the password go over the network in the clear: use bolt+s:// or neo4j+s://."
            )
        return found

    def close(self) -> None:
        """End every connection."""
        self._driver.close()

    def _session(self, seconds: float) -> neo4j.Session:
        return self._driver.session(
            database=self._settings.database,
            bookmark_manager=self._bookmarks,
            max_transaction_retry_time=seconds,
            initial_retry_delay=0.1,  # a deadlock is over at once; the driver doubles it each time
        )

    def _check(self, tx: Tx) -> bool:
        """Whether the database is a graph of ours; False for an empty one. Raises StoreError for any other."""
        filled = bool(tx.run("MATCH (n) RETURN n IS NOT NULL LIMIT 1").single())
        mark = tx.run(
            "MATCH (d:Dualwall) RETURN d.version AS version"
        ).single()  # after the look: another may begin now
        if mark is None and filled:
            raise StoreError(
                f"The database {self._name} holds something else than a Dualwall graph.",
                "Give Dualwall a database of its own: [stores.neo4j] database, or another server.",
            )
        if mark is None or mark["version"] == VERSION:
            return mark is not None
        if mark["version"] > VERSION:
            raise StoreError(f"The graph in {self._name} was written by a newer Dualwall.", "Update Dualwall.")
        raise StoreError(
            f"The graph in {self._name} was written by an older Dualwall.",
            "Empty it (MATCH (n) DETACH DELETE n), then write it again: dualwall ingest --rebuild",
        )

    def _prepare(self, session: neo4j.Session) -> None:
        if not session.execute_read(self._check):
            for statement in _SCHEMA:
                session.execute_write(lambda tx, one: tx.run(one).consume(), statement)
            session.execute_write(lambda tx: tx.run("MERGE (d:Dualwall {version: $v})", v=VERSION).consume())
        self._known = self._ready = True

    @property
    def _name(self) -> str:
        return f"{self._settings.database} of {self._settings.url}"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (DriverError, Neo4jError) as error:
            raise translated(error, self._settings) from error
        except OSError as error:
            raise _silent(self._settings, type(error).__name__) from error


def translated(error: DriverError | Neo4jError, settings: Neo4j) -> DualwallError:
    """The driver's error in our words; neither password nor note is in them."""
    code = (error.code if isinstance(error, Neo4jError) else None) or type(error).__name__
    if isinstance(error, AuthError) or code.startswith("Neo.ClientError.Security."):
        return _refused(settings, code)
    if code == "Neo.ClientError.Database.DatabaseNotFound":
        return UnreachableError(
            f"Neo4j at {settings.url} has no database {settings.database}.",
            "Make it there, or mend [stores.neo4j] database.",
        )
    if isinstance(error, DatabaseError | TransientError):
        return UnreachableError(
            f"Neo4j at {settings.url} could not do it: {code}.",
            f"Look at the server's log, its memory and whether its disk is full. {_AGAIN}",
        )
    if isinstance(error, DriverError):
        return _silent(settings, code)
    return StoreError(f"Neo4j refused an operation: {code}.", "This is a fault of the program; please report it.")


def _refused(settings: Neo4j, code: str) -> UnreachableError:
    who = f"user {settings.user}" if settings.password_file else "a client without a password"
    hint = "Check user and password_file of [stores.neo4j]."
    if code.endswith("CredentialsExpired"):
        hint = "Its first password has to be changed: log in once, in Neo4j's browser or cypher-shell."
    if code.endswith("AuthenticationRateLimit"):
        hint = f"Too many wrong passwords came: wait some seconds. {hint}"
    return UnreachableError(f"Neo4j at {settings.url} refused {who}.", hint)


def _silent(settings: Neo4j, reason: str) -> UnreachableError:
    return UnreachableError(
        f"Neo4j at {settings.url} does not answer ({reason}).",
        f"Start it, or mend [stores.neo4j] url; `dualwall doctor` asks it. {_AGAIN}",
    )


def _repeated(write: Callable[[], _T]) -> _T:
    """A write, again after another worker crossed it, or when its commit was cut off: every write can be repeated."""
    for attempt in range(_ATTEMPTS - 1):
        try:
            return write()
        except (IncompleteCommit, OvertakenError):
            pass
        except Neo4jError as error:
            if error.code not in _OVERTAKEN:
                raise
        time.sleep(0.05 * 2**attempt)
    try:
        return write()
    except OvertakenError as error:
        raise StoreError("Other workers changed the same notes in Neo4j over and over.", _AGAIN) from error


def _auth(settings: Neo4j) -> neo4j.Auth | None:
    if settings.password_file is None:
        return None
    try:
        password = settings.password_file.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"[stores.neo4j] password_file can't be read: {settings.password_file} ({type(error).__name__}).",
            "Write the password into it, on one line, readable by you alone.",
        ) from error
    return neo4j.basic_auth(settings.user, password)
