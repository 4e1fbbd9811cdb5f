"""What is there to ingest: the palace by its manifest, private roots and inboxes by the settings.

A note is seen with its rooms, its file and what is known of its bytes. Private files are hashed here when their stat
differs from the ledger's or is too young to be trusted; the palace's were hashed by the librarian.
"""

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from pathspec import GitIgnoreSpec

from palace import manifest
from palace.names import nfc, room_key
from palace.settings import Private, Settings
from palace.vocabulary import GLOBAL, NoteId, NoteRef, Placement, RoomAddress, Sha256, Stat, Status, Trust

RACY_NS = 2_000_000_000
"""A file younger than this may change again within its timestamp: its stat proves nothing."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A note as the sources have it. `file`: where its bytes are; `sha256` None: not hashed yet."""

    ref: NoteRef
    file: str
    placements: tuple[Placement, ...]
    stat: Stat
    sha256: Sha256 | None
    trust: Trust
    status: Status
    compat: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file of a private root that is not read, with the reason."""

    cube: str
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class PrivateScan:
    """What private roots and inboxes hold.

    `groups`: (cube, vault) of each; `absent`: those of sources that are not there, which proves nothing gone.
    """

    seen: list[Seen]
    skipped: list[Skipped]
    groups: frozenset[tuple[str, str]]
    absent: frozenset[tuple[str, str]]


def palace_notes(settings: Settings) -> Iterator[Seen]:
    """Every note of the palace's current generation, by its manifest.

    The bytes are read through the palace: a mirror that was synced since then holds others.
    """
    current = manifest.current(settings)
    if current is None:
        return
    folder = settings.palace / "current"
    for entry in manifest.read(current.folder / "manifest.jsonl"):
        vault = entry.ref.vault
        yield Seen(
            entry.ref,
            f"{folder}/{entry.links[0]}",
            entry.placements,
            entry.stat,
            entry.sha256,
            Trust.OWNER,
            Status.ACTIVE,
            settings.vaults[vault].compat if vault in settings.vaults else "obsidian",
        )


def private_notes(settings: Settings) -> PrivateScan:
    """Every file of the private roots that a room's glob names, and of the inboxes; the others with the reason."""
    seen: list[Seen] = []
    skipped: list[Skipped] = []
    groups: set[tuple[str, str]] = set()
    absent = set() if manifest.current(settings) else {(GLOBAL, vault) for vault in settings.vaults}
    taken: dict[str, int] = {}
    for root in settings.private:
        vault, prefix, folder = _where(settings, root, taken)
        groups.add((root.cube, vault))
        if not folder.is_dir():
            absent.add((root.cube, vault))
            continue
        specs = [(room, GitIgnoreSpec.from_lines(globs)) for room, globs in root.rooms.items()]
        for path, entry in _walk(folder):
            shown = prefix + nfc(path)
            rooms = [room for room, spec in specs if spec.match_file(nfc(path))]
            if not rooms or not entry.name.lower().endswith(".md"):
                reason = "no room's glob names it" if not rooms else "not Markdown"
                skipped.append(Skipped(root.cube, shown, reason))
                continue
            placements = tuple(_private_placement(root.cube, room) for room in rooms)
            seen.append(_seen(NoteRef(root.cube, vault, shown), entry, placements, Trust.AGENT, Status.ACTIVE))
    inbox = _inbox_notes(settings)
    groups |= {(cube, "inbox") for cube in _cubes(settings)}
    return PrivateScan([*seen, *inbox], skipped, frozenset(groups), frozenset(absent))


def _cubes(settings: Settings) -> list[str]:
    return sorted({GLOBAL, *(c for r in settings.readers.values() for c in r.cubes)})


