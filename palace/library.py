"""The composition root: settings in, stores, model and search out, each opened when first needed.

Every answer leaves here in the shape of the contract (docs/design.md, Contract) and inside its reader's cubes.
"""

import json
import threading
import uuid
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self, TypeVar

from palace import inbox, manifest
from palace.errors import NotFoundError, UnreachableError, UsageError
from palace.search.floor import Floor
from palace.search.recent import RecentQuery, recent
from palace.search.rooms import PAGE, RoomsQuery
from palace.search.where import Finder
from palace.settings import Settings, Stores
from palace.stores.catalogue import Catalogue, LedgerRow, placements_from
from palace.stores.database import Database
from palace.stores.ports import Embedder, Graph, SparseEmbedder, VectorStore
from palace.vocabulary import GLOBAL, NoteId
from palace.walls import Reader

if TYPE_CHECKING:  # each is imported when it is first needed: the engine and the model are slow to load
    from palace.embedding.cache import VectorCache
    from palace.embedding.tokens import TokenCounter
    from palace.search.engine import Searcher

NEXT_STORE, OLD_STORE = "store.next", "store.old"
"""Where a rebuild writes beside the store, and where the old one is until the new one has its place."""
Json = dict[str, Any]
_Part = TypeVar("_Part")


class Library:
    """One palace, opened once. Thread-safe: many readers, one writer."""

    def __init__(self, settings: Settings, store: Path | None = None) -> None:
        self.settings = settings
        self._beside = store is not None
        self._temporary: TemporaryDirectory[str] | None = None
        if "memory" in (settings.stores.vectors, settings.stores.graph):
            # A ledger that outlived what it tells of would lie.
            self._temporary = TemporaryDirectory(prefix="dualwall-")
            store = Path(self._temporary.name)
        self._store = store or settings.store
        self._parts: dict[str, Any] = {}
        self._making = threading.RLock()

    @classmethod
    def open(cls, settings: Settings, *, store: Path | None = None) -> Self:
        """Open the palace of these settings; the caller holds the owner's lock when the store is embedded.

        `store`: another folder for the embedded stores than the settings' own, for a rebuild beside it.
        """
        if store is None and not settings.store.exists() and (old := settings.data / OLD_STORE).exists():
            old.rename(settings.store)  # a rebuild was killed between its two renames
        return cls(settings, store)

    def close(self) -> None:
        """Give everything back that was opened."""
        with self._making:
            for part in ("searcher", "vectors", "embedder", "cache", "graph", "database"):
                opened = self._parts.pop(part, None)
                if opened is not None and hasattr(opened, "close"):
                    opened.close()
            self._parts.clear()
            if self._temporary is not None:
                self._temporary.cleanup()

    # -- parts -------------------------------------------------------------------------------------------------------
    @property
    def database(self) -> Database:
        """The SQLite file of catalogue and embedded graph."""
        return self._once("database", lambda: Database(self._store / "catalogue.sqlite"))

    @property
    def catalogue(self) -> Catalogue:
        """The ledger."""
        return self._once("catalogue", lambda: Catalogue(self.database))

    @property
    def graph(self) -> Graph:
        """Notes, links and rooms."""
        return self._once("graph", lambda: self._open_graph(self.settings.stores))

    @property
    def vectors(self) -> VectorStore:
        """Chunks and their vectors. Raises ModelMismatchError when they are another model's."""
        return self._once("vectors", lambda: self._open_vectors(self.settings.stores))

    @property
    def sparse(self) -> SparseEmbedder:
        """The embedder of the lexical leg."""
        from palace.embedding.sparse import Bm25Embedder  # noqa: PLC0415

        return self._once("sparse", Bm25Embedder)

    @property
    def embedder(self) -> Embedder:
        """The dense model. Raises UnreachableError when it is not to be had."""
        from palace.embedding import dense  # noqa: PLC0415

        return self._once("embedder", lambda: dense.load(self.settings.embedding))

    @property
    def counter(self) -> "TokenCounter":
        """The tokenizer of the model that the settings name; lighter than the model."""
        from palace.embedding import tokens  # noqa: PLC0415

        return self._once("counter", lambda: tokens.load(self.settings.embedding))

    @property
    def cache(self) -> "VectorCache":
        """Vectors by passage and model."""
        from palace.embedding.cache import VectorCache  # noqa: PLC0415

        return self._once("cache", lambda: VectorCache(self.settings.data / "cache" / "vectors.sqlite"))

    @property
    def model(self) -> str:
        """Fingerprint of the model that the settings name."""
        return self._once("model", lambda: self.embedder.fingerprint)

    @property
    def generation(self) -> int:
        """The palace's current generation; 0 before the first."""
        return manifest.current_number(self.settings) or 0

    @property
    def state_key(self) -> str:
        """One value for the palace's content and all settings that shape what is stored."""
        return self.state_key_with(self.settings.stores)

    def state_key_with(self, stores: Stores) -> str:
        """What `state_key` is once the settings name these stores."""
        current = manifest.current(self.settings)
        used = {"vectors", "graph", stores.vectors, stores.graph}  # a server that nothing is on shapes nothing
        shaping = self.settings.model_copy(update={"stores": stores}).model_dump_json(
            include={"stores": used, **dict.fromkeys(("ingest", "embedding", "readers", "private", "vaults"), True)}
        )
        return f"{current.digest if current else ''}:{sha256(shaping.encode()).hexdigest()}"

    @contextmanager
    def beside(self, stores: Stores) -> Iterator[tuple[VectorStore, Graph]]:
        """Vectors and graph as these stores have them, for a move; a kind that the settings name too is the palace's own."""
        own = self.settings.stores
        with ExitStack() as opened:
            vectors, graph = self.vectors, self.graph
            if stores.vectors != own.vectors:
                vectors = opened.enter_context(closing(self._open_vectors(stores)))
            if stores.graph != own.graph:
                graph = opened.enter_context(closing(self._open_graph(stores)))
            yield vectors, graph

    @property
    def searcher(self) -> "Searcher":
        """Search over the parts above; without a model it searches by words."""
        return self._once("searcher", self._open_searcher)

    def part(self, name: str, make: Callable[[], _Part]) -> _Part:
        """What a floor above keeps as long as the palace is open, made when it is first asked for."""
        return self._once(name, make)

    # -- answers -----------------------------------------------------------------------------------------------------
    def reader(self, name: str) -> Reader:
        """The reader of that name. Raises UsageError for one that the settings don't have."""
        entry = self.settings.readers.get(name)
        if entry is None:
            known = ", ".join(sorted(self.settings.readers)) or "none"
            raise UsageError(f"There is no reader {name!r}.", f"Readers of the settings: {known}.")
        return Reader(name, frozenset(entry.cubes))

    def search(  # noqa: PLR0913 - the options of a search
        self,
        reader_name: str,
        query: str,
        rooms: Sequence[str] = (),
        wings: Sequence[str] = (),
        limit: int | None = None,
        *,
        explain: bool = False,
    ) -> Json:
        """Hits with their receipt."""
        from palace.search.receipt import answer_json  # noqa: PLC0415

        reader = self.reader(reader_name)
        answer = self.searcher.search(query, reader, rooms=rooms, wings=wings, limit=limit, explain=explain)
        return answer_json(answer)

    def rooms(
        self,
        reader_name: str,
        query: str | None = None,
        wing: str | None = None,
        cursor: str | None = None,
        limit: int = PAGE,
    ) -> Json:
        """A page of rooms with counts; with a query, in the order in which they suit it."""
        from palace.search.receipt import rooms_json  # noqa: PLC0415

        page = self.searcher.rooms(self.reader(reader_name), RoomsQuery(query, wing, cursor, limit))
        return rooms_json(page.rooms, page.next)

    def recent(self, reader_name: str, room: str | None = None, days: int = 7, limit: int = 50) -> Json:
        """Notes that changed in the last days, newest first (`palace.search.recent`)."""
        asked = RecentQuery(room, days, limit)
        find = self._once("finder", lambda: Finder(self.graph, _State(self)))
        return recent(self.catalogue, find, self.reader(reader_name), asked, datetime.now(UTC))

    def remember(self, reader_name: str, text: str, title: str | None = None) -> Json:
        """Keep a text as a candidate in the inbox of the reader's own cube: `{"ref", "title", "path", "cube", "room", "new"}`.

        Raises UsageError for a reader that may not write, or an empty text.
        """
        entry = self.settings.readers.get(reader_name)
        if entry is None or not entry.write:
            raise UsageError(f"The reader {reader_name!r} may not write.", "Its settings have to say: write = true")
        cube = inbox.home(reader_name, entry.cubes)
        memory = inbox.Memory(reader_name, cube, text, inbox.title_of(text, title), datetime.now(UTC))
        new = inbox.keep(self.settings, memory)
        ref = memory.ref
        return {"ref": ref.id, "title": memory.title, "path": ref.path, "cube": cube, "room": "inbox/inbox", "new": new}

    def read(self, reader_name: str, ref: str, lines: tuple[int, int] | None = None) -> Json:
        """A note's text, or some lines of it."""
        from palace.search.receipt import Reading, reading_json  # noqa: PLC0415

        row = self.find(reader_name, ref)
        text, changed = self._text(row)
        kept = text.split("\n")
        first, last = lines or (1, len(kept))
        if not 1 <= first <= last:
            raise NotFoundError(f"There are no lines {first} to {last}.", "Lines count from 1; give first and last.")
        last = min(last, len(kept))
        rooms = tuple(sorted({p.address.room for p in placements_from(row.placements)}))
        return reading_json(
            Reading(
                ref=row.ref.id,
                title=row.title,
                path=row.ref.path,
                cube=row.ref.cube,
                rooms=rooms,
                text="\n".join(kept[first - 1 : last]),
                lines=(first, last),
                note_sha256=row.sha256,
                stale=row.stale or changed,
            )
        )

    def neighbors(self, reader_name: str, ref: str) -> Json:
        """What links to a note, from it, and shares its tags."""
        from palace.search.receipt import neighbors_json  # noqa: PLC0415

        row = self.find(reader_name, ref)
        return neighbors_json(self.graph.neighbors(row.ref.id, self.reader(reader_name).scope()))

    def find(self, reader_name: str, ref: str) -> LedgerRow:
        """The note of a ref; for a person also by path, title or alias. Raises NotFoundError in the same words always."""
        reader = self.reader(reader_name)
        ids = [NoteId(ref)] if _is_uuid(ref) else self._by_name(reader, ref)
        rows = [r for r in self.catalogue.rows(ids).values() if r.ref.cube in reader.cubes and r.state == "done"]
        if len(rows) > 1:
            paths = ", ".join(sorted(r.ref.path for r in rows)[:5])
            raise UsageError(f"{ref!r} names {len(rows)} notes.", f"Name one by its path: {paths}")
        if not rows:
            raise NotFoundError(f"There is no note {ref!r} for this reader.", "Take a ref from the hits of a search.")
        return rows[0]

    def status(self, *, files: bool = False) -> Json:
        """What is indexed: counts, and each file's state if asked for."""
        notes, chunks = self.catalogue.counts()
        current = manifest.current(self.settings)
        out: Json = {
            "generation": self.generation,
            "notes": notes,
            "chunks": chunks,
            "pending": self.catalogue.waiting(),
            "model": self.catalogue.get("model"),
            "last_success": self.catalogue.get("last_success"),
            "problems": len(self.catalogue.problems()) + (current.problems if current else 0),
            "open": len(self.catalogue.open_intents()),
        }
        if files:
            out["files"] = self._files()
        return out

    def status_of(self, reader_name: str, *, files: bool = False) -> Json:
        """The same as one reader may see it: what is in other cubes is neither named nor counted."""
        cubes = sorted(self.reader(reader_name).cubes)
        current = manifest.current(self.settings)
        counted = self.catalogue.counts_in(cubes)
        if current is not None and GLOBAL in cubes:
            counted["problems"] += current.problems
        out = self.status() | counted
        if files:
            out["files"] = [file for file in self._files() if file["cube"] in cubes]
        return out

    def verify(self, *, repair: bool = False) -> Json:
        """Differences between catalogue, vectors and graph; with `repair` the next ingest writes those notes again."""
        from palace.verify import verify  # noqa: PLC0415

        report = verify(self.settings, self.catalogue, self.vectors, self.graph)
        if repair and report.broken:
            strangers = sorted(report.strangers - set(self.catalogue.rows(sorted(report.strangers))))
            self.vectors.forget(strangers)
            self.graph.forget(strangers)
            self.catalogue.reopen(sorted(report.broken))
            self.catalogue.set({"ingested": ""})
        return {
            "differences": report.differences,
            "notes": report.notes,
            "chunks": report.chunks,
            "edges": report.edges,
            "pending": report.pending,
            "fingerprint": report.fingerprint,
        }

    # -- the state that a search tells of (palace.search.legs.State) ---------------------------------------------------
    def floor(self) -> Floor | None:
        """The floor of the last calibration, if it was made with this model."""
        stored = self.catalogue.get("floor")
        if stored is None:
            return None
        found = Floor.from_dict(json.loads(stored))
        return found if found.model == self.catalogue.get("model") else None

    def stamp(self) -> Hashable:
        """Differs after every write."""
        return self.database.writes()

    # -- opening -----------------------------------------------------------------------------------------------------
    def _once(self, name: str, make: Callable[[], _Part]) -> _Part:
        found: _Part | None = self._parts.get(name)
        if found is not None:
            return found
        with self._making:
            if name not in self._parts:
                self._parts[name] = make()
            made: _Part = self._parts[name]
            return made

    def _open_graph(self, stores: Stores) -> Graph:
        if stores.graph == "memory":
            from palace.stores.memory import MemoryGraph  # noqa: PLC0415

            return MemoryGraph()
        if stores.graph == "neo4j":
            from palace.stores.neo4j import Neo4jGraph  # noqa: PLC0415

            return Neo4jGraph(stores.neo4j)
        from palace.stores.sqlite import SqliteGraph  # noqa: PLC0415

        return SqliteGraph(self.database)

    def _open_vectors(self, stores: Stores) -> VectorStore:
        if stores.vectors == "memory":
            from palace.stores.memory import MemoryVectors  # noqa: PLC0415

            return MemoryVectors()
        if stores.vectors == "qdrant":
            from palace.stores.qdrant_rebuild import open_vectors  # noqa: PLC0415

            dimensions = self.embedder.dimensions
            return open_vectors(stores.qdrant, self.catalogue, dimensions, self.model, beside=self._beside)
        from palace.stores.edge import EdgeVectors  # noqa: PLC0415

        return EdgeVectors(self._store / "edge", self.embedder.dimensions, model=self.model)

    def _open_searcher(self) -> "Searcher":
        from palace.search.engine import Searcher  # noqa: PLC0415

        try:
            embedder = self.embedder
        except UnreachableError:
            embedder = None
        now = partial(datetime.now, UTC)
        parts = (self.vectors, self.graph, self.catalogue, embedder, self.sparse)
        return Searcher(*parts, self.settings.search, now, _State(self))

    # -- helpers -----------------------------------------------------------------------------------------------------
    def _by_name(self, reader: Reader, name: str) -> list[NoteId]:
        from palace.search.lock import name_key  # noqa: PLC0415

        if by_path := self.catalogue.at_path(name, sorted(reader.cubes)):
            return by_path
        return list(dict.fromkeys(n.note_id for n in self.catalogue.find([name_key(name)], reader.scope())))

    def _text(self, row: LedgerRow) -> tuple[str, bool]:
        """A note's text as it was ingested, and whether its file still holds that.

        A file is shown only while its bytes are the ones that went through the walls: one that was replaced since, by a
        link to another cube's file perhaps, is not; then the chunks tell what the note said.
        """
        try:
            data = Path(row.file).read_bytes()
        except OSError:
            data = b""
        if sha256(data).hexdigest() == row.sha256:
            return data.decode("utf-8-sig", "replace"), False
        records = sorted(self.vectors.scroll([row.ref.id]), key=lambda r: r.payload.span)
        return "\n\n".join(r.payload.text for r in records), True

    def _files(self) -> list[Json]:
        refused = self.catalogue.refusals()
        out = []
        for row in self.catalogue.all_rows():
            bad = refused.pop(row.ref.id, None)
            rooms = sorted({p.address.place for p in placements_from(row.placements)})
            state = "stale" if row.stale else "indexed"
            out.append(_file(row.ref.path, row.ref.cube, state, bad.reason if bad else None, rooms))
        out += [_file(r.path, r.cube, r.state, r.reason, []) for r in refused.values()]
        current = manifest.current(self.settings)
        if current is not None:
            skipped = manifest.read_skipped(current.folder / manifest.SKIPPED)
            out += [_file(s.path, "global", s.state, s.reason, []) for s in skipped]
        out += [_file(*s, []) for s in self.catalogue.skipped()]
        return sorted(out, key=lambda f: (f["path"], f["cube"]))


class _State:
    """What the palace knows of itself, as a search needs it."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._kept: tuple[Hashable, str, Floor | None] | None = None

    def generation(self) -> int:
        return self._library.generation

    def model(self) -> str:
        return self._ledger()[1]

    def floor(self) -> Floor | None:
        return self._ledger()[2]

    def stamp(self) -> Hashable:
        return self._library.stamp()

    def _ledger(self) -> tuple[Hashable, str, Floor | None]:
        """What the ledger says, read again after every write."""
        stamp, kept = self.stamp(), self._kept
        if kept is None or kept[0] != stamp:
            self._kept = kept = stamp, self._library.catalogue.get("model") or "", self._library.floor()
        return kept


def _file(path: str, cube: str, state: str, reason: str | None, rooms: list[str]) -> Json:
    return {"path": path, "cube": cube, "state": state, "reason": reason, "rooms": rooms}


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False
