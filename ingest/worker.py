"""An ingest from start to end: recover, look, forget, write what is lexical, then embed. Every step can be repeated."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from ingest import source
from ingest.chunk import Sizes
from ingest.dense import embed_waiting
from ingest.plan import Action, Loss, classify, moved, protected
from ingest.prepare import Prepared, Recipe, prepare_all
from ingest.resolve import resolve_links
from ingest.source import Seen
from ingest.write import Writer, touched
from palace import manifest
from palace.library import Library
from palace.progress import Report, silent
from palace.settings import Settings
from palace.stores.catalogue import LedgerRow
from palace.vocabulary import Counts, NoteId, Problem, Sha256, Stat

_NOTES_AT_ONCE = 256
"""Notes per write: a flush (15 to 60 ms) is paid once for each."""
_CHUNKS_AT_ONCE = 2000
_CACHED_A_CHUNK, _ALWAYS_CACHED = 2, 20_000
"""Vectors that the cache may hold: so many for each chunk, and so many more (1 kB each)."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to ingest. `accept_loss`: forget also what the guard would keep; `full`: trust no stat, hash everything."""

    workers: int = 2
    accept_loss: bool = False
    full: bool = False
    dense: bool = True


def run(
    stores: Library,
    settings: Settings,
    *,
    report: Report = silent,
    on_answerable: Callable[[], None] | None = None,
    options: Options = Options(),
) -> Counts:
    """Bring the stores to the state of the sources. Returns what was done, with every Problem there is now."""
    worker = _Worker(stores, settings, report, options)
    changed = not worker.unchanged()
    if changed:
        worker.lexical()
    if on_answerable:
        on_answerable()
    if changed:
        worker.settle()
    if options.dense:
        worker.dense()
    worker.counts.problems = [*worker.guarded, *stores.catalogue.problems()]
    return worker.counts


def plan(stores: Library, settings: Settings, *, full: bool = False) -> tuple[Counts, list[tuple[str, str]]]:
    """What an ingest would do, as counts and as (action, path); nothing is written to a store."""
    worker = _Worker(stores, settings, silent, Options(full=full))
    lines: list[tuple[str, str]] = []
    if worker.unchanged():
        return worker.counts, lines
    gone = worker.look()
    rows = stores.catalogue.rows([i for i, _, _ in gone])
    lines += [("gone", rows[i].ref.path) for i, _, _ in gone]
    for batch in worker.classified():
        lines += [(action.value, seen.ref.path) for action, seen, _ in batch if action is not Action.NOTHING]
        worker.count(batch)
    worker.count_moves(gone)
    return worker.counts, lines


Classified = tuple[Action, Seen, LedgerRow | None]