def _inbox_notes(settings: Settings) -> list[Seen]:
    """What agents wrote, each in the inbox of its cube, as candidates."""
    out = []
    for cube in _cubes(settings):
        placement = Placement(RoomAddress(cube, "inbox", "inbox"), "inbox", "inbox", "rule:inbox")
        for path, entry in _walk(settings.data / "inbox" / cube):
            if entry.name.lower().endswith(".md"):
                ref = NoteRef(cube, "inbox", nfc(path))
                out.append(_seen(ref, entry, (placement,), Trust.AGENT, Status.CANDIDATE))
    return out


def hashed(seen: Iterable[Seen], known: Mapping[NoteId, tuple[Stat, str]], now_ns: int | None = None) -> Iterator[Seen]:
    """The same notes with their hash where the ledger's stat vouches for it; the others stay without."""
    now = time.time_ns() if now_ns is None else now_ns
    for note in seen:
        stat, sha256 = known.get(note.ref.id, (None, ""))
        if stat == note.stat and max(note.stat.mtime_ns, note.stat.ctime_ns) < now - RACY_NS:
            yield _with_hash(note, Sha256(sha256))
        else:
            yield note


def with_hash(note: Seen) -> Seen:
    """The note with the hash of its file, or as it was when the file cannot be read: then its reading says why."""
    try:
        with open_file(note.file) as stream:
            return _with_hash(note, Sha256(hashlib.file_digest(stream, "sha256").hexdigest()))
    except OSError:
        return note


def open_file(path: str) -> BufferedReader:
    """A regular file for reading; OSError for a symlink that took its place since it was seen."""
    return os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb")


def digest(scan: PrivateScan) -> str:
    """One value for all that a scan saw: equal only when no file and no rule of a private root changed."""
    state = hashlib.sha256(repr((sorted(scan.groups), sorted(scan.absent))).encode())
    for note in scan.seen:
        state.update(repr((note.ref, note.placements, note.stat)).encode("utf-8", "surrogateescape"))
    return state.hexdigest()


def racy(scan: PrivateScan, now_ns: int | None = None) -> bool:
    """Whether a file is so young that an equal stat would not prove equal bytes."""
    limit = (time.time_ns() if now_ns is None else now_ns) - RACY_NS
    return any(max(n.stat.mtime_ns, n.stat.ctime_ns) >= limit for n in scan.seen)


def stat_of(result: os.stat_result) -> Stat:
    """The part of stat(2) that says whether a file is still the same."""
    return Stat(result.st_dev, result.st_ino, result.st_size, result.st_mtime_ns, result.st_ctime_ns)


def _with_hash(note: Seen, sha256: Sha256) -> Seen:
    return Seen(note.ref, note.file, note.placements, note.stat, sha256, note.trust, note.status, note.compat)


def _seen(
    ref: NoteRef, entry: os.DirEntry[str], placements: tuple[Placement, ...], trust: Trust, status: Status
) -> Seen:
    stat = stat_of(entry.stat(follow_symlinks=False))
    return Seen(ref, entry.path, placements, stat, None, trust, status, "obsidian")


def _private_placement(cube: str, room: str) -> Placement:
    return Placement(RoomAddress(cube, room_key(cube), room_key(room)), cube, room, "private:settings")


def _where(settings: Settings, root: Private, taken: dict[str, int]) -> tuple[str, str, Path]:
    """(vault name, path prefix, folder) of a private root. A root inside a vault is read from the vault's mirror."""
    if root.path.startswith("vault:"):
        vault, _, inner = root.path.removeprefix("vault:").partition("/")
        inner = inner.strip("/")
        return vault, f"{nfc(inner)}/" if inner else "", settings.mirror(vault) / inner
    name = f"private:{Path(root.path).name}"
    taken[name] = taken.get(name, 0) + 1
    return name if taken[name] == 1 else f"{name}:{taken[name]}", "", Path(root.path)


def _walk(folder: Path, prefix: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Regular files below a folder with their relative path, sorted; no dot files, no symlinks."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda e: e.name)
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), f"{prefix}{entry.name}/")
        elif entry.is_file(follow_symlinks=False):
            yield prefix + entry.name, entry
