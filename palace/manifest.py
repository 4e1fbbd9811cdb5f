"""Where librarian and ingest meet: what stands in the palace's current generation, note by note.

A generation is a folder `palace/gen-000012`: `global/WING/ROOM/FILE.md`, `manifest.jsonl`, `generation.json`,
`skipped.jsonl`, `problems.jsonl`, `START-HERE.md`. `palace/current` is a symlink to it, swapped by one rename.
File names may be no UTF-8: they are kept with surrogate escapes, in the files as their own bytes.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from palace.errors import DualwallError
from palace.settings import Settings
from palace.vocabulary import NoteRef, Placement, Problem, RoomAddress, Sha256, Stat

MANIFEST, GENERATION, SKIPPED, PROBLEMS = "manifest.jsonl", "generation.json", "skipped.jsonl", "problems.jsonl"
CURRENT = "current"

_Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """One note on its shelves.

    `mirror`: its file below `data/mirror/VAULT`, as the disk has it; `links`: one path a placement, in the same order,
    below the generation's folder; `stat`: taken after linking, which moves ctime; `tags`: as parsed.
    """

    ref: NoteRef
    mirror: str
    placements: tuple[Placement, ...]
    links: tuple[str, ...]
    stat: Stat
    sha256: Sha256
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that stands on no shelf. `state`: `skipped` by a rule, or `quarantined` by a Problem."""

    vault: str
    path: str
    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class Generation:
    """A whole generation. Equal `digest`: equal notes in equal rooms, whatever the inodes and the time.

    `scan_digest`: of the mirrors' names and stats; `settings_digest`: of all that decides placement; both only say
    whether there is anything to do. `copied`: notes that could not be hardlinked. `racy`: SHA-256 of notes too young
    for their stat to be trusted, by `VAULT/` and their mirror path.
    """

    number: int
    digest: str
    scan_digest: str
    settings_digest: str
    notes: int
    rooms: int
    problems: int
    folder: Path
    copied: int = 0
    racy: Mapping[str, str] = field(default_factory=dict)


def folder_name(number: int) -> str:
    """A generation's folder: `gen-000012`."""
    return f"gen-{number:06}"


def number_of(name: str) -> int | None:
    """The number in a generation folder's name; None for any other name."""
    digits = name.removeprefix("gen-")
    return int(digits) if digits != name and digits.isascii() and digits.isdecimal() else None


def current_number(settings: Settings) -> int | None:
    """The number of the generation that readers see, whatever state it is in; None before the first build."""
    try:
        return number_of(os.readlink(settings.palace / CURRENT))  # noqa: PTH115 - the text, not what it leads to
    except FileNotFoundError:
        return None


def current(settings: Settings) -> Generation | None:
    """The generation that readers see; None before the first build. Raises DualwallError when it is damaged."""
    number = current_number(settings)
    if number is None:
        return None
    folder = settings.palace / folder_name(number)
    if not folder.is_dir():
        return None
    with _whole(folder / GENERATION):
        return _generation(next(_lines(folder / GENERATION), {}), folder)


def write_generation(generation: Generation) -> None:
    """Write `generation.json` into its folder: the old one or the new one is there, never a part."""
    values = asdict(generation) | {"generation": generation.number, "racy": dict(generation.racy)}
    values = {key: value for key, value in values.items() if key not in ("number", "folder")}
    _replace(generation.folder / GENERATION, (values,))


def write(path: Path, entries: Iterable[Entry]) -> None:
    """Write a manifest; `entries` sorted by vault and path. The old file or the new one is there, never a part."""
    _replace(path, map(_entry_json, entries))


def read(path: Path) -> Iterator[Entry]:
    """A manifest's entries, sorted by vault and path. Raises DualwallError when the file is damaged."""
    addresses: dict[tuple[str, str, str], RoomAddress] = {}
    with _whole(path):
        for line in _lines(path):
            yield _entry(line, addresses)


def write_skipped(path: Path, skipped: Iterable[Skipped]) -> None:
    """Write the files that stand on no shelf, each with its reason."""
    _replace(path, map(asdict, skipped))


def read_skipped(path: Path) -> list[Skipped]:
    """The files that stand on no shelf. Raises DualwallError when the file is damaged."""
    with _whole(path):
        return [Skipped(**line) for line in _lines(path)]


def write_problems(path: Path, problems: Iterable[tuple[str, Problem]]) -> None:
    """Write a generation's Problems, each with its vault."""
    _replace(path, ({"vault": vault} | asdict(problem) for vault, problem in problems))


def read_problems(path: Path) -> list[tuple[str, Problem]]:
    """A generation's Problems, each with its vault. Raises DualwallError when the file is damaged."""
    with _whole(path):
        return [(line.pop("vault"), Problem(**line)) for line in _lines(path)]


def _generation(values: _Json, folder: Path) -> Generation:
    number = values.pop("generation")
    return Generation(number=number, folder=folder, **values)


def _entry_json(entry: Entry) -> _Json:
    ref, stat = entry.ref, entry.stat
    return {
        "cube": ref.cube,
        "vault": ref.vault,
        "path": ref.path,
        "mirror": entry.mirror,
        "sha256": entry.sha256,
        "tags": entry.tags,
        "rooms": [_room_json(placement, link) for placement, link in zip(entry.placements, entry.links, strict=True)],
        "device": stat.device,
        "inode": stat.inode,
        "size": stat.size,
        "mtime_ns": stat.mtime_ns,
        "ctime_ns": stat.ctime_ns,
    }


def _room_json(placement: Placement, link: str) -> _Json:
    return {
        "wing": placement.address.wing,
        "room": placement.address.room,
        "wing_label": placement.wing_label,
        "room_label": placement.room_label,
        "reason": placement.reason,
        "section": placement.section,
        "link": link,
    }


def _entry(line: _Json, addresses: dict[tuple[str, str, str], RoomAddress]) -> Entry:
    cube, placements = line["cube"], []
    for room in line["rooms"]:
        key = (cube, room["wing"], room["room"])
        address = addresses.get(key) or addresses.setdefault(key, RoomAddress(*key))
        placements.append(
            Placement(address, room["wing_label"], room["room_label"], room["reason"], room["section"]),
        )
    return Entry(
        NoteRef(cube, line["vault"], line["path"]),
        line["mirror"],
        tuple(placements),
        tuple([room["link"] for room in line["rooms"]]),
        Stat(line["device"], line["inode"], line["size"], line["mtime_ns"], line["ctime_ns"]),
        Sha256(line["sha256"]),
        tuple(line["tags"]),
    )


def _lines(path: Path) -> Iterator[_Json]:
    with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as stream:
        for line in stream:
            yield json.loads(line)


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    """A file that is not there, is no JSON, or not of its shape, is damaged: it never counts as empty."""
    try:
        yield
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        raise DualwallError(f"{path} is damaged.", "Build the palace anew: dualwall librarian build --full") from error


def _replace(path: Path, values: Iterable[_Json]) -> None:
    part = path.with_name(f"{path.name}.part")
    with part.open("w", encoding="utf-8", errors="surrogateescape", newline="\n") as stream:
        _dump(stream, values)
        stream.flush()
        os.fsync(stream.fileno())
    part.replace(path)


def _dump(stream: TextIO, values: Iterable[_Json]) -> None:
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    stream.writelines(encode(value) + "\n" for value in values)
