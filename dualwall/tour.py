"""`dualwall tour`, behind `make run`: from a vault to an answer with its receipt, for someone who sees it first."""

import hashlib
import re
import shlex
import time
from collections import Counter
from collections.abc import Iterator
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
from palace.errors import Exit, NotFoundError
from palace.progress import Progress
from palace.vocabulary import GLOBAL

if TYPE_CHECKING:
    from palace.library import Library

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "vault"
_MOST_ROOMS = 16
_LONGEST_TITLE = 40
"""Characters of a title that still reads as a question."""
_DATE = re.compile(r"[\d\W_]+")
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of the tour, and what it shows."""

    shows: str
    query: str
    rooms: tuple[str, ...] = ()
    reader: str = "me"


_EXAMPLE_FIRST = Asked("by its words", "why did we decide against a lidar?")
_EXAMPLE_THEN = (
    Asked("In one room only", "how do we keep the robot from killing carrots?", ("Dandy",)),
    Asked("In Chinese, in one room only", "为什么五月以前不能移栽番茄", ("Garden",)),
)
_EXAMPLE_PRIVATE = Asked(
    'By the agent "scout", in its own diary', "what did Mei ask about the fleece?", ("diary",), "scout"
)


@dataclass(slots=True)
class Tour:
    """One tour through one palace. `began`: when the newcomer pressed enter."""

    library: "Library"
    config: Path
    example: bool
    began: float
    section: int = 0

    def title(self, text: str, below: str = "") -> None:
        """Begin a section."""
        self.section += 1
        click.echo(f"\n{click.style(f'{self.section}  {text}', bold=True, underline=True)}")
        click.echo(click.style(below, dim=True) + "\n" if below else "")

    def first(self) -> None:
        """The first answer, while the vectors are still to come."""
        asked = _EXAMPLE_FIRST if self.example else Asked("by its words", _subject(self.library)[0])
        say("")
        self.title(f"The first answer, {time.monotonic() - self.began:.0f} s after the start, {asked.shows}")
        self.ask(asked)

    def answerable(self) -> None:
        """Everything is found by words now. Of a vault of one's own all is shown here: its vectors may take long."""
        self.first()
        if not self.example:
            self.rooms()
            self.answers()
            self.next()
        if self.library.status()["pending"]:
            say(
                "The vectors follow now, newest notes first. You may stop with ctrl-c: the next run goes on from there."
            )

    def rooms(self) -> None:
        """The largest rooms."""
        found = questions.rooms().answer(self.library, self.library.settings.default_reader)
        rooms = sorted(found["rooms"], key=lambda room: -int(room["notes"]))
        more = "" if found["next"] is None else "+"
        palace = self.library.settings.palace / "current"
        self.title(f"Its rooms: {len(rooms)}{more}", f"From folders and tags, each a folder in {palace}")
        shown = sorted(rooms[:_MOST_ROOMS], key=lambda room: (room["wing"], room["room"]))
        click.echo(output.rooms({"rooms": shown, "next": None}))
        if len(rooms) > _MOST_ROOMS:
            click.echo(f"… and {len(rooms) - _MOST_ROOMS}{more} smaller ones")

    def answers(self) -> None:
        """Answers from within rooms, with their receipts."""
        subject, room = ("", None) if self.example else _subject(self.library)
        for asked in _EXAMPLE_THEN if self.example else (Asked("In one room only", subject, (room,)),) if room else ():
            self.title(asked.shows)
            self.ask(asked)

    def walls(self) -> None:
        """A private answer, and the same note refused to another reader."""
        if not self.example:
            return
        self.title(_EXAMPLE_PRIVATE.shows)
        hits = self.ask(_EXAMPLE_PRIVATE)["hits"]
        if hits:
            click.echo(f"$ dualwall read {shlex.quote(hits[0]['path'])}\n")
            try:
                questions.read(hits[0]["ref"]).answer(self.library, self.library.settings.default_reader)
            except NotFoundError as error:
                click.echo(error.message.replace(hits[0]["ref"], hits[0]["path"]))
                click.echo("That was you: this note is behind the other wall.")

    def next(self) -> None:
        """What to do next."""
        self.title("What to do next")
        click.echo("\n".join(_next(self.config, example=self.example)))

    def ask(self, asked: Asked) -> Json:
        """Show the command and its answer."""
        click.echo(f"$ {_command(asked)}\n")
        found = questions.search(asked.query, asked.rooms, limit=2).answer(self.library, asked.reader)
        click.echo(output.answer(found, explain=False) + "\n")
        return found


