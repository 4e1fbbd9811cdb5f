"""Mirror a vault: look, let the guard judge, then copy and delete. The vault itself is only read."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Protocol

from palace.errors import BusyError, DualwallError, GuardError, SettingsError, UnreachableError, UsageError
from palace.paths import contains
from palace.progress import Report, silent
from palace.settings import Settings
from palace.vocabulary import Problem
from sync import guard
from sync.copies import CopyMirror
from sync.filters import Filters
from sync.guard import State
from sync.mirror import Job, Plan, Tick, is_leftover
from sync.rsync import RsyncMirror
from sync.tree import scan

_PATIENCE = 10.0
"""Seconds to wait for the rsync of a killed run to notice."""


@dataclass(frozen=True, slots=True)
class SyncResult:
    """What one sync of one vault did, or would do.

    `counts`: `files` in the mirror, of them `notes`, `changed` (copied), `deleted`, `bytes` (copied).
    `checksum`: bytes were compared, not only sizes and times; `warnings`: what this machine cannot do.
    """

    vault: str
    seconds: float
    counts: dict[str, int]
    changed: bool
    problems: tuple[Problem, ...]
    checksum: bool = False
    warnings: tuple[str, ...] = ()


class Mirror(Protocol):
    """A way to mirror. `plan` looks; `carry_out` copies, deletes no more than was planned, and returns what was done."""

    @property
    def costs(self) -> tuple[str, ...]:
        """What this way cannot do, a sentence each."""

    def plan(self) -> Plan:
        """What differs."""

    def carry_out(self, plan: Plan, tick: Tick) -> Plan:
        """Copy and delete."""


@dataclass(frozen=True, slots=True)
class _Run:
    """One sync of one vault, its settings looked up."""

    settings: Settings
    vault: str
    accept_loss: int | None
    dry_run: bool
    checksum: bool | None
    report: Report
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def source(self) -> str:
        return self.settings.vaults[self.vault].source

    @property
    def remote(self) -> bool:
        return self.settings.vaults[self.vault].remote

    @property
    def target(self) -> Path:
        return self.settings.mirror(self.vault)

    @property
    def state_file(self) -> Path:
        return guard.state_file(self.settings.mirror(self.vault).parent, self.vault)


def sync(  # noqa: PLR0913 - each is a flag of the command
    settings: Settings,
    vault: str,
    *,
    accept_loss: int | None = None,
    dry_run: bool = False,
    checksum: bool | None = None,
    progress: Report | None = None,
) -> SyncResult:
    """Mirror one vault. `accept_loss`: how many notes may be gone; `checksum`: None compares bytes once a week.

    Raises UsageError for a vault that the settings don't have, SettingsError for one inside the data folder (or the
    reverse), GuardError when the source lost too much, UnreachableError when it is not there, BusyError when another
    sync of it runs, DualwallError when rsync is missing or gives up. None of these deletes anything from the mirror
    that was not proved to be gone.
    """
    began = time.perf_counter()
    _check(settings, vault)
    run = _Run(settings, vault, accept_loss, dry_run, checksum, progress or silent)
    try:
        if not run.remote:
            _enter(Path(run.source), vault)
        if dry_run:
            return _sync(run, None, began)
        with _only_one(run) as lock:
            return _sync(run, lock, began)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise DualwallError(
            f'The mirror of "{vault}" could not be brought up to date: {error.strerror or error}{where}.',
            "Mend that, then sync again: a broken run is completed by the next one.",
        ) from error


def _sync(run: _Run, lock: int | None, began: float) -> SyncResult:
    state = guard.read_state(run.state_file)
    root = None if run.remote else guard.identity(Path(run.source))
    filters = Filters.of(run.settings, run.vault)
    before = scan(run.target).sizes
    fresh = not before
    thorough = run.checksum if run.checksum is not None else not fresh and guard.checksum_due(state, run.now)
    mirror = _mirror(run, filters, lock, checksum=thorough)
    plan = mirror.plan()
    known = State(run.source, root, state.synced if state else "", state.checksummed if state else "")
    # What the settings no longer want is no loss. Without deletions there is no need to look.
    wanted = {path: size for path, size in before.items() if filters.takes(path)} if plan.deleted else before
    _guard(run, guard.loss(wanted, plan), same_root=known == state)
    if not run.dry_run:
        if known != state:
            # A first run that breaks off must know its source again.
            guard.write_state(run.state_file, known)
        if plan.differs or thorough:
            plan = _carry_out(run, mirror, plan)
        _remember(run, known, compared=thorough or fresh)
    counts = _counts(before, plan)
    return SyncResult(
        vault=run.vault,
        seconds=round(time.perf_counter() - began, 3),
        counts=counts,
        changed=counts["changed"] + counts["deleted"] > 0,
        problems=tuple(plan.problems),
        checksum=thorough,
        warnings=mirror.costs,
    )


def _carry_out(run: _Run, mirror: Mirror, plan: Plan) -> Plan:
    run.target.mkdir(parents=True, exist_ok=True)
    return mirror.carry_out(plan, partial(run.report, f"mirror of {run.vault}"))


def _remember(run: _Run, known: State, *, compared: bool) -> None:
    stamp = run.now.isoformat(timespec="seconds")
    checksummed = stamp if compared else known.checksummed
    guard.write_state(run.state_file, replace(known, synced=stamp, checksummed=checksummed))


def _guard(run: _Run, found: guard.Loss, *, same_root: bool) -> None:
    limits = run.settings.vaults[run.vault].guard
    why = guard.stop(found, limits, same_root=same_root, accept=run.accept_loss)
    if why is not None:
        raise GuardError(
            f'The source of "{run.vault}", {run.source}, {why}. Nothing was deleted.',
            "Is its disk mounted, and has its own sync ended? If those notes are meant to be gone:"
            f" dualwall sync --vault {run.vault} --accept-loss {found.lost}",
        )


def _mirror(run: _Run, filters: Filters, lock: int | None, *, checksum: bool) -> Mirror:
    way = run.settings.vaults[run.vault].mirror
    if way == "rsync":
        job = Job(
            source=run.source,
            target=str(run.target),
            remote=run.remote,
            rules=filters.rules(),
            checksum=checksum,
            dry_run=run.dry_run,
            own_shell="RSYNC_RSH" in os.environ,
        )
        return RsyncMirror(job, lock)
    return CopyMirror(Path(run.source), run.target, filters, reflink=way == "reflink", checksum=checksum)


def _counts(before: dict[str, int], plan: Plan) -> dict[str, int]:
    before = {path: size for path, size in before.items() if not is_leftover(path)}
    deleted = before.keys() & set(plan.deleted)
    files = (before.keys() | plan.new.keys()) - deleted
    return {
        "files": len(files),
        "notes": sum(guard.is_note(path) for path in files),
        "changed": plan.copies,
        "deleted": len(deleted),
        "bytes": plan.bytes,
    }


def _check(settings: Settings, vault: str) -> None:
    """Refuse what would mirror a folder into itself, or outside the data folder."""
    if vault not in settings.vaults:
        near = get_close_matches(vault, settings.vaults, 1)
        hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(settings.vaults) or 'none'}."
        raise UsageError(f'The settings have no vault "{vault}".', hint)
    entry, target = settings.vaults[vault], settings.mirror(vault)
    if Path(vault).name != vault or vault.startswith("."):
        raise SettingsError(f'"{vault}" is no vault name.', "Use a-z, 0-9, - and _ only.")
    if entry.remote:
        _check_remote(vault, entry.source, entry.mirror)
        return
    source = Path(entry.source)
    if contains(source, settings.data) or contains(source, target):
        raise SettingsError(
            f'The data folder {settings.data} lies inside the vault "{vault}" ({source}).',
            "The vault is never written: keep the data apart from it.",
        )
    if contains(settings.data, source):
        raise SettingsError(
            f'The vault "{vault}" ({source}) lies inside the data folder {settings.data}.', "Keep the two apart."
        )


def _check_remote(vault: str, source: str, way: str) -> None:
    host, _, path = source.partition(":")
    if not host or not path or host.startswith("-") or path.startswith(":"):
        raise SettingsError(f'The source of "{vault}", {source}, is no user@host:path.', "Write it as ssh knows it.")
    if way != "rsync":
        raise SettingsError(
            f'The vault "{vault}" is on another machine, where mirror = "{way}" cannot reach.', 'Set mirror = "rsync".'
        )


def _enter(source: Path, vault: str) -> None:
    """Raise UnreachableError unless the source is a folder that can be listed."""
    try:
        with os.scandir(source):
            return
    except OSError as error:
        raise UnreachableError(
            f'The source of "{vault}", {source}, cannot be entered: {error.strerror}. Nothing was deleted.',
            "Is its disk mounted, and the folder where the settings say?",
        ) from error


@contextmanager
def _only_one(run: _Run) -> Iterator[int]:
    """Hold a vault's lock; the rsync that inherits it holds it too, so that an orphan of a killed run is waited for."""
    file = guard.state_file(run.target.parent, run.vault, "lock")
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + _PATIENCE
        while not _locked(lock):
            if time.monotonic() > deadline:
                raise BusyError(
                    f'Another sync of "{run.vault}" is running.', "Wait until it is done, then run the command again."
                )
            time.sleep(0.05)
        yield lock
    finally:
        os.close(lock)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
