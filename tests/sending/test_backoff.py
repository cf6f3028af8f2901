from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.sending.backoff import Backoff
from tests.builders import s

POLICY = Backoff()


def test_the_waits_double_from_one_second_and_stay_at_sixty() -> None:
    waits = [POLICY.nominal(attempt).total_seconds() for attempt in range(1, 10)]
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_what_the_provider_asks_for_wins_and_is_obeyed_exactly() -> None:
    assert POLICY.delay(5, jitter=0.9, retry_after=s(7)) == s(7)
    assert POLICY.delay(1, jitter=0.1, retry_after=timedelta(hours=24)) == timedelta(hours=24)


def test_a_retry_after_in_the_past_means_at_once() -> None:
    assert POLICY.delay(5, jitter=0.5, retry_after=s(-3)) == s(0)


@given(attempt=st.integers(0, 10**9), jitter=st.floats(0, 1, exclude_max=True))
def test_jitter_stays_within_a_quarter_of_the_wait(attempt: int, jitter: float) -> None:
    nominal = POLICY.nominal(attempt)
    assert nominal * 0.75 <= POLICY.delay(attempt, jitter=jitter) <= nominal * 1.25


@given(
    base=st.integers(0, 10**8).map(lambda ms: timedelta(milliseconds=ms)),
    cap=st.integers(0, 10**8).map(lambda ms: timedelta(milliseconds=ms)),
    attempt=st.integers(1, 200),
)
def test_waits_never_shrink_and_never_pass_the_cap(base: timedelta, cap: timedelta, attempt: int) -> None:
    policy = Backoff(base=base, cap=cap)
    assert policy.nominal(attempt) <= policy.nominal(attempt + 1)
    assert policy.nominal(attempt) <= max(cap, timedelta(0))