class _Worker:
    def __init__(self, stores: Library, settings: Settings, report: Report, options: Options) -> None:
        self.stores = stores
        self.settings = settings
        self.report = report
        self.options = options
        self.counts = Counts()
        self.guarded: list[Problem] = []
        self._private = source.private_notes(settings)
        self._new: list[tuple[str, Sha256]] = []

    @cached_property
    def _hashed(self) -> list[Seen]:
        """The private notes, each with its hash unless it cannot be read."""
        ids = [s.ref.id for s in self._private.seen]
        known: dict[NoteId, tuple[Stat, str]] = {}
        if not self.options.full:
            known |= {i: (r.stat, r.sha256) for i, r in self.stores.catalogue.rows(ids).items()}
            known |= {i: (r.stat, r.sha256) for i, r in self.stores.catalogue.refusals(ids).items()}
        return [source.with_hash(s) if s.sha256 is None else s for s in source.hashed(self._private.seen, known)]

    # -- what is there ---------------------------------------------------------------------------------------------
    def unchanged(self) -> bool:
        """Whether a finished ingest has seen exactly this state: then no store need be opened."""
        known = self.stores.catalogue.get("ingested")
        return not self.options.full and known is not None and known == self._state() and not self._racy()

    def look(self) -> list[tuple[NoteId, str, Sha256]]:
        """Notes of the ledger that are gone and may be forgotten."""
        catalogue = self.stores.catalogue
        if self._first():
            return []
        gone = catalogue.missing_from(s.ref.id for s in self._seen())
        rows = catalogue.rows([i for i, _, _ in gone])
        losses: dict[tuple[str, str], list[NoteId]] = {}
        for note_id, row in rows.items():
            losses.setdefault((row.ref.cube, row.ref.vault), []).append(note_id)
        kept = self._protected(losses)
        return [g for g in gone if (rows[g[0]].ref.cube, rows[g[0]].ref.vault) not in kept]

    def classified(self) -> Iterator[list[Classified]]:
        """Every note with what it needs, in batches."""
        catalogue = self.stores.catalogue
        for batch in _batches(self._seen(), _NOTES_AT_ONCE):
            ids = [s.ref.id for s in batch]
            rows, refused = catalogue.rows(ids), catalogue.refusals(ids)
            out = []
            for seen in batch:
                bad = refused.get(seen.ref.id)
                row = rows.get(seen.ref.id)
                if bad is not None and bad.sha256 and bad.sha256 == seen.sha256 and not self.options.full:
                    out.append((Action.NOTHING, seen, row))
                else:
                    out.append((classify(seen, row), seen, row))
            yield out

    def count(self, batch: Iterable[Classified]) -> None:
        """Add what a batch needs to the counts."""
        for action, seen, _ in batch:
            if action is not Action.NOTHING:
                setattr(self.counts, action.value, getattr(self.counts, action.value) + 1)
            if action is Action.NEW and seen.sha256:
                self._new.append((seen.ref.cube, seen.sha256))

    def count_moves(self, gone: Iterable[tuple[NoteId, str, Sha256]]) -> None:
        """A note that went and came elsewhere with the same bytes is one that moved."""
        left = [(cube, sha256) for _, cube, sha256 in gone]
        self.counts.moved = moved(left, self._new)
        self.counts.gone = len(left) - self.counts.moved
        self.counts.new -= self.counts.moved

    # -- the two passes ----------------------------------------------------------------------------------------------
    def lexical(self) -> None:
        """Text, payload and sparse vectors: what a search by words needs."""
        stores = self.stores
        writer = Writer(stores.catalogue, stores.vectors, stores.graph, stores.model, stores.generation)
        stores.catalogue.set({"ingested": ""})
        writer.recover()
        gone = self.look()
        writer.forget([i for i, _, _ in gone])
        work = self._needing_bytes(writer)
        total = self._total_needing_bytes()
        done = 0
        for batch in _bounded(prepare_all(work, total, self._recipe(), self.options.workers)):
            self._write(writer, batch)
            done += len(batch)
            self.report("reading notes", done, total)
        self.count_moves(gone)

    def settle(self) -> None:
        """Links to their notes; then the state is whole, but for the dense vectors."""
        stores = self.stores
        resolve_links(stores.catalogue, stores.graph, self.report)
        stores.catalogue.set_skipped((s.path, s.cube, "skipped", s.reason) for s in self._private.skipped)
        stores.vectors.flush()
        stores.catalogue.set({"ingested": self._state(), "model": stores.model})

    def dense(self) -> None:
        """The dense vectors that are still missing, newest notes first."""
        if self.stores.catalogue.waiting():
            self.counts.embedded = embed_waiting(self.stores, self.report)
            self.stores.vectors.optimize()
            self._tidy()

    def _tidy(self) -> None:
        """Forget cached vectors when most of them are of passages that are gone; the rest may come back."""
        catalogue, cache = self.stores.catalogue, self.stores.cache
        if len(cache) > _CACHED_A_CHUNK * catalogue.counts()[1] + _ALWAYS_CACHED:
            cache.prune((passage for _, passage, _ in catalogue.chunks().values()), self.stores.model)

    def _recipe(self) -> Recipe:
        ingest, embedding = self.settings.ingest, self.settings.embedding
        sizes = Sizes.of(ingest.chunk_tokens, self.stores.embedder.max_tokens)
        return Recipe(sizes, ingest.max_note_bytes, embedding)

    def _write(self, writer: Writer, batch: Sequence[Prepared]) -> None:
        good = [p for p in batch if p.refusal is None]
        known = self.stores.catalogue.rows([p.seen.ref.id for p in batch if p.refusal is not None])
        for bad in batch:
            if bad.refusal is not None:
                writer.refuse(bad, known=bad.seen.ref.id in known)
        if good:
            passages = {c.passage_sha256 for p in good for c in p.chunks}
            writer.write(good, self.stores.cache.get_many(sorted(passages), self.stores.model))
            self.counts.chunks += sum(len(p.chunks) for p in good)

    def _needing_bytes(self, writer: Writer) -> Iterator[Seen]:
        """Notes to read; what needs no reading is done on the way."""
        for batch in self.classified():
            self.count(batch)
            touches = []
            for action, seen, row in batch:
                if action in {Action.NEW, Action.CHANGED}:
                    yield seen
                elif action is Action.ROOMS_ONLY and row is not None:
                    writer.replace_rooms(seen, row)
                elif action is Action.TOUCHED and row is not None:
                    touches.append(touched(seen, row))
            if touches:
                self.stores.catalogue.update(touches)

    def _first(self) -> bool:
        """Whether nothing is known yet: then there is nothing to compare."""
        return self.stores.catalogue.counts()[0] == 0 and not self.stores.catalogue.refusals()

    def _total_needing_bytes(self) -> int:
        if self._first():
            current = manifest.current(self.settings)
            return len(self._private.seen) + (current.notes if current else 0)
        return sum(a in {Action.NEW, Action.CHANGED} for batch in self.classified() for a, _, _ in batch)

    def _seen(self) -> Iterator[Seen]:
        yield from source.palace_notes(self.settings)
        yield from self._hashed

    def _protected(self, losses: dict[tuple[str, str], list[NoteId]]) -> frozenset[tuple[str, str]]:
        if not losses:
            return frozenset()
        known = self.stores.catalogue.group_sizes()
        found = {g: Loss(tuple(ids), known.get(g, 0)) for g, ids in losses.items()}
        kept = protected(found, self._private.absent, () if self.options.accept_loss else self._private.groups)
        for cube, vault in sorted(kept):
            lost = len(losses[cube, vault])
            if (cube, vault) in self._private.absent:
                message, hint = (
                    f"The source of {vault} (cube {cube}) is not there; its {lost} notes stay.",
                    "Mount it again, or take it out of the settings.",
                )
            else:
                message, hint = (
                    f"{vault} (cube {cube}) lost {lost} notes at once; they stay.",
                    "If that is right: dualwall ingest --accept-loss",
                )
            self.guarded.append(Problem(vault, None, "source-lost", message, hint))
        return kept

    def _state(self) -> str:
        """What the sources, the settings and the model are now, as one value."""
        return f"{self.stores.state_key}:{source.digest(self._private)}"

    def _racy(self) -> bool:
        return source.racy(self._private)


def _bounded(stream: Iterable[Prepared]) -> Iterator[list[Prepared]]:
    """Batches of at most so many notes and about so many chunks."""
    batch: list[Prepared] = []
    chunks = 0
    for prepared in stream:
        batch.append(prepared)
        chunks += len(prepared.chunks)
        if len(batch) >= _NOTES_AT_ONCE or chunks >= _CHUNKS_AT_ONCE:
            yield batch
            batch, chunks = [], 0
    if batch:
        yield batch


def _batches(stream: Iterable[Seen], size: int) -> Iterator[list[Seen]]:
    iterator = iter(stream)
    while batch := list(islice(iterator, size)):
        yield batch
