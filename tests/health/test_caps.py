"""The day of an account: where it begins and ends on its own clock, and how much it allows."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from firestore_outbox.health.caps import DayCaps, WarmUp

FIRST = date(2026, 3, 1)


def days(warm_up: WarmUp, count: int) -> list[int | None]:
    return [warm_up.limit(FIRST + timedelta(days=day)) for day in range(count)]


def test_a_warm_up_grows_by_its_factor_and_ends() -> None:
    assert days(WarmUp(start=50, factor=2, until=500, since=FIRST), 6) == [50, 100, 200, 400, None, None]


def test_a_warm_up_rounds_down_and_never_ends_early() -> None:
    assert days(WarmUp(start=10, factor=1.5, until=34, since=FIRST), 5) == [10, 15, 22, 33, None]
    assert days(WarmUp(start=50, factor=2, until=400, since=FIRST), 4) == [50, 100, 200, None]


def test_a_warm_up_without_a_first_day_stays_at_its_start() -> None:
    assert days(WarmUp(start=20, factor=2, until=1000), 3) == [20, 20, 20]


def test_days_before_the_first_one_allow_what_the_first_one_does() -> None:
    assert WarmUp(start=20, factor=2, until=1000, since=FIRST).limit(FIRST - timedelta(days=9)) == 20


@pytest.mark.parametrize("factor", [1.01, 1.5, 10])
def test_a_warm_up_of_years_does_not_overflow(factor: float) -> None:
    assert WarmUp(start=1, factor=factor, until=1_000_000, since=date(2000, 1, 1)).limit(date(2099, 1, 1)) is None


def test_the_smaller_of_warm_up_and_daily_cap_counts() -> None:
    caps = DayCaps(zone=ZoneInfo("UTC"), daily=150, warm_up=WarmUp(start=50, factor=2, until=500, since=FIRST))
    assert [caps.sends_on(FIRST + timedelta(days=day)) for day in range(5)] == [50, 100, 150, 150, 150]


def test_a_cap_on_new_contacts_alone_limits_no_messages() -> None:
    assert DayCaps(zone=ZoneInfo("UTC"), new_contacts=5).sends_on(FIRST) is None


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", date(2026, 3, 29), 23),  # at two the clock goes to three
        ("Europe/Berlin", date(2026, 10, 25), 25),
        ("Asia/Kolkata", date(2026, 3, 29), 24),
        ("America/Havana", date(2026, 3, 8), 23),  # midnight is jumped over
        ("America/Asuncion", date(2023, 3, 25), 25),  # at midnight the clock goes back to eleven
        ("Pacific/Apia", date(2011, 12, 29), 24),  # the next date was left out
    ],
)
def test_a_day_is_as_long_as_on_the_clock_of_the_account(zone: str, day: date, hours: int) -> None:
    caps = DayCaps(zone=ZoneInfo(zone))
    assert caps.after(day) - caps.start_of(day) == timedelta(hours=hours)


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "America/Havana", "Asia/Kolkata", "America/Asuncion", "Pacific/Apia"]
)
def test_every_moment_is_within_its_own_day(zone: str) -> None:
    caps, at = DayCaps(zone=ZoneInfo(zone)), datetime(2023, 1, 1, tzinfo=UTC)
    for _ in range(2 * 366 * 4):
        day = caps.day_of(at)
        assert caps.start_of(day) <= at < caps.after(day)
        at += timedelta(hours=6, minutes=1)
