"""Hand: which notes of the three rooms a reader has, of which day each is, and their text. Every read carries a scope."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import TypeVar, cast
from zoneinfo import ZoneInfo

from injector.budget import most_bytes
from injector.compose import ROOMS, Entry, LeftOut, Offer, whole_text
from injector.days import DayOf, day_created, day_of
from palace.library import Library
from palace.obsidian.daily import daily_date
from palace.obsidian.vault import VaultConfig
from palace.settings import Settings
from palace.stores.catalogue import LedgerRow, placements_from
from palace.stores.ports import Record
from palace.vocabulary import HIDDEN_STATUSES, ChunkId, Hit, NoteId
from palace.walls import Reader, Scope

RECALLED = ROOMS[1:]
"""The rooms that recall draws from."""
_UNDATED = 500
"""Notes without a day in their name whose properties are asked for one, the latest changed."""
_Kept = TypeVar("_Kept")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A note of the three rooms: `rooms` of those that it stands in, in their order; `places` as `wing/room` keys."""

    row: LedgerRow
    rooms: tuple[str, ...]
    places: tuple[str, ...]
    day: date | None = None

    @property
    def label(self) -> str:
        """Room and day, as a recall shows them."""
        room = next(room for room in self.rooms if room in RECALLED)
        return f"{room} {self.day.isoformat()}" if self.day else room


@dataclass(frozen=True, slots=True)
class Recalled:
    """Notes in diary and daily that a search would find: by id, by day in the order of a recall; their rooms."""

    leaves: Mapping[NoteId, Leaf]
    days: Mapping[date, Sequence[Leaf]]
    rooms: tuple[str, ...]


@dataclass(slots=True)
class Shelf:
    """The three rooms of one palace. What a reader's cubes hold is remembered until something is written."""

    library: Library
    _known: dict[Hashable, tuple[Hashable, object]] = field(default_factory=dict)

    def own(self, reader: Reader) -> list[LedgerRow]:
        """Notes in system_config, whatever their status."""
        return self._once(
            ("own", reader.cubes), lambda: [leaf.row for leaf in self._leaves(reader) if ROOMS[0] in leaf.rooms]
        )

    def recalled(self, reader: Reader) -> Recalled:
        """What the reader's cubes hold in diary and daily. Of a day, diaries come first, and of many the last by name."""
        return self._once(("recalled", reader.cubes), lambda: self._recalled(reader))

    def offers(self, reader: Reader, leaves: Sequence[Leaf], tokens: int) -> tuple[list[Offer], list[LeftOut]]:
        """Notes as they may be recalled: whole, or their last parts. Too large ones are left to the search."""
        small = [leaf for leaf in leaves if leaf.row.stat.size <= most_bytes(tokens)]
        refused = [
            LeftOut(leaf.row.ref.id, f"its {leaf.row.stat.size} bytes are too many to recall: a search finds its parts")
            for leaf in leaves
            if leaf.row.stat.size > most_bytes(tokens)
        ]
        records = self._records(reader, small)
        return [_offer(leaf, found) for leaf in small if (found := records.get(leaf.row.ref.id))], refused

    def scope(self, reader: Reader, leaves: Iterable[Leaf]) -> Scope | None:
        """The reader's scope, narrowed to the places of diary and daily; None without one."""
        places = {place for leaf in leaves for place in leaf.places}
        return reader.scope(places) if places else None

    def _leaves(self, reader: Reader) -> list[Leaf]:
        return self._once(("leaves", reader.cubes), lambda: self._listed(reader))

    def _listed(self, reader: Reader) -> list[Leaf]:
        rows = self.library.catalogue.standing_in(ROOMS, reader.scope(hidden=()))
        return [_leaf(row) for row in rows]

    def _recalled(self, reader: Reader) -> Recalled:
        leaves = self._dated(reader)
        days: dict[date, list[Leaf]] = {}
        # `2026-11-30.md` before `2026-11-30-1530.md` before `2026-11-30-0915.md`
        last_first = sorted(leaves, key=lambda leaf: leaf.row.ref.path, reverse=True)
        for leaf in sorted(last_first, key=_order):
            if leaf.day is not None:
                days.setdefault(leaf.day, []).append(leaf)
        rooms = {room for leaf in leaves for room in leaf.rooms if room in RECALLED}
        return Recalled({leaf.row.ref.id: leaf for leaf in leaves}, days, tuple(sorted(rooms)))

    def _dated(self, reader: Reader) -> list[Leaf]:
        leaves = [
            leaf
            for leaf in self._leaves(reader)
            if leaf.row.status not in HIDDEN_STATUSES and not frozenset(RECALLED).isdisjoint(leaf.rooms)
        ]
        daily = _daily(self.library.settings)
        dated = [replace(leaf, day=day_of(leaf.row.ref.path, leaf.row.ref.vault, daily)) for leaf in leaves]
        created = self._created(reader, [leaf for leaf in dated if leaf.day is None])
        return [replace(leaf, day=leaf.day or created.get(leaf.row.ref.id)) for leaf in dated]

    def _created(self, reader: Reader, leaves: Sequence[Leaf]) -> dict[NoteId, date]:
        """The days that their `created` property tells."""
        latest = sorted(leaves, key=lambda leaf: (leaf.row.modified, leaf.row.ref.id), reverse=True)[:_UNDATED]
        firsts = [ChunkId(leaf.row.lead_chunk) for leaf in latest if leaf.row.lead_chunk]
        scope = self.scope(reader, latest)
        if scope is None or not firsts:
            return {}
        zone = ZoneInfo(self.library.settings.timezone)
        found = ((r.payload.note_id, day_created(r.payload.created, zone)) for r in self._retrieve(firsts, scope))
        return {note_id: day for note_id, day in found if day is not None}

    def _records(self, reader: Reader, leaves: Sequence[Leaf]) -> dict[NoteId, list[Record]]:
        """The chunks of notes in reading order; a note that is being written, so that some are missing, is left out."""
        scope = self.scope(reader, leaves)
        if scope is None:
            return {}
        owned = self.library.catalogue.chunks([leaf.row.ref.id for leaf in leaves])
        found: dict[NoteId, list[Record]] = {}
        for record in self._retrieve(list(owned), scope):
            found.setdefault(record.payload.note_id, []).append(record)
        wanted: dict[NoteId, int] = {}
        for note_id, _, _ in owned.values():
            wanted[note_id] = wanted.get(note_id, 0) + 1
        return {
            note_id: sorted(records, key=lambda r: r.payload.span)
            for note_id, records in found.items()
            if len(records) == wanted[note_id]
        }

    def _retrieve(self, ids: Sequence[ChunkId], scope: Scope) -> list[Record]:
        return self.library.vectors.retrieve(ids, scope)

    def _once(self, key: Hashable, make: Callable[[], _Kept]) -> _Kept:
        stamp = self.library.stamp()
        known = self._known.get(key)
        if known is not None and known[0] == stamp:
            return cast("_Kept", known[1])
        made = make()
        self._known[key] = (stamp, made)
        return made


