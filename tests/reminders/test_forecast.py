from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.accounts.window import Window, is_open, next_open, window_end_at
from firestore_outbox.reminders.choices import OnWindowEnd
from firestore_outbox.reminders.forecast import Forecast, forecast, through_windows

ZONE = ZoneInfo("Asia/Kuala_Lumpur")
DAY = Window(start_hour=6, end_hour=18, zone=ZONE)
FORTY = timedelta(minutes=1) / 40
MINUTE = timedelta(minutes=1)


def local(text: str, zone: ZoneInfo = ZONE) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)


def told(targets: int, now: str, **fields: Any) -> Forecast:
    asked = {"ahead": 0, "interval": FORTY, "window": DAY, "on_window_end": OnWindowEnd.STOP, **fields}
    at = local(now)
    return forecast(targets=targets, window_end=window_end_at(asked["window"], at), now=at, **asked)


def test_what_fits_into_the_window_is_done_at_the_pace_of_its_account() -> None:
    assert told(1000, "2026-03-02T09:00") == Forecast(ends_at=local("2026-03-02T09:25"), warning=None)


def test_what_does_not_fit_is_warned_of_in_the_words_people_were_promised() -> None:
    assert told(4000, "2026-03-02T17:00").warning == "4,000 targets at 40/min ends 18:40; the window closes 18:00"
    assert told(8000, "2026-03-02T17:20").warning == "8,000 targets at 40/min ends 20:40; the window closes 18:00"


def test_an_end_on_another_day_is_reported_with_its_date() -> None:
    warning = told(40_000, "2026-03-02T12:00").warning
    assert warning == "40,000 targets at 40/min ends 04:40 on 2026-03-03; the window closes 18:00"


def test_a_run_that_resumes_says_until_when_it_goes_on() -> None:
    found = told(4000, "2026-03-02T17:00", on_window_end=OnWindowEnd.RESUME_NEXT_DAY)
    assert found.ends_at == local("2026-03-03T06:40")
    assert found.warning == (
        "4,000 targets at 40/min ends 18:40; the window closes 18:00, and it goes on until 2026-03-03 06:40"
    )


def test_what_the_account_has_waiting_goes_before() -> None:
    assert told(1000, "2026-03-02T09:00", ahead=400).ends_at == local("2026-03-02T09:35")


def test_before_the_window_opens_nothing_is_counted() -> None:
    assert told(400, "2026-03-02T05:00").ends_at == local("2026-03-02T06:10")


def test_without_a_pace_it_takes_no_time() -> None:
    assert told(10**6, "2026-03-02T09:00", interval=None) == Forecast(ends_at=local("2026-03-02T09:00"), warning=None)


def test_when_the_window_has_closed_nothing_can_be_sent_any_more() -> None:
    found = told(400, "2026-03-02T19:00")
    assert found.warning == (
        "none of 400 targets can be sent: the window closed at 18:00; choose a later time, or a longer window"
    )


def test_more_than_a_year_is_no_date() -> None:
    found = told(10**9, "2026-03-02T09:00", on_window_end=OnWindowEnd.RESUME_NEXT_DAY)
    assert found.ends_at is None
    assert found.warning is not None
    assert found.warning.endswith("and it would go on for more than a year")


@pytest.mark.parametrize(
    ("zone", "window", "start", "minutes", "expected"),
    [
        # Nine hours fit into the night in which the clock goes back, seven into the one in which it jumps.
        ("Europe/Berlin", (22, 6), "2026-10-24T22:00", 9 * 60, "2026-10-25T06:00"),
        ("Europe/Berlin", (22, 6), "2026-03-28T22:00", 7 * 60, "2026-03-29T06:00"),
        ("Europe/Berlin", (22, 6), "2026-03-28T22:00", 7 * 60 + 30, "2026-03-29T22:30"),
        ("Europe/Berlin", (0, 24), "2026-03-28T12:00", 24 * 60, "2026-03-29T13:00"),
        ("Australia/Lord_Howe", (1, 4), "2026-10-04T01:00", 150, "2026-10-04T04:00"),
        ("Asia/Kathmandu", (6, 18), "2026-03-02T17:00", 90, "2026-03-03T06:30"),
    ],
)
def test_hours_are_those_of_the_day_also_if_the_clock_is_changed_in_them(
    zone: str, window: tuple[int, int], start: str, minutes: int, expected: str
) -> None:
    where = ZoneInfo(zone)
    of = Window(start_hour=window[0], end_hour=window[1], zone=where)
    assert through_windows(of, local(start, where), minutes * MINUTE) == local(expected, where)


hours = st.tuples(st.integers(0, 23), st.integers(1, 24)).filter(lambda pair: pair[0] != pair[1])
zones = st.sampled_from(
    ["Europe/Berlin", "America/Santiago", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Chatham"]
)
moments = st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis wants bounds without a zone


@given(pair=hours, zone=zones, start=moments, minutes=st.integers(0, 3000))
def test_exactly_the_time_that_is_needed_passes_inside_the_window(
    pair: tuple[int, int], zone: str, start: datetime, minutes: int
) -> None:
    window = Window(start_hour=pair[0], end_hour=pair[1], zone=ZoneInfo(zone))
    end = through_windows(window, start, minutes * MINUTE)
    assert end is not None
    passed, at = timedelta(0), next_open(window, start)
    while at < end:
        closes = min(window_end_at(window, at), end)
        passed += closes - at
        at = next_open(window, closes)
    assert passed == minutes * MINUTE
    assert is_open(window, end) or not is_open(window, end + MINUTE) or end == window_end_at(window, end - MINUTE)
