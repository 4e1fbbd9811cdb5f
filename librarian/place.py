"""Which rooms a note stands in: its folder (or a rule of the settings) and each of its tags. Pure."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

from pathspec import GitIgnoreSpec

from palace.names import fold, nfc, reserved, room_key
from palace.settings import Rule
from palace.vocabulary import GLOBAL, ParsedNote, Placement, Problem, RoomAddress, Tag

INBOX, TAGS, DAILY = "inbox", "tags", "daily"
_INBOX_FOLDERS = frozenset({"raw", "inbox"})
_NOTHING: Mapping[str, RoomAddress] = MappingProxyType({})

_CACHED = 16384
"""Tags and labels that are remembered: most notes share theirs with others."""
_HEX_LENGTHS = frozenset({3, 4, 6, 8})
_HEX = re.compile(r"[0-9a-f]+")
# Words that are hexadecimal only by chance: `b2b`, `e2e`; letters alone (`cafe`, `facade`) are judged in `_colour`.
_CHANCE = re.compile(r"[a-f]2[a-f]|2fa")


MOST_ROOMS = 100
"""Rooms that one note's tags may put it in: each of its chunks carries them all."""


@dataclass(frozen=True, slots=True)
class GlobRule:
    """A rule of the settings, ready to match paths of a vault."""

    rule: Rule
    spec: GitIgnoreSpec


@dataclass(frozen=True, slots=True)
class PlaceRules:
    """What decides the rooms of one vault's notes.

    `public`: folders that the librarian may read, longest first, "" for the whole vault; `daily_folder`: None without
    one; `is_daily`: whether a path in it is a daily note's; `globs`: longest first; `folder_rooms`: keys that name
    exactly one folder room of the palace, which is why notes are placed in two passes.
    """

    public: tuple[str, ...] = ("",)
    daily_folder: str | None = None
    is_daily: Callable[[str], bool] = field(default=lambda _path: True)
    deny_tags: frozenset[str] = frozenset()
    globs: tuple[GlobRule, ...] = ()
    folder_rooms: Mapping[str, RoomAddress] = field(default_factory=lambda: _NOTHING)


def glob_rules(rules: Iterable[Rule]) -> tuple[GlobRule, ...]:
    """Rules in the order that they are tried: the longest glob first, equals as they stand in the settings."""
    ordered = sorted(rules, key=lambda rule: -len(rule.glob))
    return tuple(GlobRule(rule, GitIgnoreSpec.from_lines([rule.glob])) for rule in ordered)


def place(vault_path: str, note: ParsedNote, rules: PlaceRules) -> tuple[tuple[Placement, ...], tuple[Problem, ...]]:
    """Every room of a note, the folder's first, and what made no room; `vault_path` in NFC, relative to its vault."""
    home, problems = home_of(vault_path, rules)
    more, refused = rooms_of_tags(vault_path, note.tags, rules)
    return unique((home, *more)), (*problems, *refused)


def home_of(vault_path: str, rules: PlaceRules) -> tuple[Placement, tuple[Problem, ...]]:
    """The room that a note's path gives it, without its tags: by glob, as a daily note, or by its folders."""
    for glob in rules.globs:
        if glob.spec.match_file(vault_path):
            return _placement(glob.rule.wing, glob.rule.room, f"rule:{glob.rule.glob}"), ()
    if (day := _daily(vault_path, rules)) is not None:
        return day, ()
    return _by_folder(vault_path, rules.public)


def rooms_of_tags(
    vault_path: str, tags: Collection[Tag], rules: PlaceRules
) -> tuple[tuple[Placement, ...], tuple[Problem, ...]]:
    """One room for each tag that makes one; a reserved name is a Problem."""
    placements, problems = [], []
    for tag in tags:
        parts = _labels(tag.name)
        if not parts or _denied(parts, rules.deny_tags):
            continue
        made = _by_tag(parts, rules.folder_rooms)
        name = _reserved(made.wing_label) or _reserved(made.room_label)
        if name:
            problems.append(_reserved_tag(vault_path, tag, name))
        else:
            placements.append(made)
    rooms = unique(placements)
    if len(rooms) > MOST_ROOMS:
        problems.append(_too_many(vault_path, len(rooms)))
    return rooms[:MOST_ROOMS], tuple(problems)


def unique(placements: Iterable[Placement]) -> tuple[Placement, ...]:
    """Each room once, with its first reason."""
    found: dict[RoomAddress, Placement] = {}
    for placement in placements:
        found.setdefault(placement.address, placement)
    return tuple(found.values())


def folder_rooms(homes: Iterable[Placement]) -> dict[str, RoomAddress]:
    """Of the rooms that folders and rules made: keys that name exactly one of them."""
    places: dict[str, set[RoomAddress]] = {}
    for home in homes:
        places.setdefault(home.address.room, set()).add(home.address)
    return {key: next(iter(found)) for key, found in places.items() if len(found) == 1}


