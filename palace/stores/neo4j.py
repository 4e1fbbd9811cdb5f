"""The graph on a Neo4j server; its own types stop here."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from palace.settings import Neo4j
from palace.stores import neo4j_read as reading
from palace.stores import neo4j_write as writing
from palace.stores.graph_rules import Labels
from palace.stores.neo4j_server import PATIENCE, Server, Tx
from palace.stores.ports import Edge, Neighborhood, NoteNode
from palace.vocabulary import NoteId, Room
from palace.walls import Scope

_T = TypeVar("_T")
_Write = Callable[[Tx], None]


class Neo4jGraph:
    """A graph in one database of a server, for any number of threads and processes.

    Every call is a managed transaction: repeated when the server is busy, away for a moment or another worker crossed
    it, until a deadline. Raises UnreachableError when the server does not answer, StoreError when it holds another
    graph or refuses. Opening asks the server nothing. `patience`: seconds that a write is repeated.
    """

    def __init__(self, settings: Neo4j, patience: float = PATIENCE) -> None:
        self._server = Server(settings, patience)
        self._local = threading.local()

    def upsert(self, notes: Sequence[NoteNode]) -> None:
        """Write notes with their rooms and tags."""
        if notes:
            own = list(notes)
            self._write(lambda tx: writing.upsert(tx, own))

    def set_rooms(self, note_id: NoteId, rooms: Sequence[Labels]) -> None:
        """Replace the rooms of a note that is there."""
        own = list(rooms)
        self._write(lambda tx: writing.set_rooms(tx, note_id, own))

    def link(self, links: Mapping[NoteId, Sequence[Edge]]) -> None:
        """Replace the links of these notes."""
        if links:
            own = {source: list(edges) for source, edges in links.items()}
            self._write(lambda tx: writing.link(tx, own))

    def forget(self, note_ids: Sequence[NoteId]) -> None:
        """Delete notes and their links; links to them stay, unresolved."""
        if note_ids:
            own = list(note_ids)
            self._write(lambda tx: writing.forget(tx, own))

    def neighbors(self, note_id: NoteId, scope: Scope, limit: int = 100) -> Neighborhood:
        """What stands around a note, as far as the scope admits it."""
        return self._read(lambda tx: reading.neighbors(tx, note_id, scope, limit))

    def rooms(self, scope: Scope) -> list[Room]:
        """Every room inside the scope with exact counts."""
        return self._read(lambda tx: reading.rooms(tx, scope))

    def notes(self) -> Iterator[NoteNode]:
        """Every note, sorted by id."""
        last = ""
        while page := self._read(partial(reading.notes, after=last)):
            yield from page
            last = page[-1].id

    def edges(self) -> Iterator[Edge]:
        """Every link, sorted by source, line, link."""
        last = ""
        while page := self._read(partial(reading.edges, after=last)):
            yield from page
            last = page[-1].source

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Writes inside are kept back and done in one transaction at the end; an exception drops them.

        So a write that is refused is refused at the end. It is no transaction with the ledger: the graph is written
        first, and a run that ends between the two is answered by writing the same again. A read inside sees what was
        written before it, at the price of writing that twice; ingest never asks for it.
        """
        outer = self._pending
        self._local.pending = pending = list(outer or ())
        try:
            yield
        finally:
            self._local.pending = outer
        if outer is not None:
            outer[:] = pending
        elif pending:
            self._server.write(lambda tx: _all(pending, tx))

    def close(self) -> None:
        """End every connection."""
        self._server.close()

    @property
    def _pending(self) -> list[_Write] | None:
        found: list[_Write] | None = getattr(self._local, "pending", None)
        return found

    def _write(self, work: _Write) -> None:
        pending = self._pending
        if pending is None:
            self._server.write(work)
        else:
            pending.append(work)

    def _read(self, work: Callable[[Tx], _T]) -> _T:
        pending = self._pending
        if not pending:
            return self._server.read(work)
        with self._server.undone() as tx:
            _all(pending, tx)
            return work(tx)


def _all(writes: Sequence[_Write], tx: Tx) -> None:
    for write in writes:
        write(tx)
