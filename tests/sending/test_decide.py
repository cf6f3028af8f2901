from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.accounts.account import OnUncertain
from firestore_outbox.messages.model import OutboxMessage, TemplatePart
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.providers.outcome import (
    AuthFailed,
    Capability,
    ErrorCode,
    NotConnected,
    Outcome,
    Rejected,
    Retryable,
    Scope,
    Sent,
    Throttled,
    Unknown,
)
from firestore_outbox.sending.decide import (
    ABANDONED,
    MarkFailed,
    MarkSent,
    MarkSkipped,
    MarkUncertain,
    ParkAccount,
    PauseLane,
    Policy,
    RetryAt,
    ThrottleApp,
    ThrottleLane,
    TooEarly,
    Verdict,
    after_receipt_wait,
    decide,
)
from tests.builders import BLIND, ECHOES, NOW, RESEND_SAFE, at, s, sending

HOLD = Policy(on_uncertain=OnUncertain.HOLD)
RESEND = Policy(on_uncertain=OnUncertain.RESEND)
EVEN = 0.5  # the jitter that changes nothing

DOWN = Retryable(code=ErrorCode.PROVIDER_UNAVAILABLE, detail="connection refused")
SILENT = Unknown(detail="no answer in 20 s")


def verdict(
    outcome: Outcome,
    *,
    policy: Policy = HOLD,
    capability: Capability = ECHOES,
    message: OutboxMessage | None = None,
    **fields: Any,
) -> Verdict:
    claimed = message or sending(**fields)
    return decide(claimed, outcome, policy=policy, capability=capability, now=NOW, jitter=EVEN)


def code(of: Verdict) -> ErrorCode | None:
    return of.message.last_error.code if of.message.last_error else None


NEWS = TemplatePart(type="template", name="news", language="en", params=())
FALLBACK = Policy(fallback=NEWS)
CLOSED = Rejected(code=ErrorCode.WINDOW_CLOSED, detail="131047")


def test_a_message_refused_for_the_window_goes_once_more_as_the_accounts_template() -> None:
    again = verdict(CLOSED, policy=FALLBACK)
    assert isinstance(again, RetryAt)
    assert (again.at, again.message.instead, again.message.as_sent.parts) == (NOW, NEWS, (NEWS,))
    assert again.message.parts != (NEWS,), "what was asked for stays"
    once = verdict(CLOSED, policy=FALLBACK, instead=NEWS)
    assert isinstance(once, MarkFailed)


@pytest.mark.parametrize(
    "fields",
    [{"parts": (NEWS,)}, {"parts_sent": 1}, {"doubted": True}, {"cancel_requested": True}],
    ids=["a template itself", "a part has arrived", "it may have arrived", "it was cancelled"],
)
def test_no_template_goes_in_place_of_what_may_have_arrived_or_is_one_or_is_unwanted(fields: dict[str, Any]) -> None:
    assert isinstance(verdict(CLOSED, policy=FALLBACK, **fields), MarkFailed)


def test_other_refusals_and_accounts_without_a_template_fail_the_message() -> None:
    assert isinstance(verdict(CLOSED), MarkFailed)
    assert isinstance(verdict(Rejected(code=ErrorCode.REJECTED, detail="no"), policy=FALLBACK), MarkFailed)


def test_an_accepted_message_is_sent() -> None:
    sent = verdict(Sent(provider_message_id="wamid.1"))
    assert isinstance(sent, MarkSent)
    assert (sent.message.status, sent.message.provider_message_id, sent.message.sent_at) == (
        OutboxStatus.SENT,
        "wamid.1",
        NOW,
    )


def test_what_was_not_processed_is_tried_again_after_a_growing_wait() -> None:
    waits = []
    for failures in range(4):
        retry = verdict(DOWN, failures=failures, attempts=failures + 1)
        assert isinstance(retry, RetryAt)
        assert retry.message.next_attempt_at == retry.at
        waits.append((retry.at - NOW).total_seconds())
    assert waits == [1, 2, 4, 8]


def test_the_fifth_failure_is_the_last() -> None:
    last = verdict(DOWN, failures=4, attempts=5)
    assert isinstance(last, MarkFailed)
    assert code(last) is ErrorCode.MAX_ATTEMPTS
    assert last.message.last_error is not None
    assert last.message.last_error.message == "gave up after 5 attempts; last: connection refused"


