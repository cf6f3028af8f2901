from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.reminders.due_times import due_at

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
FORTY = MINUTE / 40

paces = st.floats(0.05, 600).map(lambda per_minute: MINUTE / per_minute)


def due(count: int, interval: timedelta | None) -> list[datetime]:
    return [due_at(position, START, interval) for position in range(count)]


def test_without_a_pace_all_come_due_at_once() -> None:
    assert set(due(500, None)) == {START}
    assert set(due(500, timedelta(0))) == {START}


def test_at_forty_a_minute_forty_come_due_each_minute_a_little_before_their_turn() -> None:
    times = due(120, FORTY)
    assert set(times[:40]) == {START}
    assert set(times[40:80]) == {START + timedelta(seconds=57)}
    assert set(times[80:]) == {START + timedelta(seconds=117)}


def test_the_hundred_thousandth_comes_as_little_before_its_turn_as_the_forty_first() -> None:
    """A message that a person sends in the last hour of a long run waits no longer than in the first."""
    turn = START + 99_960 * FORTY
    assert due_at(99_960, START, FORTY) == turn - timedelta(seconds=3)


def test_slower_than_one_a_minute_each_comes_due_by_itself() -> None:
    hourly = timedelta(hours=1)
    assert due(3, hourly) == [START, START + timedelta(minutes=57), START + timedelta(minutes=117)]


@given(interval=paces, count=st.integers(2, 300))
def test_no_target_comes_due_before_those_in_front(interval: timedelta, count: int) -> None:
    assert all(one <= following for one, following in pairwise(due(count, interval)))


@given(interval=paces, position=st.integers(0, 100_000))
def test_the_lane_never_waits_for_the_next_and_never_has_much_more_than_a_minutes_worth(
    interval: timedelta, position: int
) -> None:
    turn = START + position * interval  # when it is sent, if the lane sends at its pace without a pause
    ahead = turn - due_at(position, START, interval)
    assert ahead >= timedelta(0)
    assert ahead <= max(MINUTE, interval) * 1.05 + timedelta(microseconds=100)
