"""The embedded stores at size: `python -m bench.stores [--points 60000] [--notes 40000]`.

Vectors: random unit vectors in clusters, words by Zipf's law, rooms unrelated to the vectors (the case in which filtered
graphs fail). Recall is counted against an exact scan in numpy, beside the time that the answer took.
"""

import argparse
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from palace.stores.database import Database
from palace.stores.edge import EdgeVectors
from palace.stores.payload import Payload
from palace.stores.ports import Edge, NoteNode, Point, Scored, Sparse
from palace.stores.sqlite import SqliteGraph
from palace.vocabulary import GLOBAL, ChunkId, NoteId, NoteRef, Sha256
from palace.walls import Reader, Scope

DIMENSIONS = 384
CLUSTERS = 200
VOCABULARY = 50_000
WORDS_A_CHUNK = 90
CHUNKS_A_NOTE = 5
PRIVATE = "dev-cat"
SHARES = (0.01, 0.05, 0.2, 0.5, 1.0)
QUERIES = 60
PREFETCH = 100
_T = TypeVar("_T")
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Points `0..n-1`: vectors of shape (n, DIMENSIONS), a number in [0, 1) that says which rooms hold a point."""

    vectors: Floats
    luck: npt.NDArray[np.float64]
    centres: Floats
    word_edges: npt.NDArray[np.float64]

    @classmethod
    def random(cls, count: int, dice: np.random.Generator) -> "Corpus":
        """Clustered unit vectors and Zipf's words."""
        centres = dice.standard_normal((CLUSTERS, DIMENSIONS)).astype(np.float32)
        weights = 1 / np.arange(1, VOCABULARY + 1)
        near = centres[dice.integers(0, CLUSTERS, count)]
        return cls(_units(near, dice), dice.random(count), centres, np.cumsum(weights / weights.sum()))

    def id(self, n: int) -> ChunkId:
        """A point's id."""
        return ChunkId(str(uuid.uuid5(uuid.NAMESPACE_OID, str(n))))

    def words(self, count: int, dice: np.random.Generator) -> Sparse:
        """A text of `count` words as a BM25 vector."""
        tokens = np.unique(np.searchsorted(self.word_edges, dice.random(count)).clip(0, VOCABULARY - 1))
        return Sparse(tuple(tokens.tolist()), (1.0,) * len(tokens))

    def queries(self, dice: np.random.Generator) -> Floats:
        """Questions near the clusters."""
        return _units(self.centres[dice.integers(0, CLUSTERS, QUERIES)], dice)

    def places(self, n: int) -> tuple[str, ...]:
        """Rooms that hold 1, 5, 20, 50 and 100 % of all points, and one small room of its own."""
        return (*(place_of(share) for share in SHARES if self.luck[n] < share), f"small/r{n % 300}")


def place_of(share: float) -> str:
    """The room that holds this share of the points."""
    return f"share/{share:.0%}"


def _units(near: Floats, dice: np.random.Generator) -> Floats:
    raw = near + dice.standard_normal(near.shape).astype(np.float32)
    return np.asarray(raw / np.linalg.norm(raw, axis=1, keepdims=True), dtype=np.float32)


