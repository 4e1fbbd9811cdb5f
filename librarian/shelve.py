"""Hands of the palace: links notes into a generation beside the current one, and swaps it in whole."""

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from palace.errors import DualwallError
from palace.manifest import CURRENT, Entry, folder_name, number_of
from palace.progress import Report
from palace.vocabulary import Problem, Stat

COPIED = "palace-copied"
"""Code of the warning that the palace is not all hardlinks."""
_PARTIAL = ".partial"
_NEXT = f"{CURRENT}.next"
_FICLONE = 0x40049409
"""The ioctl of Linux that shares a file's blocks (btrfs, xfs)."""
_NO_LINK = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
_REPORT_EVERY = 500


@dataclass(slots=True)
class Tally:
    """How notes came onto the shelves. `apart`: indices of entries with a link that is no hardlink; `why`: the first reason."""

    links: int = 0
    cloned: int = 0
    copied: int = 0
    copied_bytes: int = 0
    apart: set[int] = field(default_factory=set)
    why: str = ""

    def problem(self) -> Problem | None:
        """The one warning of a palace that is not all hardlinks, with what it costs."""
        if not self.apart:
            return None
        cost = f"{self.copied} copies take {self.copied_bytes / 1e6:.1f} MB more disk"
        if self.cloned:
            cost = f"{self.cloned} share their blocks (reflink), {cost}"
        return Problem(
            "palace",
            None,
            COPIED,
            f"{len(self.apart)} notes could not be hardlinked into the palace ({self.why}): {cost}, and a build takes longer.",
            "Keep mirror and palace on one mount that has hardlinks, as one user; then: dualwall librarian build --full",
        )


def partial(palace: Path, number: int) -> Path:
    """Where a generation is built before anybody can see it."""
    return palace / f"{folder_name(number)}{_PARTIAL}"


def shelve(folder: Path, entries: Sequence[Entry], mirrors: Mapping[str, Path], report: Report) -> Tally:
    """Put every note into its rooms below `folder`, by hardlink, else by reflink, else by copy. Raises OSError."""
    for room in sorted({link.rpartition("/")[0] for entry in entries for link in entry.links}):
        (folder / room).mkdir(parents=True, exist_ok=True)
    tally, root = Tally(), f"{folder}/"
    sources = {vault: f"{mirror}/" for vault, mirror in mirrors.items()}
    hardlink = os.link
    for i, entry in enumerate(entries):
        source = sources[entry.ref.vault] + entry.mirror
        for link in entry.links:
            try:
                hardlink(source, root + link)
            except OSError as error:
                if error.errno not in _NO_LINK:
                    raise
                _beside(source, root + link, tally, error)
                tally.apart.add(i)
        tally.links += len(entry.links)
        if i % _REPORT_EVERY == 0:
            report("linking notes", i, len(entries))
    report("linking notes", len(entries), len(entries))
    return tally


def after_linking(
    folder: Path, entries: Sequence[Entry], mirrors: Mapping[str, Path], apart: set[int]
) -> tuple[Entry, ...]:
    """The same entries with the stat that they have now that they are linked.

    Looks at the palace's name, so that it is sure which file was linked. Raises DualwallError when that is not the
    file that was read: the mirror changed meanwhile.
    """
    out = []
    for i, entry in enumerate(entries):
        mirror = mirrors[entry.ref.vault] / entry.mirror if i in apart else None
        found = os.lstat(mirror or f"{folder}/{entry.links[0]}")
        now = Stat(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        was = entry.stat
        if (now.inode, now.size, now.mtime_ns) != (was.inode, was.size, was.mtime_ns) or not stat.S_ISREG(
            found.st_mode
        ):
            raise DualwallError(
                f"{entry.ref.vault}/{entry.ref.path} changed in the mirror while the palace was built.",
                "The palace is as it was. Run dualwall librarian build again when sync is done.",
            )
        out.append(replace(entry, stat=now))
    return tuple(out)


def publish(palace: Path, number: int) -> None:
    """Swap a finished generation in by one rename. Readers see the old one whole, then the new one whole.

    Journals keep the order of links and renames on one disk, so that syncing the parent last is enough.
    """
    built = partial(palace, number)
    _sync(built)
    built.rename(palace / folder_name(number))
    following = palace / _NEXT
    following.unlink(missing_ok=True)
    following.symlink_to(folder_name(number))
    following.replace(palace / CURRENT)
    _sync(palace)


def keep(palace: Path, current: int | None, generations: int, building: int | None = None) -> None:
    """Remove all but the current generation and those before it, `generations` in all, and the one being built.

    So what a killed build left goes too.
    """
    if not palace.is_dir():
        return
    (palace / _NEXT).unlink(missing_ok=True)
    numbers = {name: number_of(name.removesuffix(_PARTIAL)) for name in os.listdir(palace)}  # noqa: PTH208 - names, no paths
    whole = [n for name, n in numbers.items() if n is not None and not name.endswith(_PARTIAL)]
    kept = sorted(n for n in whole if current is not None and n <= current)[-generations:]
    for name, number in numbers.items():
        keeps = number == building if name.endswith(_PARTIAL) else number in kept
        if number is not None and not keeps:
            shutil.rmtree(palace / name)


@contextmanager
def faults_of_the_disk(palace: Path) -> Iterator[None]:
    """A full disk, a missing right, a file that went away: what happened, where, and what to do next."""
    try:
        yield
    except OSError as error:
        where = error.filename2 or error.filename or palace
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            message, hint = f"The disk is full: {where} could not be written.", "Free some space, then run it again."
        elif isinstance(error, FileNotFoundError):
            message, hint = f"{where} went away while the palace was built.", "Run it again when sync is done."
        else:
            message, hint = f"{where}: {error.strerror}.", "dualwall doctor says more about the data folder."
        raise DualwallError(f"{message} The palace is as it was.", hint) from error


def _beside(source: str, target: str, tally: Tally, why: OSError) -> None:
    """A file of its own for a link that cannot be: cloned, else copied; read-only, with the same mtime."""
    tally.why = tally.why or why.strerror or str(why)
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as old, Path(target).open("xb") as new:
        if _cloned(old.fileno(), new.fileno()):
            tally.cloned += 1
        else:
            shutil.copyfileobj(old, new)
            tally.copied += 1
            tally.copied_bytes += new.tell()
        was = os.fstat(old.fileno())
    os.utime(target, ns=(was.st_atime_ns, was.st_mtime_ns))
    Path(target).chmod(0o444)


def _cloned(source: int, target: int) -> bool:
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
