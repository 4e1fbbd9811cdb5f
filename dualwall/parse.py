"""`dualwall parse`: what Obsidian would see in a file. Needs no settings."""

from dataclasses import asdict
from pathlib import Path

import click

from dualwall import output
from dualwall.common import Json, json_option, print_json
from palace.errors import DualwallError, Exit
from palace.names import fold
from palace.vocabulary import ParsedNote


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--config", type=click.Path(path_type=Path), hidden=True, help="Not needed here.")
@click.option("--lenient", is_flag=True, help='Read properties as the setting compat = "lenient" does.')
@json_option
def command(files: tuple[Path, ...], *, config: Path | None, lenient: bool, as_json: bool) -> Exit:  # noqa: ARG001 - every command takes it
    """Show what Obsidian would see in each FILE: properties, tags, aliases, headings, links; one JSON object a line."""
    from palace.obsidian.note import read_note  # noqa: PLC0415 - the help doesn't pay for the parser

    worst = Exit.DONE
    for file in files:
        try:
            data = file.read_bytes()
        except OSError as error:
            raise DualwallError(f"{file} cannot be read: {error.strerror}.", "Give Markdown files.") from error
        note = read_note(data, str(file), compat="lenient" if lenient else "obsidian")
        if note.problems:
            worst = Exit.PROBLEMS
        seen = as_object(note)
        if as_json:
            print_json(seen)
        else:
            click.echo(output.parsed(seen))
    return worst


def as_object(note: ParsedNote) -> Json:
    """The shape of contract.md."""
    tags: dict[str, str] = {}
    for tag in note.tags:
        tags.setdefault(fold(tag.name), tag.name)
    return {
        "path": note.path,
        "tags": list(tags.values()),
        "aliases": list(note.aliases),
        "properties": dict(note.properties),
        "headings": [{"level": one.level, "text": one.text, "line": one.line} for one in note.headings],
        "links": [
            {
                "link": one.link,
                "target": one.target,
                "heading": one.heading,
                "block": one.block,
                "alias": one.alias,
                "embed": one.embed,
                "line": one.line,
            }
            for one in note.links
        ],
        "problems": [asdict(problem) for problem in note.problems],
    }
