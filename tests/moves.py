"""Moves into embedded stores of another folder; as a program one that dies in the middle.

`python -m tests.moves SETTINGS FOLDER REPORTS SECONDS`: kill -9 of itself, so many seconds after that many reports of progress.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Timer

from palace.configuration import load
from palace.library import Library
from palace.migrate import Moved, Pair, move
from palace.progress import Report, silent
from palace.stores.database import Database
from palace.stores.edge import EdgeVectors
from palace.stores.sqlite import SqliteGraph


@contextmanager
def elsewhere(library: Library, folder: Path) -> Iterator[Pair]:
    """Embedded stores in another folder, for vectors of the library's model."""
    vectors = EdgeVectors(folder / "edge", library.embedder.dimensions, model=library.model)
    with closing(vectors), Database(folder / "graph.sqlite") as database:
        yield Pair(vectors, SqliteGraph(database))


def moved_to(library: Library, target: Pair, report: Report = silent) -> Moved:
    return move(library.settings, library.catalogue, Pair(library.vectors, library.graph), target, report)


def main(settings: str, folder: str, reports: str, seconds: str) -> None:
    left = int(reports)

    def dying(_what: str, _done: int, _total: int | None) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            if not float(seconds):
                os.kill(os.getpid(), signal.SIGKILL)
            Timer(float(seconds), os.kill, (os.getpid(), signal.SIGKILL)).start()

    with closing(Library.open(load(Path(settings)))) as library, elsewhere(library, Path(folder)) as target:
        moved_to(library, target, dying)
    time.sleep(float(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
