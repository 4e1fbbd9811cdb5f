"""`dualwall librarian`: build the palace, and prove it."""

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path

import click

from librarian.build import BuildResult
from librarian.build import build as bring_up_to_date
from librarian.verify import Verified, examine
from palace.errors import Exit
from palace.progress import Progress
from palace.vocabulary import Problem

_CHANGES = ("new", "changed", "rooms_only", "relinked", "gone")
_SHOWN = 20
"""Problems and differences that are printed one by one."""


@click.group()
def group() -> None:
    """Place the notes into rooms: a palace of hardlinks, one folder a room, built beside and swapped in whole."""


@group.command()
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@click.option("--full", is_flag=True, help="Read every note again, and build a new generation in any case.")
@click.option("--config", type=click.Path(path_type=Path), help="The settings file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def build(*, dry_run: bool, full: bool, config: Path | None, as_json: bool) -> int:
    """Bring the palace up to date with the mirrors. Without a change nothing is built."""
    from palace import lock  # noqa: PLC0415 - `--help` does not pay for it
    from palace.configuration import load  # noqa: PLC0415

    settings = load(config)
    held: AbstractContextManager[object] = nullcontext() if dry_run else lock.hold(settings, "librarian build")
    with held, Progress() as progress:
        result = bring_up_to_date(settings, dry_run=dry_run, full=full, report=progress)
    if as_json:
        sys.stdout.write(json.dumps(_as_object(result)) + "\n")
    else:
        _print(result, dry_run=dry_run)
    return Exit.PROBLEMS if result.problems else Exit.DONE


@group.command()
@click.option("--config", type=click.Path(path_type=Path), help="The settings file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def verify(*, config: Path | None, as_json: bool) -> int:
    """Prove that each link has the mirror's inode and the manifest's bytes, and that nothing else is there."""
    from palace.configuration import load  # noqa: PLC0415

    found = examine(load(config))
    if as_json:
        sys.stdout.write(json.dumps(asdict(found)) + "\n")
    else:
        _print_verified(found)
    return Exit.FAILED if found.differences else Exit.DONE


def _as_object(result: BuildResult) -> dict[str, object]:
    return {
        "status": "problems" if result.problems else "done",
        "generation": result.generation,
        "changed": result.changed,
        "counts": dict(result.counts),
        "seconds": result.seconds,
        "plan": asdict(result.difference),
        "problems": [asdict(problem) for problem in result.problems],
    }


def _print(result: BuildResult, *, dry_run: bool) -> None:
    counts = result.counts
    if dry_run:
        click.echo("\n".join(result.lines))
    elif result.changed:
        what = ", ".join(f"{counts[name]} {name.replace('_', ' ')}" for name in _CHANGES if counts[name])
        click.echo(f"Generation {result.generation}: {_size(counts)} ({what or 'built anew'}; {result.seconds:.1f} s)")
    else:
        click.echo(f"Nothing changed: generation {result.generation}, {_size(counts)} ({result.seconds:.1f} s)")
    _print_problems(result.problems)


def _size(counts: Mapping[str, int]) -> str:
    return f"{counts['notes']} notes in {counts['rooms']} rooms"


def _print_problems(problems: Sequence[Problem]) -> None:
    for problem in problems[:_SHOWN]:
        line = f":{problem.line}" if problem.line else ""
        click.echo(f"  {problem.path}{line}: {problem.message}\n    {problem.hint}", err=True)
    if len(problems) > _SHOWN:
        click.echo(f"  ... and {len(problems) - _SHOWN} more: --json lists them all", err=True)


def _print_verified(found: Verified) -> None:
    if not found.differences:
        click.echo(f"The palace is what its manifest says: {found.notes} notes, {found.links} links.")
        return
    for difference in found.differences[:_SHOWN]:
        click.echo(f"  {difference}", err=True)
    if len(found.differences) > _SHOWN:
        click.echo(f"  ... and {len(found.differences) - _SHOWN} more: --json lists them all", err=True)
    click.echo(f"{len(found.differences)} differences. Mend them: dualwall librarian build --full", err=True)
