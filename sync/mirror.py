"""rsync as data: which one is there, its argument list, what its output means. Pure."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from palace.vocabulary import Problem

PARTIAL_DIR = ".rsync-partial"
OPTIONS = (
    "--recursive", "--links", "--perms", "--times", "--omit-dir-times",
    "--delete-delay", "--delete-excluded", "--safe-links",
    "--chmod=Du+rwx,Fu+r,Fa-w", f"--partial-dir={PARTIAL_DIR}",
    "--8-bit-output", "--itemize-changes", "--out-format=%i|%l|%n",
)  # fmt: skip
"""Archive without owner, group, devices and specials. Files are made read-only, so that an editor opened on the palace
cannot change the mirror. With --delete-excluded what killed runs leave behind (hidden temporary files) is cleared away."""
SUB_SECONDS = "--modify-window=-1"
"""Compare times to the nanosecond; rsync's default is whole seconds."""
REMOTE_SHELL = "ssh -o BatchMode=yes -o ConnectTimeout=20"
"""Nobody is there to type a password at night."""
REMOTE_TIMEOUT = 600
"""Seconds without a byte after which a remote source counts as gone."""

Tick = Callable[[int, int | None], None]
"""(files copied so far, how many there are, if known)."""
ChangeKind = Literal["new", "changed", "deleted", "attributes"]

