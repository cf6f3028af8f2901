from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from firestore_emulator.tasks.retry import UNLIMITED, Failure, GiveUp, Policy, Reason, RetryAt, after, backoff
from tests.emulator.tasks.support import START

POLICY = Policy(
    max_attempts=100,
    max_retry_duration=timedelta(0),
    min_backoff=timedelta(seconds=10),
    max_backoff=timedelta(seconds=300),
    max_doublings=3,
)

policies = st.builds(
    Policy,
    max_attempts=st.one_of(st.just(UNLIMITED), st.integers(1, 200)),
    max_retry_duration=st.timedeltas(timedelta(0), timedelta(days=40)),
    min_backoff=st.timedeltas(timedelta(milliseconds=1), timedelta(hours=1)),
    max_backoff=st.timedeltas(timedelta(hours=1), timedelta(days=3_000_000)),
    max_doublings=st.integers(1, 2**31 - 1),
)


def failed(attempts: int, *, seconds_after_first: float = 0, **fields: timedelta) -> Failure:
    return Failure(
        attempts=attempts,
        first_attempt_at=START,
        created_at=START,
        wait_from=START + timedelta(seconds=seconds_after_first),
        **fields,
    )


def test_the_wait_is_that_of_googles_own_example() -> None:
    waits = [backoff(POLICY, n).total_seconds() for n in range(1, 10)]
    assert waits == [10, 20, 40, 80, 160, 240, 300, 300, 300]


def test_productions_defaults_wait_a_tenth_of_a_second_and_at_most_an_hour() -> None:
    policy = replace(POLICY, min_backoff=timedelta(milliseconds=100), max_backoff=timedelta(hours=1), max_doublings=16)
    assert [backoff(policy, n).total_seconds() for n in (1, 2, 3, 4)] == [0.1, 0.2, 0.4, 0.8]
    assert backoff(policy, 16).total_seconds() == 3276.8
    assert backoff(policy, 17) == backoff(policy, 1000) == timedelta(hours=1)


@given(policies, st.integers(1, 2**31 - 1))
def test_a_wait_lies_between_the_two_bounds(policy: Policy, failures: int) -> None:
    assert policy.min_backoff <= backoff(policy, failures) <= policy.max_backoff


@given(policies, st.integers(1, 300))
def test_a_wait_is_never_shorter_than_the_one_before(policy: Policy, failures: int) -> None:
    assert backoff(policy, failures) <= backoff(policy, failures + 1)


@given(policies, st.integers(1, 60))
def test_a_wait_doubles_as_often_as_the_policy_says(policy: Policy, failures: int) -> None:
    if failures <= policy.max_doublings:
        assert backoff(policy, failures + 1) == min(policy.max_backoff, backoff(policy, failures) * 2)


@given(policies, st.integers(1, 300), st.floats(0, 4_000_000))
def test_the_decision_never_fails_and_never_retries_in_the_past(policy: Policy, attempts: int, age: float) -> None:
    failure = failed(attempts, seconds_after_first=age)
    decision = after(failure, policy)
    if isinstance(decision, RetryAt):
        assert decision.at >= failure.wait_from + policy.min_backoff


def test_the_last_attempt_is_the_end() -> None:
    policy = replace(POLICY, max_attempts=3)
    assert isinstance(after(failed(2), policy), RetryAt)
    assert after(failed(3), policy) == GiveUp(Reason.LIMITS_REACHED)


def test_minus_one_means_for_ever_and_for_ever_means_31_days() -> None:
    policy = replace(POLICY, max_attempts=UNLIMITED)
    assert isinstance(after(failed(1_000_000), policy), RetryAt)
    late = failed(5, seconds_after_first=timedelta(days=31).total_seconds())
    assert after(late, policy) == GiveUp(Reason.TOO_OLD)


def test_with_both_limits_both_must_be_reached() -> None:
    policy = replace(POLICY, max_attempts=3, max_retry_duration=timedelta(seconds=1000))
    assert isinstance(after(failed(50, seconds_after_first=500), policy), RetryAt)
    assert isinstance(after(failed(2, seconds_after_first=5000), policy), RetryAt)
    assert after(failed(3, seconds_after_first=5000), policy) == GiveUp(Reason.LIMITS_REACHED)


def test_with_unlimited_attempts_the_duration_alone_decides() -> None:
    policy = replace(POLICY, max_attempts=UNLIMITED, max_retry_duration=timedelta(seconds=100))
    assert isinstance(after(failed(4, seconds_after_first=20), policy), RetryAt)
    assert after(failed(4, seconds_after_first=21), policy) == GiveUp(Reason.LIMITS_REACHED)


def test_the_worker_may_ask_for_a_longer_wait_but_not_for_a_shorter_one() -> None:
    assert after(failed(1, retry_after=timedelta(seconds=90)), POLICY) == RetryAt(START + timedelta(seconds=90))
    assert after(failed(1, retry_after=timedelta(seconds=2)), POLICY) == RetryAt(START + timedelta(seconds=10))
