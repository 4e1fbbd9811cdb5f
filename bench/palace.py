"""What the palace costs: links against a bare loop, and a run without changes against rsync's.

    python -m bench.palace [--notes N] [--links N] [--json]

Ratios of one run on one machine; the bounds are those of the project's issue: links at most 2.0 times a bare loop, a run
without changes (librarian alone, the program's start taken off) well below 1.2 times `rsync -a --dry-run`.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.vault import generate
from librarian.build import build
from librarian.shelve import shelve
from palace.manifest import Entry
from palace.progress import silent
from palace.settings import Settings
from palace.vocabulary import NoteRef, Placement, RoomAddress, Sha256, Stat

_ROUNDS = 7
_ROOMS = 200


def median(what: Callable[[int], object], rounds: int = _ROUNDS) -> float:
    """Seconds that the middle one of some rounds takes."""
    spent = []
    for turn in range(rounds):
        begin = time.perf_counter()
        what(turn)
        spent.append(time.perf_counter() - begin)
    return statistics.median(spent)


def links(folder: Path, count: int) -> dict[str, float]:
    """Put `count` links into 200 rooms: by a bare loop over `os.link`, and as the librarian does."""
    mirror = folder / "mirror"
    mirror.mkdir()
    for i in range(count):
        (mirror / f"n{i}.md").write_bytes(b"x")
    pairs = [(f"n{i}.md", f"global/wing{i % 8}/room{i % _ROOMS}/n{i}.md") for i in range(count)]
    address = RoomAddress("global", "wing", "room")
    entries = [
        Entry(NoteRef("global", "main", name), name, (Placement(address, "wing", "room", "folder:"),), (link,), Stat(0, 0, 0, 0, 0), Sha256(""), ())
        for name, link in pairs
    ]  # fmt: skip

    def bare(turn: int) -> None:
        source, target = f"{mirror}/", f"{folder}/bare{turn}/"
        for room in {link.rpartition("/")[0] for _, link in pairs}:
            Path(target + room).mkdir(parents=True, exist_ok=True)
        for name, link in pairs:
            os.link(source + name, target + link)

    def ours(turn: int) -> None:
        tally = shelve(folder / f"ours{turn}", entries, {"main": mirror}, silent)
        assert tally.links == count
        assert not tally.apart

    spent = {"bare_s": median(bare, 3), "librarian_s": median(ours, 3)}
    return spent | {"ratio": spent["librarian_s"] / spent["bare_s"]}


def unchanged(folder: Path, notes: int) -> dict[str, float]:
    """Build a generated vault's palace, then run again: nothing changed, every file touched, one note changed."""
    settings = Settings.model_validate({"data": folder / "data", "vaults": {"main": {"source": str(folder / "vault")}}})
    vault, mirror = folder / "vault", settings.mirror("main")
    generate(vault, notes)
    mirror.parent.mkdir(parents=True)
    subprocess.run(["rsync", "-a", f"{vault}/", f"{mirror}/"], check=True)
    first = build(settings)
    assert first.changed
    time.sleep(2.1)  # what is younger is hashed
    build(settings)

    def nothing(_turn: int) -> None:
        assert not build(settings).changed

    def rsync(_turn: int) -> None:
        subprocess.run(["rsync", "-a", "--dry-run", f"{vault}/", f"{mirror}/"], check=True)

    spent = {"first_s": first.seconds, "nothing_s": median(nothing), "rsync_s": median(rsync)}
    spent["ratio"] = spent["nothing_s"] / spent["rsync_s"]
    note = next(mirror.rglob("*.md"))
    with note.open("a") as stream:
        stream.write("\n#one-more/tag\n")
    spent["one_changed_s"] = build(settings).seconds
    for file in mirror.rglob("*.md"):
        os.utime(file)
    spent["touched_s"] = build(settings).seconds
    return spent


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.palace", description="What the palace costs.")
    parser.add_argument("--notes", type=int, default=12_883)
    parser.add_argument("--links", type=int, default=20_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if not shutil.which("rsync"):
        parser.error("rsync is not installed")
    with tempfile.TemporaryDirectory() as folder:
        found = {"links": links(Path(folder), options.links)}
    with tempfile.TemporaryDirectory() as folder:
        found["unchanged"] = unchanged(Path(folder), options.notes)
    print(json.dumps(found) if options.json else _table(found, options.notes, options.links))
    return 0


def _table(found: dict[str, dict[str, float]], notes: int, links: int) -> str:
    a, b = found["links"], found["unchanged"]
    return (
        f"{links} links: bare os.link loop {a['bare_s']:.3f} s, librarian {a['librarian_s']:.3f} s,"
        f" ratio {a['ratio']:.2f} (bound 2.0)\n"
        f"{notes} notes, nothing changed: librarian {b['nothing_s']:.3f} s, rsync -a --dry-run {b['rsync_s']:.3f} s,"
        f" ratio {b['ratio']:.2f} (bound 1.2, ingest included)\n"
        f"{notes} notes: first build {b['first_s']:.2f} s, one note changed {b['one_changed_s']:.2f} s,"
        f" every file touched {b['touched_s']:.2f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
