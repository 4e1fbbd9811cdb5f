"""What an ingest will do: the difference between what is seen and what the ledger knows. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ingest.source import Seen
from palace.stores.catalogue import LedgerRow, placements_json
from palace.vocabulary import GLOBAL, NoteId, Sha256


class Action(StrEnum):
    """What one note needs."""

    NEW = "new"
    CHANGED = "changed"
    ROOMS_ONLY = "rooms_only"
    TOUCHED = "touched"
    NOTHING = "nothing"


def classify(seen: Seen, row: LedgerRow | None) -> Action:
    """What a note that is there needs; `seen.sha256` must be known."""
    if row is None or row.state == "forget":
        return Action.NEW
    if row.state != "done" or seen.sha256 != row.sha256 or row.stale:
        return Action.CHANGED
    if placements_json(seen.placements) != row.placements:
        return Action.ROOMS_ONLY
    # Linking moves ctime and syncing makes new inodes: of a palace note only the time of its last change counts.
    same = seen.stat.mtime_ns == row.stat.mtime_ns if seen.ref.cube == GLOBAL else seen.stat == row.stat
    return Action.NOTHING if same and seen.file == row.file else Action.TOUCHED


@dataclass(frozen=True, slots=True)
class Loss:
    """Notes of one (cube, vault) that the ledger has and the sources have not."""

    ids: tuple[NoteId, ...]
    known: int


def protected(
    losses: Mapping[tuple[str, str], Loss],
    absent: frozenset[tuple[str, str]],
    guarded: Iterable[tuple[str, str]],
    *,
    share: float = 0.2,
    notes: int = 20,
) -> frozenset[tuple[str, str]]:
    """Groups that must not be forgotten: their source is absent, or lost more than the guard allows.

    Only `guarded` groups (private roots and inboxes, still configured) are judged: a vault stands behind the guard of
    sync, and what the settings no longer name has to go.
    """
    out = {g for g in absent if g in losses}
    for group in guarded:
        loss = losses.get(group)
        if loss and len(loss.ids) > notes and len(loss.ids) > share * loss.known:
            out.add(group)
    return frozenset(out)


def moved(gone: Iterable[tuple[str, Sha256]], new: Iterable[tuple[str, Sha256]]) -> int:
    """How many new notes hold the bytes of one that went, within its cube."""
    left = Counter(gone)
    found = 0
    for key in new:
        if left[key] > 0:
            left[key] -= 1
            found += 1
    return found
