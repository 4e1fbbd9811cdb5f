"""A whole search in the owner's process, warm: `python -m bench.search [--notes 12000] [--rounds 300] [--folder KEPT]`.

From the question to the answer with its receipt, over all that the reader sees, each question asked once: with its
embedding by the real model, and with a vector that was made before. Beside them the steps by themselves: the embedding,
and the two legs in the store. Passages have random vectors (12 000 notes are about 60 000 chunks). Milliseconds.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bench.gateway import furnish
from bench.server import asked_one_by_one
from bench.vault import questions
from palace.configuration import load
from palace.library import Library
from palace.stores.ports import Embedder, Vector

BOUNDS = {"search": 12.0, "search, embedded before": 5.0}
_WARM = 20
_READER = "scout"


class Known:
    """An embedder that knows its questions' vectors beforehand."""

    def __init__(self, real: Embedder, vectors: Mapping[str, Vector]) -> None:
        self.fingerprint, self.dimensions, self.max_tokens = real.fingerprint, real.dimensions, real.max_tokens
        self._vectors = vectors

    def passages(self, texts: Sequence[str]) -> Iterator[Vector]:
        """The same vectors."""
        return map(self._vectors.__getitem__, texts)

    def query(self, text: str) -> Vector:
        """The vector."""
        return self._vectors[text]

    def close(self) -> None:
        """Nothing to give back."""


def measure(library: Library, notes: int, rounds: int) -> dict[str, dict[str, float]]:
    """The spread of each step."""
    asked = [one["question"] for one in questions(notes, count=2 * (rounds + _WARM))]
    searcher, reader = library.searcher, library.reader(_READER)
    scope = reader.scope()
    library.vectors.warm()
    out = {"search": asked_one_by_one(lambda text: searcher.search(text, reader), asked[::2])}
    known = {text: library.embedder.query(text) for text in asked[1::2]}
    instant = replace(searcher, embedder=Known(library.embedder, known))
    out["search, embedded before"] = asked_one_by_one(lambda text: instant.search(text, reader), list(known))
    words = [searcher.sparse.query(text) for text in known]
    prefetch = searcher.settings.prefetch
    out["dense leg"] = asked_one_by_one(
        lambda vector: library.vectors.dense(vector, scope, prefetch), list(known.values())
    )
    out["bm25 leg"] = asked_one_by_one(lambda sparse: library.vectors.sparse(sparse, scope, prefetch), words)
    fresh = [f"And {text}" for text in known]
    out["embedding"] = asked_one_by_one(library.embedder.query, fresh)
    return out


def main(arguments: Sequence[str]) -> int:
    """Print the figures; 1 when a bound is not held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=12_000)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--folder", type=Path, help="keep the palace there, or take the one that is there")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.folder or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        furnish(folder, given.notes)
        library = Library.open(load(folder / "dualwall.toml"))
        try:
            found = measure(library, given.notes, given.rounds)
        finally:
            library.close()
    for name, times in found.items():
        bound = f"  (at most {BOUNDS[name]})" if name in BOUNDS else ""
        print(f"{name:<26} p50 {times['p50']:7.2f}  p95 {times['p95']:7.2f}{bound}")
    return int(any(found[name]["p50"] > most for name, most in BOUNDS.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
