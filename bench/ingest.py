"""From a generated vault to answers: time to the first answer, the embedding's share, memory, and nights without news.

    python -m bench.ingest [--notes N] [--dense-seconds S] [--first] [--json]

The real model embeds for `S` seconds at most; its cost for the whole vault is drawn from that. A night without changes
is set against `rsync -a --dry-run` over the same tree in the same run; `--first` stops before that. Memory is the
proportional set size of this process and its workers together, sampled: what is theirs alone (anonymous), and with the
pages of the store's files that are mapped, which the system takes back when it needs them. A limit of the system tells
more: docs/benchmarks.md has the command.
"""

import argparse
import itertools
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.vault import generate
from ingest import worker
from librarian.build import build
from palace.library import Library
from palace.settings import ReaderEntry, Settings, Vault
from palace.stores.ports import Vector
from palace.vocabulary import Counts
from sync.run import sync

_ROUNDS = 5
_LEXICAL = worker.Options(dense=False)


class Memory(threading.Thread):
    """The highest proportional set size of this process and its children, in MB: all of it, and its anonymous part."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = self.anonymous = 0.0
        self._end = threading.Event()

    def run(self) -> None:
        """Sample until told to stop."""
        while not self._end.wait(0.2):
            now = [_pss(pid) for pid in (os.getpid(), *_children(os.getpid()))]
            self.peak = max(self.peak, sum(whole for whole, _ in now))
            self.anonymous = max(self.anonymous, sum(anonymous for _, anonymous in now))

    def stop(self) -> None:
        """Take no further sample."""
        self._end.set()
        self.join()


class TimedEmbedder:
    """The real embedder, with the CPU time that its threads spend, for some seconds at most."""

    def __init__(self, library: Library, seconds: float) -> None:
        inner = library.embedder
        self.fingerprint, self.dimensions, self.max_tokens = inner.fingerprint, inner.dimensions, inner.max_tokens
        self.query, self.close = inner.query, inner.close
        self._inner = inner
        self._until = time.monotonic() + seconds
        self.cpu = 0.0
        self.texts = 0

    def passages(self, texts: Sequence[str]) -> Iterator[Vector]:
        """One vector a text; ends with an interruption when the time is over, as a person's ctrl-c would."""
        started = time.process_time()
        for vector in self._inner.passages(texts):
            self.cpu += time.process_time() - started
            self.texts += 1
            yield vector
            if time.monotonic() > self._until:
                raise KeyboardInterrupt
            started = time.process_time()


def night(library: Library, on_answerable: Callable[[], None] | None = None) -> Counts:
    """Librarian and ingest, without sync and verify, and without the dense vectors."""
    build(library.settings)
    return worker.run(library, library.settings, on_answerable=on_answerable, options=_LEXICAL)


def first(settings: Settings, seconds: float) -> dict[str, float]:
    """The first night: until the lexical answer, then embedding for a while."""
    memory = Memory()
    memory.start()
    begin, cpu = time.monotonic(), _cpu()
    sync(settings, "main")
    with opened(settings) as library:
        answered: list[float] = []

        def ask() -> None:
            answer = library.search("me", "which notes speak of bread and the garden?")
            assert answer["receipt"]["generation"] == 1
            answered.append(time.monotonic() - begin)

        counts = night(library, ask)
        settled = time.monotonic() - begin
        lexical = _cpu() - cpu
        timed = TimedEmbedder(library, seconds)
        library._parts["embedder"] = timed  # noqa: SLF001 - the bench stands in for the model
        before = _cpu()
        with suppress(KeyboardInterrupt):
            worker.run(library, settings)
        dense = _cpu() - before
    memory.stop()
    share = timed.cpu / max(timed.texts, 1) * counts.chunks
    around = (dense - timed.cpu) / max(timed.texts, 1) * counts.chunks
    return {
        "notes": counts.new,
        "chunks": counts.chunks,
        "first answer, s": answered[0],
        "lexical pass ended, s": settled,
        "lexical pass, CPU s": lexical,
        "embedding, texts a CPU second": timed.texts / max(timed.cpu, 1e-9),
        "embedding, share of all CPU": share / (share + around + lexical),
        "peak memory, anonymous, MB": memory.anonymous,
        "peak memory with mapped files, MB": memory.peak,
    }


