"""The canonical lock: a question that is, or names, a note's title or alias. No embedding. Pure, but for the port."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Protocol

from palace.names import fold
from palace.search.fuse import Fused
from palace.stores.ports import Named, NoteNode, Scored
from palace.vocabulary import NoteId
from palace.walls import Scope

EXACT = 1.0
"""The lock's score where the question is a note's name; a name inside the question scores the share that it covers."""
MOST_PINNED = 3
"""How many notes of one name go before everything else."""

_LIFT = 0.5
"""How far a name inside the question lifts its note towards 1.0, times the share of the question that it covers."""

_IDEOGRAPH = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_WORD = re.compile(rf"[{_IDEOGRAPH}]|[^\W{_IDEOGRAPH}]+")
_EDGES = " \t\r\n\"'“”‘’«»「」『』《》[](){}?？!！.。,，;；:：…"
_LONGEST_NAME = 12
"""Words (or ideographs) of the longest name looked for inside a question."""
_MOST_WORDS = 64
"""Only this many words of a question are looked through for names."""


class Names(Protocol):
    """Titles and aliases of notes by `name_key`."""

    def find(self, keys: Sequence[str], scope: Scope) -> list[Named]:
        """Notes inside the scope that bear one of these names, at most a few hundred keys a call."""


def name_key(name: str) -> str:
    """What two spellings of one name share: case, normal form, width and runs of blanks do not count."""
    return fold(" ".join(unicodedata.normalize("NFKC", name).split()))


def asked_names(query: str) -> dict[str, float]:
    """Name keys that a question may mean, each with the lock's score: the whole question 1.0, a part its share.

    A part begins and ends at a word's border. Parts too short to be a name (one ideograph, two letters, a number) are
    left out.
    """
    whole = name_key(query)
    keys = {key: EXACT for key in (whole, whole.strip(_EDGES)) if key}
    words = list(_WORD.finditer(whole))[:_MOST_WORDS]
    for first in range(len(words)):
        for last in range(first, min(first + _LONGEST_NAME, len(words))):
            part = whole[words[first].start() : words[last].end()]
            if _could_be_name(part):
                keys.setdefault(part, len(part) / len(whole))
    return keys


def lock(query: str, names: Names, scope: Scope) -> list[Scored]:
    """The lock's leg: each named note once, by its first chunk, best first. Ties by id."""
    asked = asked_names(query)
    best: dict[NoteId, Scored] = {}
    for found in names.find(list(asked), scope):
        score = asked.get(found.key, 0.0)
        known = best.get(found.note_id)
        if score > 0 and (known is None or score > known.score):
            best[found.note_id] = Scored(found.chunk_id, found.note_id, score)
    return sorted(best.values(), key=lambda s: (-s.score, s.id))


def locked(ranked: Sequence[Fused], leg: Sequence[Scored]) -> list[Fused]:
    """The ranking with the lock's say: a note of exactly that name goes first, one named in the question moves up.

    A named note without a candidate comes in with its lead chunk, and one of exactly that name begins with it: the
    chunk that is most like a bare name is a short one, an image or a list of headings. At most MOST_PINNED are pinned.
    """
    if not leg:
        return list(ranked)
    pinned = _pins(ranked, [s for s in leg if s.score >= EXACT])
    lifts = {s.note_id: s.score * _LIFT for s in leg if s.score < EXACT} | dict.fromkeys(pinned, EXACT)
    known: set[str] = {f.note_id for f in ranked} | {f.id for f in ranked}
    leads = {s.id for s in leg if s.note_id in pinned}
    new = [Fused(s.id, s.note_id, 0.0) for s in leg if s.id not in known and (s.note_id not in known or s.id in leads)]
    lifted = [(f, f.score + (1 - f.score) * lifts.get(f.note_id, 0.0)) for f in (*ranked, *new)]
    best = _best(ranked)
    lifted.sort(
        key=lambda p: (
            *(p[0].note_id not in pinned, -p[1], -best.get(p[0].note_id, 0.0) if p[0].note_id in pinned else 0.0),
            *(p[0].id not in leads, -p[0].score, p[0].id),
        )
    )
    return [f._replace(score=score) if score != f.score else f for f, score in lifted]


def _pins(ranked: Sequence[Fused], exact: Sequence[Scored]) -> set[NoteId]:
    """Of many notes of one name, those that rank best without it."""
    best = _best(ranked)
    order = sorted(exact, key=lambda s: (-best.get(s.note_id, 0.0), s.id))
    return {s.note_id for s in order[:MOST_PINNED]}


def _best(ranked: Sequence[Fused]) -> dict[NoteId, float]:
    """Each note's best score."""
    best: dict[NoteId, float] = {}
    for f in ranked:
        best[f.note_id] = max(f.score, best.get(f.note_id, 0.0))
    return best


def _could_be_name(part: str) -> bool:
    if part.isnumeric():
        return False
    return len(part) >= (3 if part.isascii() else 2)


class MemoryNames:
    """Names of notes held in memory."""

    def __init__(self, notes: Iterable[NoteNode]) -> None:
        self._notes: dict[str, list[NoteNode]] = {}
        for note in notes:
            for key in dict.fromkeys(map(name_key, (note.title, *note.aliases))):
                self._notes.setdefault(key, []).append(note)

    def find(self, keys: Sequence[str], scope: Scope) -> list[Named]:
        """See `Names.find`."""
        return [
            Named(key, note.id, note.chunk_ids[0])
            for key in keys
            for note in self._notes.get(key, ())
            if note.chunk_ids and _stands_in(note, scope)
        ]


def _stands_in(note: NoteNode, scope: Scope) -> bool:
    places = [f"{wing}/{room}" for wing, room, _, _ in note.rooms]
    return scope.admits(note.cube, places, [wing for wing, *_ in note.rooms], note.status)
