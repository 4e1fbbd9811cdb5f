"""A palace of some ten thousand notes moved from embedded stores into others: how long, and in how much memory."""

import hashlib
import multiprocessing
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

import numpy as np

from bench import scale_graph
from bench.stores import DIMENSIONS, WORDS_A_CHUNK, Corpus
from palace.migrate import Moved, Pair, move
from palace.settings import Settings
from palace.stores.catalogue import Catalogue, LedgerRow, OwnedChunk, Written, placements_json
from palace.stores.database import Database
from palace.stores.edge import EdgeVectors
from palace.stores.payload import Payload
from palace.stores.ports import NoteNode, Point
from palace.stores.sqlite import SqliteGraph
from palace.vocabulary import NoteRef, Placement, RoomAddress, Sha256, Stat

MODEL = "bench"
AIM = 30.0
"""Seconds for 60 000 chunks (issue of servers)."""


class Stages:
    """A report that keeps when each stage began, and the most memory that was seen, in MB."""

    def __init__(self) -> None:
        self._began: list[tuple[str, float]] = []
        self.memory = 0.0

    def __call__(self, what: str, _done: int, _total: int | None) -> None:
        """A new `what` ends the stage before."""
        self.memory = max(self.memory, _memory())
        if not self._began or self._began[-1][0] != what:
            self._began.append((what, time.perf_counter()))

    def spent(self) -> list[tuple[str, float]]:
        """(stage, seconds) of each."""
        ends = [*(at for _, at in self._began[1:]), time.perf_counter()]
        return [(what, end - at) for (what, at), end in zip(self._began, ends, strict=True)]


def measure(chunks: int, links: int) -> None:
    """Build, move, move again, and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # In a process of its own, so that the memory told below is the move's.
        builder = multiprocessing.get_context("spawn").Process(target=build, args=(folder, chunks, links))
        builder.start()
        builder.join()
        for turn in ("into empty stores", "again, with nothing to do"):
            stages = Stages()
            began = sum(os.times()[:4])
            seconds, moved = _move(folder, stages)
            processor = sum(os.times()[:4]) - began
            held = moved.held
            print(f"{turn}: {held.chunks} chunks, {held.notes} notes, {held.edges} links in {seconds:.1f} s "
                  f"(aim: under {AIM:.0f} s), {processor:.1f} s of processor, {moved.points} chunks written, memory at most {stages.memory:.0f} MB")  # fmt: skip
            print("  " + ", ".join(f"{what} {spent:.1f} s" for what, spent in stages.spent()))
        print(f"the same bits: {_same(folder, 5_000)} of 5000 points")


def build(folder: Path, chunks: int, links: int) -> None:
    """A palace of random vectors and words, always the same, with its ledger."""
    made = scale_graph.make(chunks, links)
    dice = np.random.default_rng(1)
    corpus = Corpus.random(chunks, dice)
    with Database(folder / "catalogue.sqlite") as database, closing(_vectors(folder / "edge")) as vectors:
        catalogue, graph = Catalogue(database), SqliteGraph(database)
        for at in range(0, len(made.notes), scale_graph.NOTES_AT_ONCE):
            notes = made.notes[at : at + scale_graph.NOTES_AT_ONCE]
            first = at * scale_graph.CHUNKS_A_NOTE
            vectors.upsert([p for n, note in enumerate(notes) for p in _points(note, first + n * 5, corpus, dice)])
            with database.transaction():
                catalogue.intend(
                    {n.id: (_row(n), [OwnedChunk(i, _hash(i), dense=True) for i in n.chunk_ids]) for n in notes}
                )
                graph.upsert(notes)
                catalogue.finish({n.id: Written(n.title, (), (), ()) for n in notes})
        with database.transaction():
            graph.link(made.links)
        vectors.optimize()


def _move(folder: Path, stages: Stages) -> tuple[float, Moved]:
    settings = Settings(data=folder / "data")
    with (
        Database(folder / "catalogue.sqlite") as database,
        Database(folder / "copy.sqlite") as other,
        closing(_vectors(folder / "edge")) as vectors,
        closing(_vectors(folder / "copy")) as copy,
    ):
        source, target = Pair(vectors, SqliteGraph(database)), Pair(copy, SqliteGraph(other))
        began = time.perf_counter()
        moved = move(settings, Catalogue(database), source, target, stages)
        return time.perf_counter() - began, moved


def _same(folder: Path, count: int) -> int:
    """How many of so many points have the same bits on both sides."""
    with closing(_vectors(folder / "edge")) as vectors, closing(_vectors(folder / "copy")) as copy:
        sides = [{p.id: _bits(p) for p in islice(store.points(), count)} for store in (vectors, copy)]
    return sum(sides[1].get(i) == bits for i, bits in sides[0].items())


def _bits(point: Point) -> tuple[object, ...]:
    dense = None if point.dense is None else point.dense.tobytes()
    return point.sparse, dense


def _vectors(folder: Path) -> EdgeVectors:
    return EdgeVectors(folder, DIMENSIONS, model=MODEL)


def _row(note: NoteNode) -> LedgerRow:
    placements = [Placement(RoomAddress(note.cube, w, r), wl, rl, "folder", "") for w, r, wl, rl in note.rooms]
    return LedgerRow(
        ref=NoteRef(note.cube, note.vault, note.path),
        file=note.path,
        sha256=_hash(note.id),
        placements=placements_json(placements),
        state="intent",
        stale=False,
        title=note.title,
        modified=note.changed,
        status=note.status,
        lead_chunk=note.chunk_ids[0],
        stat=Stat(0, 0, 0, 0, 0),
    )


def _points(note: NoteNode, first: int, corpus: Corpus, dice: np.random.Generator) -> Sequence[Point]:
    return [
        Point(i, _payload(note, n, Sha256(_hash(i))), corpus.words(WORDS_A_CHUNK, dice), corpus.vectors[first + n])
        for n, i in enumerate(note.chunk_ids)
    ]


def _payload(note: NoteNode, at: int, passage: Sha256) -> Payload:
    text = " ".join(f"word{(at * 31 + k * 17) % 9973}" for k in range(WORDS_A_CHUNK))
    return Payload(
        cube_id=note.cube,
        note_id=note.id,
        wing=tuple(dict.fromkeys(w for w, _, _, _ in note.rooms)),
        room=tuple(r for _, r, _, _ in note.rooms),
        place=tuple(f"{w}/{r}" for w, r, _, _ in note.rooms),
        vault=note.vault,
        path=note.path,
        title=note.title,
        heading_path=("Heading",),
        section="",
        tags=note.tags,
        aliases=(),
        kind="note",
        status=note.status,
        trust="owner",
        created=None,
        modified=note.changed,
        valid_from=None,
        invalid_at=None,
        lines=(1 + 9 * at, 9 + 9 * at),
        span=(0, len(text)),
        text=text,
        note_sha256=_hash(note.id),
        chunk_sha256=_hash(text),
        passage_sha256=passage,
        model=MODEL,
        generation=1,
    )


def _hash(text: str) -> Sha256:
    return Sha256(hashlib.sha256(text.encode()).hexdigest())


def _memory() -> float:
    """Memory of this process alone in MB, without mapped files; 0 where the system does not tell."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon")), 0.0)
