"""What becomes of a message after an attempt: one decision from the document, the outcome and the account's policy.

Who is authoritative: the provider about what happened; when it said nothing, no one is. A worker that crashed while
`sending` leaves the same doubt as a call that was never answered, so both are one outcome, `Unknown`, and one decision:

    safe to resend with the same key     -> queued again, after a wait
    a receipt could tell                 -> uncertain; the thread waits for the receipt
    no receipt, or none in time          -> the account's choice: resend, or hold for a person

A message in doubt that must not be sent again ends as `failed` with `outcome_unknown`, never as `cancelled` or
`skipped`: those would claim that it was not sent.

Being told to wait is no failure of the message: throttles, refused credentials and lost sessions put it back in the
queue without counting against it. What follows for the lane is in completion.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from firestore_outbox.accounts.account import OnUncertain
from firestore_outbox.messages.model import OutboxMessage, TemplatePart
from firestore_outbox.providers.outcome import (
    AuthFailed,
    Capability,
    DeliveryError,
    ErrorCode,
    NotConnected,
    Outcome,
    Postponed,
    Rejected,
    Retryable,
    Scope,
    Sent,
    Throttled,
    Unknown,
    in_doubt_after,
)
from firestore_outbox.sending.backoff import DEFAULT_BACKOFF, Backoff
from firestore_outbox.sending.deadline import Deferred, TooLate, lateness


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Settings and the account's choices. Constant during an attempt."""

    max_attempts: int = 5
    backoff: Backoff = DEFAULT_BACKOFF
    on_uncertain: OnUncertain = OnUncertain.HOLD
    receipt_wait: timedelta = timedelta(minutes=2)
    """How long a receipt may take to settle an unknown outcome."""
    fallback: TemplatePart | None = None
    """The account's template for recipients who have not written lately."""


# --- what else an attempt can mean --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ThrottleLane:
    """The account was told to slow down: nothing before `until`, and at half the rate."""

    until: datetime


@dataclass(frozen=True, slots=True)
class ThrottleApp:
    """All accounts of the app were told to slow down: nothing of this provider before `until`."""

    until: datetime


@dataclass(frozen=True, slots=True)
class PauseLane:
    """The session is down: nothing before `until`, or before it is up again. The rate is not to blame."""

    until: datetime


@dataclass(frozen=True, slots=True)
class ParkAccount:
    """The provider refuses the account: nothing until a person resumes it."""

    error: DeliveryError


Effect = ThrottleLane | ThrottleApp | PauseLane | ParkAccount


