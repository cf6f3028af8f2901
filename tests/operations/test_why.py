from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.accounts.account import AccountStatus
from firestore_outbox.accounts.window import Window
from firestore_outbox.lane.hold_room import HoldRoom
from firestore_outbox.lane.pacing import Allowance
from firestore_outbox.lane.state import Lane, ThreadHold
from firestore_outbox.lane.transitions import LaneState
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.priority import Priority
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.operations.why import Cause, Why, why
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode
from firestore_outbox.sending.plan import plan
from firestore_outbox.sessions.why import SessionWait
from tests.builders import NOW, account, at, message, sending

UNKNOWN = DeliveryError(code=ErrorCode.OUTCOME_UNKNOWN, message="no answer", retryable=True, at=NOW)
DOWN = DeliveryError(code=ErrorCode.PROVIDER_UNAVAILABLE, message="down", retryable=True, at=NOW)
LATE_WINDOW = Window(start_hour=10, end_hour=18, zone=ZoneInfo("UTC"))  # NOW is nine


def asked(
    of: OutboxMessage | None = None, *, lane: Lane | None = None, session: SessionWait | None = None, **fields: Any
) -> Why:
    return why(of or message(), lane or Lane(), account(**fields), NOW, session=session)


THREAD = message().thread_id
FAILING = Lane(state=LaneState.RUNNING, owner="w1", fence=3, lease_until=at(240), retry_at=at(240), failures=3)
CROWD = {f"acme__+4915100{n:06}": ThreadHold(until=at(70 + n), request_id=f"request-{n:06}") for n in range(9000)}


@pytest.mark.parametrize(
    ("answer", "cause", "earliest", "sentence"),
    [
        (
            asked(message(due=3600)),
            Cause.SCHEDULED,
            at(3600),
            "It is scheduled for 2026-03-02 10:00:00 UTC. The earliest it can go is 2026-03-02 10:00:00 UTC.",
        ),
        (
            asked(message(next_attempt_at=at(8), attempts=3, last_error=DOWN)),
            Cause.RETRY,
            at(8),
            "Attempt 3 did not succeed (provider_unavailable); the next is at 2026-03-02 09:00:08 UTC."
            " The earliest it can go is 2026-03-02 09:00:08 UTC.",
        ),
        (
            asked(status=AccountStatus.PARKED),
            Cause.ACCOUNT_PARKED,
            None,
            "The account is parked: the provider refuses it. Correct its credentials and resume it.",
        ),
        (
            asked(status=AccountStatus.PAUSED),
            Cause.ACCOUNT_PAUSED,
            None,
            "The account is paused until an operator resumes it.",
        ),
        (
            asked(window=LATE_WINDOW),
            Cause.WINDOW,
            at(3600),
            "The account's delivery window is closed until 2026-03-02 10:00:00 UTC."
            " The earliest it can go is 2026-03-02 10:00:00 UTC.",
        ),
        (
            asked(lane=Lane(paused_until=at(30))),
            Cause.THROTTLED,
            at(30),
            "The account does not send until 2026-03-02 09:00:30 UTC."
            " The earliest it can go is 2026-03-02 09:00:30 UTC.",
        ),
        (
            asked(lane=Lane(holds={THREAD: ThreadHold(until=at(4), request_id="request-0")})),
            Cause.THREAD,
            at(4),
            "request-0 of the same thread goes first, at 2026-03-02 09:00:04 UTC or later."
            " The earliest it can go is 2026-03-02 09:00:04 UTC.",
        ),
        (
            asked(lane=Lane(tat=at(1.5))),
            Cause.PACE,
            at(1.5),
            "The account's pace has room again at 2026-03-02 09:00:01 UTC."
            " The earliest it can go is 2026-03-02 09:00:01 UTC.",
        ),
        (
            asked(lane=FAILING),
            Cause.LANE_FAILING,
            at(240),
            "The account's lane failed 3 times in a row; the next try is at 2026-03-02 09:04:00 UTC."
            " See lane_failed in the log. The earliest it can go is 2026-03-02 09:04:00 UTC.",
        ),
        (
            asked(session=SessionWait(sentence="Pair it.", needs_a_person=True)),
            Cause.SESSION,
            None,
            "Pair it.",
        ),
        (
            asked(session=SessionWait(sentence="Its session is broken.", until=at(30))),
            Cause.SESSION,
            at(30),
            "Its session is broken. The earliest it can go is 2026-03-02 09:00:30 UTC.",
        ),
        (
            asked(message(due=60), session=SessionWait(sentence="Pair it.", needs_a_person=True)),
            Cause.SCHEDULED,
            at(60),
            "It is scheduled for 2026-03-02 09:01:00 UTC. The earliest it can go is 2026-03-02 09:01:00 UTC.",
        ),
        (
            asked(lane=Lane(next_due_at=at(600))),
            Cause.QUEUE,
            NOW,
            "It is due; the account's lane looks at it again at 2026-03-02 09:10:00 UTC, or when it is woken.",
        ),
        (
            asked(),
            Cause.QUEUE,
            NOW,
            "It is due; the account's lane has not been woken yet. The sweep will do it within a minute.",
        ),
        (
            asked(lane=Lane(state=LaneState.READY, ready_at=NOW)),
            Cause.QUEUE,
            NOW,
            "It is due; the account's lane waits for a worker.",
        ),
        (
            asked(lane=Lane(state=LaneState.RUNNING, owner="w1", lease_until=at(60), tat=at(60))),
            Cause.QUEUE,
            NOW,
            "w1 is working on the account; its turn comes in order and at the account's pace.",
        ),
        (
            asked(
                message(priority=Priority.URGENT), lane=Lane(state=LaneState.RUNNING, owner="w1", lease_until=at(60))
            ),
            Cause.QUEUE,
            NOW,
            "w1 is working on the account; its turn comes before the account's other messages and at its pace: it is "
            "urgent.",
        ),
        (
            asked(message(priority=Priority.BULK), lane=Lane(state=LaneState.RUNNING, owner="w1", lease_until=at(60))),
            Cause.QUEUE,
            NOW,
            "w1 is working on the account; its turn comes after people's messages and at the account's pace: it is "
            "bulk.",
        ),
        (
            asked(message(cancel_requested=True)),
            Cause.CANCELLING,
            None,
            "Its cancellation is requested; it will not be sent.",
        ),
        (
            asked(message(send_by=at(600)), window=LATE_WINDOW),
            Cause.TOO_LATE,
            None,
            "It was to be sent by 2026-03-02 09:10:00 UTC; it will be skipped.",
        ),
        (asked(sending()), Cause.IN_FLIGHT, None, "w1#1 is sending it now."),
        (
            asked(message(status=OutboxStatus.UNCERTAIN, next_attempt_at=at(120), last_error=UNKNOWN)),
            Cause.IN_DOUBT,
            None,
            "It may have been sent: no answer. We wait for a receipt until 2026-03-02 09:02:00 UTC.",
        ),
        (
            asked(message(status=OutboxStatus.UNCERTAIN, next_attempt_at=None, last_error=UNKNOWN)),
            Cause.NEEDS_A_PERSON,
            None,
            "It may have been sent: no answer. An operator must decide.",
        ),
        (
            asked(message(status=OutboxStatus.FAILED, last_error=DOWN)),
            Cause.ENDED,
            None,
            "It is failed: down.",
        ),
        (
            asked(lane=Lane(holds=CROWD)),
            Cause.ROOM,
            at(70),
            "9,000 other threads of the account wait; a new one can begin at 2026-03-02 09:01:10 UTC or later."
            " The earliest it can go is 2026-03-02 09:01:10 UTC.",
        ),
        (
            asked(message(status=OutboxStatus.SENT, sent_at=NOW)),
            Cause.ENDED,
            None,
            "It was sent at 2026-03-02 09:00:00 UTC.",
        ),
    ],
)
def test_each_wait_is_reported_with_its_end(answer: Why, cause: Cause, earliest: Any, sentence: str) -> None:
    assert (answer.reasons[0].cause, answer.earliest, answer.sentence) == (cause, earliest, sentence)


