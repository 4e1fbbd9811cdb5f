"""Recall, nDCG and MRR of a retrieval set, through the same chunker, stores and search as a vault.

    python -m bench.retrieval FOLDER… [--json] [--corpus VAULT] [--limit-queries N] [--rooms] [--store edge|memory]

Documents become notes; a document's rank is that of its best chunk. Rows: random, and bm25, dense and fused by the
search itself with those legs. Vectors are kept in the user's cache by passage and model, so a second run is quick.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from bench.sets import MEASURES, Asked, Document, Mean, RetrievalSet, load
from ingest.chunk import Sizes, TokenCounter, chunk_note
from palace.embedding import dense, model, tokens
from palace.embedding.cache import VectorCache
from palace.embedding.sparse import Bm25Embedder
from palace.errors import DualwallError
from palace.obsidian.note import read_note
from palace.search.engine import Options, Searcher
from palace.search.legs import LEGS, FixedState
from palace.search.lock import MemoryNames
from palace.settings import Embedding, Ingest, Search
from palace.stores.memory import MemoryGraph, MemoryVectors
from palace.stores.payload import Payload
from palace.stores.ports import Embedder, NoteNode, Point, SparseEmbedder, Vector, VectorStore
from palace.vocabulary import GLOBAL, Chunk, NoteId, NoteRef, Sha256
from palace.walls import Reader

READER = Reader("bench", frozenset({GLOBAL}))
ROWS = {"bm25": frozenset({"bm25"}), "dense": frozenset({"dense"}), "fused": frozenset(LEGS)}
_DEPTH = 100
_BATCH = 500
_SEED = 7


@dataclass(frozen=True, slots=True)
class Tools:
    """The models: loaded once for all sets."""

    embedder: Embedder
    sparse: SparseEmbedder
    counter: TokenCounter
    cache: VectorCache


@dataclass(slots=True)
class Palace:
    """A set as notes in stores. `documents`: document id of each note."""

    vectors: VectorStore
    graph: MemoryGraph
    nodes: list[NoteNode] = field(default_factory=list)
    documents: dict[NoteId, str] = field(default_factory=dict)
    chunks: int = 0

    def searcher(self, tools: Tools, legs: frozenset[str], search: Search) -> Searcher:
        """A search with those legs, each note once, so that a hundred hits are a hundred documents."""
        state = FixedState(model_=tools.embedder.fingerprint)
        now = partial(datetime.now, UTC)
        names = MemoryNames(self.nodes)
        search = search.model_copy(update={"per_note": 1})
        parts = (self.vectors, self.graph, names, tools.embedder, tools.sparse)
        return Searcher(*parts, search, now, state, legs)


def build(test: RetrievalSet, tools: Tools, vectors: VectorStore, pools: dict[str, list[str]]) -> Palace:
    """Chunk, weigh, embed and store every document. `pools`: more places for a document, by its id."""
    palace = Palace(vectors, MemoryGraph())
    pending = _prepared(test, tools, pools, palace)
    while batch := list(islice(pending, _BATCH)):
        sparse = tools.sparse.documents([chunk.passage for chunk, _ in batch])
        near = _dense([chunk for chunk, _ in batch], tools)
        vectors.upsert([Point(c.id, p, s, near[c.passage_sha256]) for (c, p), s in zip(batch, sparse, strict=True)])
        palace.chunks += len(batch)
        print(f"{test.name}: {palace.chunks} chunks", file=sys.stderr)
    palace.graph.upsert(palace.nodes)
    vectors.flush()
    vectors.optimize()
    return palace


def _prepared(
    test: RetrievalSet, tools: Tools, pools: dict[str, list[str]], palace: Palace
) -> Iterator[tuple[Chunk, Payload]]:
    sizes = Sizes.of(Ingest().chunk_tokens, tools.embedder.max_tokens)
    for document in test.documents:
        ref = NoteRef(GLOBAL, test.name, document.id)
        note = read_note(document.data, document.id)
        chunks = chunk_note(note, document.data, ref, document.title, tools.counter, sizes=sizes)
        places = [f"rooms/{document.room}", *pools.get(document.id, ())]
        rooms = tuple((*p.split("/", 1), *p.split("/", 1)) for p in places)
        node = NoteNode(
            ref.id,
            GLOBAL,
            test.name,
            ref.path,
            document.title,
            (),
            (),
            rooms,
            "",
            tuple(c.id for c in chunks),
            "active",
        )
        palace.nodes.append(node)
        palace.documents[ref.id] = document.id
        yield from ((chunk, _payload(chunk, ref, document, places)) for chunk in chunks)


def _payload(chunk: Chunk, ref: NoteRef, document: Document, places: Sequence[str]) -> Payload:
    return Payload(
        cube_id=GLOBAL,
        note_id=ref.id,
        wing=tuple(dict.fromkeys(p.partition("/")[0] for p in places)),
        room=tuple(p.partition("/")[2] for p in places),
        place=tuple(places),
        vault=ref.vault,
        path=ref.path,
        title=document.title,
        heading_path=chunk.heading_path,
        section="",
        tags=(),
        aliases=(),
        kind="note",
        status="active",
        trust="owner",
        created=None,
        modified=None,
        valid_from=None,
        invalid_at=None,
        lines=chunk.lines,
        span=(chunk.start, chunk.end),
        text=chunk.text,
        note_sha256=Sha256(""),
        chunk_sha256=chunk.sha256,
        passage_sha256=chunk.passage_sha256,
        model="",
        generation=0,
    )


def _dense(chunks: Sequence[Chunk], tools: Tools) -> dict[Sha256, Vector]:
    wanted = {c.passage_sha256: c.passage for c in chunks}
    model = tools.embedder.fingerprint
    known: dict[Sha256, Vector] = dict(tools.cache.get_many(sorted(wanted), model))
    rest = {sha256: text for sha256, text in wanted.items() if sha256 not in known}
    stream = zip(rest, tools.embedder.passages(list(rest.values())), strict=True)
    while fresh := list(islice(stream, 64)):
        tools.cache.put_many(fresh, model)
        known.update(fresh)
    return known


Rank = Callable[[Asked], Sequence[str]]


def by_search(searcher: Searcher, palace: Palace, options: Callable[[Asked], Options]) -> Rank:
    """Rank documents by a search, excluded ones dropped."""

    def rank(asked: Asked) -> list[str]:
        answer = searcher.search(asked.text, READER, **options(asked))
        found = (palace.documents[h.ref] for h in answer.hits)
        return [d for d in dict.fromkeys(found) if d not in asked.exclude]

    return rank


def by_chance(documents: Iterable[Document]) -> Rank:
    """Rank documents in a random order, the same in every run."""
    ids = [d.id for d in documents]
    dice = random.Random(_SEED)

    def rank(asked: Asked) -> list[str]:
        return [d for d in dice.sample(ids, len(ids)) if d not in asked.exclude]

    return rank


def measure(rank: Rank, questions: Iterable[Asked]) -> dict[str, float]:
    """The measures of a ranking over all questions, and the median milliseconds of one."""
    mean, times = Mean(), []
    for asked in questions:
        started = time.perf_counter()
        ranking = rank(asked)
        times.append(time.perf_counter() - started)
        mean.add(ranking, asked.relevant)
    return {**mean.row(), "ms": round(1000 * sorted(times)[len(times) // 2], 2)}


def room_pools(test: RetrievalSet) -> dict[str, list[str]]:
    """For each question a pool as large as its room: its own documents and random others. Places by document id."""
    sizes: dict[str, int] = {}
    for document in test.documents:
        sizes[document.room] = sizes.get(document.room, 0) + 1
    ids = [d.id for d in test.documents]
    dice = random.Random(_SEED)
    pools: dict[str, list[str]] = {}
    for number, asked in enumerate(test.questions):
        others = dice.sample(ids, min(len(ids), sizes.get(asked.room, 0)))
        for chosen in list(dict.fromkeys((*asked.relevant, *others)))[: len(others)]:
            pools.setdefault(chosen, []).append(_pool(number))
    return pools


def _pool(number: int) -> str:
    return f"pools/{number}"


def run(test: RetrievalSet, tools: Tools, vectors: VectorStore, *, rooms: bool) -> dict[str, Any]:
    """All rows of one set."""
    rooms = rooms and test.has_rooms
    palace = build(test, tools, vectors, room_pools(test) if rooms else {})
    everywhere: Callable[[Asked], Options] = lambda _: {"limit": _DEPTH}  # noqa: E731 - three of a kind
    rows = {"random": measure(by_chance(test.documents), test.questions)}
    for name, legs in ROWS.items():
        searcher = palace.searcher(tools, legs, Search())
        rows[name] = measure(by_search(searcher, palace, everywhere), test.questions)
    if rooms:
        fused = palace.searcher(tools, ROWS["fused"], Search())
        numbers = {q.id: n for n, q in enumerate(test.questions)}
        oracle: Callable[[Asked], Options] = lambda q: {"limit": _DEPTH, "rooms": [f"rooms/{q.room}"]}  # noqa: E731
        pool: Callable[[Asked], Options] = lambda q: {"limit": _DEPTH, "rooms": [_pool(numbers[q.id])]}  # noqa: E731
        rows["oracle room"] = measure(by_search(fused, palace, oracle), test.questions)
        rows["random pool"] = measure(by_search(fused, palace, pool), test.questions)
    size = {"documents": len(test.documents), "chunks": palace.chunks, "questions": len(test.questions)}
    return {"set": test.name, **size, "rows": rows}


def table(result: dict[str, Any]) -> str:
    """The rows of one set as text."""
    columns = (*MEASURES, "ms")
    sizes = f"{result['documents']} documents, {result['chunks']} chunks, {result['questions']} questions"
    lines = [f"{result['set']} ({sizes})", " " * 12 + "".join(f"{c:>11}" for c in columns)]
    for name, row in result["rows"].items():
        lines.append(f"{name:<12}" + "".join(f"{row[c]:>11.2f}" if c == "ms" else f"{row[c]:>11.3f}" for c in columns))
    return "\n".join(lines)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="a retrieval set")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    parser.add_argument("--corpus", type=Path, metavar="VAULT", help="the vault of a set without a corpus")
    parser.add_argument("--limit-queries", type=int, metavar="N", help="only the first N questions")
    parser.add_argument("--rooms", action="store_true", help="also inside each question's room, and a random pool")
    parser.add_argument("--store", choices=("edge", "memory"), default="edge", help="the vector store")
    return parser.parse_args(arguments)


def _tools() -> Tools:
    embedding = Embedding()
    embedder = dense.load(embedding, partial(print, file=sys.stderr))
    cache = VectorCache(model.cache_folder() / "bench" / "vectors.sqlite")
    return Tools(embedder, Bm25Embedder(), tokens.load(embedding), cache)


def _store(kind: str, folder: Path, tools: Tools) -> VectorStore:
    if kind == "memory":
        return MemoryVectors()
    from palace.stores.edge import EdgeVectors  # noqa: PLC0415 - the engine is only loaded where it is asked for

    return EdgeVectors(folder, tools.embedder.dimensions, model=tools.embedder.fingerprint)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each set; returns the exit code."""
    asked = _arguments(arguments)
    try:
        tests = [load(folder, asked.corpus, asked.limit_queries) for folder in asked.folders]
        tools = _tools()
        results = []
        for test in tests:
            with tempfile.TemporaryDirectory(prefix="dualwall-bench-") as folder:
                vectors = _store(asked.store, Path(folder) / "edge", tools)
                results.append(run(test, tools, vectors, rooms=asked.rooms))
                vectors.close()
            if not asked.json:
                print(table(results[-1]), flush=True)
    except DualwallError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)
    if asked.json:
        print(json.dumps({"sets": results}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
