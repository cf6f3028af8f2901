"""Schedules that are wrong, never come true or were missed for a long time: said in words, and found out quickly."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from dateutil.rrule import rrulestr

from firestore_outbox.accounts.window import Window
from firestore_outbox.messages.model import TextPart
from firestore_outbox.reminders.calendar import InvalidSchedule, calendar_of
from firestore_outbox.reminders.choices import Missed, OnWindowEnd
from firestore_outbox.reminders.reminder import (
    Cron,
    Fire,
    Once,
    Over,
    PassOver,
    Recurrence,
    Reminder,
    Schedule,
    SleepUntil,
    due,
)
from firestore_outbox.reminders.reminder_states import ReminderStatus

BERLIN = ZoneInfo("Europe/Berlin")
START = datetime(2024, 2, 29, 8, 30, tzinfo=UTC)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def rule(text: str, start: datetime = START) -> Recurrence:
    return Recurrence(type="rrule", rrule=text, start=start)


def reminder(schedule: Schedule, *, created_at: datetime = NOW, missed: Missed = Missed.SKIP) -> Reminder:
    return Reminder(
        reminder_id="rem",
        account_id="shop",
        parts=(TextPart(type="text", text="x"),),
        targets=(),
        window=Window(start_hour=0, end_hour=24, zone=BERLIN),
        schedule=schedule,
        on_window_end=OnWindowEnd.STOP,
        missed=missed,
        status=ReminderStatus.ACTIVE,
        created_at=created_at,
    )


RULES = (
    "FREQ=DAILY",
    "RRULE:FREQ=WEEKLY;BYDAY=MO,TH;INTERVAL=2",
    "FREQ=MONTHLY;BYDAY=-1FR",
    "FREQ=YEARLY",
    "FREQ=MONTHLY;BYMONTHDAY=31",
    "FREQ=DAILY;COUNT=5",
    "COUNT=3;FREQ=DAILY",
    "FREQ=WEEKLY;UNTIL=20240601T120000",
    "UNTIL=20240601T120000;FREQ=WEEKLY",
    "FREQ=DAILY;UNTIL=99990101T000000",
    "FREQ=YEARLY;BYWEEKNO=53;BYDAY=SU",
    "FREQ=HOURLY;INTERVAL=5;BYDAY=SA",
)


@pytest.mark.parametrize("text", RULES)
def test_a_rule_means_what_the_library_says_it_means(text: str) -> None:
    """It is followed in a far year and brought back, which must not show."""
    calendar = calendar_of(rule(text), BERLIN)
    expected = []
    for wall in rrulestr(text, dtstart=START.astimezone(BERLIN).replace(tzinfo=None)):
        expected.append(wall.replace(tzinfo=BERLIN, fold=0).astimezone(UTC))
        if len(expected) == 25:
            break
    found: list[datetime] = []
    at: datetime | None = START - timedelta(seconds=1)
    while len(found) < 25 and (at := calendar(at)) is not None:  # type: ignore[arg-type]  # it ends with the first None
        found.append(at)
    assert found == expected


def test_a_last_day_without_a_time_is_the_whole_day() -> None:
    calendar = calendar_of(rule("FREQ=DAILY;UNTIL=20240302"), BERLIN)
    assert calendar(START + timedelta(days=1)) == START + timedelta(days=2)
    assert calendar(START + timedelta(days=2)) is None


WRONG = {
    "FREQ=SECONDLY": "once an hour at most",
    "FREQ=MINUTELY": "once an hour at most",
    "FREQ=DAILY;BYMINUTE=0,30": "once an hour at most",
    "DTSTART:20200101T000000\nRRULE:FREQ=DAILY": "must be one rule",
    "FREQ=DAILY\nRDATE:20300101T000000": "must be one rule",
    "FREQ=DAILY;": "must be one rule",
    "FREQ=DAILY;COUNT=2;UNTIL=20270101": "exclude each other",
    "FREQ=BANANA": "BANANA",
    "BYDAY=MO": "FREQ is missing",
    "FREQ=DAILY;INTERVAL=0": "INTERVAL is 0",
    "FREQ=DAILY;COUNT=0": "COUNT is 0",
    "FREQ=YEARLY;BYEASTER=0": "BYEASTER is not known",
    "FREQ=DAILY;BYHOUR=77": "no recurrence rule",
    "FREQ=DAILY;UNTIL=soon": "no recurrence rule",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_rule_at_fault_is_refused_in_words(text: str) -> None:
    with pytest.raises(InvalidSchedule, match=WRONG[text]):
        calendar_of(rule(text), BERLIN)


@pytest.mark.parametrize(
    "text",
    ["FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=9"],
)
def test_a_rule_that_never_comes_true_is_found_out_in_seconds_of_work(text: str) -> None:
    before = time.process_time()
    assert calendar_of(rule(text), BERLIN)(NOW) is None
    assert time.process_time() - before < 6


@pytest.mark.parametrize(
    ("schedule", "last"),
    [
        (Cron(type="cron", cron="* * * * *"), NOW),
        (Cron(type="cron", cron="0 9 * * *"), datetime(2026, 3, 1, 8, tzinfo=UTC)),
        (rule("FREQ=HOURLY", NOW - timedelta(days=300, minutes=20)), NOW - timedelta(minutes=20)),
    ],
    ids=["cron, each minute", "cron, each day", "RRULE, each hour"],
)
@pytest.mark.parametrize("missed", Missed)
def test_a_year_of_missed_times_is_passed_in_one_step_to_the_last_of_them(
    schedule: Schedule, last: datetime, missed: Missed
) -> None:
    before = time.process_time()
    decision = due(
        reminder(schedule, created_at=NOW - timedelta(days=365), missed=missed),
        calendar_of(schedule, BERLIN),
        NOW,
    )
    is_late = NOW - last > timedelta(minutes=10)
    assert decision == (PassOver(last) if is_late and missed is Missed.SKIP else Fire(last))
    assert time.process_time() - before < 4


def test_a_reminder_for_now_fires_although_it_was_written_down_a_moment_later() -> None:
    once = Once(type="once", at=NOW - timedelta(seconds=3))
    assert due(reminder(once), calendar_of(once, BERLIN), NOW) == Fire(once.at)
    weekly = rule("FREQ=WEEKLY", NOW - timedelta(seconds=3))
    assert due(reminder(weekly), calendar_of(weekly, BERLIN), NOW) == Fire(weekly.start)


def test_a_time_of_every_day_does_not_count_for_the_day_a_reminder_was_made_later() -> None:
    daily = Cron(type="cron", cron="55 12 * * *")  # five minutes ago in Berlin
    tomorrow = NOW + timedelta(hours=23, minutes=55)
    assert due(reminder(daily), calendar_of(daily, BERLIN), NOW) == SleepUntil(tomorrow)


def test_a_single_time_that_is_long_past_is_missed() -> None:
    once = Once(type="once", at=NOW - timedelta(hours=3))
    calendar = calendar_of(once, BERLIN)
    assert due(reminder(once), calendar, NOW) == PassOver(once.at)
    assert due(reminder(once, missed=Missed.RUN_ONCE), calendar, NOW) == Fire(once.at)
    assert calendar(once.at) is None
    ended = Once(type="once", at=NOW)
    assert due(reminder(ended), calendar_of(ended, BERLIN), NOW) == Fire(NOW)
    assert isinstance(due(replace(reminder(ended), last_fire_at=NOW), calendar_of(ended, BERLIN), NOW), Over)
