from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.accounts.window import Window
from firestore_outbox.reminders.choices import Missed, OnWindowEnd
from firestore_outbox.reminders.reminder import (
    LATE,
    MAX_INLINE_TARGETS,
    Calendar,
    Cron,
    Fire,
    InvalidReminder,
    Once,
    Over,
    PassOver,
    Recurrence,
    Reminder,
    SleepUntil,
    due,
    parse_reminder,
)
from firestore_outbox.reminders.reminder_states import ReminderStatus
from firestore_outbox.reminders.run import Target
from firestore_outbox.reminders.targets import judge_targets, parse_targets

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def raw(**fields: Any) -> dict[str, Any]:
    return {
        "accountId": "shop",
        "targets": [{"id": "one", "to": "1@g.us"}, "2@g.us"],
        "parts": [{"type": "text", "text": "hello"}],
        "timezone": "Asia/Kuala_Lumpur",
        "schedule": {"type": "once", "at": NOW},
        "createdAt": NOW,
        **fields,
    }


def parsed(**fields: Any) -> Reminder:
    reminder = parse_reminder("rem", raw(**fields))
    assert isinstance(reminder, Reminder), str(reminder)
    return reminder


def faults(**fields: Any) -> str:
    reminder = parse_reminder("rem", raw(**fields))
    assert isinstance(reminder, InvalidReminder)
    return str(reminder)


# --- reading it


def test_a_reminder_has_what_its_document_says_and_the_rest_by_default() -> None:
    reminder = parsed()
    assert reminder.targets == (Target(target_id="one", to="1@g.us"), Target(target_id="2@g.us", to="2@g.us"))
    assert reminder.window == Window(start_hour=6, end_hour=18, zone=ZoneInfo("Asia/Kuala_Lumpur"))
    assert reminder.on_window_end is OnWindowEnd.STOP
    assert reminder.missed is Missed.SKIP
    assert reminder.status is ReminderStatus.ACTIVE
    assert reminder.last_fire_at is None


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ({"type": "once", "at": NOW}, Once(type="once", at=NOW)),
        ({"type": "cron", "cron": "0 9 * * 1"}, Cron(type="cron", cron="0 9 * * 1")),
        (
            {"type": "rrule", "rrule": "FREQ=DAILY", "start": NOW},
            Recurrence(type="rrule", rrule="FREQ=DAILY", start=NOW),
        ),
    ],
)
def test_a_schedule_is_once_a_cron_or_a_recurrence(schedule: dict[str, Any], expected: Any) -> None:
    assert parsed(schedule=schedule).schedule == expected


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"accountId": ""}, "accountId"),
        ({"parts": []}, "parts"),
        ({"parts": [{"type": "dance"}]}, "parts"),
        ({"timezone": "Mars/Olympus"}, "timezone must be a time zone such as Europe/Berlin."),
        ({"timezone": "../etc"}, "must be a time zone"),
        ({"window": {"startHour": 6, "endHour": 6}}, "window: startHour and endHour are the same"),
        (
            {"window": {"startHour": 24, "endHour": 6}},
            "window.startHour must be a whole hour from 0 to 23",
        ),
        ({"window": {"startHour": 6, "endHour": 6.5}}, "window.endHour"),
        ({"schedule": {"type": "once", "at": datetime(2026, 1, 1)}}, "schedule.at"),  # noqa: DTZ001 - that is the fault
        ({"schedule": {"type": "weekly"}}, "schedule"),
        ({"schedule": {"type": "cron", "cron": 5}}, "schedule.cron"),
        ({"schedule": {"type": "rrule", "rrule": "FREQ=DAILY"}}, "schedule.start is missing."),
        ({"onWindowEnd": "panic"}, "onWindowEnd"),
        ({"missed": "always"}, "missed"),
        ({"targets": [f"{n}@g.us" for n in range(MAX_INLINE_TARGETS + 1)]}, "targets"),
    ],
)
def test_what_is_wrong_is_said_by_field(fields: dict[str, Any], words: str) -> None:
    assert words in faults(**fields)


def test_all_faults_are_said_at_once() -> None:
    told = faults(timezone="Nowhere", missed="always", parts=[])
    assert "timezone" in told
    assert "missed" in told
    assert "parts" in told


@given(st.dictionaries(st.text(), st.recursive(st.none() | st.text() | st.integers() | st.floats(), st.lists)))
def test_no_document_is_too_strange_to_be_refused(document: dict[str, Any]) -> None:
    assert isinstance(parse_reminder("rem", document), InvalidReminder)
    changed = parse_reminder("rem", {**raw(), **document})
    assert isinstance(changed, Reminder | InvalidReminder)


def test_a_document_of_targets_is_a_list_of_at_most_a_thousand() -> None:
    assert parse_targets(["a", {"id": "b", "to": "c"}], "000000") == (
        Target(target_id="a", to="a"),
        Target(target_id="b", to="c"),
    )
    for wrong in (None, [], "abc", ["a"] * 1_001):
        assert isinstance(parse_targets(wrong, "000000"), str)


