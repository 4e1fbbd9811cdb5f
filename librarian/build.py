"""From the mirrors to a palace: look, read what changed, place, and swap a new generation in if anything differs.

Runs under the lock of the data folder, which the caller holds.
"""

import collections
import hashlib
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from librarian import scan, shelve, vaults
from librarian.index import start_here
from librarian.plan import Difference, arrange, difference, digest
from librarian.read import NoteKey, Reading, read_notes
from librarian.scan import Row
from librarian.sift import RACY_NS, Sifted, racy, sift
from librarian.vaults import OneVault
from palace import manifest
from palace.errors import DualwallError
from palace.manifest import Entry, Generation
from palace.progress import Report, silent
from palace.settings import Settings
from palace.vocabulary import GLOBAL, Problem, Stat

_KEPT = 2
"""Generations: the current one, for readers that have just opened something, and the one before."""
_START_HERE = "START-HERE.md"


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What a build did, or would do. `generation`: the current one afterwards, 0 when there is none."""

    generation: int
    changed: bool
    counts: Mapping[str, int]
    seconds: float
    problems: tuple[Problem, ...]
    difference: Difference

    @property
    def lines(self) -> tuple[str, ...]:
        """The plan for people."""
        return tuple(self.difference.lines())


@dataclass(slots=True)
class _Run:
    """One build. `scans`: each vault's rows; `earlier`: the last manifest's entries, by vault and path."""

    settings: Settings
    vaults: list[OneVault]
    before: Generation | None
    number: int
    settings_digest: str
    now_ns: int
    scans: dict[str, list[Row]]
    report: Report
    earlier: dict[NoteKey, Entry] = field(default_factory=dict)

    @property
    def mirrors(self) -> dict[str, Path]:
        return {vault.name: vault.mirror for vault in self.vaults}


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the palace has to hold. `rooms`: how many."""

    entries: tuple[Entry, ...]
    rooms: int
    sifted: Sifted
    reading: Reading
    problems: list[tuple[str, Problem]]


def build(settings: Settings, *, dry_run: bool = False, full: bool = False, report: Report = silent) -> BuildResult:
    """Bring the palace up to date. `dry_run`: only say what would change; `full`: read every note, build in any case.

    Raises SettingsError for walls that leak, UnreachableError without a mirror, DualwallError for a full disk or a
    mirror that changes meanwhile; the current generation stands in every case.
    """
    begin = time.perf_counter()
    with shelve.faults_of_the_disk(settings.palace):
        run = _look(settings, report, dry_run=dry_run, full=full)
        if not full and _unchanged(run, dry_run=dry_run):
            result = _nothing(run)
        else:
            result = _bring_up_to_date(run, dry_run=dry_run, full=full)
    return replace(result, seconds=time.perf_counter() - begin)


def _look(settings: Settings, report: Report, *, dry_run: bool, full: bool) -> _Run:
    """See every file once; what a killed build left is removed first, since that moves the stats of its links."""
    opened = vaults.open_vaults(settings)
    number = manifest.current_number(settings)
    if not dry_run:
        shelve.keep(settings.palace, number, _KEPT)
    before = None if full and not _readable(settings) else manifest.current(settings)
    now = time.time_ns()
    scans = {vault.name: vault.scan() for vault in opened}
    return _Run(settings, opened, before, number or 0, vaults.digest(settings, opened), now, scans, report)


def _readable(settings: Settings) -> bool:
    """Whether the current generation's own files can be read to their ends."""
    try:
        generation = manifest.current(settings)
        if generation is not None:
            collections.deque(manifest.read(generation.folder / manifest.MANIFEST), maxlen=0)
            manifest.read_problems(generation.folder / manifest.PROBLEMS)
    except DualwallError:
        return False
    return True


def _unchanged(run: _Run, *, dry_run: bool) -> bool:
    """Whether the mirrors and the settings are what the current generation was made from."""
    before = run.before
    if before is None or (before.scan_digest, before.settings_digest) != (scan.digest(run.scans), run.settings_digest):
        return False
    if not (before.folder / GLOBAL).is_dir() or not (before.folder / manifest.MANIFEST).is_file():
        return False
    young: dict[str, str] = {}
    for key, sha256 in before.racy.items():
        vault, _, path = key.partition("/")
        file = run.settings.mirror(vault) / path
        if hashlib.sha256(file.read_bytes()).hexdigest() != sha256:
            return False
        if file.stat().st_mtime_ns >= run.now_ns - RACY_NS:
            young[key] = sha256
    if young != before.racy and not dry_run:
        manifest.write_generation(replace(before, racy=young))
    return True


def _nothing(run: _Run) -> BuildResult:
    """The result of a run that found everything as it was; its Problems are still there."""
    before = run.before
    if before is None:
        raise AssertionError("only a generation can be unchanged")
    problems = manifest.read_problems(before.folder / manifest.PROBLEMS)
    counts = _counts(before.notes, before.rooms, 0, Difference())
    found = tuple(problem for _, problem in problems)
    return BuildResult(
        before.number, changed=False, counts=counts, seconds=0.0, problems=found, difference=Difference()
    )


def _bring_up_to_date(run: _Run, *, dry_run: bool, full: bool) -> BuildResult:
    wanted = _want(run, full=full)
    changes = difference(run.earlier.values(), wanted.entries)
    problems = wanted.problems
    changed = full or run.before is None or not changes.empty
    number = run.number
    if not dry_run:
        if changed:
            number += 1
            problems = _new_generation(run, wanted, number)
        else:
            problems = _refresh(run, wanted)
    counts = _counts(len(wanted.entries), wanted.rooms, wanted.reading.from_disk, changes)
    found = tuple(problem for _, problem in problems)
    return BuildResult(number, changed=changed, counts=counts, seconds=0.0, problems=found, difference=changes)


