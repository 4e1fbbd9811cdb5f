"""`dualwall init`: a commented settings file for a vault, with what can be seen from the vault itself."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from zoneinfo import available_timezones

import click

from dualwall.common import common, print_json
from dualwall.template import Agent, Found, render
from palace.configuration import user_file
from palace.errors import Exit, UsageError
from palace.settings import Daily

DATA = "~/.local/share/dualwall"
_CONFIG_NOTES = ("SOUL.md", "IDENTITY.md", "AGENTS.md", "USER.md", "TOOLS.md", "MEMORY.md")
_DEPTH = 4
"""How many folders deep an agent's folder is looked for."""


@click.command()
@click.argument("vault", type=click.Path(path_type=Path), required=False)
@click.option("--data", default=DATA, show_default=True, help="Where Dualwall keeps its data, on one mount.")
@click.option(
    "--agents", is_flag=True, help="Make the agents' folders found in the vault private roots, instead of proposing it."
)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@common
def command(  # noqa: PLR0913 - one an option
    vault: Path | None, *, data: str, agents: bool, force: bool, config: Path | None, as_json: bool
) -> Exit:
    """Write a commented settings file for VAULT (default ~/Notes) into your config folder, or to --config."""
    file = (config or user_file()).expanduser().absolute()
    found = look(vault, data, adopt=agents)
    write(file, found, force=force)
    if as_json:
        print_json({"settings": str(file), "vault": found.source, "agents": [agent.path for agent in found.agents]})
        return Exit.DONE
    click.echo(f"Wrote {file} for the vault {found.source}.")
    for agent in found.agents:
        state = (
            f'is the private root of "{agent.name}"' if agents else "looks like an agent's own folder and is left out"
        )
        click.echo(f"  {agent.path} {state}: see [[private]] in the file.")
    option = f" --config {file}" if config else ""
    click.echo(f"Next: dualwall doctor{option}, then dualwall nightly{option}")
    return Exit.DONE


def look(vault: Path | None, data: str, *, adopt: bool) -> Found:
    """What a vault says about itself. Raises UsageError when it is no folder."""
    source = "~/Notes" if vault is None else str(vault.expanduser().absolute())
    folder = Path(source).expanduser()
    if vault is not None and not folder.is_dir():
        raise UsageError(f"There is no folder {folder}.", "Give the folder of your Markdown notes.")
    return Found(
        source=source,
        data=data,
        timezone=_timezone(),
        daily=_daily(folder),
        agents=tuple(_agents(folder)) if folder.is_dir() else (),
        adopt=adopt,
    )


def write(file: Path, found: Found, *, force: bool) -> None:
    """Write the settings, whole or not at all; raises UsageError when there are some already."""
    if file.exists() and not force:
        raise UsageError(f"{file} is there already.", "Edit it, or write over it with --force.")
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    beside.write_text(render(found), encoding="utf-8")
    beside.replace(file)


def _timezone() -> str:
    """This machine's, by the usual places, else UTC."""
    for text in (os.environ.get("TZ", ""), os.path.realpath("/etc/localtime")):
        name = text.rpartition("zoneinfo/")[2].lstrip(":")
        if name in available_timezones() and name != "Etc/UTC":
            return name
    return "UTC"


def _daily(vault: Path) -> Daily | None:
    try:
        told = json.loads((vault / ".obsidian" / "daily-notes.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(told, dict):
        return None
    return Daily(folder=str(told.get("folder") or ""), format=str(told.get("format") or "YYYY-MM-DD"))


def _agents(vault: Path) -> Iterator[Agent]:
    """Folders that hold a SOUL.md. Names are made plain, and told apart by a number."""
    taken: set[str] = {"global", "me"}
    for base, folders, names in os.walk(vault):
        depth = len(Path(base).relative_to(vault).parts)
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if depth < _DEPTH else []
        if "SOUL.md" not in names or depth == 0:
            continue
        folders.clear()
        plain = re.sub(r"[^a-z0-9_-]+", "-", Path(base).name.lower()).strip("-") or "agent"
        name = next(n for n in (plain, *(f"{plain}-{i}" for i in range(2, 1000))) if n not in taken)
        taken.add(name)
        yield Agent(name, Path(base).relative_to(vault).as_posix(), _rooms(Path(base), names))


def _rooms(folder: Path, names: list[str]) -> dict[str, tuple[str, ...]]:
    rooms = {"system_config": tuple(name for name in _CONFIG_NOTES if name in names)}
    return rooms | ({"diary": ("memory/*.md",)} if (folder / "memory").is_dir() else {})