def test_a_retry_that_would_come_too_late_is_not_made() -> None:
    late = verdict(DOWN, send_by=at(0.5))
    assert isinstance(late, MarkSkipped)
    assert code(late) is ErrorCode.DEADLINE_PASSED


def test_a_rejection_is_final() -> None:
    rejected = verdict(Rejected(code=ErrorCode.RECIPIENT_INVALID, detail="no such number"))
    assert isinstance(rejected, MarkFailed)
    assert code(rejected) is ErrorCode.RECIPIENT_INVALID
    assert rejected.message.last_error is not None
    assert not rejected.message.last_error.retryable


@pytest.mark.parametrize(
    ("scope", "effects"),
    [
        (Scope.RECIPIENT, ()),
        (Scope.ACCOUNT, (ThrottleLane(at(30)),)),
        (Scope.APP, (ThrottleApp(at(30)),)),
    ],
)
def test_a_throttle_makes_the_scope_it_names_wait_as_long_as_asked(scope: Scope, effects: tuple[object, ...]) -> None:
    throttled = verdict(Throttled(scope=scope, detail="slow down", retry_after=s(30)))
    assert isinstance(throttled, RetryAt)
    assert (throttled.at, throttled.effects) == (at(30), effects)


@pytest.mark.parametrize(
    "outcome",
    [
        Throttled(scope=Scope.ACCOUNT, detail="slow down"),
        NotConnected(detail="session is down"),
        AuthFailed(detail="token expired"),
    ],
)
def test_troubles_of_the_account_are_never_held_against_the_message(outcome: Outcome) -> None:
    again = verdict(outcome, attempts=500, failures=4)
    assert isinstance(again, RetryAt)
    assert (again.message.status, again.message.failures) == (OutboxStatus.QUEUED, 4)
    assert again.at - NOW <= s(75)


def test_refused_credentials_park_the_account_and_keep_the_message() -> None:
    parked = verdict(AuthFailed(detail="token expired"))
    assert isinstance(parked, RetryAt)
    (effect,) = parked.effects
    assert isinstance(effect, ParkAccount)
    assert effect.error.code is ErrorCode.AUTH


def test_a_lost_session_pauses_the_lane() -> None:
    lost = verdict(NotConnected(detail="logged out", retry_after=s(20)))
    assert lost.effects == (PauseLane(at(20)),)


def test_parts_that_went_out_are_not_sent_again() -> None:
    half = verdict(Retryable(code=ErrorCode.PROVIDER_UNAVAILABLE, detail="refused", parts_sent=2), parts_sent=1)
    assert half.message.parts_sent == 3


# --- unknown outcome ----------------------------------------------------------------------------------------------


def test_an_unknown_outcome_is_resent_where_that_is_safe() -> None:
    again = verdict(SILENT, capability=RESEND_SAFE)
    assert isinstance(again, RetryAt)
    assert (again.at, code(again)) == (at(1), ErrorCode.OUTCOME_UNKNOWN)


@pytest.mark.parametrize("policy", [HOLD, RESEND])
def test_an_unknown_outcome_waits_for_the_receipt_where_one_can_come(policy: Policy) -> None:
    doubted = verdict(SILENT, policy=policy)
    assert isinstance(doubted, MarkUncertain)
    assert doubted.resolve_at == doubted.message.next_attempt_at == at(120)


def test_where_no_receipt_can_come_the_account_decides_at_once() -> None:
    held = verdict(SILENT, capability=BLIND, policy=HOLD)
    assert isinstance(held, MarkUncertain)
    assert held.resolve_at is None
    assert isinstance(verdict(SILENT, capability=BLIND, policy=RESEND), RetryAt)


def test_a_safe_resend_has_an_end_too() -> None:
    last = verdict(SILENT, capability=RESEND_SAFE, policy=RESEND, failures=4)
    assert isinstance(last, MarkFailed)
    assert code(last) is ErrorCode.OUTCOME_UNKNOWN


def uncertain(**fields: Any) -> OutboxMessage:
    doubted = verdict(SILENT, **fields)
    assert isinstance(doubted, MarkUncertain)
    return doubted.message


def test_nothing_is_decided_while_the_receipt_may_still_come() -> None:
    assert after_receipt_wait(uncertain(), policy=RESEND, now=at(119)) == TooEarly(at(120))


