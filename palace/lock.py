"""Two locks of the data folder, by flock(2): they die with their holder, also by kill -9.

`lock`: who writes (sync, librarian, ingest, nightly). `owner.lock`: who owns the embedded store, which one process
at a time may open; a search owns it for its own life when nobody else does. Who holds one is written in it.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from palace.errors import BusyError
from palace.settings import Settings

_PROBE = 0.2
"""Seconds that a taker goes on trying, since asking who holds a lock takes it for a moment."""
_STEP = 0.02


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lock. `since`: ISO 8601 UTC; `socket`: where it answers questions, if it does."""

    pid: int
    command: str
    since: str
    socket: str | None = None

    def __str__(self) -> str:
        return f"`dualwall {self.command}` (process {self.pid}), since {self.since}"


@dataclass(slots=True)
class Held:
    """A lock that this process holds."""

    holder: Holder
    _descriptor: int = field(repr=False)

    def announce(self, socket: Path | None) -> None:
        """Write down where the holder answers questions."""
        self.holder = replace(self.holder, socket=None if socket is None else str(socket))
        _write(self._descriptor, self.holder)


@contextmanager
def hold(settings: Settings, command: str, wait: float = 0.0) -> Iterator[Held]:
    """Be the one process that writes; raises BusyError (who, since when) after `wait` seconds."""
    with _take(settings.data / "lock", command, wait) as held:
        yield held


@contextmanager
def own(settings: Settings, command: str, wait: float = 0.0) -> Iterator[Held]:
    """Be the one process that has the embedded store open; raises BusyError after `wait` seconds."""
    with _take(settings.data / "owner.lock", command, wait) as held:
        yield held


def holder(settings: Settings) -> Holder | None:
    """Who writes to the data folder right now."""
    return _holder(settings.data / "lock")


def owner(settings: Settings) -> Holder | None:
    """Who owns the embedded store right now."""
    return _holder(settings.data / "owner.lock")


@contextmanager
def _take(path: Path, command: str, wait: float) -> Iterator[Held]:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not _lock(descriptor, max(wait, _PROBE)):
            who = _read(descriptor)
            raise BusyError(
                f"The data folder {path.parent} is held by {who or 'another process'}.",
                "Wait until it is done, or stop it, then run the command again.",
            )
        held = Held(Holder(os.getpid(), command, datetime.now(UTC).isoformat(timespec="seconds")), descriptor)
        _write(descriptor, held.holder)
        yield held
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, patience: float) -> bool:
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_STEP)
        else:
            return True


def _holder(path: Path) -> Holder | None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(descriptor) or Holder(0, "?", "?")
    else:
        return None
    finally:
        os.close(descriptor)


def _read(descriptor: int) -> Holder | None:
    """None in the moment between taking the lock and writing it down."""
    try:
        return Holder(**json.loads(os.pread(descriptor, 65536, 0)))
    except (ValueError, TypeError):
        return None


def _write(descriptor: int, holder: Holder) -> None:
    line = json.dumps(asdict(holder)).encode()
    os.pwrite(descriptor, line, 0)
    os.ftruncate(descriptor, len(line))