# --- the decisions ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkSent:
    message: OutboxMessage
    """The document to write. The same in each decision."""
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryAt:
    message: OutboxMessage
    at: datetime
    effects: tuple[Effect, ...] = ()
    is_deferred: bool = False
    """To the next opening of its run's window. The thread does not wait for that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkFailed:
    message: OutboxMessage
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkSkipped:
    message: OutboxMessage
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkUncertain:
    message: OutboxMessage
    resolve_at: datetime | None
    """When the wait for a receipt ends; None: a person must decide, and the thread goes on without it."""
    effects: tuple[Effect, ...] = ()


Verdict = MarkSent | RetryAt | MarkFailed | MarkSkipped | MarkUncertain


@dataclass(frozen=True, slots=True)
class TooEarly:
    """Nothing to decide before `until`; None: not before a person or a receipt comes."""

    until: datetime | None


ABANDONED = Unknown(detail="the worker that was sending it did not report back")
"""For what is found `sending` by the next holder of its lane."""


def decide(
    message: OutboxMessage,
    outcome: Outcome,
    *,
    policy: Policy,
    capability: Capability,
    now: datetime,
    jitter: float,
) -> Verdict:
    """The decision for a message that is `sending`. `jitter` is a uniform random number in [0, 1)."""
    match outcome:
        case Sent():
            return MarkSent(message=message.sent(provider_message_id=outcome.provider_message_id, at=now))
        case Throttled():
            at = now + policy.backoff.delay(message.attempts, jitter=jitter, retry_after=outcome.retry_after)
            error = _error(ErrorCode.RATE_LIMITED, outcome.detail, now)
            return _wait(message, at, error, now, outcome.parts_sent, _throttle(outcome.scope, at))
        case NotConnected():
            at = now + policy.backoff.delay(message.attempts, jitter=jitter, retry_after=outcome.retry_after)
            error = _error(ErrorCode.NOT_CONNECTED, outcome.detail, now)
            # It waits for the lane, and for no time of its own: the lane may go on before the pause ends.
            return _wait(message, now, error, now, outcome.parts_sent, (PauseLane(at),))
        case AuthFailed():
            error = _error(ErrorCode.AUTH, outcome.detail, now)
            return _wait(message, now, error, now, outcome.parts_sent, (ParkAccount(error),))
        case Postponed():
            error = _error(outcome.code, outcome.detail, now)
            return _wait(message, now + outcome.retry_after, error, now, outcome.parts_sent, ())
        case Retryable():
            return _failure(message, outcome, policy, now, jitter)
        case Rejected():
            error = _error(outcome.code, outcome.detail, now, retryable=False)
            if policy.fallback is not None and _may_fall_back(message, outcome):
                return _wait(replace(message, instead=policy.fallback), now, error, now, 0, ())
            return _given_up(message, error, outcome.parts_sent)
        case Unknown():
            return _doubt(message, outcome, policy, capability, now, jitter)
        case _:
            assert_never(outcome)


def _may_fall_back(message: OutboxMessage, refused: Rejected) -> bool:
    """Whether a template may go in its place: once, if nothing of a free-form message can have arrived."""
    is_closed = refused.code is ErrorCode.WINDOW_CLOSED and message.instead is None
    is_whole = not (message.parts_sent or refused.parts_sent or message.maybe_sent or message.cancel_requested)
    return is_closed and is_whole and not all(isinstance(part, TemplatePart) for part in message.parts)


def after_receipt_wait(message: OutboxMessage, *, policy: Policy, now: datetime) -> Verdict | TooEarly:
    """For a message that is `uncertain` and heard of no receipt."""
    if message.next_attempt_at is None or message.next_attempt_at > now:
        return TooEarly(message.next_attempt_at)
    error = _unknown(message.last_error.message if message.last_error else "no receipt came", now)
    return _no_receipt(message, error, policy, now, failures=message.failures, parts_sent=0)


def _throttle(scope: Scope, until: datetime) -> tuple[Effect, ...]:
    match scope:
        case Scope.RECIPIENT:
            return ()  # the hold that the message leaves on its thread is all
        case Scope.ACCOUNT:
            return (ThrottleLane(until),)
        case Scope.APP:
            return (ThrottleApp(until),)
        case _:
            assert_never(scope)


def _wait(
    message: OutboxMessage,
    at: datetime,
    error: DeliveryError,
    now: datetime,
    parts_sent: int,
    effects: tuple[Effect, ...],
    failures: int | None = None,
) -> RetryAt | MarkSkipped | MarkFailed:
    """Back to the queue for `at`; for its window's next opening, or skipped, if that is too late. `failures` stays
    unless given."""
    failures = message.failures if failures is None else failures
    late = lateness(message, at, now, last=error.message)
    match late:
        case TooLate() if message.maybe_sent:
            return _given_up(message, late.error, parts_sent, effects)
        case TooLate():
            return MarkSkipped(message=message.skipped(late.error, parts_sent=parts_sent), effects=effects)
        case Deferred():
            again = message.requeued(
                at=late.to, error=error, failures=failures, parts_sent=parts_sent, send_by=late.send_by
            )
            return RetryAt(message=again, at=late.to, effects=effects, is_deferred=True)
        case None:
            again = message.requeued(at=at, error=error, failures=failures, parts_sent=parts_sent)
            return RetryAt(message=again, at=at, effects=effects)
        case _:
            assert_never(late)


def _failure(
    message: OutboxMessage, outcome: Retryable, policy: Policy, now: datetime, jitter: float
) -> RetryAt | MarkSkipped | MarkFailed:
    failures = message.failures + 1
    error = _error(outcome.code, outcome.detail, now)
    if failures >= policy.max_attempts:
        last = _error(ErrorCode.MAX_ATTEMPTS, f"gave up after {failures} attempts; last: {error.message}", now)
        return _given_up(replace(message, failures=failures), last, outcome.parts_sent)
    at = now + policy.backoff.delay(failures, jitter=jitter, retry_after=outcome.retry_after)
    return _wait(message, at, error, now, outcome.parts_sent, (), failures)


def _given_up(
    message: OutboxMessage, error: DeliveryError, parts_sent: int, effects: tuple[Effect, ...] = ()
) -> MarkFailed:
    """Ended without success; and if an earlier attempt is in doubt, it says so."""
    error = in_doubt_after(error) if message.maybe_sent else error
    return MarkFailed(message=message.failed(error, parts_sent=parts_sent), effects=effects)


def _doubt(
    message: OutboxMessage, outcome: Unknown, policy: Policy, capability: Capability, now: datetime, jitter: float
) -> Verdict:
    failures = message.failures + 1
    error = _unknown(outcome.detail, now)
    if capability.resend_safe and not _must_not_resend(message, failures, policy, now):
        at = now + policy.backoff.delay(failures, jitter=jitter)
        again = message.requeued(at=at, error=error, failures=failures, parts_sent=outcome.parts_sent)
        return RetryAt(message=again, at=at)
    if capability.echoes_request_id:
        resolve_at = now + policy.receipt_wait
        doubted = message.in_doubt(resolve_at=resolve_at, error=error, failures=failures, parts_sent=outcome.parts_sent)
        return MarkUncertain(message=doubted, resolve_at=resolve_at)
    return _no_receipt(message, error, policy, now, failures=failures, parts_sent=outcome.parts_sent)


def _no_receipt(
    message: OutboxMessage, error: DeliveryError, policy: Policy, now: datetime, *, failures: int, parts_sent: int
) -> RetryAt | MarkFailed | MarkUncertain:
    """No receipt will tell: the account's choice."""
    match policy.on_uncertain:
        case OnUncertain.RESEND if not _must_not_resend(message, failures, policy, now):
            again = message.requeued(at=now, error=error, failures=failures, parts_sent=parts_sent)
            return RetryAt(message=again, at=now)
        case OnUncertain.HOLD if not message.cancel_requested:
            held = message.in_doubt(resolve_at=None, error=error, failures=failures, parts_sent=parts_sent)
            return MarkUncertain(message=held, resolve_at=None)
        case OnUncertain.RESEND | OnUncertain.HOLD:
            spent = replace(message, failures=failures)
            return MarkFailed(message=spent.failed(error, parts_sent=parts_sent))
        case _:
            assert_never(policy.on_uncertain)


def _must_not_resend(message: OutboxMessage, failures: int, policy: Policy, now: datetime) -> bool:
    late = isinstance(lateness(message, now, now), TooLate)
    return message.cancel_requested or late or failures >= policy.max_attempts


def _unknown(detail: str, now: datetime) -> DeliveryError:
    return _error(ErrorCode.OUTCOME_UNKNOWN, detail, now)


def _error(code: ErrorCode, detail: str, now: datetime, *, retryable: bool = True) -> DeliveryError:
    return DeliveryError(code=code, message=detail, retryable=retryable, at=now)
