"""What changed lately, newest first: no search, but inside the same walls."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from palace.errors import UsageError
from palace.search.where import Finder
from palace.stores.catalogue import Catalogue, LedgerRow, placements_from
from palace.vocabulary import HIDDEN_STATUSES
from palace.walls import Reader

MOST_DAYS = 3660
_MOST_NOTES = 1000

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RecentQuery:
    """`room` by any spelling; `days`: how far back from now; `limit`: how many notes at most."""

    room: str | None = None
    days: int = 7
    limit: int = 50


def recent(catalogue: Catalogue, find: Finder, reader: Reader, asked: RecentQuery, now: datetime) -> Json:
    """`{"fallback", "reason", "hints", "notes": [{"ref", "title", "path", "cube", "rooms", "changed"}], "truncated"}`.

    A room that the reader does not see widens to all that it sees, with the reason, as a search does.
    """
    if not (1 <= asked.days <= MOST_DAYS and 1 <= asked.limit <= _MOST_NOTES):
        raise UsageError(
            f"{asked.limit} notes of {asked.days} days cannot be listed.",
            f"Ask for 1 to {MOST_DAYS} days and for 1 to {_MOST_NOTES} notes.",
        )
    where = find(reader, [asked.room] if asked.room else [], [], HIDDEN_STATUSES)
    since = (now - timedelta(days=asked.days)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    rows = catalogue.changed(since, where.scope, asked.limit + 1)
    return {
        "fallback": where.reason is not None,
        "reason": where.reason,
        "hints": list(where.hints),
        "notes": [_shown(row) for row in rows[: asked.limit]],
        "truncated": len(rows) > asked.limit,
    }


def _shown(row: LedgerRow) -> Json:
    return {
        "ref": row.ref.id,
        "title": row.title,
        "path": row.ref.path,
        "cube": row.ref.cube,
        "rooms": sorted({p.address.place for p in placements_from(row.placements)}),
        "changed": row.modified,
    }