_ITEM = re.compile(rb"([<>ch.])([fdLDS])([^|]{7,9})\|(\d+)\|(.*)", re.DOTALL)
_DELETED = re.compile(rb"\*deleting +(?:\|\d+\|)?(.*)", re.DOTALL)
_OCTAL = re.compile(rb"\\#([0-7]{3})")
_IO_ERROR = "IO error encountered -- skipping file deletion"
_QUOTED = re.compile(r'"(.*)"', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Tool:
    """An rsync program. `version`: the first three numbers; openrsync has (0, 0, 0)."""

    program: str
    openrsync: bool
    version: tuple[int, int, int]

    @property
    def sub_seconds(self) -> bool:
        """Whether it can compare times below a second."""
        return self.version >= (3, 1, 3)

    @property
    def costs(self) -> tuple[str, ...]:
        """What is lost with this program, a sentence each."""
        if self.sub_seconds:
            return ()
        name = "openrsync (macOS)" if self.openrsync else f"rsync {'.'.join(map(str, self.version))}"
        cost = "it compares times by whole seconds, so an edit of equal size within one second waits for the weekly checksum"
        return (f"{self.program} is {name}: {cost}. rsync 3.1.3 or newer does better.",)


@dataclass(frozen=True, slots=True)
class Job:
    """One run. `source`: a folder or `user@host:path`; `target`: the mirror; `rules`: filters, first match decides.

    `max_delete`: how many files and folders may go at most, None for a dry run; `own_shell`: RSYNC_RSH is set.
    """

    source: str
    target: str
    remote: bool
    rules: tuple[str, ...]
    checksum: bool = False
    dry_run: bool = False
    max_delete: int | None = None
    own_shell: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """One line of rsync's list. `path` relative to the vault; `size` in bytes, 0 for deletions."""

    kind: ChangeKind
    path: str
    size: int
    folder: bool = False


@dataclass(slots=True)
class Plan:
    """What differs between source and mirror. Files with their sizes.

    `removals`: files and folders to go, of any kind; `differs`: anything at all is to be done, be it a mode.
    """

    new: dict[str, int] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    removals: int = 0
    differs: bool = False
    problems: list[Problem] = field(default_factory=list)

    def add(self, change: Change) -> None:
        """Count one change; folders and attributes alone are no change of a file."""
        self.differs = True
        self.removals += change.kind == "deleted"
        if change.folder:
            return
        if change.kind == "deleted":
            self.deleted.append(change.path)
        elif change.kind == "new":
            self.new[change.path] = change.size
        elif change.kind == "changed":
            self.changed[change.path] = change.size

    @property
    def copies(self) -> int:
        """How many files are copied."""
        return len(self.new) + len(self.changed)

    @property
    def bytes(self) -> int:
        """Bytes of the copied files."""
        return sum(self.new.values()) + sum(self.changed.values())


def tool(program: str, version: str) -> Tool | None:
    """Which rsync answered `--version` so; None for one that is too old, or none at all."""
    if version.startswith("openrsync"):
        return Tool(program, openrsync=True, version=(0, 0, 0))
    found = re.match(r"rsync +version v?(\d+)\.(\d+)(?:\.(\d+))?", version)
    if found is None:
        return None
    major, minor, patch = (int(number or 0) for number in found.groups())
    return Tool(program, openrsync=False, version=(major, minor, patch)) if major >= 3 else None


def argv(rsync: Tool, job: Job) -> list[str]:
    """The argument list of one run."""
    arguments = [rsync.program, *OPTIONS]
    if rsync.sub_seconds:
        arguments.append(SUB_SECONDS)
    if job.checksum:
        arguments.append("--checksum")
    if job.dry_run:
        arguments.append("--dry-run")
    if job.max_delete is not None:
        # openrsync takes 0 for "no limit".
        arguments.append(f"--max-delete={max(job.max_delete, int(rsync.openrsync))}")
    if job.remote:
        arguments += _remote(rsync, own_shell=job.own_shell)
    arguments += [f"--filter={rule}" for rule in job.rules]
    return [*arguments, "--", f"{job.source.rstrip('/')}/" if job.source.strip("/") else "/", job.target]


def _remote(rsync: Tool, *, own_shell: bool) -> Iterator[str]:
    yield f"--timeout={REMOTE_TIMEOUT}"
    if not own_shell:
        yield f"--rsh={REMOTE_SHELL}"
    if not rsync.openrsync and rsync.version < (3, 2, 4):
        yield "--protect-args"  # newer ones do so by themselves; without it a space in the path splits it


def change(line: bytes) -> Change | None:
    """What one line of standard output says, None if it is no change of the tree."""
    line = line.rstrip(b"\n")
    if deleted := _DELETED.fullmatch(line):
        return Change("deleted", _path(deleted[1]), 0, folder=deleted[1].endswith(b"/"))
    item = _ITEM.fullmatch(line)
    if item is None:
        return None
    how, what, flags, size, name = item.groups()
    kind: ChangeKind = "attributes"
    if what == b"f" and how in b"<>c":
        kind = "new" if flags.startswith(b"+") else "changed"
    return Change(kind, _path(name), int(size), folder=what == b"d")


def _path(name: bytes) -> str:
    return unescaped(name).rstrip("/")


def unescaped(line: bytes) -> str:
    r"""Output without rsync's escapes (`\#012` for a line break); bytes that are no UTF-8 as in Python's file names."""
    return os.fsdecode(_OCTAL.sub(lambda octal: bytes([int(octal[1], 8) & 0xFF]), line))


def is_complaint(line: str) -> bool:
    """Whether a line of standard output says that something went wrong; most of those go to standard error."""
    return line.startswith(_IO_ERROR)


def problems(complaints: Iterable[str], source: str) -> list[Problem]:
    """What rsync complained of, about single files, as Problems with paths relative to the vault."""
    root = source.rpartition(":")[2].strip("~/")
    found = (_problem(line.strip(), root) for line in complaints)
    return list(dict.fromkeys(problem for problem in found if problem is not None))


def _problem(line: str, root: str) -> Problem | None:
    if not line or line.startswith(("rsync error:", "rsync warning:")):
        return None
    if line.startswith(_IO_ERROR):
        return NO_DELETIONS
    if line.startswith("Deletions stopped"):
        return _LATE
    quoted = _QUOTED.search(line)
    # rsync writes whole paths; a remote source may have been named relative to the home folder.
    path = (quoted[1].partition(f"{root}/")[2] or quoted[1]) if quoted else ""
    if "vanished" in line:
        return vanished(path)
    if "Permission denied" in line and "[receiver]" not in line.lower():
        return unreadable(path, None)
    return Problem(printable(path), None, "sync-warning", printable(line), "The next sync tries again.")


_READABLE = "Give the user who runs Dualwall the right to read it, or exclude it in the settings."
NO_DELETIONS = Problem(
    "", None, "sync-deletions-skipped", "Part of the vault could not be listed, so nothing was deleted there.", _READABLE
)  # fmt: skip

_LATE = Problem(
    "", None, "sync-deletions-late", "More files went away while the vault was mirrored; they were not deleted.", "The next sync sees to it."
)  # fmt: skip


def is_leftover(path: str) -> bool:
    """Whether a file of the mirror is what a killed run left behind: a hidden or a partial one."""
    folders, _, name = path.rpartition("/")
    return name.startswith(".") or f"/{PARTIAL_DIR}" in f"/{folders}"


def vanished(path: str) -> Problem:
    """A file that was there when the vault was listed, and not when it was read."""
    return Problem(
        printable(path), None, "sync-vanished", "It went away while the vault was read.", "The next sync sees to it."
    )


def unreadable(path: str, error: OSError | None) -> Problem:
    """A file or folder that cannot be read; what the mirror has of it stays."""
    why = error.strerror if error is not None and error.strerror else "Permission denied"
    return Problem(
        printable(path), None, "sync-unreadable", f"It cannot be read ({why}); its mirror stays as it was.", _READABLE
    )


def changing(path: str) -> Problem:
    """A file that changed each time while it was read."""
    return Problem(
        printable(path), None, "sync-changing", "It changed each time while it was read.", "The next sync tries again."
    )


def printable(text: str) -> str:
    """The text with what no terminal can show (bytes that are no UTF-8, line breaks) written as escapes."""
    shown = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)


REASONS: Mapping[int, str] = {
    1: "it does not know one of its options",
    2: "the two rsync programs do not understand each other",
    5: "the other side refused the connection",
    10: "the connection failed",
    12: "the connection broke",
    30: "nothing came for ten minutes",
    35: "the other side did not answer in time",
    127: "there is no rsync on the other side",
    255: "ssh could not connect",
}
"""Exit codes of rsync whose numbers tell what happened."""
CONNECTION = frozenset({5, 10, 12, 30, 35, 127, 255})
"""Of these, the ones where the source could not be reached, if it is remote."""
PARTIAL = 23
PARTLY = frozenset({0, PARTIAL, 24, 25})
"""Done, but for the files that it complained about; with 25 there was more to delete than it was allowed to."""
FULL = ("No space left on device", "Disk quota exceeded")


def root_missing(complaints: Iterable[str]) -> str | None:
    """Why the source's root could not be entered, None if it could. rsync calls that exit 23, like one bad file."""
    first = next((line for line in complaints if line.strip()), "")
    found = re.search(r'change_dir(?:#\d)? ".*" failed: (.*?)(?: \(\d+\))?$', first.strip())
    return found[1] if found else None