def test_when_no_receipt_came_the_account_decides() -> None:
    again = after_receipt_wait(uncertain(), policy=RESEND, now=at(120))
    assert isinstance(again, RetryAt)
    assert again.at == at(120)
    held = after_receipt_wait(uncertain(), policy=HOLD, now=at(120))
    assert isinstance(held, MarkUncertain)
    assert held.resolve_at is None
    assert after_receipt_wait(held.message, policy=HOLD, now=at(10**6)) == TooEarly(None)


@pytest.mark.parametrize("fields", [{"cancel_requested": True}, {"send_by": at(60)}, {"failures": 4}])
def test_a_message_in_doubt_that_must_not_be_resent_fails_as_unknown(fields: dict[str, Any]) -> None:
    ended = after_receipt_wait(uncertain(**fields), policy=RESEND, now=at(120))
    assert isinstance(ended, MarkFailed)
    assert code(ended) is ErrorCode.OUTCOME_UNKNOWN


def test_a_held_doubt_ends_when_its_author_cancels() -> None:
    ended = after_receipt_wait(uncertain(cancel_requested=True), policy=HOLD, now=at(120))
    assert isinstance(ended, MarkFailed)


@pytest.mark.parametrize("capability", [RESEND_SAFE, ECHOES, BLIND])
@pytest.mark.parametrize("policy", [HOLD, RESEND])
def test_a_crash_while_sending_is_the_same_doubt_as_a_call_without_an_answer(
    capability: Capability, policy: Policy
) -> None:
    found, silent = (
        decide(sending(), outcome, policy=policy, capability=capability, now=at(60), jitter=EVEN)
        for outcome in (ABANDONED, SILENT)
    )
    assert type(found) is type(silent)
    assert found.message.next_attempt_at == silent.message.next_attempt_at


def test_a_message_that_kills_its_worker_each_time_is_given_up() -> None:
    poison = sending()
    for attempt in range(1, 6):
        found = decide(poison, ABANDONED, policy=RESEND, capability=RESEND_SAFE, now=at(60), jitter=EVEN)
        if isinstance(found, MarkFailed):
            assert attempt == 5
            return
        assert isinstance(found, RetryAt)
        poison = found.message.claimed(by=f"w1#{attempt}", lease_until=at(60))
    pytest.fail("it was never given up")


outcomes = st.one_of(
    st.builds(Sent, provider_message_id=st.text(min_size=1)),
    st.builds(
        Throttled,
        scope=st.sampled_from(Scope),
        detail=st.text(),
        retry_after=st.none() | st.timedeltas(timedelta(0), timedelta(days=1)),
    ),
    st.builds(Retryable, code=st.sampled_from(ErrorCode), detail=st.text()),
    st.builds(Rejected, code=st.sampled_from(ErrorCode), detail=st.text()),
    st.builds(AuthFailed, detail=st.text()),
    st.builds(NotConnected, detail=st.text()),
    st.builds(Unknown, detail=st.text()),
)


@given(
    outcome=outcomes,
    failures=st.integers(0, 5),
    cancelled=st.booleans(),
    send_by=st.none() | st.integers(-10, 200).map(at),
    capability=st.sampled_from([RESEND_SAFE, ECHOES, BLIND]),
    policy=st.sampled_from([HOLD, RESEND]),
    jitter=st.floats(0, 1, exclude_max=True),
)
def test_a_message_in_doubt_is_resent_only_where_that_was_declared_safe(
    outcome: Outcome,
    failures: int,
    cancelled: bool,
    send_by: Any,
    capability: Capability,
    policy: Policy,
    jitter: float,
) -> None:
    claimed = sending(failures=failures, attempts=failures + 1, cancel_requested=cancelled, send_by=send_by)
    decided = decide(claimed, outcome, policy=policy, capability=capability, now=NOW, jitter=jitter)
    assert decided.message.claimed_by is None
    if isinstance(decided, RetryAt):
        assert decided.at >= NOW
        assert send_by is None or decided.at <= send_by or decided.message.maybe_sent
    if isinstance(outcome, Unknown) and isinstance(decided, RetryAt):
        assert capability.resend_safe or policy.on_uncertain is OnUncertain.RESEND
        assert not cancelled
    if isinstance(decided, MarkSkipped):
        assert not isinstance(outcome, Unknown)