def unchanged(settings: Settings) -> dict[str, float]:
    """Nights without news against rsync's own look at the same tree, the program's start taken off."""
    ours, theirs = [], []
    source, mirror = Path(settings.vaults["main"].source), settings.mirror("main")
    with opened(settings) as library:
        night(library)
    for _ in range(_ROUNDS):
        with opened(settings) as library:
            begin = time.perf_counter()
            night(library)
            ours.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        subprocess.run(["rsync", "-a", "--dry-run", f"{source}/", f"{mirror}/"], check=True)
        theirs.append(time.perf_counter() - begin)
    mine, rsync = statistics.median(ours), statistics.median(theirs)
    return {"nothing changed, s": mine, "rsync -a --dry-run, s": rsync, "ratio": mine / rsync}


def changes(settings: Settings) -> dict[str, float]:
    """What small changes cost: seconds of librarian and ingest, and chunks that would be embedded."""
    source = Path(settings.vaults["main"].source)
    out: dict[str, float] = {}
    with opened(settings) as library:  # every vector that could be asked for again is cached
        _cache_everything(library)
        for name in ("touch every file", "move a folder", "change one paragraph"):
            _change(source, name)
            sync(settings, "main")
            waiting, begin = library.catalogue.waiting(), time.perf_counter()
            night(library)
            out[f"{name}, s"] = time.perf_counter() - begin
            out[f"{name}, chunks to embed"] = library.catalogue.waiting() - waiting
    return out


@contextmanager
def opened(settings: Settings) -> Iterator[Library]:
    """The library, given back at the end."""
    library = Library.open(settings)
    try:
        yield library
    finally:
        library.close()


def _cache_everything(library: Library) -> None:
    vector = library.embedder.query("any")
    chunks = library.catalogue.chunks()
    library.cache.put_many(((passage, vector) for _, passage, _ in chunks.values()), library.model)
    records = ((i, vector) for i in chunks)
    while part := list(itertools.islice(records, 1000)):
        library.vectors.set_dense(part)
        library.catalogue.mark_dense(i for i, _ in part)


def _change(source: Path, name: str) -> None:
    if name == "touch every file":
        for note in source.rglob("*.md"):
            note.touch()
    elif name == "move a folder":
        folder = max((f for f in source.iterdir() if f.is_dir()), key=lambda f: len(list(f.rglob("*.md"))))
        folder.rename(folder.with_name(f"{folder.name} moved"))
    else:
        note = max(source.rglob("*.md"), key=lambda n: n.stat().st_size)
        text = note.read_text("utf-8")
        head, _, tail = text[len(text) // 2 :].partition("\n\n")
        note.write_text(f"{text[: len(text) // 2]}{head}\n\nOne new paragraph stands here.\n\n{tail}", "utf-8")


def _cpu() -> float:
    return sum(
        r.ru_utime + r.ru_stime for r in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def _pss(pid: int) -> tuple[float, float]:
    """Whole and anonymous, in MB; 0 for a process that has gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    except OSError:
        return 0.0, 0.0
    found = {line.split()[0]: int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss")}
    return found["Pss:"], found["Pss_Anon:"]


def _children(pid: int) -> list[int]:
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    except OSError:
        return []
    return [int(c) for c in found] + [g for c in found for g in _children(int(c))]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=1500)
    parser.add_argument("--dense-seconds", type=float, default=30.0)
    parser.add_argument("--first", action="store_true", help="only the first night")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dualwall-bench-") as made:
        folder = Path(made)
        generate(folder / "vault", asked.notes)
        vault = Vault(source=str(folder / "vault"))
        reader = ReaderEntry(cubes=("global",))
        settings = Settings(data=folder / "data", vaults={"main": vault}, readers={"me": reader})
        found = first(settings, asked.dense_seconds)
        if not asked.first:
            found |= unchanged(settings) | changes(settings)
        shutil.rmtree(folder / "data")
    if asked.json:
        sys.stdout.write(json.dumps(found) + "\n")
    else:
        for name, value in found.items():
            print(f"{name:<36} {value:12.3f}")


if __name__ == "__main__":
    main()
