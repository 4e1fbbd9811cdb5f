"""Hand: the agent's own directives, read from its private roots.

The ledger says which files were taken in, the settings say in which order they stand. The text is the file's as it is
now, so that an agent sees its own change at once. No symbolic link below a root is followed: it could lead through a wall.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path, PurePath

from pathspec import GitIgnoreSpec

from injector.budget import most_bytes
from injector.compose import Entry, LeftOut
from injector.neutral import one_line
from palace.names import nfc, room_key
from palace.obsidian.frontmatter import read_properties
from palace.obsidian.source import Source
from palace.settings import Settings
from palace.stores.catalogue import LedgerRow, placements_from
from palace.vocabulary import GLOBAL, Sha256, Status

ROOM = "system_config"
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Root:
    """A private root: its folder, and the globs of its system_config, each alone and all together."""

    cube: str
    folder: Path
    globs: tuple[GitIgnoreSpec, ...]
    whole: GitIgnoreSpec

    def place(self, row: LedgerRow) -> tuple[int, str] | None:
        """(number of the first glob that names it, path below the folder) of a note of this root, else None."""
        if row.ref.cube != self.cube or not PurePath(row.file).is_relative_to(self.folder):
            return None
        path = PurePath(row.file).relative_to(self.folder).as_posix()
        if not self.whole.match_file(nfc(path)):
            return None
        named = (at for at, glob in enumerate(self.globs) if glob.match_file(nfc(path)))
        return next(named, len(self.globs)), path


@dataclass(frozen=True, slots=True)
class Directives:
    """Directives in their order, and what is left out of them."""

    entries: tuple[Entry, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


class _UnfitError(Exception):
    """A file that should stand among the directives, and cannot: then none of them does."""


def roots(settings: Settings, cubes: Iterable[str]) -> list[Root]:
    """The private roots of these cubes that have a system_config, in the settings' order."""
    own = frozenset(cubes) - {GLOBAL}
    found = []
    for entry in settings.private:
        globs = [g for label, named in entry.rooms.items() if room_key(label) == ROOM for g in named]
        if entry.cube in own and globs:
            inside = entry.in_vault
            folder = settings.mirror(inside[0]) / inside[1] if inside else Path(entry.path)
            found.append(Root(entry.cube, folder, tuple(_spec((glob,)) for glob in globs), _spec(tuple(globs))))
    return found


@lru_cache(maxsize=256)
def _spec(globs: tuple[str, ...]) -> GitIgnoreSpec:
    return GitIgnoreSpec.from_lines(globs)


def directives(rows: Iterable[LedgerRow], where: Iterable[Root], most_tokens: int) -> Directives:
    """What those notes of the ledger say now. `rows`: of the reader's own cubes, in any order."""
    left_out = []
    entries: list[Entry] = []
    placed = list(_placed(rows, list(where)))
    for row, root, path in placed:
        try:
            found = _entry(row, root, path, most_bytes(most_tokens))
        except (_UnfitError, OSError) as error:
            reason = f"{one_line(row.ref.path)} {_said(error)}: directives stand in full or not at all"
            return Directives((), tuple(LeftOut(r.ref.id, reason) for r, _, _ in placed))
        if isinstance(found, Entry):
            entries.append(found)
        else:
            left_out.append(LeftOut(row.ref.id, found))
    return Directives(tuple(entries), tuple(left_out))


def _placed(rows: Iterable[LedgerRow], where: list[Root]) -> Iterator[tuple[LedgerRow, Root, str]]:
    """The rows that a root still names, in the order of roots, of globs, of paths."""
    found = []
    for row in rows:
        if not any(p.address.room == ROOM and p.reason.startswith("private:") for p in placements_from(row.placements)):
            continue
        for at, root in enumerate(where):
            place = root.place(row)
            if place is not None:
                found.append(((at, *place), row, root))
                break
    for (_, _, path), row, root in sorted(found, key=lambda f: f[0]):
        yield row, root, path


def _entry(row: LedgerRow, root: Root, path: str, most: int) -> Entry | str:
    """The directive, or why it alone is left out. Raises _UnfitError or OSError for a file that cannot be had whole."""
    if row.status != Status.ACTIVE:
        return f"its status is {row.status}"
    try:
        data = _read(root.folder, path, most)
    except FileNotFoundError:
        return "the file is gone"
    source = Source(data, path)
    if source.problem:
        raise _UnfitError("is no UTF-8 text")
    told = {key.lower(): value for key, value in read_properties(source).values.items()}.get("status")
    if isinstance(told, str) and told.lower() in set(Status) - {Status.ACTIVE}:
        return f"its status is {told.lower()}"
    digest = Sha256(sha256(data).hexdigest())
    return Entry(row.ref.id, digest, ROOM, row.ref.path, source.text_from(source.start).strip("\n"))


def _read(folder: Path, path: str, most: int) -> bytes:
    """The bytes of a regular file below a folder, reached without a symbolic link. Raises _UnfitError or OSError."""
    here = os.open(folder, _FOLDER)
    try:
        *folders, name = path.split("/")
        for part in folders:
            below = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = below
        with open(os.open(name, _FILE, dir_fd=here), "rb") as stream:  # noqa: PTH123 - a descriptor, no path
            state = os.fstat(stream.fileno())
            if not stat.S_ISREG(state.st_mode):
                raise _UnfitError("is no regular file")
            if state.st_size > most:
                raise _UnfitError(f"is larger than {most} bytes")
            return stream.read(most + 1)
    finally:
        os.close(here)


def _said(error: _UnfitError | OSError) -> str:
    return f"cannot be read ({error.strerror})" if isinstance(error, OSError) else str(error)
