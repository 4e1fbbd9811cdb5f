"""A mirror without rsync, for a local vault: clone (reflink) or copy what differs, then delete what is gone.

Every file is written beside its name and renamed, so that a killed run leaves whole files and hidden ones, which the
next run clears away. Regular files only: symlinks are not mirrored.
"""

import errno
import filecmp
import os
import shutil
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from palace.vocabulary import Problem
from sync.filters import Filters
from sync.mirror import NO_DELETIONS, Change, Plan, Tick, changing, unreadable, vanished
from sync.tree import Tree, scan

_FICLONE = 0x40049409
"""Linux's request to share a file's blocks with another (btrfs, xfs, bcachefs, …)."""
_TEMPORARY = ".dualwall-new"
_TRIES = 3
"""How often a file is read again that changes while it is read."""


@dataclass(slots=True)
class CopyMirror:
    """Mirrors `source` to `target`. `checksum`: compare bytes where size and time are equal."""

    source: Path
    target: Path
    filters: Filters
    reflink: bool = False
    checksum: bool = False
    _cloned: bool = True
    _source_tree: Tree = field(default_factory=Tree)
    _mirror_tree: Tree = field(default_factory=Tree)

    @property
    def costs(self) -> tuple[str, ...]:
        """What falling back to copies costs, once it has happened."""
        if not self.reflink or self._cloned:
            return ()
        cost = "notes were copied, and the mirror takes as much room as the vault"
        return (f"{self.target} cannot share blocks with {self.source} (no reflink between the two): {cost}.",)

    def plan(self) -> Plan:
        """Compare the two trees."""
        self._source_tree = source = scan(self.source, self.filters)
        self._mirror_tree = mirror = scan(self.target)
        plan = Plan(problems=list(source.problems), differs=set(source.folders) != set(mirror.folders))
        for path, file in source.files.items():
            if path not in mirror.files:
                plan.add(Change("new", path, file[0]))
            elif mirror.files[path] != file or (self.checksum and not self._same_bytes(path)):
                plan.add(Change("changed", path, file[0]))
        if source.problems:
            plan.problems.append(NO_DELETIONS)
            return plan
        for path in (*mirror.files, *mirror.others):
            if path not in source.files:
                plan.add(Change("deleted", path, 0))
        plan.removals += len(set(mirror.folders) - set(source.folders))
        return plan

    def carry_out(self, plan: Plan, tick: Tick) -> Plan:
        """Copy and delete what the plan says; returns it with what went wrong."""
        self._make_way()
        paths = [*plan.new, *plan.changed]
        for done, path in enumerate(paths):
            tick(done, len(paths))
            problem = self._copy(path)
            if problem is not None:
                plan.problems.append(problem)
                plan.new.pop(path, None)
                plan.changed.pop(path, None)
        tick(len(paths), len(paths))
        for path in set(plan.deleted) - set(self._source_tree.folders):
            with suppress(FileNotFoundError, NotADirectoryError):
                (self.target / path).unlink()
        self._drop_folders(plan)
        return plan

    def _same_bytes(self, path: str) -> bool:
        try:
            return filecmp.cmp(self.source / path, self.target / path, shallow=False)
        except OSError:
            return False

    def _make_way(self) -> None:
        """Where a file became a folder, or the reverse, the old one goes first; then the folders are made."""
        source, mirror = self._source_tree, self._mirror_tree
        for path in set(source.folders) & {*mirror.files, *mirror.others}:
            (self.target / path).unlink()
        for path in set(source.files) & set(mirror.folders):
            shutil.rmtree(self.target / path)
        self.target.mkdir(parents=True, exist_ok=True)
        for path in sorted(source.folders):
            (self.target / path).mkdir(exist_ok=True)

    def _copy(self, path: str) -> Problem | None:
        for _ in range(_TRIES):
            try:
                source = os.open(self.source / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            except FileNotFoundError:
                return vanished(path)
            except OSError as error:
                return unreadable(path, error)
            try:
                if self._copy_open(source, self.target / path):
                    return None
            except OSError as error:
                if error.errno == errno.EIO:
                    return unreadable(path, error)
                raise
            finally:
                os.close(source)
        return changing(path)

    def _copy_open(self, source: int, target: Path) -> bool:
        """Copy an open file to its name in the mirror; False, and nothing done, if it changed meanwhile."""
        before = os.fstat(source)
        temporary = target.with_name(_TEMPORARY)
        temporary.unlink(missing_ok=True)
        try:
            self._fill(temporary, source)
        except OSError:
            # A full disk must not stay full for the sake of half a file.
            temporary.unlink(missing_ok=True)
            raise
        after = os.fstat(source)
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            temporary.unlink()
            return False
        os.utime(temporary, ns=(after.st_atime_ns, after.st_mtime_ns))
        # Readable by its owner and written by nobody, as with rsync.
        temporary.chmod(stat.S_IMODE(after.st_mode) & 0o555 | 0o400)
        temporary.replace(target)
        return True

    def _fill(self, temporary: Path, source: int) -> None:
        with temporary.open("xb") as out, os.fdopen(os.dup(source), "rb") as stream:
            stream.seek(0)
            if not (self.reflink and self._clone(source, out.fileno())):
                shutil.copyfileobj(stream, out, 1 << 20)

    def _clone(self, source: int, target: int) -> bool:
        if sys.platform == "linux":
            import fcntl  # noqa: PLC0415 - not on every platform

            with suppress(OSError):
                fcntl.ioctl(target, _FICLONE, source)
                return True
        self._cloned = False
        return False

    def _drop_folders(self, plan: Plan) -> None:
        if NO_DELETIONS in plan.problems:
            return
        for path in sorted(set(self._mirror_tree.folders) - set(self._source_tree.folders), reverse=True):
            # What became a file is no folder any more; what still holds something goes with the next run.
            with suppress(OSError):
                (self.target / path).rmdir()
