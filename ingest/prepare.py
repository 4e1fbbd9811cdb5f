"""One note's bytes to all that the stores need of it: chunks, sparse vectors, links, names. No store is touched.

Runs in this process, or in workers that are started beside it: a note's work is independent of every other's.
"""

import hashlib
import json
import multiprocessing
import multiprocessing.connection
import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice

from ingest.chunk import Sizes, chunk_note
from ingest.source import Seen, open_file
from palace.embedding import tokens
from palace.embedding.sparse import Bm25Embedder
from palace.names import fold, nfc
from palace.obsidian.links import link_key
from palace.obsidian.note import read_note
from palace.search.lock import name_key
from palace.settings import Embedding
from palace.stores.catalogue import LinkRow
from palace.stores.ports import Sparse
from palace.vocabulary import Chunk, ParsedNote, Problem, PropertyValue, Sha256, Status

_JOBS_A_TASK = 16
_MOST_TAGS = 500
"""Tags of a note that are kept: each of its chunks carries them all."""
_PARALLEL_FROM = 200
"""Fewer notes than this are prepared here: starting workers costs more than they save."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How notes become chunks: equal recipes give equal chunks."""

    sizes: Sizes
    max_bytes: int
    embedding: Embedding


@dataclass(frozen=True, slots=True)
class Prepared:
    """A note, ready to be written. `refusal`: why it cannot be, with everything else empty."""

    seen: Seen
    sha256: Sha256
    title: str
    refusal: str | None = None
    chunks: tuple[Chunk, ...] = ()
    sparse: tuple[Sparse, ...] = ()
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    links: tuple[LinkRow, ...] = ()
    status: Status = Status.ACTIVE
    created: str | None = None
    modified: str = ""
    valid_from: str | None = None
    invalid_at: str | None = None
    problems: tuple[Problem, ...] = field(default=())

    @property
    def link_key(self) -> str:
        """The key by which links find this note."""
        return link_key(self.seen.ref.path)

    @property
    def names(self) -> tuple[str, ...]:
        """Folded title and aliases, for the canonical lock."""
        return tuple(sorted({name_key(n) for n in (self.title, *self.aliases)} - {""}))


def title_of(path: str) -> str:
    """A note's title as Obsidian shows it: its file name without `.md`."""
    name = path.rsplit("/", 1)[-1]
    return name[:-3] if name.lower().endswith(".md") else name


class Preparer:
    """Prepares notes with one tokenizer and one sparse embedder."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._counter = tokens.load(recipe.embedding)
        self._sparse = Bm25Embedder()

    def prepare(self, seen: Seen) -> Prepared:
        """Read, parse, chunk and weigh one note. Errors of the note come back as `refusal`; nothing is raised."""
        title = title_of(seen.ref.path)
        known = seen.sha256 or Sha256("")
        if seen.stat.size > self._recipe.max_bytes:
            limit = self._recipe.max_bytes // (1024 * 1024)
            return _refused(seen, known, title, ("too-large", f"is larger than {limit} MB", "Split the note."))
        try:
            with open_file(seen.file) as stream:
                data = stream.read()
        except OSError as error:
            hint = "See that the file is there and readable, then run `dualwall nightly` again."
            return _refused(seen, known, title, ("unreadable", f"cannot be read: {error.strerror}", hint))
        sha256 = Sha256(hashlib.sha256(data).hexdigest())
        if known and sha256 != known:
            why = ("changed-while-read", "changed while it was read", "The next run takes it.")
            return _refused(seen, sha256, title, why)
        note = read_note(data, seen.ref.path, compat="lenient" if seen.compat == "lenient" else "obsidian")
        if not note.text_encoding_ok:
            reason = note.problems[0].message if note.problems else "is no UTF-8 text"
            return Prepared(seen, sha256, title, refusal=reason, problems=note.problems)
        chunks = tuple(chunk_note(note, data, seen.ref, title, self._counter, sizes=self._recipe.sizes))
        return self._prepared(seen, sha256, title, note, chunks)

    def _prepared(
        self, seen: Seen, sha256: Sha256, title: str, note: ParsedNote, chunks: tuple[Chunk, ...]
    ) -> Prepared:
        words = [c.passage for c in chunks]
        if words and note.aliases:  # a note is found by its aliases too
            words[0] = f"{' '.join(note.aliases)}\n{words[0]}"
        properties = {k.lower(): v for k, v in note.properties.items()}
        return Prepared(
            seen,
            sha256,
            title,
            chunks=chunks,
            sparse=tuple(self._sparse.documents(words)),
            tags=tuple(dict.fromkeys(fold(t.name) for t in note.tags))[:_MOST_TAGS],
            aliases=note.aliases,
            links=tuple(LinkRow(link_key(k.target), k.target, k.link, k.alias, k.embed, k.line) for k in note.links),
            status=_status(properties.get("status"), seen.status),
            created=_text(properties.get("created")),
            modified=datetime.fromtimestamp(seen.stat.mtime_ns // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            valid_from=_text(properties.get("valid_from")),
            invalid_at=_text(properties.get("invalid_at")),
            problems=note.problems,
        )


def prepare_all(notes: Iterable[Seen], total: int, recipe: Recipe, workers: int) -> Iterator[Prepared]:
    """Prepare a stream of notes in order, in bounded memory; from 200 notes on by processes beside this one."""
    if total < _PARALLEL_FROM or workers < 2:
        preparer = Preparer(recipe)
        yield from map(preparer.prepare, notes)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_start, initargs=(recipe,)) as pool:
        stream = iter(notes)
        window: deque[Future[list[Prepared]]] = deque()
        try:
            while True:
                while len(window) < 3 * workers and (batch := list(islice(stream, _JOBS_A_TASK))):
                    window.append(pool.submit(_prepare_batch, batch))
                if not window:
                    return
                yield from window.popleft().result()
        finally:
            for future in window:
                future.cancel()


_preparer: list[Preparer] = []


def _start(recipe: Recipe) -> None:
    """A worker's start; it ends with its parent, also when that is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    _preparer.append(Preparer(recipe))


def _end_with(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os._exit(1)


def _prepare_batch(batch: Sequence[Seen]) -> list[Prepared]:
    return [_preparer[0].prepare(seen) for seen in batch]


def _refused(seen: Seen, sha256: Sha256, title: str, why: tuple[str, str, str]) -> Prepared:
    code, reason, hint = why
    problem = Problem(seen.ref.path, None, code, f"The note {reason}.", hint)
    return Prepared(seen, sha256, title, refusal=reason, problems=(problem,))


def _status(value: PropertyValue, otherwise: Status) -> Status:
    """The note's own status where it names a rung; a candidate stays one until a person adopts it."""
    if otherwise is Status.CANDIDATE or not isinstance(value, str):
        return otherwise
    return Status(value.lower()) if value.lower() in set(Status) else otherwise


def _text(value: PropertyValue) -> str | None:
    if value is None or value == "":
        return None
    return nfc(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
