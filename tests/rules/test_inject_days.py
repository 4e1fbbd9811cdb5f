"""Which day it is where the person is, and which day a note is of."""

from datetime import UTC, date, datetime
from functools import partial
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from injector.days import day_created, day_of, moment, newest
from palace.errors import UsageError
from palace.obsidian.daily import daily_date

SHANGHAI, BERLIN, NEW_YORK, KIRITIMATI = map(
    ZoneInfo, ("Asia/Shanghai", "Europe/Berlin", "America/New_York", "Pacific/Kiritimati")
)


def days(at: str, zone: ZoneInfo) -> tuple[str, str]:
    today, yesterday = newest(moment(at, zone, lambda: datetime.now(UTC)))
    return today.isoformat(), yesterday.isoformat()


@pytest.mark.parametrize(
    ("at", "zone", "today", "yesterday"),
    [
        ("2026-11-30T15:59:59Z", SHANGHAI, "2026-11-30", "2026-11-29"),
        ("2026-11-30T16:00:00Z", SHANGHAI, "2026-12-01", "2026-11-30"),
        ("2026-12-01T04:59:59+00:00", NEW_YORK, "2026-11-30", "2026-11-29"),
        ("2026-12-01T05:00:00+00:00", NEW_YORK, "2026-12-01", "2026-11-30"),
        ("2026-11-30T10:00:00Z", KIRITIMATI, "2026-12-01", "2026-11-30"),
        ("2027-01-01T00:30:00+01:00", BERLIN, "2027-01-01", "2026-12-31"),
        ("2028-03-01T00:00", BERLIN, "2028-03-01", "2028-02-29"),
        ("2026-11-30", SHANGHAI, "2026-11-30", "2026-11-29"),
        # The night when clocks go forward has 23 hours, the one when they go back 25.
        ("2026-03-29T00:59:59Z", BERLIN, "2026-03-29", "2026-03-28"),
        ("2026-03-29T21:59:59Z", BERLIN, "2026-03-29", "2026-03-28"),
        ("2026-03-29T22:00:00Z", BERLIN, "2026-03-30", "2026-03-29"),
        ("2026-03-29T02:30", BERLIN, "2026-03-29", "2026-03-28"),  # a time that there was not
        ("2026-10-25T22:59:59Z", BERLIN, "2026-10-25", "2026-10-24"),
        ("2026-10-25T23:00:00Z", BERLIN, "2026-10-26", "2026-10-25"),
        ("2026-10-25T02:30", BERLIN, "2026-10-25", "2026-10-24"),  # a time that there was twice
        ("2026-11-02T04:59:59Z", NEW_YORK, "2026-11-01", "2026-10-31"),
    ],
)
def test_today_and_yesterday_are_the_zones(at: str, zone: ZoneInfo, today: str, yesterday: str) -> None:
    assert days(at, zone) == (today, yesterday)


@given(st.datetimes(timezones=st.just(UTC), min_value=datetime(1970, 1, 2), max_value=datetime(2200, 1, 1)))  # noqa: DTZ001 - hypothesis wants naive bounds
def test_yesterday_is_the_day_before_whatever_the_clocks_do(when: datetime) -> None:
    for zone in (SHANGHAI, BERLIN, NEW_YORK, KIRITIMATI):
        today, yesterday = newest(moment(when.isoformat(), zone, lambda: datetime.now(UTC)))
        assert (today - yesterday).days == 1
        assert today == when.astimezone(zone).date()


def test_without_a_time_it_is_now() -> None:
    now = datetime(2026, 11, 30, 23, tzinfo=UTC)
    assert newest(moment(None, SHANGHAI, lambda: now))[0] == date(2026, 12, 1)


@pytest.mark.parametrize(
    "at", ["", "tomorrow", "2026-13-01", "30.11.2026", "0001-01-01", "0001-01-01T00:00:00+14:00", "9" * 5000]
)
def test_what_is_no_time_is_told(at: str) -> None:
    with pytest.raises(UsageError, match="is no time"):
        moment(at, SHANGHAI, lambda: datetime.now(UTC))


@pytest.mark.parametrize(
    ("path", "day"),
    [
        ("memory/2026-11-30.md", date(2026, 11, 30)),
        ("memory/2026-11-30 evening.md", date(2026, 11, 30)),
        ("memory/20261130.md", date(2026, 11, 30)),
        ("memory/2026/11/30.md", date(2026, 11, 30)),
        ("memory/2026_11_30.MD", date(2026, 11, 30)),
        ("2025-01-01/2026-11-30.md", date(2026, 11, 30)),
        ("memory/2026-02-30.md", None),
        ("2026-11-30/2026-99-99.md", date(2026, 11, 30)),
        ("memory/2026-11.md", None),
        ("memory/12026-11-30.md", None),
        ("memory/standup.md", None),
        ("", None),
    ],
)
def test_a_day_is_read_from_the_name(path: str, day: date | None) -> None:
    assert day_of(path, "private:dev-cat", {}) == day


def test_a_vaults_own_format_goes_first() -> None:
    daily = {"main": partial(daily_date, folder="Journal", format="DD.MM.YYYY")}
    assert day_of("Journal/01.12.2026.md", "main", daily) == date(2026, 12, 1)
    assert day_of("Journal/01.12.2026.md", "other", daily) is None
    assert day_of("Journal/2026-12-02.md", "main", daily) == date(2026, 12, 2)


@pytest.mark.parametrize(
    ("created", "day"),
    [
        ("2026-11-30", date(2026, 11, 30)),
        ("2026-11-30T23:30:00", date(2026, 11, 30)),
        ("2026-11-30T16:30:00Z", date(2026, 12, 1)),
        ("2026-11-30T23:30:00+08:00", date(2026, 11, 30)),
        ("yesterday", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("[]", None),
        (None, None),
    ],
)
def test_a_day_is_read_from_the_property(created: str | None, day: date | None) -> None:
    assert day_created(created, SHANGHAI) == day