def match(hit: Hit, leaf: Leaf) -> Offer:
    """A hit of a search as it may be recalled."""
    first, last = hit.lines
    place = f"{hit.path}:{first}-{last}"
    return Offer(Entry(hit.ref, hit.note_sha256, leaf.label, place, hit.text, hit.heading, hit.chunk_sha256))


def _offer(leaf: Leaf, records: Sequence[Record]) -> Offer:
    """The whole note; where it has more than one chunk, those too."""
    payload = records[0].payload
    text = whole_text((r.payload.heading_path, r.payload.text) for r in records)
    whole = Entry(payload.note_id, payload.note_sha256, leaf.label, payload.path, text)
    return Offer(whole, tuple(_part(leaf, r) for r in records) if len(records) > 1 else ())


def _part(leaf: Leaf, record: Record) -> Entry:
    payload = record.payload
    first, last = payload.lines
    return Entry(
        payload.note_id,
        payload.note_sha256,
        leaf.label,
        f"{payload.path}:{first}-{last}",
        payload.text,
        " > ".join(payload.heading_path),
        payload.chunk_sha256,
    )


def _leaf(row: LedgerRow) -> Leaf:
    placements = placements_from(row.placements)
    rooms = {p.address.room for p in placements}
    places = sorted({p.address.place for p in placements if p.address.room in RECALLED})
    return Leaf(row, tuple(room for room in ROOMS if room in rooms), tuple(places))


def _order(leaf: Leaf) -> tuple[bool, str, str]:
    """Diaries before daily notes: what the agent did itself is nearer to it."""
    return ("diary" not in leaf.rooms, leaf.row.ref.cube, leaf.row.ref.vault)


def _daily(settings: Settings) -> dict[str, DayOf]:
    """How each vault that has daily notes names them."""
    found: dict[str, DayOf] = {}
    for name, vault in settings.vaults.items():
        config = VaultConfig.load(settings.mirror(name))
        folder = vault.daily.folder if vault.daily else config.daily_folder
        shape = vault.daily.format if vault.daily else config.daily_format
        if folder is not None:
            found[name] = partial(daily_date, folder=folder, format=shape)
    return found
