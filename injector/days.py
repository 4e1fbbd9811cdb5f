"""Which day a note is of, and which day it is. Pure."""

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from palace.errors import UsageError

_DATE = re.compile(r"(?<!\d)(\d{4})([-_./]?)(\d{2})\2(\d{2})(?!\d)")
DayOf = Callable[[str], date | None]
"""A path in a vault to the day of the daily note that it is."""


def moment(at: str | None, zone: ZoneInfo, now: Callable[[], datetime]) -> datetime:
    """The time that `at` says (ISO 8601; without an offset it is the zone's), else now, in the zone.

    Raises UsageError when `at` is no time.
    """
    if at is None:
        return now().astimezone(zone)
    try:
        told = datetime.fromisoformat(at)
        local = told.replace(tzinfo=zone) if told.tzinfo is None else told.astimezone(zone)
        local.date() - timedelta(days=1)  # the first day of all has no yesterday
    except (ValueError, OverflowError) as error:
        raise UsageError(f'"{at}" is no time.', "Write it as 2026-11-30T08:15, or with an offset.") from error
    return local


def newest(when: datetime) -> tuple[date, date]:
    """Today and yesterday, by the calendar of that time's zone: a day may have 23 or 25 hours."""
    today = when.date()
    return today, today - timedelta(days=1)


def day_of(path: str, vault: str, daily: Mapping[str, DayOf]) -> date | None:
    """The day that a note's path names, by its vault's daily format, else as 2026-11-30, 2026/11/30 or 20261130."""
    by_format = daily[vault](path) if vault in daily else None
    return by_format or _day_in(path)


def day_created(created: str | None, zone: ZoneInfo) -> date | None:
    """The day of a note's `created` property in the zone; None for what is no time."""
    if created is None:
        return None
    try:
        told = datetime.fromisoformat(created)
        return (told if told.tzinfo is None else told.astimezone(zone)).date()
    except (ValueError, OverflowError):
        return None


def _day_in(path: str) -> date | None:
    """The last date in a path, without the file's ending."""
    stem = path[:-3] if path.lower().endswith(".md") else path
    for year, _, month, day in reversed(_DATE.findall(stem)):
        try:
            return date(int(year), int(month), int(day))
        except ValueError:
            continue
    return None
