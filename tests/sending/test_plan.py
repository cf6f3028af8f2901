from __future__ import annotations

from typing import Any

import pytest

from firestore_outbox.accounts.account import AccountStatus
from firestore_outbox.lane.hold_room import HoldRoom
from firestore_outbox.lane.lease import Hold
from firestore_outbox.lane.pacing import Allowance
from firestore_outbox.lane.state import Lane, ThreadHold
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.validation import InvalidMessage
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode
from firestore_outbox.sending.plan import (
    Cancel,
    Plan,
    Refuse,
    Skip,
    budget,
    claimed,
    ending_of,
    lane_after_claims,
    plan,
)
from tests.builders import NOW, account, at, message, s

FREE = Allowance(sends=None, next_at=NOW)
UNKNOWN = DeliveryError(code=ErrorCode.OUTCOME_UNKNOWN, message="no answer", retryable=True, at=NOW)


def planned(*candidates: OutboxMessage | InvalidMessage, **given: Any) -> Plan:
    defaults: dict[str, Any] = {
        "lane": Lane(),
        "account": account(cap=None),
        "in_flight": set(),
        "allowed": FREE,
        "room": HoldRoom({}, ()),
        "now": at(100),
    }
    return plan(candidates, **{**defaults, **given})


def ids(messages: tuple[OutboxMessage, ...]) -> list[str]:
    return [message.request_id for message in messages]


def many(count: int) -> list[OutboxMessage]:
    return [message(f"request-{n:04}", to=str(n), due=n / 1000) for n in range(count)]


def test_no_more_is_claimed_than_there_is_concurrency_for() -> None:
    assert ids(planned(*many(9)).claims) == ["request-0000", "request-0001", "request-0002"]
    assert ids(planned(*many(9), in_flight={"acme__77", "acme__78"}).claims) == ["request-0000"]


def test_no_more_is_claimed_than_the_pace_allows_now() -> None:
    assert len(planned(*many(9), allowed=Allowance(sends=1, next_at=NOW)).claims) == 1
    waits = planned(*many(9), allowed=Allowance(sends=0, next_at=at(101.5)))
    assert (waits.claims, waits.next_at) == ((), at(101.5))


def test_one_thread_gets_one_claim() -> None:
    assert ids(planned(message("request-1"), message("request-2", due=1)).claims) == ["request-1"]


def test_what_is_not_due_yet_says_when_it_will_be() -> None:
    assert planned(message("request-1", due=500), message("request-2", due=300)).next_at == at(300)


def test_nothing_to_do_has_no_next_time() -> None:
    plan = planned()
    assert plan == Plan(startable=plan.startable)


def test_a_message_behind_one_in_flight_waits_for_an_event_and_not_for_a_time() -> None:
    behind = message("request-2")
    plan = planned(behind, in_flight={behind.thread_id})
    assert plan == Plan(startable=plan.startable)


def test_documents_that_are_not_to_be_sent_are_ended_in_passing_and_cost_nothing() -> None:
    made = planned(
        InvalidMessage(request_id="request-0", sentence="It is wrong."),
        message("request-1", to="1", cancel_requested=True),
        message("request-2", to="2", send_by=at(99)),
        message("request-3", to="3"),
        allowed=Allowance(sends=1, next_at=NOW),
    )
    assert ids(made.claims) == ["request-3"]
    assert [type(ending) for ending in made.endings] == [Refuse, Cancel, Skip]


def test_a_cancelled_message_lets_the_next_of_its_thread_go_at_once() -> None:
    made = planned(message("request-1", cancel_requested=True), message("request-2", due=1))
    assert ids(made.claims) == ["request-2"]


def test_a_cancelled_message_that_held_its_thread_frees_it() -> None:
    held = message("request-1", cancel_requested=True, attempts=1, due=5)
    lane = Lane(holds={held.thread_id: ThreadHold(until=at(5), request_id="request-1")})
    made = planned(message("request-2"), held, lane=lane)
    assert ids(made.claims) == ["request-2"]
    assert made.void_holds == {held.thread_id}


def test_a_message_that_may_have_been_sent_does_not_end_as_cancelled() -> None:
    ending = ending_of(message(cancel_requested=True, attempts=1, last_error=UNKNOWN), NOW)
    assert isinstance(ending, Cancel)
    assert (ending.message.status, ending.message.last_error) == (OutboxStatus.FAILED, UNKNOWN)


def test_a_deadline_is_not_missed_at_the_deadline() -> None:
    assert ending_of(message(send_by=NOW), NOW) is None
    assert isinstance(ending_of(message(send_by=NOW), at(0.001)), Skip)


def test_a_message_that_waits_is_looked_at_again_just_after_its_deadline() -> None:
    waiting = message(send_by=at(200))
    look_at = planned(waiting, account=account(status=AccountStatus.PARKED)).next_at
    assert look_at is not None
    assert at(200) < look_at < at(200.001)
    assert isinstance(ending_of(waiting, look_at), Skip)


