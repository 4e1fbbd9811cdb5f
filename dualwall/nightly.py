"""`dualwall nightly`: sync, librarian, ingest and verify under one lock, answering questions meanwhile."""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dualwall import client, output, questions
from dualwall.client import SERVING, owning
from dualwall.common import Json, common, print_json, say
from palace import lock
from palace.configuration import load
from palace.errors import DualwallError, Exit, GuardError, UnreachableError, UsageError
from palace.progress import Progress, Report
from palace.settings import Settings
from palace.vocabulary import GLOBAL, Problem
from palace.walls import Reader

if TYPE_CHECKING:
    from palace.library import Library

_AGE = re.compile(r"(\d+)\s*([mhd])")
_SHOWN = 100
"""Lines of a plan that are printed one by one."""
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_SEVERITY = (Exit.GUARD, Exit.UNREACHABLE, Exit.FAILED, Exit.PROBLEMS)
"""The worst first: what a night's exit code is chosen by."""


@dataclass(slots=True)
class Step:
    """One step: its name, how long it took, and what it counted."""

    name: str
    seconds: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        counted = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self.counts.items() if value)
        return f"{self.name:<14} {self.seconds:6.1f} s  {counted or 'nothing to do'}"


@dataclass(slots=True)
class Night:
    """A run: what it did, what it could not do, and how it is told. `tell`: a line about the work itself."""

    settings: Settings
    library: "Library"
    report: Report
    on_answerable: Callable[[], None] | None = None
    dry_run: bool = False
    tell: Callable[[str], None] = say
    steps: list[Step] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    exits: set[Exit] = field(default_factory=set)

    def trouble(self, problems: Iterable[Problem]) -> None:
        """Add Problems, each once: two steps may meet the same one."""
        self.problems += [problem for problem in dict.fromkeys(problems) if problem not in self.problems]

    def fail(self, where: str, error: DualwallError) -> None:
        """Go on without something: its error becomes a Problem and counts for the exit code."""
        self.exits.add(error.exit_code if isinstance(error, GuardError | UnreachableError) else Exit.FAILED)
        self.problems.append(Problem(where, None, type(error).__name__, error.message, error.hint))

    @property
    def exit(self) -> Exit:
        """The worst that happened; Problems alone are 3."""
        found = self.exits | ({Exit.PROBLEMS} if self.problems else set())
        return next((code for code in _SEVERITY if code in found), Exit.DONE)

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Time a step and log its line."""
        step, began = Step(name), time.monotonic()
        self.steps.append(step)
        yield step
        step.seconds = round(time.monotonic() - began, 3)
        self.tell(str(step))

    def as_json(self) -> Json:
        """The shape of contract.md."""
        status = {Exit.DONE: "done", Exit.GUARD: "stopped"}.get(self.exit, "problems")
        return {
            "status": status,
            "generation": self.library.generation,
            "steps": [asdict(step) for step in self.steps],
            "problems": [asdict(problem) for problem in self.problems],
        }


@click.command()
@click.option("--dry-run", is_flag=True, help="Print what would be done, and do nothing.")
@click.option("--if-older", metavar="AGE", help="Only if the last success is older, as 20h, 90m or 2d.")
@common
def command(*, dry_run: bool, if_older: str | None, config: Path | None, as_json: bool) -> Exit:
    """Bring everything up to date: mirror the vaults, place the notes, fill the stores, verify.

    Questions are answered while it runs. It may be interrupted: the next run goes on from there.
    """
    settings = load(config)
    age = _age(if_older)
    owner = lock.owner(settings)
    if owner is not None and owner.command == SERVING:
        say(f"{owner} runs the night.")
        told = client.ask(settings, questions.night(dry_run=dry_run, older=age), "")
    else:
        with lock.hold(settings, "nightly"), owning(settings, "nightly") as library, Progress() as progress:
            told = tell(Night(settings, library, progress, dry_run=dry_run), age)
    for line in told["lines"]:
        say(line)
    if as_json:
        print_json(told["night"])
    else:
        click.echo(told["summary"])
    return Exit(told["exit_code"])


def tell(night: Night, age: timedelta | None) -> Json:
    """Run it if the last success is that old: `{"night": contract.md's, "summary", "lines", "exit_code"}`."""
    lines = []
    if age is None or _older(night.library, age):
        run(night)
    else:
        lines.append(f"The last success is younger than {age}: nothing to do.")
    return {"night": night.as_json(), "summary": summary(night), "lines": lines, "exit_code": int(night.exit)}


def run(night: Night) -> None:
    """All steps. One vault that cannot be synced stops no other; the last mirror of it stays in use."""
    for vault in night.settings.vaults:
        _sync(night, vault)
    _place(night)
    changed = _ingest(night)
    if not night.dry_run:
        catalogue = night.library.catalogue
        if changed or catalogue.get("calibrated") != catalogue.get("model"):
            _calibrate(night)
        _verify(night)
        if not night.exits:
            night.library.catalogue.set({"last_success": datetime.now(UTC).isoformat(timespec="seconds")})


def summary(night: Night) -> str:
    """What a person reads at the end."""
    lines = []
    if night.steps:
        total = sum(step.seconds for step in night.steps)
        verb = "Planned" if night.dry_run else "Stopped" if night.exit == Exit.GUARD else "Done"
        lines.append(f"{verb} in {total:.1f} s: palace generation {night.library.generation}.")
    if night.problems:
        lines.append(click.style(f"{len(night.problems)} Problems in notes; everything else went on:", fg="yellow"))
        lines.append(output.problems([asdict(problem) for problem in night.problems]))
    return "\n".join(lines)


def _sync(night: Night, vault: str) -> None:
    from sync.run import sync  # noqa: PLC0415

    with night.step(f"sync {vault}") as step:
        try:
            done = sync(night.settings, vault, dry_run=night.dry_run, progress=night.report)
        except DualwallError as error:
            night.fail(f"vault:{vault}", error)
            return
        step.counts = dict(done.counts)
        night.trouble(done.problems)
        for warning in done.warnings:
            night.tell(f"  {warning}")


def _place(night: Night) -> None:
    from librarian.build import build  # noqa: PLC0415

    with night.step("librarian") as step:
        try:
            built = build(night.settings, dry_run=night.dry_run, report=night.report)
        except UnreachableError as error:
            if night.dry_run:
                night.tell(f"  {error.message} The first run makes it.")
            else:
                night.fail("palace", error)
            return
        step.counts = dict(built.counts)
        night.trouble(built.problems)
        _show(night, built.lines if night.dry_run else ())


def _ingest(night: Night) -> bool:
    """Whether anything came, went or changed."""
    from ingest import worker  # noqa: PLC0415
    from ingest.cli import summary as counted  # noqa: PLC0415

    with night.step("ingest") as step:
        if night.dry_run:
            counts, lines = worker.plan(night.library, night.settings)
            _show(night, (f"{action} {path}" for action, path in lines))
        else:
            counts = worker.run(night.library, night.settings, report=night.report, on_answerable=night.on_answerable)
        step.counts = counted(counts)
        night.trouble(counts.problems)
        return any(step.counts.values())


def _calibrate(night: Night) -> None:
    """Draw the miss floor from the palace's own known questions, over all of its cubes."""
    with night.step("calibrate") as step:
        cubes = frozenset({GLOBAL, *(entry.cube for entry in night.settings.private)})
        floor = night.library.searcher.calibrate(Reader("nightly", cubes))
        catalogue = night.library.catalogue
        catalogue.set({"calibrated": catalogue.get("model") or ""})
        if floor is not None:
            catalogue.set({"floor": json.dumps(floor.as_dict())})
            step.counts = {"questions": floor.n}


def _verify(night: Night) -> None:
    with night.step("verify") as step:
        found = night.library.verify(repair=False)
        step.counts = {name: found[name] for name in ("notes", "chunks", "edges", "pending")}
        for difference in found["differences"]:
            hint = "Run: dualwall verify --repair, then dualwall ingest"
            night.problems.append(Problem("", None, "difference", difference, hint))


def _show(night: Night, lines: Iterable[str]) -> None:
    """The plan's lines, as many as can be read."""
    for number, line in enumerate(lines):
        if number == _SHOWN:
            night.tell("  ...")
            return
        night.tell(f"  {line}")


def _age(text: str | None) -> timedelta | None:
    if text is None:
        return None
    match = _AGE.fullmatch(text.strip())
    if not match:
        raise UsageError(f'"{text}" is no age.', "Write it as 20h, 90m or 2d.")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def _older(library: "Library", age: timedelta) -> bool:
    """Whether the last success is that old, or there was none; one in the future counts as none."""
    last = library.catalogue.get("last_success")
    now = datetime.now(UTC)
    return last is None or not now - age < datetime.fromisoformat(last) <= now