def _want(run: _Run, *, full: bool) -> _Wanted:
    """Read what may have changed, and place every note."""
    before, settings = run.before, run.settings
    sifted = Sifted()
    for vault in run.vaults:
        one = sift(run.scans[vault.name], vault.sieve(settings.ingest.max_note_bytes))
        sifted.notes += one.notes
        sifted.skipped += one.skipped
        sifted.problems += [*((vault.name, problem) for problem in vault.config.problems), *one.problems]
    if before is not None:
        run.earlier = {(e.ref.vault, e.ref.path): e for e in manifest.read(before.folder / manifest.MANIFEST)}
    trusted = {} if full else _trusted(run)
    reading = read_notes(sifted.notes, {v.name: v.source() for v in run.vaults}, trusted, run.report)
    placed = arrange(reading.notes, {v.name: v.rules(settings) for v in run.vaults})
    problems = [*sifted.problems, *reading.problems, *placed.problems]
    rooms = len({one.address for entry in placed.entries for one in entry.placements})
    return _Wanted(placed.entries, rooms, sifted, reading, problems)


def _trusted(run: _Run) -> dict[NoteKey, Entry]:
    """Entries of the last manifest that spare a reading: not with other settings, not the young ones.

    Notes with Problems are read again, so that the Problems come with their lines.
    """
    before = run.before
    if before is None or before.settings_digest != run.settings_digest:
        return {}
    wrong = {(vault, p.path) for vault, p in manifest.read_problems(before.folder / manifest.PROBLEMS)}
    return {
        key: entry
        for key, entry in run.earlier.items()
        if key not in wrong and f"{key[0]}/{entry.mirror}" not in before.racy
    }


def _new_generation(run: _Run, wanted: _Wanted, number: int) -> list[tuple[str, Problem]]:
    """Build beside, then swap. Whatever stops it, the current generation stands and nothing is left lying about."""
    palace = run.settings.palace
    folder = shelve.partial(palace, number)
    try:
        (folder / GLOBAL).mkdir(parents=True)
        tally = shelve.shelve(folder, wanted.entries, run.mirrors, run.report)
        # Before the stats are taken: removing names moves the ctime of what they named.
        shelve.keep(palace, run.number, _KEPT - 1, building=number)
        entries = shelve.after_linking(folder, wanted.entries, run.mirrors, tally.apart)
        warning = tally.problem()
        problems = wanted.problems + ([("", warning)] if warning else [])
        (folder / _START_HERE).write_text(start_here(entries), encoding="utf-8")
        _record(run, replace(wanted, entries=entries, problems=problems), folder, number, len(tally.apart))
        shelve.publish(palace, number)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return problems


def _refresh(run: _Run, wanted: _Wanted) -> list[tuple[str, Problem]]:
    """Same notes, same rooms, same files: only what is known of their stats, and of the other files, is new."""
    before = run.before
    if before is None:
        raise AssertionError("only a generation can be refreshed")
    apart = set(range(len(wanted.entries))) if before.copied else set()
    entries = shelve.after_linking(before.folder, wanted.entries, run.mirrors, apart)
    old = manifest.read_problems(before.folder / manifest.PROBLEMS)
    problems = wanted.problems + [(vault, p) for vault, p in old if p.code == shelve.COPIED]
    _record(run, replace(wanted, entries=entries, problems=problems), before.folder, before.number, before.copied)
    return problems


def _record(run: _Run, wanted: _Wanted, folder: Path, number: int, copied: int) -> None:
    """Everything that is known of a generation; `generation.json` last, since it vouches for the others."""
    manifest.write(folder / manifest.MANIFEST, wanted.entries)
    manifest.write_skipped(folder / manifest.SKIPPED, wanted.sifted.skipped)
    manifest.write_problems(folder / manifest.PROBLEMS, wanted.problems)
    manifest.write_generation(
        Generation(
            number=number,
            digest=digest(wanted.entries),
            scan_digest=scan.digest(_after(run.scans, wanted.entries)),
            settings_digest=run.settings_digest,
            notes=len(wanted.entries),
            rooms=wanted.rooms,
            problems=len(wanted.problems),
            folder=folder,
            copied=copied,
            racy=_young(run, wanted),
        )
    )


def _after(scans: Mapping[str, list[Row]], entries: Iterable[Entry]) -> dict[str, list[Row]]:
    """The rows as the next run will see them."""
    stats: dict[str, dict[str, Stat]] = {vault: {} for vault in scans}
    for entry in entries:
        stats[entry.ref.vault][entry.mirror] = entry.stat
    return {vault: scan.with_stats(rows, stats[vault]) for vault, rows in scans.items()}


def _young(run: _Run, wanted: _Wanted) -> dict[str, str]:
    """Notes whose stat proves nothing yet, with their hash."""
    young = {(note.vault, note.path) for note in racy(wanted.sifted.notes, run.now_ns)} | wanted.reading.unsettled
    return {
        f"{entry.ref.vault}/{entry.mirror}": entry.sha256
        for entry in wanted.entries
        if (entry.ref.vault, entry.ref.path) in young
    }


def _counts(notes: int, rooms: int, read: int, changes: Difference) -> dict[str, int]:
    return {
        "notes": notes,
        "rooms": rooms,
        "read": read,
        "new": len(changes.new),
        "changed": len(changes.changed),
        "rooms_only": len(changes.rooms_only),
        "relinked": len(changes.relinked),
        "gone": len(changes.gone),
    }
