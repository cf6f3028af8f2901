from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from firestore_emulator.tasks import pacing
from firestore_emulator.tasks.pacing import MAX_LEVEL, RECOVER_EVERY, Limits, Slowdown
from firestore_emulator.tasks.times import EPOCH
from tests.emulator.tasks.support import START

UNSLOWED = Slowdown(0, EPOCH)
rates = st.floats(0.001, 500)


def limits(per_second: float, burst: int | None = None) -> Limits:
    return Limits(per_second=per_second, burst=burst or pacing.burst_for(per_second), concurrent=1000)


def greedy(rate: Limits, slowdown: Slowdown, dispatches: int) -> list[datetime]:
    """When a queue that always has more would dispatch, sleeping as the dispatcher does."""
    now, bucket = START, pacing.full(rate, START)
    moments: list[datetime] = []
    while len(moments) < dispatches:
        bucket = pacing.refilled(bucket, rate, slowdown, now)
        count = min(pacing.available(bucket), dispatches - len(moments))
        moments += [now] * count
        bucket = pacing.spent(bucket, count)
        now = max(now, pacing.next_token_at(bucket, rate, slowdown))
    return moments


@given(rates, st.integers(1, 20), st.integers(0, MAX_LEVEL))
def test_no_window_holds_more_than_the_burst_and_the_rate_allow(rate: float, burst: int, level: int) -> None:
    moments = greedy(limits(rate, burst), Slowdown(level, START), 60)
    for first in range(len(moments)):
        for last in range(first, len(moments)):
            window = (moments[last] - moments[first]).total_seconds()
            assert last - first + 1 <= burst + rate * window + 1e-3


@given(rates)
def test_the_rate_is_used_in_full_and_does_not_drift(rate: float) -> None:
    moments = greedy(limits(rate, 1), UNSLOWED, 101)
    took = (moments[-1] - moments[0]).total_seconds()
    assert abs(took - 100 / rate) <= 100 * 1e-6 + 1e-3


@given(rates, st.integers(0, MAX_LEVEL), st.floats(0, 100))
def test_the_next_token_is_there_when_it_was_promised_and_not_before(
    rate: float, level: int, throttled_before: float
) -> None:
    slowdown = Slowdown(level, START - timedelta(seconds=throttled_before))
    empty = pacing.spent(pacing.full(limits(rate, 1), START), 1)
    at = pacing.next_token_at(empty, limits(rate, 1), slowdown)
    assert pacing.available(pacing.refilled(empty, limits(rate, 1), slowdown, at)) == 1
    early = at - timedelta(seconds=1e-5 + 1e-5 / rate)
    assert pacing.available(pacing.refilled(empty, limits(rate, 1), slowdown, early)) == 0


def test_one_dispatch_in_ten_seconds_is_an_ordinary_rate() -> None:
    moments = greedy(limits(0.1, 1), UNSLOWED, 4)
    assert [(moment - START).total_seconds() for moment in moments] == [0, 10, 20, 30]


def test_a_rate_of_nearly_nothing_waits_for_a_finite_time() -> None:
    assert greedy(limits(5e-324, 1), UNSLOWED, 1) == [START]
    empty = pacing.spent(pacing.full(limits(5e-324, 1), START), 1)
    assert pacing.next_token_at(empty, limits(5e-324, 1), UNSLOWED) > START + timedelta(days=31)


def test_a_clock_that_goes_back_gives_no_tokens() -> None:
    bucket = pacing.spent(pacing.full(limits(10, 5), START), 5)
    earlier = pacing.refilled(bucket, limits(10, 5), UNSLOWED, START - timedelta(hours=1))
    assert (earlier.tokens, earlier.at) == (0, START)


def test_each_429_halves_the_rate_and_each_quiet_while_doubles_it() -> None:
    slowdown = pacing.slowed(UNSLOWED, START)
    assert slowdown.level_at(START) == 1
    slowdown = pacing.slowed(slowdown, START + timedelta(seconds=1))
    assert slowdown.level_at(START + timedelta(seconds=1)) == 2
    assert slowdown.level_at(START + timedelta(seconds=1) + RECOVER_EVERY) == 1
    assert slowdown.level_at(START + timedelta(seconds=1) + 2 * RECOVER_EVERY) == 0


def test_many_429_in_one_second_count_once_and_there_is_a_floor() -> None:
    slowdown = UNSLOWED
    for _ in range(50):
        slowdown = pacing.slowed(slowdown, START)
    assert slowdown.level == 1
    for second in range(50):
        slowdown = pacing.slowed(slowdown, START + timedelta(seconds=second))
    assert slowdown.level == MAX_LEVEL


def test_a_slowed_queue_is_slower_and_comes_back() -> None:
    normal = greedy(limits(8, 1), UNSLOWED, 200)
    slow = greedy(limits(8, 1), Slowdown(3, START), 200)
    assert (slow[1] - slow[0]) == timedelta(seconds=1)
    assert slow[-1] > normal[-1]
    assert slow[-1] - slow[-2] == normal[-1] - normal[-2]