def test_the_reason_that_lasts_longest_comes_first() -> None:
    answer = asked(message(due=10), lane=Lane(paused_until=at(30)), window=LATE_WINDOW)
    assert [reason.cause for reason in answer.reasons] == [Cause.WINDOW, Cause.THROTTLED, Cause.SCHEDULED]
    assert answer.earliest == at(3600)


def test_a_message_scheduled_beyond_the_window_waits_for_the_next_opening() -> None:
    answer = asked(message(due=10 * 3600), window=LATE_WINDOW)  # seven in the evening
    assert answer.earliest == at(25 * 3600)


seconds = st.none() | st.integers(-50, 5000).map(at)


@given(
    due=st.integers(-50, 5000),
    lane_pause=seconds,
    account_pause=seconds,
    held_until=seconds,
    status=st.sampled_from(AccountStatus),
    windowed=st.booleans(),
)
def test_the_answer_agrees_with_what_the_worker_does(
    due: int, lane_pause: Any, account_pause: Any, held_until: Any, status: AccountStatus, windowed: bool
) -> None:
    """The earliest time is exactly the first at which the message would be claimed, were it alone."""
    waiting = message(due=due)
    holds = {} if held_until is None else {THREAD: ThreadHold(until=held_until)}
    lane = Lane(paused_until=lane_pause, holds=holds)
    of = account(cap=None, status=status, paused_until=account_pause, window=LATE_WINDOW if windowed else None)
    answer = why(waiting, lane, of, NOW)

    def claims(moment: Any) -> int:
        allowed = Allowance(sends=None, next_at=moment)
        room = HoldRoom(lane.holds, ())
        planned = plan([waiting], lane=lane, account=of, in_flight=set(), allowed=allowed, room=room, now=moment)
        return len(planned.claims)

    if answer.earliest is None:
        assert claims(NOW) == claims(at(40_000)) == 0
    else:
        assert claims(answer.earliest) == 1
        assert answer.earliest == NOW or claims(answer.earliest - (at(0.001) - NOW)) == 0
