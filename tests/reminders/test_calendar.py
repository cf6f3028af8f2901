"""Which instants a schedule means, on every kind of day: those on which the clock jumps, goes back, or skips a date.

The judge is a clock that a person watches: each minute of several days is looked at, and what it shows is noted.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firestore_outbox.reminders.calendar import InvalidSchedule, calendar_of
from firestore_outbox.reminders.reminder import Calendar, Cron, Once, Recurrence

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def cron(text: str, zone: str) -> Calendar:
    return calendar_of(Cron(type="cron", cron=text), ZoneInfo(zone))


def rule(text: str, zone: str, start: datetime) -> Calendar:
    return calendar_of(Recurrence(type="rrule", rrule=text, start=start), ZoneInfo(zone))


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def local(zone: str, text: str, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC)


def fires(calendar: Calendar, after: datetime, until: datetime) -> list[datetime]:
    found = []
    at = calendar(after)
    while at is not None and at <= until:
        found.append(at)
        at = calendar(at)
    return found


def some(calendar: Calendar, after: datetime, count: int) -> list[datetime]:
    found: list[datetime] = []
    for _ in range(count):
        at = calendar(found[-1] if found else after)
        if at is None:
            break
        found.append(at)
    return found


# --- each kind of day, by hand

DAYS = {
    "an ordinary day": ("Europe/Berlin", "2026-06-10", "02:30", "2026-06-10T00:30"),
    "the clock jumps over the time": ("Europe/Berlin", "2026-03-29", "02:30", "2026-03-29T01:30"),  # shown: 03:30
    "the time comes twice": ("Europe/Berlin", "2026-10-25", "02:30", "2026-10-25T00:30"),  # the first
    "the clock jumps, at another time": ("America/New_York", "2026-03-08", "09:00", "2026-03-08T13:00"),
    "the clock goes back, at another time": ("America/New_York", "2026-11-01", "09:00", "2026-11-01T14:00"),
    "the clock jumps over midnight": ("America/Santiago", "2026-09-06", "00:15", "2026-09-06T04:15"),  # shown: 01:15
    "two hours before midnight": ("America/Santiago", "2026-04-04", "23:15", "2026-04-05T02:15"),
    "a jump of half an hour": ("Australia/Lord_Howe", "2026-10-04", "02:10", "2026-10-03T15:40"),  # shown: 02:40
    "half an hour twice": ("Australia/Lord_Howe", "2026-04-05", "01:45", "2026-04-04T14:45"),
    "an offset of 45 minutes, and a jump": ("Pacific/Chatham", "2026-09-27", "03:00", "2026-09-26T14:15"),
    "an offset of 45 minutes, and no change ever": ("Asia/Kathmandu", "2026-03-29", "02:30", "2026-03-28T20:45"),
    "the day after the one that was skipped": ("Pacific/Apia", "2011-12-31", "09:00", "2011-12-30T19:00"),
    "the day before the one that was skipped": ("Pacific/Apia", "2011-12-29", "09:00", "2011-12-29T19:00"),
    "no change ever": ("Asia/Kuala_Lumpur", "2026-03-29", "02:30", "2026-03-28T18:30"),
    "Ramadan ends": ("Africa/Casablanca", "2026-03-22", "02:30", "2026-03-22T02:30"),  # shown: 03:30
    "Ramadan begins": ("Africa/Casablanca", "2026-02-15", "02:30", "2026-02-15T01:30"),
}


@pytest.mark.parametrize("kind", DAYS)
@pytest.mark.parametrize("by", ["cron", "rrule"])
def test_a_time_of_every_day_comes_once_on(kind: str, by: str) -> None:
    zone, day, clock, expected = DAYS[kind]
    hour, minute = clock.split(":")
    noon = local(zone, f"{day}T12:00")
    if by == "cron":
        calendar = cron(f"{int(minute)} {int(hour)} * * *", zone)
    else:
        calendar = rule("FREQ=DAILY", zone, local(zone, f"{(noon - 20 * DAY):%Y-%m-%d}T{clock}"))
    around = [at for at in fires(calendar, noon - 2 * DAY, noon + 2 * DAY) if abs(at - utc(expected)) < DAY / 2]
    assert around == [utc(expected)]


def test_a_date_that_a_zone_skipped_has_no_fire_of_its_own() -> None:
    """Samoa went from the 29th to the 31st of December 2011."""
    daily = cron("0 9 * * *", "Pacific/Apia")
    found = [at.astimezone(ZoneInfo("Pacific/Apia")) for at in some(daily, utc("2011-12-28T00:00"), 5)]
    assert [f"{at:%d %H:%M}" for at in found] == ["28 09:00", "29 09:00", "31 09:00", "01 09:00", "02 09:00"]


def test_times_around_a_jump_keep_the_order_of_the_day_and_none_is_lost() -> None:
    """02:10 is jumped over and comes at 02:40; 02:35 is shown, and comes before it."""
    calendar = cron("10,35 2 * * *", "Australia/Lord_Howe")
    found = fires(
        calendar, local("Australia/Lord_Howe", "2026-10-04T00:00"), local("Australia/Lord_Howe", "2026-10-04T12:00")
    )
    assert [f"{at.astimezone(ZoneInfo('Australia/Lord_Howe')):%H:%M}" for at in found] == ["02:35", "02:40"]


def test_every_half_hour_is_46_times_on_the_short_day_and_48_on_the_long_one() -> None:
    """An hour that comes twice counts once."""
    calendar = cron("*/30 * * * *", "Europe/Berlin")
    for day, count in (("2026-03-29", 46), ("2026-10-25", 48), ("2026-06-10", 48)):
        begins = local("Europe/Berlin", f"{day}T00:00")
        ends = local("Europe/Berlin", f"{(datetime.fromisoformat(day) + DAY):%Y-%m-%d}T00:00")
        assert len(fires(calendar, begins - MINUTE, ends - MINUTE)) == count


def test_once_is_once_in_whatever_zone_it_was_written() -> None:
    at = datetime(2026, 3, 29, 9, tzinfo=ZoneInfo("Asia/Kathmandu"))
    calendar = calendar_of(Once(type="once", at=at), ZoneInfo("Europe/Berlin"))
    assert calendar(at - MINUTE) == at
    assert calendar(at - MINUTE) == utc("2026-03-29T03:15")
    assert calendar(at) is None


# --- RFC 5545

BERLIN = "Europe/Berlin"
START = local(BERLIN, "2026-03-02T09:00")  # a Monday


def shown(calendar: Calendar, count: int = 4) -> list[str]:
    found = some(calendar, START - MINUTE, count)
    return [f"{at.astimezone(ZoneInfo(BERLIN)):%Y-%m-%d %H:%M}" for at in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FREQ=DAILY;COUNT=3", ["2026-03-02 09:00", "2026-03-03 09:00", "2026-03-04 09:00"]),
        ("FREQ=WEEKLY;BYDAY=MO,TH", ["2026-03-02 09:00", "2026-03-05 09:00", "2026-03-09 09:00", "2026-03-12 09:00"]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=SU;WKST=MO", ["2026-03-08 09:00", "2026-03-22 09:00", "2026-04-05 09:00"]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=SU;WKST=SU", ["2026-03-15 09:00", "2026-03-29 09:00", "2026-04-12 09:00"]),
        ("FREQ=MONTHLY;BYDAY=-1FR", ["2026-03-27 09:00", "2026-04-24 09:00", "2026-05-29 09:00"]),
        ("FREQ=MONTHLY;BYDAY=2TU", ["2026-03-10 09:00", "2026-04-14 09:00", "2026-05-12 09:00"]),
        ("FREQ=MONTHLY;BYMONTHDAY=31", ["2026-03-31 09:00", "2026-05-31 09:00", "2026-07-31 09:00"]),
        ("FREQ=MONTHLY;BYMONTHDAY=-1", ["2026-03-31 09:00", "2026-04-30 09:00", "2026-05-31 09:00"]),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", ["2026-03-31 09:00", "2026-04-30 09:00", "2026-05-29 09:00"]),
        (
            "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1,-1",
            ["2026-03-02 09:00", "2026-03-31 09:00", "2026-04-01 09:00"],
        ),
        ("FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU", ["2026-03-29 09:00", "2027-03-28 09:00", "2028-03-26 09:00"]),
        ("FREQ=DAILY;BYHOUR=9,17", ["2026-03-02 09:00", "2026-03-02 17:00", "2026-03-03 09:00"]),
        ("FREQ=DAILY;UNTIL=20260304T080000Z", ["2026-03-02 09:00", "2026-03-03 09:00", "2026-03-04 09:00"]),
        ("FREQ=DAILY;UNTIL=20260304T075959Z", ["2026-03-02 09:00", "2026-03-03 09:00"]),
        ("FREQ=DAILY;UNTIL=20260304T090000", ["2026-03-02 09:00", "2026-03-03 09:00", "2026-03-04 09:00"]),
        ("FREQ=DAILY;UNTIL=20260304", ["2026-03-02 09:00", "2026-03-03 09:00", "2026-03-04 09:00"]),
        ("RRULE:FREQ=DAILY;COUNT=1", ["2026-03-02 09:00"]),
    ],
)
def test_a_rule_of_rfc_5545_means(text: str, expected: list[str]) -> None:
    found = shown(rule(text, BERLIN, START))
    assert found[: len(expected)] == expected
    if "COUNT" in text or "UNTIL" in text:
        assert len(found) == len(expected), "and then no more"


def test_a_count_is_of_all_times_and_not_of_those_still_to_come() -> None:
    calendar = rule("FREQ=DAILY;COUNT=10", BERLIN, START)
    assert len(some(calendar, START + 7 * DAY + MINUTE, 20)) == 2


def test_until_is_an_instant_also_when_the_wall_shows_it_twice_or_never() -> None:
    nightly = "FREQ=DAILY;UNTIL={}"
    start = local(BERLIN, "2026-03-20T02:30")
    jumped = utc("2026-03-29T01:30")  # 02:30 on the day of the jump, shown as 03:30
    assert some(rule(nightly.format("20260329T013000Z"), BERLIN, start), jumped - MINUTE, 2) == [jumped]
    assert some(rule(nightly.format("20260329T011500Z"), BERLIN, start), jumped - MINUTE, 2) == []
    start = local(BERLIN, "2026-10-20T02:45")
    twice = utc("2026-10-25T00:45")  # the first 02:45; the second 02:30 is later
    assert some(rule(nightly.format("20261025T013000Z"), BERLIN, start), twice - MINUTE, 2) == [twice]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("FREQ=SECONDLY", "once an hour at most"),
        ("FREQ=FORTNIGHTLY", "no recurrence rule"),
        ("DTSTART:20260101T000000Z", "one rule"),
        ("FREQ=DAILY;COUNT=3;UNTIL=20260304", "exclude each other"),
        ("FREQ=DAILY;UNTIL=tomorrow", "one rule|no recurrence rule"),
        ("BYDAY=MO", "FREQ is missing"),
    ],
)
def test_a_rule_that_is_none_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(InvalidSchedule, match=words):
        rule(text, BERLIN, START)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("10 9 1 12", "has 4 fields"),
        ("0 9 * * * *", "has 6 fields"),
        ("61 * * * *", "no cron"),
        ("x 9 * * *", "no cron"),
    ],
)
def test_a_cron_that_is_none_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(InvalidSchedule, match=words):
        cron(text, BERLIN)


# --- no drift


@pytest.mark.parametrize(
    "zone",
    [
        "Europe/Berlin",
        "America/Santiago",
        "Australia/Lord_Howe",
        "Pacific/Chatham",
        "Asia/Kathmandu",
        "Africa/Casablanca",
    ],
)
@pytest.mark.parametrize("by", ["cron", "rrule"])
def test_over_400_days_it_comes_once_a_date_at_the_same_time_on_the_wall(zone: str, by: str) -> None:
    start = local(zone, "2026-01-01T02:45")
    calendar = cron("45 2 * * *", zone) if by == "cron" else rule("FREQ=DAILY", zone, start)
    found = [at.astimezone(ZoneInfo(zone)) for at in some(calendar, start - MINUTE, 400)]
    dates = [at.date() for at in found]
    assert dates == [(datetime(2026, 1, 1) + number * DAY).date() for number in range(400)]  # noqa: DTZ001 - dates alone
    odd = [f"{at:%H:%M}" for at in found if (at.hour, at.minute) != (2, 45)]
    assert odd in ([], ["03:45"]), "except on the day on which the clock jumps over it"


# --- any schedule, against a clock that is watched

ODD_DAYS = [
    ("Europe/Berlin", "2026-03-29"),
    ("Europe/Berlin", "2026-10-25"),
    ("Europe/Berlin", "2026-06-10"),
    ("America/Santiago", "2026-09-06"),
    ("America/Santiago", "2026-04-04"),
    ("Australia/Lord_Howe", "2026-10-04"),
    ("Australia/Lord_Howe", "2026-04-05"),
    ("Pacific/Chatham", "2026-09-27"),
    ("Pacific/Chatham", "2026-04-05"),
    ("Asia/Kathmandu", "2026-03-29"),
    ("Pacific/Apia", "2011-12-30"),
    ("Africa/Casablanca", "2026-03-22"),
]


def watched(zone: ZoneInfo, begins: datetime, ends: datetime, matches: Callable[[datetime], bool]) -> list[datetime]:
    meant = {when for wall, when in on_the_wall(zone, begins, ends).items() if matches(wall)}
    return sorted(when for when in meant if begins < when <= ends)


@cache
def on_the_wall(zone: ZoneInfo, begins: datetime, ends: datetime) -> dict[datetime, datetime]:
    """Each time on the wall, and when it is. One that the clock shows counts when it is first shown; one that it jumps
    over, as if it had not jumped."""
    first: dict[datetime, datetime] = {}
    jumped: dict[datetime, datetime] = {}
    at = begins - 2 * DAY
    offset = at.astimezone(zone).utcoffset()
    previous: datetime | None = None
    while at < ends + 2 * DAY:
        wall = at.astimezone(zone).replace(tzinfo=None)
        if previous is not None and offset is not None:
            missing = previous + MINUTE
            while missing < wall:
                jumped[missing] = (missing - offset).replace(tzinfo=UTC)
                missing += MINUTE
        first.setdefault(wall, at)
        previous, offset = wall, at.astimezone(zone).utcoffset()
        at += MINUTE
    return jumped | first


minutes = st.lists(st.integers(0, 59), min_size=1, max_size=4, unique=True)
hours = st.lists(st.integers(0, 23), min_size=1, max_size=6, unique=True)
weekdays = st.one_of(st.none(), st.lists(st.integers(0, 6), min_size=1, max_size=5, unique=True))


@settings(max_examples=60, deadline=None)
@given(where=st.sampled_from(ODD_DAYS), minutes=minutes, hours=st.one_of(st.none(), hours), weekdays=weekdays)
def test_a_cron_fires_exactly_when_a_watched_clock_says(
    where: tuple[str, str], minutes: list[int], hours: list[int] | None, weekdays: list[int] | None
) -> None:
    zone, day = ZoneInfo(where[0]), utc(f"{where[1]}T00:00")
    begins, ends = day - DAY, day + 2 * DAY
    text = f"{_list(minutes)} {_list(hours)} * * {_list(weekdays)}"

    def matches(wall: datetime) -> bool:
        is_hour = hours is None or wall.hour in hours
        return wall.minute in minutes and is_hour and (weekdays is None or wall.isoweekday() % 7 in weekdays)

    found = fires(cron(text, where[0]), begins, ends)
    assert found == watched(zone, begins, ends, matches)
    assert all(one < following for one, following in pairwise(found)), "each strictly later than the one before"
    walls = [at.astimezone(zone).replace(tzinfo=None) for at in found]
    assert len(walls) == len(set(walls)), "never twice for one time on the wall"


@settings(max_examples=40, deadline=None)
@given(where=st.sampled_from(ODD_DAYS), minute=st.integers(0, 59), hours=hours)
def test_a_rule_fires_exactly_when_a_watched_clock_says(where: tuple[str, str], minute: int, hours: list[int]) -> None:
    zone, day = ZoneInfo(where[0]), utc(f"{where[1]}T00:00")
    begins, ends = day - DAY, day + 2 * DAY
    text = f"FREQ=DAILY;BYHOUR={_list(hours)};BYMINUTE={minute}"
    start = local(where[0], f"{(day - 10 * DAY):%Y-%m-%d}T00:00")
    found = fires(rule(text, where[0], start), begins, ends)
    assert found == watched(zone, begins, ends, lambda wall: wall.minute == minute and wall.hour in hours)


@settings(max_examples=60, deadline=None)
@given(
    where=st.sampled_from(ODD_DAYS),
    minutes=minutes,
    hours=hours,
    asked=st.lists(st.integers(0, 3 * 86_400), min_size=1, max_size=20),
)
def test_whenever_one_asks_the_next_fire_is_later_and_there_is_none_in_between(
    where: tuple[str, str], minutes: list[int], hours: list[int], asked: list[int]
) -> None:
    """The answer depends on nothing but the time that is asked for: nothing drifts."""
    calendar, day = cron(f"{_list(minutes)} {_list(hours)} * * *", where[0]), utc(f"{where[1]}T00:00")
    all_of_them = fires(calendar, day - 2 * DAY, day + 5 * DAY)
    for seconds in asked:
        at = day - DAY + timedelta(seconds=seconds)
        assert calendar(at) == min(one for one in all_of_them if one > at)


def _list(numbers: list[int] | None) -> str:
    return "*" if numbers is None else ",".join(map(str, sorted(numbers)))
