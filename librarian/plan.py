"""What the palace will hold, and how that differs from what it holds. Pure."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from librarian.names import FileInRoom, file_names, folder_names
from librarian.place import PlaceRules, folder_rooms, home_of, rooms_of_tags, unique
from palace.manifest import Entry
from palace.vocabulary import GLOBAL, NoteRef, Placement, Problem, RoomAddress, Sha256, Stat, Tag

_SHOWN = 20
"""Notes or rooms that a printed plan names of each kind."""


@dataclass(frozen=True, slots=True)
class ReadNote:
    """A note as far as its rooms need it. `mirror`: its path as the disk has it; tags that the manifest kept are on line 0."""

    vault: str
    path: str
    mirror: str
    stat: Stat
    sha256: Sha256
    tags: tuple[Tag, ...]


@dataclass(frozen=True, slots=True)
class Placed:
    """Notes in their rooms, sorted by vault and path, with what made no room (vault, Problem)."""

    entries: tuple[Entry, ...]
    problems: tuple[tuple[str, Problem], ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """From one generation to the next. Notes as `vault/path`, rooms as `wing/room` labels with their count of notes."""

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    rooms_only: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    relinked: tuple[str, ...] = ()
    new_rooms: tuple[tuple[str, int], ...] = ()
    gone_rooms: tuple[tuple[str, int], ...] = ()

    @property
    def empty(self) -> bool:
        """Whether the next generation would be the one that is there."""
        return not (self.new or self.changed or self.rooms_only or self.gone or self.relinked)

    def lines(self) -> Iterator[str]:
        """The plan for people: a heading for each kind, the first few by name."""
        if self.empty:
            yield "Nothing to do: the palace is as the mirror is."
        rooms = [f"{name} ({count} notes)" for name, count in self.new_rooms]
        yield from _section("new rooms", rooms)
        yield from _section("rooms that go", [name for name, _ in self.gone_rooms])
        yield from _section("new notes", self.new)
        yield from _section("notes with new text", self.changed)
        yield from _section("notes that change rooms only", self.rooms_only)
        yield from _section("notes that go", self.gone)
        yield from _section("notes linked again, their file was replaced by the same text", self.relinked)


def arrange(notes: Sequence[ReadNote], rules: Mapping[str, PlaceRules]) -> Placed:
    """Place every note in two passes: folder rooms first, since flat tags join them; then labels and names."""
    notes = sorted(notes, key=lambda note: (note.vault, note.path))
    homes = [home_of(note.path, rules[note.vault]) for note in notes]
    known = folder_rooms(home for home, _ in homes)
    full = {vault: replace(own, folder_rooms=known) for vault, own in rules.items()}
    placements, problems = [], []
    for note, (home, refused_folder) in zip(notes, homes, strict=True):
        more, refused = rooms_of_tags(note.path, note.tags, full[note.vault])
        placements.append(unique((home, *more)))
        problems += [(note.vault, problem) for problem in (*refused_folder, *refused)]
    settled = settle_labels(placements)
    links = _links(notes, settled)
    entries = tuple(map(_entry, notes, settled, links))
    return Placed(entries, tuple(dict.fromkeys(problems)))


def settle_labels(placements: Sequence[tuple[Placement, ...]]) -> list[tuple[Placement, ...]]:
    """The same rooms, each labelled by its most frequent spelling; of equally frequent ones by the first in order."""
    wings: dict[str, Counter[str]] = defaultdict(Counter)
    rooms: dict[RoomAddress, Counter[str]] = defaultdict(Counter)
    for own in placements:
        for one in own:
            rooms[one.address][one.room_label] += 1
            if _typed_wing(one):
                wings[one.address.wing][one.wing_label] += 1
    wing_label = {key: _most(votes) for key, votes in wings.items()}
    room_label = {address: _most(votes) for address, votes in rooms.items()}
    return [tuple([_labelled(one, wing_label, room_label[one.address]) for one in own]) for own in placements]


def digest(entries: Iterable[Entry]) -> str:
    """SHA-256 over notes, bytes, rooms and names: equal for equal palaces on every machine, at any time."""
    out = hashlib.sha256()
    encode = json.JSONEncoder(separators=(",", ":")).encode
    for entry in entries:
        rooms = [
            (one.address.wing, one.address.room, one.wing_label, one.room_label, one.reason, one.section)
            for one in entry.placements
        ]
        value = (entry.ref.vault, entry.ref.path, entry.sha256, entry.tags, rooms, entry.links)
        out.update(encode(value).encode() + b"\n")
    return out.hexdigest()


def difference(old: Iterable[Entry], new: Iterable[Entry]) -> Difference:
    """What a new generation would change. Touched files of the same inode are no difference."""
    before = {entry.ref: entry for entry in old}
    after = {entry.ref: entry for entry in new}
    kinds: dict[str, list[str]] = defaultdict(list)
    for ref, entry in after.items():
        kinds[_kind(before.get(ref), entry)].append(_shown(ref))
    rooms, rooms_before = room_counts(after.values()), room_counts(before.values())
    return Difference(
        new=tuple(kinds["new"]),
        changed=tuple(kinds["changed"]),
        rooms_only=tuple(kinds["rooms_only"]),
        gone=tuple(_shown(ref) for ref in before if ref not in after),
        relinked=tuple(kinds["relinked"]),
        new_rooms=_rooms_beside(rooms, rooms_before),
        gone_rooms=_rooms_beside(rooms_before, rooms),
    )


def room_counts(entries: Iterable[Entry]) -> dict[RoomAddress, tuple[str, str, int]]:
    """(wing label, room label, notes) of each room."""
    counts: Counter[RoomAddress] = Counter()
    labels: dict[RoomAddress, tuple[str, str]] = {}
    for entry in entries:
        for one in entry.placements:
            counts[one.address] += 1
            labels[one.address] = (one.wing_label, one.room_label)
    return {address: (*labels[address], count) for address, count in counts.items()}


def _kind(old: Entry | None, new: Entry) -> str:
    if old is None:
        return "new"
    if old.sha256 != new.sha256:
        return "changed"
    if (old.placements, old.links, old.mirror, old.tags) != (new.placements, new.links, new.mirror, new.tags):
        return "rooms_only"
    return "same" if old.stat.inode == new.stat.inode else "relinked"


def _rooms_beside(
    these: Mapping[RoomAddress, tuple[str, str, int]], those: Mapping[RoomAddress, tuple[str, str, int]]
) -> tuple[tuple[str, int], ...]:
    missing = sorted(address for address in these if address not in those)
    return tuple((f"{these[a][0]}/{these[a][1]}", these[a][2]) for a in missing)


def _shown(ref: NoteRef) -> str:
    return f"{ref.vault}/{ref.path}"


def _section(title: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"{title}: {len(names)}"
        yield from (f"  {name}" for name in names[:_SHOWN])
        if len(names) > _SHOWN:
            yield f"  and {len(names) - _SHOWN} more"


def _typed_wing(one: Placement) -> bool:
    """A flat tag that joined a folder's room says nothing about how its wing is spelt."""
    return "/" in one.reason or not one.reason.startswith("tag:")


