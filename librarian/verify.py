"""Proof that the palace is what its manifest says: each link has the mirror's inode and bytes, and nothing else is there."""

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from palace import manifest
from palace.manifest import Entry, Generation
from palace.settings import Settings
from palace.vocabulary import GLOBAL


@dataclass(frozen=True, slots=True)
class Verified:
    """Differences, one sentence each, and what was looked at."""

    differences: list[str]
    notes: int = 0
    links: int = 0


def verify(settings: Settings) -> list[str]:
    """Every difference between palace, manifest and mirror; empty when all is well."""
    return examine(settings).differences


def examine(settings: Settings) -> Verified:
    """Compare palace, manifest and mirror. Reads every note once, changes nothing."""
    generation = manifest.current(settings)
    if generation is None:
        return Verified(["There is no palace yet. Make it: dualwall librarian build"])
    entries = list(manifest.read(generation.folder / manifest.MANIFEST))
    differences = [
        difference
        for entry in entries
        for difference in _entry(entry, generation, settings.mirror(entry.ref.vault) / entry.mirror)
    ]
    known = {link for entry in entries for link in entry.links}
    found = set(_files(generation.folder, GLOBAL))
    differences += [
        f"{link}: stands in the palace, and the manifest does not know it" for link in sorted(found - known)
    ]
    return Verified(differences, len(entries), sum(len(entry.links) for entry in entries))


def _entry(entry: Entry, generation: Generation, mirror: Path) -> Iterator[str]:
    source = _stat(mirror)
    if source is None:
        yield f"{entry.ref.vault}/{entry.mirror}: gone from the mirror since the palace was built"
    checked: set[int] = set()
    for link in dict.fromkeys(entry.links):
        path = generation.folder / link
        here = _stat(path)
        if here is None:
            yield f"{link}: is missing"
        elif not stat.S_ISREG(here.st_mode):
            yield f"{link}: is no regular file"
        else:
            if source is not None and here.st_ino != source.st_ino and not generation.copied:
                yield f"{link}: is not the mirror's file any more (another inode)"
            if here.st_ino not in checked and _sha256(path) != entry.sha256:
                yield f"{link}: other bytes than the manifest has"
            checked.add(here.st_ino)


def _files(folder: Path, below: str) -> Iterator[str]:
    """Everything that is no folder, relative to `folder`."""
    if not (folder / below).is_dir():
        return
    with os.scandir(folder / below) as entries:
        for entry in entries:
            path = f"{below}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                yield from _files(folder, path)
            else:
                yield path


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
