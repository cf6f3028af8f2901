from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.accounts.window import Window, is_open, next_open, opening_before, window_end_at

MINUTE = timedelta(minutes=1)


def window(start: int, end: int, zone: str) -> Window:
    return Window(start_hour=start, end_hour=end, zone=ZoneInfo(zone))


def local(zone: str, *fields: int, fold: int = 0) -> datetime:
    return datetime(*fields, tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC)  # type: ignore[arg-type,misc]  # year to minute


@pytest.mark.parametrize(
    ("hour", "minute", "opened"), [(5, 59, False), (6, 0, True), (17, 59, True), (18, 0, False), (23, 0, False)]
)
def test_a_day_window_is_open_from_its_start_up_to_its_end(hour: int, minute: int, opened: bool) -> None:
    at = local("Asia/Kuala_Lumpur", 2026, 3, 2, hour, minute)
    assert is_open(window(6, 18, "Asia/Kuala_Lumpur"), at) is opened


@pytest.mark.parametrize(("hour", "opened"), [(21, False), (22, True), (0, True), (5, True), (6, False), (12, False)])
def test_a_window_over_midnight_is_open_on_both_sides_of_it(hour: int, opened: bool) -> None:
    assert is_open(window(22, 6, "Europe/Berlin"), local("Europe/Berlin", 2026, 3, 2, hour)) is opened


def test_the_end_is_that_of_the_local_day_even_if_it_is_past() -> None:
    day = window(6, 18, "Asia/Kuala_Lumpur")
    end = local("Asia/Kuala_Lumpur", 2026, 3, 2, 18)
    for hour in (0, 5, 12, 20, 23):
        assert window_end_at(day, local("Asia/Kuala_Lumpur", 2026, 3, 2, hour)) == end


def test_the_end_of_a_night_window_is_the_next_morning_or_this_one() -> None:
    night = window(22, 6, "Europe/Berlin")
    assert window_end_at(night, local("Europe/Berlin", 2026, 3, 2, 23)) == local("Europe/Berlin", 2026, 3, 3, 6)
    assert window_end_at(night, local("Europe/Berlin", 2026, 3, 3, 5)) == local("Europe/Berlin", 2026, 3, 3, 6)
    assert window_end_at(night, local("Europe/Berlin", 2026, 3, 3, 12)) == local("Europe/Berlin", 2026, 3, 4, 6)


def test_a_whole_day_is_always_open_and_ends_at_midnight() -> None:
    day = window(0, 24, "Europe/Berlin")
    at = local("Europe/Berlin", 2026, 3, 2, 13)
    assert is_open(day, at)
    assert window_end_at(day, at) == local("Europe/Berlin", 2026, 3, 3, 0)


def test_an_open_window_is_open_now_and_a_closed_one_at_its_next_start() -> None:
    day = window(6, 18, "Europe/Berlin")
    noon = local("Europe/Berlin", 2026, 3, 2, 12)
    assert next_open(day, noon) == noon
    assert next_open(day, local("Europe/Berlin", 2026, 3, 2, 3)) == local("Europe/Berlin", 2026, 3, 2, 6)
    assert next_open(day, local("Europe/Berlin", 2026, 3, 2, 18)) == local("Europe/Berlin", 2026, 3, 3, 6)


def test_what_belongs_to_the_next_window_does_not_begin_in_the_last_seconds_of_this_one() -> None:
    window = Window(start_hour=22, end_hour=6, zone=ZoneInfo("UTC"))
    just_before, this_end = datetime(2026, 3, 1, 5, 59, 59, tzinfo=UTC), datetime(2026, 3, 1, 6, tzinfo=UTC)
    next_end = this_end + timedelta(days=1)
    assert opening_before(window, this_end, just_before) == just_before
    assert opening_before(window, next_end, just_before) == datetime(2026, 3, 1, 22, tzinfo=UTC)
    assert opening_before(window, next_end + timedelta(days=1), just_before) == datetime(2026, 3, 2, 22, tzinfo=UTC)


@pytest.mark.parametrize(("start", "end"), [(6, 6), (24, 6), (-1, 5), (6, 25), (0, 0)])
def test_hours_that_are_no_window_are_refused(start: int, end: int) -> None:
    with pytest.raises(ValueError, match="no window"):
        window(start, end, "UTC")


# Zones and their changes of clock in 2026: the day and its length; zones without any; and one that skipped a date.
CHANGES = [
    ("America/New_York", (2026, 3, 8), 23),
    ("America/New_York", (2026, 11, 1), 25),
    ("Europe/Berlin", (2026, 3, 29), 23),
    ("Europe/Berlin", (2026, 10, 25), 25),
    ("Australia/Lord_Howe", (2026, 10, 4), 23.5),
    ("Australia/Lord_Howe", (2026, 4, 5), 24.5),
    ("America/Santiago", (2026, 9, 6), 23),  # the clock jumps over midnight: the day begins at one
    ("America/Santiago", (2026, 4, 4), 25),  # and goes back at midnight: the day has two hours called 23
    ("Africa/Casablanca", (2026, 3, 22), 23),  # the year's changes follow Ramadan
    ("Africa/Casablanca", (2026, 2, 15), 25),
    ("Pacific/Chatham", (2026, 9, 27), 23),  # 12 hours and 45 minutes from Greenwich, in the south
    ("Pacific/Chatham", (2026, 4, 5), 25),
    ("Pacific/Apia", (2011, 12, 29), 24),  # the next midnight is that of the 31st
    ("Pacific/Apia", (2011, 12, 31), 24),
    ("Asia/Kuala_Lumpur", (2026, 3, 29), 24),
    ("Asia/Kathmandu", (2026, 3, 29), 24),
    ("Europe/Berlin", (2026, 6, 10), 24),
]