def _most(votes: Counter[str]) -> str:
    return min(votes, key=lambda label: (-votes[label], label))


def _labelled(one: Placement, wings: Mapping[str, str], room: str) -> Placement:
    wing = wings.get(one.address.wing, one.wing_label)
    if one.wing_label == wing and one.room_label == room:
        return one
    return replace(one, wing_label=wing, room_label=room)


def _links(notes: Sequence[ReadNote], placements: Sequence[tuple[Placement, ...]]) -> list[tuple[str, ...]]:
    """Each note's palace-relative paths. Names are given a folder at a time, so that none is ever given twice."""
    folders = _room_folders(placements)
    standing: dict[str, dict[int, FileInRoom]] = defaultdict(dict)
    for i, (note, own) in enumerate(zip(notes, placements, strict=True)):
        above, _, name = note.path.rpartition("/")
        file = FileInRoom(name, above.rpartition("/")[2] or note.vault, f"{note.vault}/{note.path}")
        for one in own:
            standing[folders[one.address]][i] = file
    links: list[dict[str, str]] = [{} for _ in notes]
    for folder, files in standing.items():
        for i, name in zip(files, file_names(list(files.values())), strict=True):
            links[i][folder] = f"{folder}/{name}"
    return [tuple([mine[folders[one.address]] for one in own]) for mine, own in zip(links, placements, strict=True)]


def _room_folders(placements: Iterable[tuple[Placement, ...]]) -> dict[RoomAddress, str]:
    wings: dict[str, tuple[str, str]] = {}
    rooms: dict[str, dict[RoomAddress, tuple[str, str]]] = defaultdict(dict)
    for own in placements:
        for one in own:
            wings[one.address.wing] = (one.address.wing, one.wing_label)
            rooms[one.address.wing][one.address] = (one.address.room, one.room_label)
    wing_folders = folder_names(wings)
    return {
        address: f"{GLOBAL}/{wing_folders[wing]}/{name}"
        for wing, inside in rooms.items()
        for address, name in folder_names(inside).items()
    }


def _entry(note: ReadNote, placements: tuple[Placement, ...], links: tuple[str, ...]) -> Entry:
    names = tuple([tag.name for tag in note.tags])
    return Entry(NoteRef(GLOBAL, note.vault, note.path), note.mirror, placements, links, note.stat, note.sha256, names)
