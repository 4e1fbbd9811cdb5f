"""The deletion guard: an absent or emptied source must not empty the mirror.

Deletion needs proof of absence: the root is there, it is the same root as last time, and the loss is under the guard.
What shows that a folder is not the vault, such as the bare mount point of a disk that is not mounted? It is another
folder (another file system or inode), and most notes are not in it. A restored or moved vault is another folder too,
but its notes are there: so a new root alone is nothing, and a new root with most notes missing is a stop.
"""

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath

from palace.settings import Guard
from sync.mirror import Plan

CHECKSUM_EVERY = timedelta(days=7)
"""How often bytes are compared, where otherwise size and time decide."""


@dataclass(frozen=True, slots=True)
class State:
    """What is remembered of a vault's last sync, in the data folder. `root`: `identity` of the source, None if remote.

    `synced`, `checksummed`: ISO 8601 UTC.
    """

    source: str
    root: str | None
    synced: str
    checksummed: str


@dataclass(frozen=True, slots=True)
class Loss:
    """How the source stands against the mirror, in notes. `lost`: gone or emptied, moved ones not counted."""

    before: int
    lost: int
    left: int


def identity(root: Path) -> str:
    """Which folder this is: its file system's id (not its device number, which changes by mount) and its inode."""
    return f"{os.statvfs(root).f_fsid:x}:{root.stat().st_ino}"


def state_file(mirrors: Path, vault: str, kind: str = "json") -> Path:
    """Where a vault's state is kept: beside the mirrors, hidden."""
    return mirrors / ".state" / f"{vault}.{kind}"


def read_state(file: Path) -> State | None:
    """The last state, None if there is none that can be read: then the root counts as new, which is the strict side."""
    try:
        return State(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def write_state(file: Path, state: State) -> None:
    """Keep the state, whole or not at all."""
    beside = file.with_name(f".{file.name}.new")
    beside.write_text(json.dumps(asdict(state), indent=1) + "\n", encoding="utf-8")
    beside.replace(file)


def checksum_due(state: State | None, now: datetime) -> bool:
    """Whether the bytes were compared too long ago, or at a time that has not come yet."""
    if state is None:
        return True
    try:
        age = now - datetime.fromisoformat(state.checksummed)
    except (ValueError, TypeError):
        return True
    return not timedelta(0) <= age < CHECKSUM_EVERY


def loss(before: Mapping[str, int], plan: Plan) -> Loss:
    """What the plan would cost. `before`: the mirror's files with their sizes, as far as the settings still want them.

    A note that is gone here and new elsewhere with the same name and size was moved.
    """
    notes = {path: size for path, size in before.items() if is_note(path)}
    gone = [path for path in plan.deleted if path in notes]
    emptied = [path for path, size in plan.changed.items() if size == 0 and notes.get(path, 0) > 0]
    new = Counter((PurePosixPath(path).name, size) for path, size in plan.new.items() if is_note(path))
    moved = Counter((PurePosixPath(path).name, notes[path]) for path in gone) & new
    left = len(notes) - len(gone) - len(emptied) + new.total()
    return Loss(len(notes), len(gone) + len(emptied) - moved.total(), left)


def stop(found: Loss, guard: Guard, *, same_root: bool, accept: int | None) -> str | None:
    """Why the guard stops, None if it doesn't: the end of a sentence that begins with the source's name."""
    if found.lost == 0 or (accept is not None and found.lost <= accept):
        return None
    of = f"{found.lost} of {found.before} notes are gone or empty"
    if found.left == 0:
        return f"holds no notes any more ({found.before} were there at the last sync)"
    if not same_root and found.lost * 2 > found.before:
        return f"is not known as the folder of the last sync, and {of}"
    if found.lost > guard.notes and found.lost > guard.share * found.before:
        return f"lost too much: {of}, and the guard allows {max(guard.notes, int(guard.share * found.before))}"
    return None


def is_note(path: str) -> bool:
    """Whether a file counts for the guard: what Obsidian takes for a note."""
    return path.lower().endswith(".md")
