"""`dualwall ingest`: bring what changed into the stores."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from palace.settings import Settings
from palace.vocabulary import Counts

if TYPE_CHECKING:
    from palace.library import Library

Owning = Callable[[Settings, str], AbstractContextManager["Library"]]
"""Opens the library for a while; the program's own way (dualwall.client.owning) comes as click's `obj`."""
_SHOWN = 200
"""Planned steps that are printed one by one."""


@click.command()
@click.option("--config", type=click.Path(path_type=Path), help="The settings file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@click.option("--dry-run", is_flag=True, help="Print what would be done, and do nothing.")
@click.option("--full", is_flag=True, help="Trust no time stamp: hash every private file again.")
@click.option("--lexical-only", is_flag=True, help="Leave the dense vectors for the next run.")
@click.option("--accept-loss", is_flag=True, help="Forget also what the deletion guard would keep.")
@click.option(
    "--rebuild", "anew", is_flag=True, help="Build the vector store anew beside the old one: after a change of model."
)
def command(  # noqa: PLR0913 - one parameter an option
    config: Path | None,
    *,
    as_json: bool,
    dry_run: bool,
    full: bool,
    lexical_only: bool,
    accept_loss: bool,
    anew: bool,
) -> int:
    """Bring what changed into the stores: text first, so that it can be found, then the dense vectors.

    May be interrupted at any time; the next run goes on from there.
    """
    from ingest import worker  # noqa: PLC0415 - `--help` does not pay for the engine
    from ingest.rebuild import rebuild  # noqa: PLC0415
    from palace import lock  # noqa: PLC0415
    from palace.configuration import load  # noqa: PLC0415
    from palace.progress import Progress  # noqa: PLC0415

    settings = load(config)
    own: Owning = click.get_current_context().find_root().obj or _alone
    with lock.hold(settings, "ingest"), own(settings, "ingest") as library:
        if dry_run:
            counts, lines = worker.plan(library, settings, full=full)
            for action, path in lines[:_SHOWN]:
                click.echo(f"{action:>10}  {path}", err=as_json)
            if len(lines) > _SHOWN:
                click.echo(f"... and {len(lines) - _SHOWN} more", err=True)
        else:
            options = worker.Options(accept_loss=accept_loss, full=full, dense=not lexical_only)
            with Progress() as progress:
                if anew:
                    counts = rebuild(library, settings, progress, options)
                else:
                    counts = worker.run(library, settings, report=progress, options=options)
    _print(counts, as_json=as_json)
    return 3 if counts.problems else 0


@contextmanager
def _alone(settings: Settings, name: str) -> Iterator["Library"]:
    """The library without a socket for others' questions: outside of the program `dualwall`."""
    from palace import lock  # noqa: PLC0415
    from palace.library import Library  # noqa: PLC0415

    with lock.own(settings, name, wait=30), closing(Library.open(settings)) as library:
        yield library


def summary(counts: Counts) -> dict[str, int]:
    """The counts alone, as the nightly run reports them."""
    return {name: value for name, value in asdict(counts).items() if name != "problems"}


def _print(counts: Counts, *, as_json: bool) -> None:
    if as_json:
        status = "problems" if counts.problems else "done"
        found = {"status": status, "counts": summary(counts), "problems": [asdict(p) for p in counts.problems]}
        sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")
        return
    click.echo(
        ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in summary(counts).items() if value)
        or "Nothing changed."
    )
    for problem in counts.problems:
        place = problem.path if problem.line is None else f"{problem.path}:{problem.line}"
        click.echo(f"  {place}  {problem.message}\n    {problem.hint}", err=True)