def _daily(vault_path: str, rules: PlaceRules) -> Placement | None:
    folder = rules.daily_folder
    if folder is None or not _within(fold(vault_path), fold(folder)) or not rules.is_daily(vault_path):
        return None
    depth = folder.count("/") + 1 if folder else 0
    return _placement(DAILY, DAILY, f"folder:{folder or '.'}", "/".join(vault_path.split("/")[depth:-1]))


def _within(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


def _by_folder(vault_path: str, public: Iterable[str]) -> tuple[Placement, tuple[Problem, ...]]:
    root = next((folder for folder in public if _within(vault_path, folder)), "")
    inner = vault_path[len(root) + 1 if root else 0 :]
    parts = [label for part in inner.split("/")[:-1] if (label := part.strip())]
    at, name = next(((i, found) for i, part in enumerate(parts[:2]) if (found := _reserved(part))), (len(parts), None))
    problems = (_reserved_folder(root, parts[: at + 1], name),) if name else ()
    return _shelf(parts, at), problems


def _shelf(parts: list[str], usable: int) -> Placement:
    """The room of a chain of folders, of which the first `usable` may name rooms."""
    reason = "folder:" + "/".join(parts)
    inbox = next((i for i, part in enumerate(parts) if fold(part) in _INBOX_FOLDERS), None)
    if usable == 0 or inbox == 0:
        return _placement(INBOX, INBOX, reason, "/".join(parts[1:]))
    if inbox is not None:
        return _placement(parts[0], INBOX, reason, "/".join(parts[1:inbox] + parts[inbox + 1 :]))
    if usable == 1:
        return _placement(parts[0], parts[0], reason, "/".join(parts[1:]))
    return _placement(parts[0], parts[1], reason, "/".join(parts[2:]))


@lru_cache(maxsize=_CACHED)
def _labels(tag: str) -> tuple[str, ...]:
    return tuple([label for part in tag.split("/") if (label := nfc(part).strip())])


def _by_tag(parts: tuple[str, ...], known: Mapping[str, RoomAddress]) -> Placement:
    reason = "tag:" + "/".join(parts)
    if len(parts) > 1:
        return _placement(parts[0], "/".join(parts[1:]), reason)
    joined = known.get(room_key(parts[0]))
    if joined is not None:
        return Placement(joined, joined.wing, parts[0], reason)
    return _placement(TAGS, parts[0], reason)


@lru_cache(maxsize=_CACHED)
def _denied(parts: tuple[str, ...], deny: frozenset[str]) -> bool:
    """Policy: single characters, hex colours and the deny list (a tag with all below it) make no room."""
    key = fold("/".join(parts))
    if len(parts) == 1 and (len(key) == 1 or _colour(key)):
        return True
    return bool(deny) and any(fold("/".join(parts[:end])) in deny for end in range(1, len(parts) + 1))


def _colour(key: str) -> bool:
    """`ff0000`, `fff`, `1a2b3c80`; no words that happen to have such letters."""
    if len(key) not in _HEX_LENGTHS or not _HEX.fullmatch(key) or _CHANCE.fullmatch(key):
        return False
    return any(c.isdigit() for c in key) or len(set(key)) == 1 or (len(key) > 4 and key[::2] == key[1::2])


@lru_cache(maxsize=_CACHED)
def _placement(wing: str, room: str, reason: str, section: str = "") -> Placement:
    """One object for all notes that stand somewhere for the same reason."""
    return Placement(_address(wing, room), nfc(wing).strip(), nfc(room).strip(), reason, section)


@lru_cache(maxsize=_CACHED)
def _address(wing: str, room: str) -> RoomAddress:
    """One object an address, so that a palace of thousands of notes compares few of them."""
    return RoomAddress(GLOBAL, room_key(nfc(wing)), room_key(nfc(room)))


@lru_cache(maxsize=_CACHED)
def _reserved(label: str) -> str | None:
    return reserved(label)


def _too_many(vault_path: str, rooms: int) -> Problem:
    return Problem(
        vault_path,
        None,
        "too-many-rooms",
        f"Its tags name {rooms} rooms; it stands in the first {MOST_ROOMS} of them.",
        "A note that is everywhere is nowhere: keep the tags that say where it belongs.",
    )


def _reserved_folder(root: str, parts: list[str], name: str) -> Problem:
    folder = "/".join([root, *parts] if root else parts)
    hint = f'Rename the folder; for daily notes, name it in the settings: daily = {{ folder = "{folder}" }}.'
    if name != DAILY:
        hint = "Rename the folder, or take it out of the public ones and make it a private root."
    return Problem(
        folder, None, "reserved-room", f'The folder "{folder}" has the name of the reserved room "{name}": it makes no room.', hint
    )  # fmt: skip


def _reserved_tag(vault_path: str, tag: Tag, name: str) -> Problem:
    return Problem(
        vault_path,
        tag.line,
        "reserved-room",
        f'The tag "#{tag.name}" has the name of the reserved room "{name}": it makes no room.',
        "Rename the tag.",
    )