@pytest.mark.parametrize(
    ("target", "marked", "words"),
    [
        ({"id": "a", "to": "with blank"}, "a", "targets[1].to must be 1 to 256 characters"),
        ({"id": "a"}, "a", "targets[1].to is missing"),
        ({"to": "x"}, "targets[1]", "targets[1].id is missing"),
        (1, "targets[1]", "targets[1] is 1: "),
        ("b", "targets[1]", "targets[1].id is 'b', which is there twice"),
    ],
)
def test_a_bad_target_in_a_document_is_marked_and_leaves_the_others_good(target: Any, marked: str, words: str) -> None:
    reminder = parse_reminder("rem", {**raw(), "targets": ["b", target, "c"]})
    assert isinstance(reminder, Reminder)
    first, bad, last = reminder.targets
    assert (first, last) == (Target(target_id="b", to="b"), Target(target_id="c", to="c"))
    assert (bad.target_id, words in (bad.fault or "")) == (marked, True)


def test_all_targets_of_a_new_reminder_are_judged_together() -> None:
    assert judge_targets(["a", "b"], most_faults=10) == (Target(target_id="a", to="a"), Target(target_id="b", to="b"))
    assert judge_targets([], most_faults=10) == ("targets: there are none.",)
    assert judge_targets(["a", "b", "a"], most_faults=10) == ("targets: 'a' is there twice.",)
    assert len(judge_targets(["a b"] * 50, most_faults=10)) == 10


# --- what is due


def every(step: timedelta, start: datetime = NOW, count: int = 10**6) -> Calendar:
    def calendar(after: datetime) -> datetime | None:
        number = max(0, (after - start) // step + 1)
        return start + number * step if number < count else None

    return calendar


def reminder(*, created: datetime = NOW - HOUR, last: datetime | None = None, missed: Missed = Missed.SKIP) -> Reminder:
    fields = {"schedule": {"type": "cron", "cron": "0 * * * *"}, "createdAt": created, "missed": missed.value}
    return parsed(**fields, lastFireAt=last)


def test_ahead_is_slept_for() -> None:
    assert due(reminder(), every(HOUR), NOW - MINUTE) == SleepUntil(NOW)


def test_what_has_come_is_fired_for_the_time_in_the_schedule() -> None:
    assert due(reminder(), every(HOUR), NOW) == Fire(NOW)
    assert due(reminder(), every(HOUR), NOW + LATE) == Fire(NOW), "and not for the moment it was noticed"


def test_what_was_fired_is_not_fired_again() -> None:
    assert due(reminder(last=NOW), every(HOUR), NOW + MINUTE) == SleepUntil(NOW + HOUR)


def test_what_came_too_long_ago_is_passed_over_or_made_up_for_once() -> None:
    late = NOW + LATE + timedelta(seconds=1)
    assert due(reminder(), every(HOUR), late) == PassOver(NOW)
    assert due(reminder(missed=Missed.RUN_ONCE), every(HOUR), late) == Fire(NOW)


def test_of_many_that_were_missed_the_last_one_is_made_up_for() -> None:
    late = NOW + 5 * HOUR + 30 * MINUTE
    assert due(reminder(missed=Missed.RUN_ONCE), every(HOUR), late) == Fire(NOW + 5 * HOUR)
    assert due(reminder(), every(HOUR), late) == PassOver(NOW + 5 * HOUR)


def test_one_that_has_just_come_is_fired_whatever_was_missed_before() -> None:
    assert due(reminder(), every(HOUR), NOW + 5 * HOUR + MINUTE) == Fire(NOW + 5 * HOUR)


def test_without_any_time_left_it_has_ended() -> None:
    assert due(reminder(last=NOW + 2 * HOUR), every(HOUR, count=3), NOW + 3 * HOUR) == Over()


def test_times_before_the_reminder_was_made_do_not_count() -> None:
    made_at_five_past = reminder(created=NOW + 5 * MINUTE)
    assert due(made_at_five_past, every(HOUR), NOW + 6 * MINUTE) == SleepUntil(NOW + HOUR)


def test_now_counts_though_it_has_passed_when_it_is_written_down() -> None:
    at = NOW - timedelta(seconds=3)

    def once(after: datetime) -> datetime | None:
        return at if at > after else None

    assert due(parsed(schedule={"type": "once", "at": at}), once, NOW) == Fire(at)


gaps = st.lists(st.integers(1, 5000), min_size=1, max_size=200)


@given(
    gaps=gaps,
    now=st.integers(-100, 500_000),
    last=st.one_of(st.none(), st.integers(0, 199)),
    missed=st.sampled_from(Missed),
)
def test_whatever_the_schedule_it_fires_for_its_last_time_until_now_and_never_for_one_before_the_last_fire(
    gaps: list[int], now: int, last: int | None, missed: Missed
) -> None:
    """Looked up by halves; the judge looks at each."""
    times: list[datetime] = []
    at = NOW
    for gap in gaps:
        at += timedelta(seconds=gap)
        times.append(at)

    def calendar(after: datetime) -> datetime | None:
        place = bisect_right(times, after)
        return times[place] if place < len(times) else None

    moment = NOW + timedelta(seconds=now)
    fired = times[last] if last is not None and last < len(times) else None
    come = [one for one in times if one <= moment and (fired is None or one > fired)]
    decision = due(reminder(created=NOW, last=fired, missed=missed), calendar, moment)
    ahead = calendar(fired or NOW)
    if come:
        is_made_up_for = moment - come[-1] <= LATE or missed is Missed.RUN_ONCE
        assert decision == (Fire(come[-1]) if is_made_up_for else PassOver(come[-1]))
    elif ahead is None:
        assert decision == Over()
    else:
        assert decision == SleepUntil(ahead)