@click.command()
@click.argument("vault", type=click.Path(path_type=Path), required=False)
@click.option(
    "--home", type=click.Path(path_type=Path), default=".dualwall", show_default=True, help="Settings and data."
)
def command(vault: Path | None, *, home: Path) -> Exit:
    """Build a palace from VAULT (else the example's), show its rooms, and ask it a question."""
    began = time.monotonic()
    source = (vault or EXAMPLE).expanduser().absolute()
    config = settle(home.absolute(), source, example=vault is None)
    settings = load(config)
    with lock.hold(settings, "tour"), owning(settings, "tour") as library, Progress() as progress:
        tour = Tour(library, config, example=vault is None, began=began)
        tour.title(f"A palace from {source}", f"The folder is only read; everything is made in {settings.data}")
        night = Night(settings, library, progress, tour.answerable)
        run(night)
        click.echo(summary(night))
        for part in (tour.rooms, tour.answers, tour.walls, tour.next) if tour.example else ():
            part()
    return Exit.DONE if night.exit == Exit.PROBLEMS else night.exit  # a real vault has some; the summary lists them


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


def _command(asked: Asked) -> str:
    rooms = "".join(f" --room {shlex.quote(room)}" for room in asked.rooms)
    reader = "" if asked.reader == "me" else f" --as {asked.reader}"
    return f"dualwall search {shlex.quote(asked.query)}{rooms}{reader}"


def _subject(library: "Library") -> tuple[str, str | None]:
    """The title of a note that many others link to (else a telling title), and the smallest room that it shares."""
    links = Counter(edge.target for edge in library.graph.edges() if edge.target is not None)
    everywhere = [note for note in library.graph.notes() if note.cube == GLOBAL]
    sizes = Counter(f"{wing}/{room}" for note in everywhere for wing, room, _, _ in note.rooms)
    notes = [note for note in everywhere if not _DATE.fullmatch(note.title)]
    notes = [note for note in notes if len(note.title) <= _LONGEST_TITLE] or notes
    if not notes:
        return "what is this about?", None
    best = max(notes, key=lambda note: (links[note.id], _telling(note.title), note.title))
    shared = {place for wing, room, _, _ in best.rooms if sizes[place := f"{wing}/{room}"] > 1}
    return best.title, min(shared, key=lambda place: (sizes[place], place), default=None)


def _telling(title: str) -> int:
    """More words tell more, up to a handful; Chinese and Japanese are counted by letters."""
    words = _WORDS.findall(title)
    return min(len(words) + sum(len(word) // 3 for word in words if not word.isascii()), 5)


def _next(config: Path, *, example: bool) -> Iterator[str]:
    here = f"$PWD/{config.relative_to(Path.cwd())}" if config.is_relative_to(Path.cwd()) else str(config)
    yield f"export DUALWALL_CONFIG={here} PATH=$PWD/.venv/bin:$PATH"
    yield 'dualwall search "your question"   ask; --room narrows, --explain shows the scores'
    yield "dualwall rooms                    where to look"
    yield "dualwall status --files           what is indexed, and what is not and why"
    yield "dualwall nightly                  again after the notes have changed: only changes cost time"
    if example:
        yield "make run VAULT=~/Notes            the same with your own notes, which are only read"
