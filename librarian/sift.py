"""Which of the mirror's files are notes for the shelves, and why the others are none. Pure."""

import stat
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from pathspec import GitIgnoreSpec

from librarian.scan import CTIME, INODE, MODE, MTIME, PATH, SIZE, Row
from palace.manifest import Skipped
from palace.names import nfc
from palace.vocabulary import Problem, Stat

SKIPPED, QUARANTINED = "skipped", "quarantined"
RACY_NS = 2_000_000_000
"""A file younger than this may change again within its timestamp (git's rule)."""


@dataclass(frozen=True, slots=True)
class Sieve:
    """What one vault keeps off the shelves.

    `excluded_by_vault`: the vault's own excluded files; `conflict_copy`: whether a path is one, given its folder's
    names; `max_bytes`: of a note.
    """

    vault: str
    exclude: GitIgnoreSpec
    excluded_by_vault: Callable[[str], bool]
    conflict_copy: Callable[[str, frozenset[str]], bool]
    templates: str | None
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Found:
    """A note's file. `path`: its identity, in NFC; `mirror`: the same as the disk has it."""

    vault: str
    path: str
    mirror: str
    stat: Stat


@dataclass(slots=True)
class Sifted:
    """Notes, what stands on no shelf, and what is wrong with some of both (vault, Problem)."""

    notes: list[Found] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    problems: list[tuple[str, Problem]] = field(default_factory=list)


def sift(rows: Iterable[Row], sieve: Sieve) -> Sifted:
    """Sort one vault's files into notes and the rest; no file is left out without a word."""
    out = Sifted()
    rows = list(rows)
    siblings = _siblings(rows)
    claims: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        path = identity(row[PATH])
        folder, _, name = path.rpartition("/")
        reason = _no_file_of_notes(name, row[MODE]) or _set_aside(path, sieve, siblings[folder])
        if reason:
            out.skipped.append(Skipped(sieve.vault, path, SKIPPED, reason))
        elif row[SIZE] > sieve.max_bytes:
            _quarantine(out, sieve.vault, _too_large(path, row[SIZE], sieve.max_bytes))
        else:
            claims[path].append(row)
    for path, claimants in claims.items():
        _settle(out, sieve.vault, path, claimants)
    return out


def identity(on_disk: str) -> str:
    r"""A path as identities have it: in NFC; bytes that are no UTF-8 written out as `\xe9`."""
    if on_disk.isascii():
        return on_disk
    return nfc(on_disk.encode(errors="surrogateescape").decode(errors="backslashreplace"))


def _no_file_of_notes(name: str, mode: int) -> str:
    """Why a file cannot be a note, whatever the settings say; empty when it can."""
    if name.startswith("."):
        return "hidden folder" if stat.S_ISDIR(mode) else "dot file"
    if stat.S_ISLNK(mode):
        return "symlink (never followed)"
    if not stat.S_ISREG(mode):
        return "no regular file"
    return "" if name.lower().endswith(".md") else "no Markdown"


def _set_aside(path: str, sieve: Sieve, siblings: frozenset[str]) -> str:
    """Why a note is kept off the shelves; empty when it is not."""
    if sieve.exclude.match_file(path):
        return "excluded by the settings"
    if sieve.excluded_by_vault(path):
        return "excluded by the vault (Excluded files)"
    if sieve.templates and path.startswith(f"{sieve.templates}/"):
        return "template"
    return "conflict copy" if sieve.conflict_copy(path.rpartition("/")[2], siblings) else ""


def _siblings(rows: Iterable[Row]) -> dict[str, frozenset[str]]:
    names: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        folder, _, name = identity(row[PATH]).rpartition("/")
        names[folder].add(name)
    return {folder: frozenset(found) for folder, found in names.items()}


def _settle(out: Sifted, vault: str, path: str, claimants: list[Row]) -> None:
    """One file is the note of this path: the one whose name is in NFC, else the first; the others are Problems."""
    best, *others = sorted(claimants, key=lambda row: (row[PATH] != path, row[PATH]))
    found = Stat(0, best[INODE], best[SIZE], best[MTIME], best[CTIME])
    out.notes.append(Found(vault, path, best[PATH], found))
    for _ in others:
        _quarantine(out, vault, _same_name(path))
    if not _is_utf8(best[PATH]):
        out.problems.append((vault, _not_utf8(path)))


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _quarantine(out: Sifted, vault: str, problem: Problem) -> None:
    out.skipped.append(Skipped(vault, problem.path, QUARANTINED, problem.message))
    out.problems.append((vault, problem))


def _too_large(path: str, size: int, limit: int) -> Problem:
    return Problem(
        path,
        None,
        "too-large",
        f"The note is too large: {size / 1e6:.1f} MB, and {limit / 1e6:.1f} MB are the limit.",
        "Split it, or raise max_note_bytes under [ingest] in the settings.",
    )


def _same_name(path: str) -> Problem:
    return Problem(
        path,
        None,
        "same-name",
        "Two files have this name, spelt in two normal forms of Unicode; only one of them stands in the palace.",
        "Rename one of the two.",
    )


def _not_utf8(path: str) -> Problem:
    return Problem(
        path, None, "name-not-utf8", "The file's name is no UTF-8; Obsidian would not show it.", "Rename the file."
    )


def racy(notes: Iterable[Found], now_ns: int) -> Iterator[Found]:
    """Notes so young that they may change once more without their stat showing it."""
    limit = now_ns - RACY_NS
    return (note for note in notes if note.stat.mtime_ns >= limit and note.stat.ctime_ns >= limit)
