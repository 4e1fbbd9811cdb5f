"""Reads notes for their tags: from the last manifest where their stat vouches for it, else from the disk, once."""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from librarian.plan import ReadNote
from librarian.sift import Found
from palace.manifest import Entry
from palace.obsidian.note import read_note
from palace.progress import Report
from palace.vocabulary import Problem, Sha256, Stat, Tag

Compat: TypeAlias = Literal["obsidian", "lenient"]
NoteKey: TypeAlias = tuple[str, str]
"""Vault and path."""

_REPORT_EVERY = 200
_TRIES = 3
"""Readings of a note that changes meanwhile."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where one vault's notes are, and how they are read."""

    mirror: Path
    compat: Compat


@dataclass(slots=True)
class Reading:
    """What was read. `from_disk`: how many files; `unsettled`: notes that still changed, to be read again next time."""

    notes: list[ReadNote] = field(default_factory=list)
    problems: list[tuple[str, Problem]] = field(default_factory=list)
    from_disk: int = 0
    unsettled: set[NoteKey] = field(default_factory=set)


def read_notes(
    found: Sequence[Found], sources: Mapping[str, Source], earlier: Mapping[NoteKey, Entry], report: Report
) -> Reading:
    """Every note with its hash and tags. `earlier`: entries of the last manifest that may be trusted.

    Equal stat: nothing is read. Equal hash: nothing is parsed. A note that cannot be read is left out, with a Problem.
    """
    out = Reading()
    for i, note in enumerate(found):
        old = earlier.get((note.vault, note.path))
        if old is not None and _same(old, note):
            out.notes.append(_known(note, old.stat, old))
        else:
            _read(out, note, sources[note.vault], old)
        if i % _REPORT_EVERY == 0:
            report("reading notes", i, len(found))
    report("reading notes", len(found), len(found))
    return out


def _same(old: Entry, note: Found) -> bool:
    """Equal but for the device, whose number may change with a reboot."""
    a, b = old.stat, note.stat
    return old.mirror == note.mirror and (a.inode, a.size, a.mtime_ns, a.ctime_ns) == (
        b.inode,
        b.size,
        b.mtime_ns,
        b.ctime_ns,
    )


def _known(note: Found, stat: Stat, old: Entry) -> ReadNote:
    tags = tuple([Tag(name, 0, inline=False) for name in old.tags])
    return ReadNote(note.vault, note.path, note.mirror, stat, old.sha256, tags)


def _read(out: Reading, note: Found, source: Source, old: Entry | None) -> None:
    out.from_disk += 1
    try:
        *_, (data, stat, settled) = _readings(f"{source.mirror}/{note.mirror}")
    except PermissionError as error:
        out.problems.append((note.vault, _unreadable(note.path, error)))
        return
    if not settled:
        out.unsettled.add((note.vault, note.path))
        out.problems.append((note.vault, _unsettled(note.path)))
    sha256 = Sha256(hashlib.sha256(data).hexdigest())
    if old is not None and old.sha256 == sha256:
        out.notes.append(_known(note, stat, old))
        return
    parsed = read_note(data, note.path, compat=source.compat)
    out.problems += [(note.vault, problem) for problem in parsed.problems]
    out.notes.append(ReadNote(note.vault, note.path, note.mirror, stat, sha256, parsed.tags))


def _readings(path: str) -> Iterator[tuple[bytes, Stat, bool]]:
    """Bytes, stat and whether the file kept still; again while it did not, a few times."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        for _ in range(_TRIES):
            stream.seek(0)
            before = _stat(descriptor)
            data = stream.read()
            after = _stat(descriptor)
            yield data, after, before == after
            if before == after:
                return


def _stat(descriptor: int) -> Stat:
    s = os.fstat(descriptor)
    return Stat(s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)


def _unreadable(path: str, error: OSError) -> Problem:
    message = f"The note cannot be read: {error.strerror}."
    return Problem(
        path, None, "unreadable", message, "Give the mirror's owner the right to read it, then run dualwall sync."
    )


def _unsettled(path: str) -> Problem:
    message = "The note changed while it was read."
    return Problem(path, None, "changed-while-read", message, "It is read again by the next run.")
