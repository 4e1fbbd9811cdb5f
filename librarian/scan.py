"""The mirror's files with their stats, seen once a run; a digest of them says at once whether anything moved."""

import hashlib
import marshal
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from palace.errors import SettingsError, UnreachableError
from palace.names import fold, nfc
from palace.vocabulary import Stat

Row: TypeAlias = tuple[str, int, int, int, int, int]
"""Path below the mirror as the disk has it, mode, inode, size, mtime_ns, ctime_ns; 0 for all numbers of a hidden folder."""
PATH: Final = 0
MODE: Final = 1
INODE: Final = 2
SIZE: Final = 3
MTIME: Final = 4
CTIME: Final = 5


def scan(mirror: Path, vault: str, public: Iterable[str], pruned: frozenset[str]) -> list[Row]:
    """Every file below the public folders, sorted; symlinks are rows, never followed; hidden folders are one row.

    `pruned`: folded paths of folders that are not entered and not named (private roots). Raises UnreachableError
    without a mirror, and SettingsError for a public folder that it has not: neither proves that a note is gone.
    """
    if not mirror.is_dir():
        raise UnreachableError(f'There is no mirror of vault "{vault}" at {mirror}.', "Make it: dualwall sync")
    rows: list[Row] = []
    for folder in _outermost(public):
        found = _on_disk(mirror, folder)
        if found is None:
            raise SettingsError(
                f'vaults.{vault}.public names "{folder}", and the vault has no such folder.',
                "Mend the settings, or run dualwall sync if the mirror is older than the folder.",
            )
        if not _is_pruned(folder, pruned):
            _walk(str(mirror / found), f"{found}/" if found else "", pruned, rows)
    rows.sort()
    return rows


def digest(scans: Mapping[str, list[Row]]) -> str:
    """SHA-256 of every vault's rows. Only this machine's to compare: inodes, times and the encoding are its own."""
    # Version 2 knows no references, so equal rows give equal bytes; ten times faster than text.
    return hashlib.sha256(marshal.dumps([(vault, scans[vault]) for vault in sorted(scans)], 2)).hexdigest()


def with_stats(rows: Iterable[Row], stats: Mapping[str, Stat]) -> list[Row]:
    """The same rows with later stats, by path: linking a file moves its ctime."""
    return [
        (row[PATH], row[MODE], new.inode, new.size, new.mtime_ns, new.ctime_ns)
        if (new := stats.get(row[PATH]))
        else row
        for row in rows
    ]


def _walk(top: str, prefix: str, pruned: frozenset[str], rows: list[Row]) -> None:
    folders = [(prefix, top)]
    while folders:
        above, folder = folders.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if entry.is_dir(follow_symlinks=False):
                    if name[0] == ".":
                        rows.append((f"{above}{name}", stat.S_IFDIR, 0, 0, 0, 0))
                    elif not pruned or not _is_pruned(above + name, pruned):
                        folders.append((f"{above}{name}/", entry.path))
                else:
                    s = entry.stat(follow_symlinks=False)
                    rows.append((above + name, s.st_mode, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns))


def _outermost(public: Iterable[str]) -> list[str]:
    """Folders without those that lie in another one."""
    out: list[str] = []
    for folder in sorted(public):
        if not any(not above or folder == above or folder.startswith(f"{above}/") for above in out):
            out.append(folder)
    return out


def _on_disk(mirror: Path, folder: str) -> str | None:
    """A public folder as the disk spells it (a Mac's vault has NFD names); None if it is not there.

    A symlink is not there: it could lead out of the mirror.
    """
    found: list[str] = []
    for part in filter(None, folder.split("/")):
        with os.scandir(mirror.joinpath(*found)) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False) and nfc(entry.name) == part]
        if not names:
            return None
        found.append(part if part in names else min(names))
    return "/".join(found)


def _is_pruned(folder: str, pruned: frozenset[str]) -> bool:
    return bool(pruned) and fold(folder) in pruned