@pytest.mark.parametrize(("zone", "day", "hours"), CHANGES)
def test_a_whole_day_window_is_as_long_as_the_day(zone: str, day: tuple[int, int, int], hours: float) -> None:
    whole = window(0, 24, zone)
    noon = local(zone, *day, 12)
    midnight_before = window_end_at(whole, noon - timedelta(days=1))
    assert window_end_at(whole, noon) - midnight_before == timedelta(hours=hours)


@pytest.mark.parametrize(("zone", "day", "hours"), CHANGES)
@pytest.mark.parametrize(
    ("start", "end"), [(6, 18), (22, 6), (0, 24), (1, 2), (2, 3), (23, 1), (0, 1), (2, 4), (23, 24)]
)
def test_on_days_of_any_length_the_window_agrees_with_the_clock_on_the_wall(
    zone: str, day: tuple[int, int, int], hours: float, start: int, end: int
) -> None:
    """Each ten minutes of three days: what the intervals say is what a person would say who looks at the clock."""
    of = window(start, end, zone)
    at = local(zone, *day, 12) - timedelta(hours=36)
    for _ in range(72 * 6):
        at += timedelta(minutes=10)
        opens = next_open(of, at)
        if is_open(of, at):
            closes = window_end_at(of, at)
            assert at < closes
            assert opens == at
            assert not is_open(of, closes) or closes == next_open(of, closes)
            assert is_open(of, closes - MINUTE)
        else:
            assert opens > at
            assert is_open(of, opens)
            assert not is_open(of, opens - MINUTE)


def test_an_hour_that_the_clock_jumps_over_begins_at_the_jump() -> None:
    jump = datetime(2026, 3, 29, 1, 0, tzinfo=UTC)  # Berlin: 02:00 becomes 03:00
    assert next_open(window(2, 12, "Europe/Berlin"), jump - MINUTE) == jump


def test_a_window_that_falls_into_the_jump_stays_shut_for_that_day() -> None:
    before = local("Europe/Berlin", 2026, 3, 29, 0)
    assert next_open(window(2, 3, "Europe/Berlin"), before) == local("Europe/Berlin", 2026, 3, 30, 2)


def test_an_hour_that_comes_twice_begins_the_first_time_and_ends_after_the_second() -> None:
    of = window(2, 3, "Europe/Berlin")
    first = local("Europe/Berlin", 2026, 10, 25, 2)
    assert next_open(of, first - MINUTE) == first
    assert window_end_at(of, first) == first + timedelta(hours=2)


@pytest.mark.parametrize(
    ("zone", "opens_on", "closes_on", "hours"),
    [
        ("Europe/Berlin", (2026, 6, 10), (2026, 6, 11), 8),
        ("Europe/Berlin", (2026, 3, 28), (2026, 3, 29), 7),
        ("Europe/Berlin", (2026, 10, 24), (2026, 10, 25), 9),
        ("America/Santiago", (2026, 9, 5), (2026, 9, 6), 7),
        ("America/Santiago", (2026, 4, 4), (2026, 4, 5), 9),
        ("Australia/Lord_Howe", (2026, 10, 3), (2026, 10, 4), 7.5),
        ("Australia/Lord_Howe", (2026, 4, 4), (2026, 4, 5), 8.5),
        ("Pacific/Chatham", (2026, 9, 26), (2026, 9, 27), 7),
        ("Asia/Kathmandu", (2026, 3, 28), (2026, 3, 29), 8),
        ("Pacific/Apia", (2011, 12, 29), (2011, 12, 31), 8),
    ],
)
def test_a_night_window_opens_and_closes_at_its_hours_however_long_the_night(
    zone: str, opens_on: tuple[int, int, int], closes_on: tuple[int, int, int], hours: float
) -> None:
    night = window(22, 6, zone)
    opens = next_open(night, local(zone, *opens_on, 12))
    assert opens == local(zone, *opens_on, 22)
    closes = window_end_at(night, opens)
    assert closes == local(zone, *closes_on, 6)
    assert closes - opens == timedelta(hours=hours)
    midway = opens + (closes - opens) / 2
    assert window_end_at(night, midway) == closes
    assert is_open(night, midway)
    assert next_open(night, closes) == local(zone, *closes_on, 22)


hours = st.tuples(st.integers(0, 23), st.integers(1, 24)).filter(lambda pair: pair[0] != pair[1])
zones = st.sampled_from(sorted({zone for zone, _, _ in CHANGES}))
moments = st.datetimes(datetime(2024, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  # hypothesis wants bounds without a zone


@given(pair=hours, zone=zones, at=moments)
def test_at_any_moment_the_next_opening_is_open_and_the_end_is_shut(
    pair: tuple[int, int], zone: str, at: datetime
) -> None:
    of = window(*pair, zone)
    opens = next_open(of, at)
    assert at <= opens < at + timedelta(days=3)
    assert is_open(of, opens)
    closes = window_end_at(of, opens)
    assert closes > opens
    assert not is_open(of, closes) or pair == (0, 24)
