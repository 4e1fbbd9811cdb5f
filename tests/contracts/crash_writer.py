"""A process that writes an embedded vector store and says after each step what is done; made to be killed.

Usage: python -m tests.contracts.crash_writer FOLDER SEED. Lines on standard output: `STEP` with a number that counts up.
"""

import random
import sys
from pathlib import Path

from palace.stores.edge import EdgeVectors
from palace.stores.ports import VectorStore
from tests.contracts.stores import DIMENSIONS, MODEL, chunk_id, note_id, point, unit

CHUNKS = 6


def path_of(n: int) -> str:
    return f"{n}.md"


def step(store: VectorStore, n: int, chance: random.Random) -> None:
    """Note `n` is written, note n-2 gets its vectors, every third note is forgotten five steps later."""
    store.upsert([point(path_of(n), c) for c in range(CHUNKS)])
    if n >= 2:
        store.set_dense([(chunk_id(path_of(n - 2), c), unit(1, n)) for c in range(CHUNKS)])
    if n >= 5 and (n - 5) % 3 == 0:
        store.forget([note_id(path_of(n - 5))])
    if chance.random() < 0.1:
        store.flush()
    if chance.random() < 0.02:
        store.optimize(0)


def expected(steps: int) -> dict[str, bool]:
    """Path of each note that stands after so many steps, and whether it has its vectors."""
    gone = {n - 5 for n in range(5, steps) if (n - 5) % 3 == 0}
    return {path_of(n): n + 2 < steps for n in range(steps) if n not in gone}


def main() -> None:
    store = EdgeVectors(Path(sys.argv[1]), DIMENSIONS, model=MODEL)
    chance = random.Random(int(sys.argv[2]))
    for n in range(1_000_000):
        step(store, n, chance)
        print(n, flush=True)  # noqa: T201 - this is how it tells


if __name__ == "__main__":
    main()
