from __future__ import annotations

from dataclasses import replace

from firestore_outbox.lane.state import Lane, ThreadHold
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.providers.outcome import (
    AuthFailed,
    DeliveryError,
    ErrorCode,
    NotConnected,
    Outcome,
    Retryable,
    Scope,
    Sent,
    Throttled,
    Unknown,
)
from firestore_outbox.sending.completion import LeaveIt, WriteAgain, lane_after, reconcile, thread_held_until
from firestore_outbox.sending.decide import Policy, Verdict, decide
from tests.builders import ECHOES, NOW, at, message, s, sending

CLAIMED = sending()
FAILING = Retryable(code=ErrorCode.PROVIDER_UNAVAILABLE, detail="down")


def verdict(outcome: Outcome) -> Verdict:
    return decide(CLAIMED, outcome, policy=Policy(), capability=ECHOES, now=NOW, jitter=0.5)


SENT = verdict(Sent(provider_message_id="wamid.1"))


def test_a_cancel_that_came_during_the_call_does_not_lose_the_result() -> None:
    touched = replace(CLAIMED, cancel_requested=True)
    assert reconcile(touched, CLAIMED, SENT) == WriteAgain(replace(SENT.message, cancel_requested=True))
    retry = verdict(FAILING)
    assert reconcile(touched, CLAIMED, retry) == WriteAgain(replace(retry.message, cancel_requested=True))


def test_what_a_receipt_has_settled_is_left_alone() -> None:
    settled = CLAIMED.sent(provider_message_id="wamid.1", at=at(1))
    assert reconcile(settled, CLAIMED, SENT) == LeaveIt()
    assert reconcile(settled, CLAIMED, verdict(Unknown(detail="?"))) == LeaveIt()


def test_a_provider_id_that_the_receipt_did_not_have_is_added() -> None:
    settled = CLAIMED.sent(provider_message_id=None, at=at(1))
    written = reconcile(settled, CLAIMED, SENT)
    assert isinstance(written, WriteAgain)
    assert (written.message.provider_message_id, written.message.sent_at) == ("wamid.1", at(1))


def test_a_document_that_another_worker_claimed_is_left_alone() -> None:
    theirs = replace(CLAIMED, claimed_by="w2#2", attempts=2)
    assert reconcile(theirs, CLAIMED, SENT) == LeaveIt()
    assert reconcile(None, CLAIMED, SENT) == LeaveIt()


def test_a_late_holder_that_knows_it_was_accepted_prevents_the_resend() -> None:
    given_up = message(attempts=1, due=30)
    written = reconcile(given_up, CLAIMED, SENT)
    assert isinstance(written, WriteAgain)
    assert written.message.status is OutboxStatus.SENT
    assert reconcile(given_up, CLAIMED, verdict(FAILING)) == LeaveIt()


def test_a_message_that_goes_back_holds_its_thread_by_name() -> None:
    lane = lane_after(Lane(), verdict(FAILING), NOW)
    assert lane.holds == {CLAIMED.thread_id: ThreadHold(until=at(1), request_id="request-1")}


def test_a_message_in_doubt_holds_its_thread_while_a_receipt_may_come() -> None:
    assert thread_held_until(verdict(Unknown(detail="?"))) == at(120)


def test_the_recipients_pace_outlives_the_message() -> None:
    paced = Lane(holds={CLAIMED.thread_id: ThreadHold(until=at(6))})
    assert lane_after(paced, SENT, at(1)) == paced
    assert lane_after(paced, verdict(FAILING), NOW).holds[CLAIMED.thread_id] == ThreadHold(
        until=at(6), request_id="request-1"
    )


def test_each_scope_makes_the_lane_wait_in_its_own_way() -> None:
    account = lane_after(Lane(), verdict(Throttled(scope=Scope.ACCOUNT, detail="", retry_after=s(9))), NOW)
    assert (account.paused_until, account.rate_factor) == (at(9), 0.5)
    app = lane_after(Lane(), verdict(Throttled(scope=Scope.APP, detail="", retry_after=s(9))), NOW)
    assert (app.paused_until, app.rate_factor) == (at(9), 0.5)
    recipient = lane_after(Lane(), verdict(Throttled(scope=Scope.RECIPIENT, detail="", retry_after=s(9))), NOW)
    assert (recipient.paused_until, recipient.rate_factor, len(recipient.holds)) == (None, 1, 1)
    session = lane_after(Lane(), verdict(NotConnected(detail="", retry_after=s(9))), NOW)
    assert (session.paused_until, session.rate_factor) == (at(9), 1)
    parked = lane_after(Lane(), verdict(AuthFailed(detail="")), NOW)
    assert (parked.paused_until, parked.rate_factor) == (None, 1)


def test_what_bounced_and_was_put_back_meanwhile_is_not_called_sent_by_who_learns_late_that_it_was_accepted() -> None:
    refused = DeliveryError(code=ErrorCode.REJECTED, message="no", retryable=False, at=at(2))
    assert reconcile(SENT.message.bounced(refused).redriven(at=at(3)), CLAIMED, SENT) == LeaveIt()
    unknown = replace(refused, code=ErrorCode.OUTCOME_UNKNOWN)
    assert isinstance(reconcile(CLAIMED.failed(unknown).redriven(at=at(3)), CLAIMED, SENT), WriteAgain)
