"""`dualwall sync`: mirror the vaults."""

import json
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from palace.errors import DualwallError, Exit
from palace.progress import Progress, Report
from palace.settings import Settings
from sync.run import SyncResult, sync

_SHOWN = 20
"""Problems that are printed one by one."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says beyond the vaults."""

    accept_loss: int | None = None
    dry_run: bool = False
    checksum: bool | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """One vault's sync: its result, or what stopped it."""

    vault: str
    result: SyncResult | None
    error: DualwallError | None = None

    @property
    def status(self) -> str:
        """`done`, `problems` or `stopped`."""
        if self.result is None:
            return "stopped"
        return "problems" if self.result.problems else "done"


@click.command()
@click.option("--vault", "vaults", multiple=True, metavar="NAME", help="This vault only (repeatable; else all).")
@click.option("--accept-loss", type=click.IntRange(min=0), metavar="N", help="Up to N notes are meant to be gone.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--checksum", is_flag=True, help="Compare bytes, not sizes and times (done by itself once a week).")
@click.option("--config", type=click.Path(path_type=Path), help="The settings file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def command(  # noqa: PLR0913 - one parameter an option
    vaults: tuple[str, ...],
    *,
    accept_loss: int | None,
    dry_run: bool,
    checksum: bool,
    config: Path | None,
    as_json: bool,
) -> int:
    """Mirror the vaults into the data folder. The vaults themselves are only read.

    A vault that fails does not stop the others; the exit code is that of the worst.
    """
    from palace import lock  # noqa: PLC0415 - `--help` does not pay for it
    from palace.configuration import load  # noqa: PLC0415

    settings = load(config)
    options = Options(accept_loss, dry_run, checksum or None)
    held: AbstractContextManager[object] = nullcontext() if dry_run else lock.hold(settings, "sync")
    with held, Progress() as progress:
        outcomes = sync_all(settings, vaults or tuple(settings.vaults), options, progress)
    if as_json:
        sys.stdout.write(json.dumps(as_object(outcomes)) + "\n")
    else:
        _print(outcomes, dry_run=dry_run)
    return exit_code(outcomes)


def sync_all(
    settings: Settings, vaults: tuple[str, ...], options: Options, progress: Report | None = None
) -> list[Outcome]:
    """Sync several vaults, one after the other, whatever happens to one of them."""
    return [_outcome(settings, vault, options, progress) for vault in dict.fromkeys(vaults)]


def _outcome(settings: Settings, vault: str, options: Options, progress: Report | None) -> Outcome:
    try:
        return Outcome(vault, sync(settings, vault, progress=progress, **asdict(options)))
    except DualwallError as error:
        return Outcome(vault, None, error)


def exit_code(outcomes: list[Outcome]) -> Exit:
    """The worst: the guard before any other error, errors before Problems."""
    errors = [outcome.error.exit_code for outcome in outcomes if outcome.error is not None]
    if errors:
        return Exit.GUARD if Exit.GUARD in errors else errors[0]
    return Exit.PROBLEMS if any(outcome.status == "problems" for outcome in outcomes) else Exit.DONE


def as_object(outcomes: list[Outcome]) -> dict[str, object]:
    """What `--json` prints."""
    statuses = {outcome.status for outcome in outcomes}
    return {
        "status": next((status for status in ("stopped", "problems") if status in statuses), "done"),
        "vaults": [_vault_object(outcome) for outcome in outcomes],
        "problems": [asdict(problem) for outcome in outcomes if outcome.result for problem in outcome.result.problems],
    }


def _vault_object(outcome: Outcome) -> dict[str, object]:
    result, error = outcome.result, outcome.error
    return {
        "vault": outcome.vault,
        "status": outcome.status,
        "seconds": result.seconds if result else None,
        "changed": result.changed if result else None,
        "checksum": result.checksum if result else None,
        "counts": result.counts if result else None,
        "warnings": list(result.warnings) if result else [],
        "error": {"exit": int(error.exit_code), "message": error.message, "hint": error.hint} if error else None,
    }


def _print(outcomes: list[Outcome], *, dry_run: bool) -> None:
    for outcome in outcomes:
        if outcome.result is not None:
            click.echo(f"{outcome.vault}: {_sentence(outcome.result, dry_run=dry_run)}")
            _print_problems(outcome.result)
        if outcome.error is not None:
            click.echo(f"{outcome.vault}: {outcome.error}", err=True)


def _sentence(result: SyncResult, *, dry_run: bool) -> str:
    counts = result.counts
    if not result.changed:
        what = "nothing would change" if dry_run else "nothing changed"
    else:
        what = f"{counts['changed']} copied ({_size(counts['bytes'])}), {counts['deleted']} deleted"
        what = f"would be {what}" if dry_run else what
    compared = ", every byte compared" if result.checksum else ""
    return f"{what}; {counts['files']} files, of them {counts['notes']} notes ({result.seconds:.1f} s{compared})"


def _print_problems(result: SyncResult) -> None:
    for warning in result.warnings:
        click.echo(f"  {warning}", err=True)
    for problem in result.problems[:_SHOWN]:
        place = f"{problem.path}: " if problem.path else ""
        click.echo(f"  {place}{problem.message}\n    {problem.hint}", err=True)
    if len(result.problems) > _SHOWN:
        click.echo(f"  ... and {len(result.problems) - _SHOWN} more: --json lists them all", err=True)


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