@pytest.mark.parametrize(
    ("hindered", "next_at"),
    [
        ({"account": account(status=AccountStatus.PARKED)}, None),
        ({"account": account(status=AccountStatus.PAUSED)}, None),
        ({"account": account(paused_until=at(900))}, at(900)),
        ({"lane": Lane(paused_until=at(130))}, at(130)),
    ],
)
def test_a_hindered_account_claims_nothing_but_still_ends_what_is_to_end(
    hindered: dict[str, Any], next_at: Any
) -> None:
    made = planned(message("request-1"), message("request-2", to="2", cancel_requested=True), **hindered)
    assert (made.claims, made.next_at) == ((), next_at)
    assert len(made.endings) == 1


def test_an_uncertain_message_is_settled_when_its_wait_has_ended_even_if_the_account_is_parked() -> None:
    doubted = message("request-1", status=OutboxStatus.UNCERTAIN, attempts=1, due=60)
    made = planned(doubted, account=account(status=AccountStatus.PARKED))
    assert made.settle == (doubted,)
    assert planned(doubted, now=at(30)).next_at == at(60)


def test_an_uncertain_message_held_for_a_person_holds_back_no_other() -> None:
    held = message("request-1", status=OutboxStatus.UNCERTAIN, attempts=1, next_attempt_at=None)
    lane = Lane(holds={held.thread_id: ThreadHold(until=at(5), request_id="request-1")})
    assert ids(planned(held, message("request-2"), lane=lane).claims) == ["request-2"]


def test_a_reduced_rate_without_a_pace_reduces_how_much_is_done_at_once() -> None:
    wide = account(cap=None, concurrency=50)
    assert budget(wide, Lane(rate_factor=0.5), in_flight=0, allowed=FREE) == 25
    assert budget(account(cap=None, concurrency=1), Lane(rate_factor=0.1), in_flight=0, allowed=FREE) == 1
    paced = account(concurrency=50)
    assert budget(paced, Lane(rate_factor=0.5), in_flight=0, allowed=Allowance(sends=40, next_at=NOW)) == 40


def test_a_claim_lives_no_longer_than_the_hold_it_was_made_under() -> None:
    hold = Hold(owner="w1", fence=7, asked_at=NOW, ttl=s(60))
    made = claimed(message(), hold)
    assert (made.status, made.claimed_by, made.lease_until, made.attempts) == (
        OutboxStatus.SENDING,
        "w1#7",
        hold.until,
        1,
    )


def test_the_recipients_pace_is_spent_with_the_claim() -> None:
    spared = account(per_recipient=s(6))
    first, second = message("request-1"), message("request-2", due=1)
    lane = lane_after_claims(Lane(), [first], spared, at(100))
    made = planned(second, lane=lane, account=spared)
    assert (made.claims, made.next_at) == ((), at(106))
    assert ids(planned(second, lane=lane, account=spared, now=at(106)).claims) == ["request-2"]


def test_without_a_recipients_pace_a_claim_does_not_touch_the_lane() -> None:
    lane = Lane()
    assert lane_after_claims(lane, [message()], account(), NOW) is lane


def test_a_full_plan_does_not_read_the_whole_backlog() -> None:
    class Counting(tuple[OutboxMessage, ...]):
        seen = 0

        def __iter__(self) -> Any:
            for candidate in super().__iter__():
                Counting.seen += 1
                yield candidate

    candidates, room = Counting(many(5000)), HoldRoom({}, ())
    plan(candidates, lane=Lane(), account=account(cap=None), in_flight=set(), allowed=FREE, room=room, now=at(100))
    assert Counting.seen == 3


# --- room for holds


def no_room(lane: Lane) -> HoldRoom:
    return HoldRoom(lane.holds, (), room_bytes=0)


def test_without_room_for_its_hold_a_message_waits_until_the_first_hold_ends() -> None:
    lane = Lane(holds={"acme__8": ThreadHold(until=at(130)), "acme__9": ThreadHold(until=at(120))})
    plan = planned(message(to="1"), lane=lane, room=no_room(lane))
    assert (plan.claims, plan.is_crowded, plan.next_at) == ((), True, at(120))


def test_without_room_the_threads_that_are_held_go_on() -> None:
    lane = Lane(holds={"acme__2": ThreadHold(until=at(90), request_id="request-2")})
    first, again = message("request-1", to="1"), message("request-2", to="2", due=90)
    plan = planned(first, again, lane=lane, room=no_room(lane))
    assert (ids(plan.claims), plan.is_crowded) == (["request-2"], True)


def test_without_room_for_a_message_a_later_one_of_its_thread_waits_too() -> None:
    first, later = message(request_id="x" * 60, to="1", due=1), message(request_id="request-2", to="1", due=2)
    room = HoldRoom({}, (), room_bytes=100)
    assert room.take(later), "its name is short enough"
    plan = planned(first, later, room=HoldRoom({}, (), room_bytes=100))
    assert (plan.claims, plan.is_crowded) == ((), True)


def test_without_room_nothing_further_is_read() -> None:
    assert planned(*many(2)).startable == 3
    assert planned(*many(2), room=no_room(Lane())).startable == 0
