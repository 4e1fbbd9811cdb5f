"""`dualwall tour`, behind `make run`: from a vault to an answer with its receipt, for someone who sees it first."""

import hashlib
import re
import shlex
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dualwall import init, output, questions
from dualwall.client import owning
from dualwall.common import Json, say
from dualwall.nightly import Night, run, summary
from palace import lock
from palace.configuration import load
from palace.errors import Exit
from palace.progress import Progress
from palace.vocabulary import GLOBAL

if TYPE_CHECKING:
    from palace.library import Library

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "vault"
_MOST_ROOMS = 16
_DATE = re.compile(r"[\d\W_]+")
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of the tour, and why it is asked."""

    about: str
    query: str
    rooms: tuple[str, ...] = ()
    reader: str = "me"


@dataclass(frozen=True, slots=True)
class Script:
    """What the tour asks: `first` before the vectors are there, `then` with them."""

    first: Asked
    then: tuple[Asked, ...]


_EXAMPLE_SCRIPT = Script(
    Asked("by its words alone", "why did we decide against a lidar?"),
    (
        Asked("by its meaning, across languages, in one room only", "when was the last frost in spring?", ("Garden",)),
        Asked(
            'by the agent "scout", who alone sees its own diary',
            "what did Mei ask about the fleece?",
            ("diary",),
            "scout",
        ),
        Asked("the same by you: that wall is closed", "what did Mei ask about the fleece?", ("diary",)),
    ),
)


@click.command()
@click.argument("vault", type=click.Path(path_type=Path), required=False)
@click.option(
    "--home", type=click.Path(path_type=Path), default=".dualwall", show_default=True, help="Settings and data."
)
def command(vault: Path | None, *, home: Path) -> Exit:
    """Build a palace from VAULT (else the example's), show its rooms, and ask it a question."""
    began = time.monotonic()
    home = home.absolute()
    source = (vault or EXAMPLE).expanduser().absolute()
    config = settle(home, source, example=vault is None)
    settings = load(config)
    _title(f"1  A palace from {source}", "The folder is only read: everything is made in " + str(settings.data))
    with lock.hold(settings, "tour"), owning(settings, "tour") as library, Progress() as progress:
        night = Night(settings, library, progress)
        night.on_answerable = lambda: _first(library, _script(library, example=vault is None), began)
        run(night)
        click.echo(summary(night))
        _rooms(library)
        for asked in _script(library, example=vault is None).then:
            _ask(library, asked)
    _next(config, example=vault is None)
    return night.exit


def settle(home: Path, source: Path, *, example: bool) -> Path:
    """Settings for this vault in `home/dualwall.toml`; those for another vault are set aside and found again."""
    config = home / "dualwall.toml"
    if config.is_file():
        last = _source_of(config)
        if last == str(source):
            return config
        config.replace(_aside(home, last))
    if (aside := _aside(home, str(source))).is_file():
        aside.replace(config)
        return config
    init.write(config, init.look(source, _slug(str(source)), adopt=example), force=False)
    return config


def _source_of(config: Path) -> str:
    vaults = load(config).vaults
    return next(iter(vaults.values())).source if vaults else ""


def _aside(home: Path, source: str) -> Path:
    return home / f"{_slug(source)}.toml"


def _slug(source: str) -> str:
    """A folder's name, told apart from others of that name by its path."""
    name = re.sub(r"[^a-z0-9]+", "-", Path(source).name.lower()).strip("-") or "vault"
    return f"{name}-{hashlib.sha256(source.encode('utf-8', 'surrogateescape')).hexdigest()[:6]}"


def _first(library: "Library", script: Script, began: float) -> None:
    say("")
    _title(f"2  The first answer, {time.monotonic() - began:.0f} s after the start: {script.first.about}")
    _ask(library, script.first, titled=False)
    say("The vectors follow now, newest notes first. You may stop with ctrl-c: the next run goes on from there.")


def _rooms(library: "Library") -> None:
    found = questions.rooms().answer(library, library.settings.default_reader)
    rooms = sorted(found["rooms"], key=lambda room: -int(room["notes"]))
    more = "" if found["next"] is None else "+"
    _title(f"3  Its rooms: {len(rooms)}{more}", "From folders and tags; a note stands in all of its rooms at once.")
    shown = sorted(rooms[:_MOST_ROOMS], key=lambda room: (room["wing"], room["room"]))
    click.echo(output.rooms({"rooms": shown, "next": None}))
    if len(rooms) > _MOST_ROOMS:
        click.echo(f"… and {len(rooms) - _MOST_ROOMS}{more} smaller ones")


def _ask(library: "Library", asked: Asked, *, titled: bool = True) -> None:
    if titled:
        _title(f"4  Asked {asked.about}")
    click.echo(f"$ {_command(asked)}\n")
    found: Json = questions.search(asked.query, asked.rooms, limit=2).answer(library, asked.reader)
    click.echo(output.answer(found, explain=False))
    click.echo()


def _command(asked: Asked) -> str:
    rooms = "".join(f" --room {shlex.quote(room)}" for room in asked.rooms)
    reader = "" if asked.reader == "me" else f" --as {asked.reader}"
    return f"dualwall search {shlex.quote(asked.query)}{rooms}{reader}"


def _script(library: "Library", *, example: bool) -> Script:
    """The example's questions, or some made from what the vault holds."""
    if example:
        return _EXAMPLE_SCRIPT
    subject, room = _subject(library)
    where = (room,) if room else ()
    return Script(
        Asked("by its words alone", subject), (Asked(f"in one room only, {room}", subject, where),) if room else ()
    )


def _subject(library: "Library") -> tuple[str, str | None]:
    """The title of a note that many others link to (else a telling title), and the largest room it stands in."""
    links = Counter(edge.target for edge in library.graph.edges() if edge.target is not None)
    notes = [note for note in library.graph.notes() if note.cube == GLOBAL and not _DATE.fullmatch(note.title)]
    if not notes:
        return "what is this about?", None
    best = max(notes, key=lambda note: (links[note.id], _telling(note.title), note.title))
    return best.title, next((f"{wing}/{room}" for wing, room, _, _ in best.rooms), None)


def _telling(title: str) -> int:
    """More words tell more, up to a handful; Chinese and Japanese are counted by letters."""
    words = _WORDS.findall(title)
    return min(len(words) + sum(len(word) // 3 for word in words if not word.isascii()), 5)


def _title(text: str, below: str = "") -> None:
    click.echo(f"\n{click.style(text, bold=True, underline=True)}")
    if below:
        click.echo(click.style(below, dim=True))
    click.echo()


def _next(config: Path, *, example: bool) -> None:
    _title("5  What to do next")
    folder = config.parent.name if config.parent.parent == Path.cwd() else str(config.parent)
    lines = [
        f"export DUALWALL_CONFIG=$PWD/{folder}/dualwall.toml PATH=$PWD/.venv/bin:$PATH",
        'dualwall search "your question"       ask; --room narrows, --explain shows the scores',
        "dualwall rooms                        where to look",
        "dualwall status --files               what is indexed, and what is not and why",
        "dualwall nightly                      again after the notes have changed: only changes cost time",
    ]
    if example:
        lines.append("make run VAULT=~/Notes                the same with your own notes, which are only read")
    click.echo("\n".join(lines))
