"""How fast notes are read: MB a second and core, over real vaults, beside the bare Markdown events in the same run.

    python -m bench.obsidian [FOLDER…] [--least MB] [--rounds N]

Without a folder: every real vault in ../shared/data/vaults. Everything that `read_note` does counts: properties, tags,
links, headings, blocks with their cuts, and the objects themselves. The best of N rounds is printed, by processor time.
With `--least`, exit code 1 if a vault of over 1 MB is read more slowly.
"""

import argparse
import sys
import tarfile
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyromark import Markdown

from palace.obsidian.markdown import OPTIONS
from palace.obsidian.note import read_note

VAULTS = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "vaults"
_MADE_BY_HAND = ("synthetic", "fixture")
_SMALL = 1.0


@dataclass(frozen=True, slots=True)
class Measured:
    """One vault: notes, megabytes, and best seconds for reading and for the bare events."""

    name: str
    notes: int
    megabytes: float
    reading: float
    bare: float

    @property
    def rate(self) -> float:
        """Megabytes a second of `read_note`."""
        return self.megabytes / self.reading

    def row(self) -> str:
        """A line of the table."""
        bare = self.megabytes / self.bare
        return f"{self.name:24} {self.notes:6} {self.megabytes:7.2f} {self.rate:8.1f} {bare:8.1f} {self.reading / self.bare:6.2f}"


def measure(name: str, notes: list[bytes], rounds: int) -> Measured:
    """Read every note `rounds` times, taking turns with the bare events, so that both meet the same machine."""
    texts = [text for data in notes if (text := _text(data)) is not None]
    events = Markdown(options=OPTIONS).events_with_range

    def read() -> None:
        for data in notes:
            read_note(data, "note.md")

    def bare() -> None:
        for text in texts:
            deque(events(text, merge_text=True), maxlen=0)

    pairs = [(_seconds(read), _seconds(bare)) for _ in range(rounds)]
    size = sum(map(len, notes)) / 1e6
    return Measured(name, len(notes), size, min(a for a, _ in pairs), min(b for _, b in pairs))


def from_archive(archive: Path) -> list[bytes]:
    """The notes of a vault in a tar archive, in memory."""
    notes = []
    with tarfile.open(archive) as members:
        for member in members:
            content = members.extractfile(member) if member.isreg() and member.name.endswith(".md") else None
            if content is not None:
                notes.append(content.read())
    return notes


def from_folder(folder: Path) -> list[bytes]:
    """The notes of a vault's folder; symlinks are not followed."""
    return [file.read_bytes() for file in sorted(folder.rglob("*.md")) if file.is_file() and not file.is_symlink()]


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 when a vault misses `--least`, 2 when there is nothing to read."""
    options = _options(arguments)
    found = [(folder.name, from_folder(folder)) for folder in options.folders]
    if not options.folders:
        archives = sorted(a for a in VAULTS.glob("*.tar.gz") if not a.name.startswith(_MADE_BY_HAND))
        found = [(archive.name.removesuffix(".tar.gz"), from_archive(archive)) for archive in archives]
    if not any(notes for _, notes in found):
        print("No notes to read: name a vault's folder.", file=sys.stderr)
        return 2
    print(f"{'vault':24} {'notes':>6} {'MB':>7} {'MB/s':>8} {'bare':>8} {'ratio':>6}")
    slow = []
    for name, notes in found:
        measured = measure(name, notes, options.rounds)
        print(measured.row(), flush=True)
        if options.least and measured.megabytes > _SMALL and measured.rate < options.least:
            slow.append(name)
    if slow:
        print(f"Slower than {options.least} MB/s: {', '.join(slow)}", file=sys.stderr)
    return 1 if slow else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--least", type=float, default=0.0, help="MB a second that each vault must reach")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args(arguments)


def _seconds(run: Callable[[], None]) -> float:
    start = time.process_time()
    run()
    return max(time.process_time() - start, 1e-9)


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


if __name__ == "__main__":
    sys.exit(main())
