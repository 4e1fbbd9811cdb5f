"""The commands that ask: search, rooms, read, neighbors, inject, status, verify."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from dualwall import client, output, questions
from dualwall.common import Json, common, print_json
from palace import lock
from palace.configuration import load
from palace.configuration_rules import did_you_mean
from palace.errors import Exit, UsageError
from palace.settings import Settings

as_option = click.option("--as", "reader", help="Who asks (else the first reader of the settings).")


@click.command()
@click.argument("query")
@click.option(
    "--room", "-r", "rooms", multiple=True, help="Look in this room only, by any spelling, as `room` or `wing/room`."
)
@click.option("--wing", "-w", "wings", multiple=True, help="Look in this wing only.")
@click.option("--limit", "-n", type=click.IntRange(1, 100), help="How many hits at most.")
@click.option("--explain", is_flag=True, help="Show each leg's score, the floors and the refs.")
@as_option
@common
def search(  # noqa: PLR0913 - one an option
    query: str, rooms: tuple[str, ...], wings: tuple[str, ...], limit: int | None, *,
    explain: bool, reader: str | None, config: Path | None, as_json: bool,
) -> Exit:  # fmt: skip
    """Ask QUERY of the notes that you may see; every answer says where it looked and which bytes it is from."""
    settings = load(config)
    question = questions.search(query, rooms, wings, limit, explain=explain)
    found = client.ask(settings, question, reader_of(settings, reader))
    _print(found, partial(output.answer, explain=explain), as_json=as_json)
    return Exit.DONE


@click.command()
@click.argument("query", required=False)
@click.option("--wing", "-w", help="Only this wing's rooms.")
@click.option("--cursor", help="Go on after a page.")
@as_option
@common
def rooms(  # noqa: PLR0913 - one an option
    query: str | None, wing: str | None, cursor: str | None, *, reader: str | None, config: Path | None, as_json: bool
) -> Exit:
    """List the rooms that you may see, or those that suit QUERY, best first."""
    settings = load(config)
    found = client.ask(settings, questions.rooms(query, wing, cursor), reader_of(settings, reader))
    _print(found, output.rooms, as_json=as_json)
    return Exit.DONE


@click.command()
@click.argument("note")
@click.option("--lines", help="Only these lines, as 10-18.")
@as_option
@common
def read(note: str, *, lines: str | None, reader: str | None, config: Path | None, as_json: bool) -> Exit:
    """Show NOTE: its ref from an answer, its path in the vault, or its title."""
    settings = load(config)
    asker = reader_of(settings, reader)
    found = client.ask(settings, questions.read(note, _span(lines)), asker)
    _print(found, output.note, as_json=as_json)
    return Exit.DONE


@click.command()
@click.argument("note")
@as_option
@common
def neighbors(note: str, *, reader: str | None, config: Path | None, as_json: bool) -> Exit:
    """Show what stands around NOTE (a ref, a path or a title): links, backlinks, notes with its tags."""
    settings = load(config)
    asker = reader_of(settings, reader)
    found = client.ask(settings, questions.neighbors(note), asker)
    _print(found, output.neighborhood, as_json=as_json)
    return Exit.DONE


@click.command()
@click.option("--message", "-m", default="", help="The last user message.")
@click.option("--at", help="The time that it is, as 2026-11-30T08:15 (else now).")
@click.option("--explain", is_flag=True, help="Show what was left out and why, and what each entry takes.")
@as_option
@common
def inject(  # noqa: PLR0913 - one an option
    message: str, at: str | None, *, explain: bool, reader: str | None, config: Path | None, as_json: bool
) -> Exit:
    """Show what goes before an agent's response: its directives, and what it recalls of diary and daily notes."""
    settings = load(config)
    asker = reader_of(settings, reader)
    found = client.ask(settings, questions.inject(message, at, patient=True), asker)
    _print(found, partial(output.injection, explain=explain), as_json=as_json)
    return Exit.DONE


@click.command()
@click.option("--files", is_flag=True, help="Each file: indexed, stale, quarantined or skipped, and why.")
@common
def status(*, files: bool, config: Path | None, as_json: bool) -> Exit:
    """Show what is indexed, what waits, and with --files what is not and why."""
    settings = load(config)
    found = client.ask(settings, questions.status(files=files), settings.default_reader)
    _print(found, output.status, as_json=as_json)
    return Exit.DONE


@click.command()
@click.option("--repair", is_flag=True, help="Mark what differs, so that the next ingest writes it again.")
@common
def verify(*, repair: bool, config: Path | None, as_json: bool) -> Exit:
    """Compare palace, vectors, graph and catalogue; exit 1 when they differ."""
    settings = load(config)
    with lock.hold(settings, "verify"):
        found = client.ask(settings, questions.verify(repair=repair), settings.default_reader)
    _print(found, partial(output.differences, repaired=repair), as_json=as_json)
    return Exit.FAILED if found["differences"] else Exit.DONE


def reader_of(settings: Settings, name: str | None) -> str:
    """The named reader, or the default one; raises UsageError for a name that the settings don't have."""
    if name is not None and name not in settings.readers:
        raise UsageError(f'There is no reader "{name}" in the settings.', did_you_mean(name, settings.readers.keys()))
    return name or settings.default_reader


def _span(lines: str | None) -> tuple[int, int] | None:
    if lines is None:
        return None
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", lines)
    if not match or int(match[1]) < 1 or int(match[2] or match[1]) < int(match[1]):
        raise UsageError(f'"{lines}" are no lines.', "Write them as 10 or 10-18.")
    return int(match[1]), int(match[2] or match[1])


def _print(found: Json, render: Callable[[Json], str], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        click.echo(render(found))