def payload(corpus: Corpus, n: int) -> Payload:
    """A chunk's payload of the usual size; every tenth note is private."""
    places = corpus.places(n)
    note = NoteRef(PRIVATE if n // CHUNKS_A_NOTE % 10 == 0 else GLOBAL, "main", f"folder/{n // CHUNKS_A_NOTE}.md")
    text = " ".join(f"word{(n * 31 + k * 17) % 9973}" for k in range(WORDS_A_CHUNK))
    return Payload(
        cube_id=note.cube,
        note_id=note.id,
        wing=tuple({p.split("/")[0] for p in places}),
        room=tuple(p.split("/")[1] for p in places),
        place=places,
        vault="main",
        path=note.path,
        title=f"Note {n // CHUNKS_A_NOTE}",
        heading_path=("Heading",),
        section="",
        tags=("projects/x",),
        aliases=(),
        kind="note",
        status="active",
        trust="owner",
        created=None,
        modified="2026-01-01T00:00:00Z",
        valid_from=None,
        invalid_at=None,
        lines=(1, 9),
        span=(0, len(text)),
        text=text,
        note_sha256=Sha256("a" * 64),
        chunk_sha256=Sha256("b" * 64),
        passage_sha256=Sha256("c" * 64),
        model="bench",
        generation=1,
    )


def build(store: EdgeVectors, corpus: Corpus, dice: np.random.Generator) -> None:
    """The lexical pass, the dense pass, then `optimize`, each with its rate."""
    count = len(corpus.vectors)
    batches = [range(at, min(at + 256, count)) for at in range(0, count, 256)]
    spent = 0.0
    for batch in batches:
        points = [Point(corpus.id(n), payload(corpus, n), corpus.words(WORDS_A_CHUNK, dice)) for n in batch]
        spent += _seconds(partial(store.upsert, points))
    spent += _seconds(store.flush)
    print(f"upsert, words alone     {count / spent:8.0f} points/s   memory {_memory():.0f} MB")
    spent = 0.0
    for batch in batches:
        vectors = [(corpus.id(n), corpus.vectors[n]) for n in batch]
        spent += _seconds(partial(store.set_dense, vectors))
    spent += _seconds(store.flush)
    print(f"set_dense               {count / spent:8.0f} points/s   memory {_memory():.0f} MB")
    print(f"optimize (own process)  {_seconds(store.optimize):8.1f} s")
    print(f"warm                    {_seconds(store.warm):8.1f} s")


def legs(store: EdgeVectors, corpus: Corpus, dice: np.random.Generator) -> None:
    """Both legs and the payloads of ten hits, a scope at a time, recall beside time."""
    everyone = Reader("all", frozenset({GLOBAL, PRIVATE}))
    private = np.arange(len(corpus.vectors)) // CHUNKS_A_NOTE % 10 == 0
    rooms = [(f"room of {s:.0%}", everyone.scope(places=[place_of(s)]), corpus.luck < s) for s in SHARES]
    whole = ("every cube", everyone.scope(), corpus.luck < 1)
    public = ("one cube of two", Reader("me", frozenset({GLOBAL})).scope(), ~private)
    print(f"{'ms: p50, p95, processor':<24}{'dense':>21}{'words':>21}{'both and 10 payloads':>21}{'recall@10':>11}")
    for name, scope, inside in (*rooms, whole, public):
        questions = list(zip(corpus.queries(dice), [corpus.words(8, dice) for _ in range(QUERIES)], strict=True))
        for q, w in questions[:5]:
            _search(store, q, w, scope)
        dense, found = _times([partial(store.dense, q, scope, PREFETCH) for q, _ in questions])
        words, _ = _times([partial(store.sparse, w, scope, PREFETCH) for _, w in questions])
        both, _ = _times([partial(_search, store, q, w, scope) for q, w in questions])
        recall = np.mean([_recall(corpus, q, hits, inside) for (q, _), hits in zip(questions, found, strict=True)])
        print(f"{name:<24}{dense}{words}{both}{recall:>11.3f}", flush=True)


def _search(store: EdgeVectors, query: Floats, words: Sparse, scope: Scope) -> list[Scored]:
    hits = store.dense(query, scope, PREFETCH)
    store.sparse(words, scope, PREFETCH)
    store.retrieve([h.id for h in hits[:10]], scope)
    return hits


def _recall(corpus: Corpus, query: Floats, hits: Sequence[Scored], inside: npt.NDArray[np.bool_]) -> float:
    scores = np.where(inside, corpus.vectors @ query, -2.0)
    best = {corpus.id(int(n)) for n in np.argpartition(-scores, 10)[:10]}
    return len(best & {h.id for h in hits[:10]}) / 10


def graph(folder: Path, count: int, dice: np.random.Generator) -> None:
    """Rooms and neighbours of a large graph."""
    with Database(folder / "catalogue.sqlite") as database:
        store = SqliteGraph(database)
        ids = [NoteRef(GLOBAL, "main", f"{n}.md").id for n in range(count)]
        spent = _seconds(lambda: _fill(store, ids, dice))
        scope = Reader("me", frozenset({GLOBAL})).scope()
        rooms, listed = _times([partial(store.rooms, scope)] * 20)
        around, _ = _times([partial(store.neighbors, i, scope) for i in ids[1:200]])
        hub, linked = _times([partial(store.neighbors, ids[0], scope)] * 10)
        print(f"graph of {count} notes and {3 * count} links: {count / spent:.0f} notes/s; ms: p50, p95, processor")
        print(f"{len(listed[0])} rooms{'':<15}{rooms}")
        print(f"neighbours{'':<14}{around}")
        print(f"{len(linked[0].backlinks)} backlinks{'':<10}{hub}  (and a tag on every fortieth note)")


def _fill(store: SqliteGraph, ids: Sequence[NoteId], dice: np.random.Generator) -> None:
    for at in range(0, len(ids), 500):
        part = range(at, min(at + 500, len(ids)))
        with store.transaction():
            store.upsert([_node(ids[n], n) for n in part])
            for n in part:
                targets = (
                    [0, *dice.integers(0, len(ids), 2).tolist()]
                    if n % 40 == 0
                    else dice.integers(1, len(ids), 3).tolist()
                )
                store.link(
                    {ids[n]: [Edge(ids[n], ids[t], f"{t}", None, embed=False, line=k) for k, t in enumerate(targets)]}
                )


def _node(note_id: NoteId, n: int) -> NoteNode:
    rooms = (("projects", f"r{n % 700}", "Projects", f"R{n % 700}"), ("tags", f"t{n % 90}", "tags", f"T{n % 90}"))
    tags = ("everything", f"t{n % 90}") if n % 40 == 0 else (f"t{n % 90}", f"rare{n % 5000}")
    return NoteNode(
        note_id, GLOBAL, "main", f"{n}.md", f"Note {n}", (), tags, rooms, f"2026-01-01T00:00:{n % 60:02}Z", (), "active"
    )


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds by the clock and by the processor (all threads), a call each. Only the second is calm on a busy machine."""

    clock: list[float]
    processor: list[float]

    def __str__(self) -> str:
        p50, p95 = np.percentile(np.array(self.clock) * 1000, [50, 95])
        return f"{p50:>7.2f}{p95:>7.2f}{np.median(self.processor) * 1000:>7.2f}"


def _times(work: Sequence[Callable[[], _T]]) -> tuple[Times, list[_T]]:
    times, results = Times([], []), []
    for call in work:
        began = time.perf_counter(), time.process_time()
        results.append(call())
        times.clock.append(time.perf_counter() - began[0])
        times.processor.append(time.process_time() - began[1])
    return times, results


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _memory() -> float:
    """Resident memory in MB, 0 where the system does not tell."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


def main(arguments: Sequence[str]) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=60_000)
    parser.add_argument("--notes", type=int, default=40_000)
    options = parser.parse_args(arguments)
    dice = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus.random(options.points, dice)
        store = EdgeVectors(Path(folder) / "edge", DIMENSIONS, model="bench")
        build(store, corpus, dice)
        legs(store, corpus, dice)
        store.close()
        opening = _seconds(lambda: EdgeVectors(Path(folder) / "edge", DIMENSIONS, model="bench").close())
        print(f"open and close          {opening:8.2f} s")
        graph(Path(folder), options.notes, dice)


if __name__ == "__main__":
    main(sys.argv[1:])
