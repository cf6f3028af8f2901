"""When a message that came alone takes the short path: one test for each condition, and what the write contains."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from firestore_outbox.accounts.account import AccountStatus, InvalidAccount
from firestore_outbox.accounts.window import Window
from firestore_outbox.lane.pacing import Cap
from firestore_outbox.lane.state import Lane, Later, Marked, More, Nothing, Queued, ThreadHold, acquire, release, wake
from firestore_outbox.messages.model import MediaPart
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.validation import InvalidMessage
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode
from firestore_outbox.sending.decide import MarkFailed, MarkSent, MarkUncertain, RetryAt, ThrottleLane
from firestore_outbox.sending.express import (
    Because,
    Go,
    InFlight,
    NothingWaits,
    Sight,
    Usual,
    express,
    is_plain,
    may_be_short,
    stays_busy,
    work_after,
)
from tests.builders import NOW, account, at, message, s, sending

LEASE = s(60)
FIRST = message(due=-1)
FILE = MediaPart(type="media", mediaId="m" * 20, mimeType="image/png")


def sight(**changes: Any) -> Sight:
    return Sight(
        **{
            "lane": Lane(fence=6),
            "account": account(),
            "page": [FIRST],
            "moment": at(0.01),
            "events": frozenset({FIRST.request_id}),
            "has_shared_cap": False,
            "needs_session": False,
            "room_bytes": 600_000,
            "longest_call": s(20),
            "deadline": at(59),
            **changes,
        }
    )


def decided(**changes: Any) -> Go | NothingWaits | InFlight | Usual:
    return express(sight(**changes), owner="f1", now=NOW, lease=LEASE)


def running(until: float = 60) -> Lane:
    return Lane(**{**_fields(held()), "lease_until": at(until)})


def held() -> Lane:
    woken = wake(Lane(), NOW)
    assert isinstance(woken, Queued)
    acquired = acquire(woken.lane, "w1", NOW, LEASE)
    return acquired.lane  # type: ignore[union-attr]


def _fields(lane: Lane) -> dict[str, Any]:
    return {name: getattr(lane, name) for name in lane.__dataclass_fields__}


def test_a_message_alone_goes_with_one_write_of_lane_and_claim() -> None:
    go = decided()
    assert isinstance(go, Go)
    assert (go.lane.owner, go.lane.fence, go.lane.lease_until) == ("f1", 7, at(60))
    assert go.lane.lease is not None
    assert go.lane.lease.belongs_to(go.hold)
    assert go.lane.tat == at(60), "the pace is reserved through the end of the lease"
    assert (go.claim.status, go.claim.claimed_by, go.claim.attempts) == (OutboxStatus.SENDING, "f1#7", 1)
    assert go.claim.lease_until == at(60)
    assert go.work == Nothing()
    assert go.lane.doubt_until is None, "a short claim demands the lane's version and cannot arrive late"


def test_the_write_has_the_recipients_pace() -> None:
    go = decided(account=account(per_recipient=s(3)))
    assert isinstance(go, Go)
    assert go.lane.holds == {FIRST.thread_id: ThreadHold(until=at(3))}


def test_without_a_pace_nothing_is_reserved() -> None:
    go = decided(account=account(cap=None))
    assert isinstance(go, Go)
    assert (go.reserved, go.lane.tat) == (None, None)


def test_an_old_event_for_what_has_ended_writes_nothing() -> None:
    assert decided(page=[]) == NothingWaits()


@pytest.mark.parametrize(
    ("because", "changes"),
    [
        (Because.BUSY, {"lane": running()}),
        (Because.BUSY, {"lane": wake(Lane(), NOW).lane}),  # type: ignore[union-attr]
        (Because.DOUBT, {"page": [sending(due=-1)]}),
        (Because.DOUBT, {"page": [FIRST, sending("request-0", due=-2)]}),
        (Because.DOUBT, {"page": [replace(FIRST, status=OutboxStatus.UNCERTAIN)]}),
        (Because.DOUBT, {"page": [FIRST, message("request-2", due=90, status=OutboxStatus.UNCERTAIN)]}),
        (Because.CROWD, {"page": [FIRST, message("request-2", to="4917", due=-0.5)]}),
        (Because.CROWD, {"page": [FIRST, message("request-2", to="4917", due=50)]}),
        (Because.RUN, {"page": [replace(FIRST, run_id="run-1")]}),
        (Because.RUN, {"page": [FIRST, message("request-2", due=90, run_id="run-1")]}),
        (Because.ENDING, {"page": [InvalidMessage(request_id="request-1", sentence="No.")]}),
        (Because.ENDING, {"page": [replace(FIRST, cancel_requested=True)]}),
        (Because.ENDING, {"page": [replace(FIRST, send_by=at(-0.5))]}),
        (Because.NOT_NOW, {"page": [message(due=5)]}),
        (Because.HELD, {"lane": Lane(holds={"acme__4918": ThreadHold(until=at(-1), request_id="request-0")})}),
        (Because.NOT_NOW, {"lane": Lane(holds={FIRST.thread_id: ThreadHold(until=at(9), request_id="request-0")})}),
        (Because.NOT_NOW, {"lane": Lane(holds={FIRST.thread_id: ThreadHold(until=at(9))})}),
        (Because.NOT_NOW, {"lane": Lane(paused_until=at(9))}),
        (Because.NOT_NOW, {"lane": Lane(tat=at(1))}),
        (Because.NOT_NOW, {"room_bytes": 10}),
        (Because.ACCOUNT, {"account": InvalidAccount(account_id="acme", sentence="No.")}),
        (Because.NOT_NOW, {"account": account(status=AccountStatus.PAUSED)}),
        (Because.NOT_NOW, {"account": account(status=AccountStatus.PARKED)}),
        (Because.SHARED_CAP, {"has_shared_cap": True}),
        (Because.PLAN, {"is_limited": True}),
        (Because.SESSION, {"needs_session": True}),
        (Because.FILE, {"page": [replace(FIRST, parts=(FILE,))]}),
        (Because.DEADLINE, {"deadline": at(31)}),
    ],
)
def test_what_is_not_plain_goes_the_usual_way(because: Because, changes: dict[str, Any]) -> None:
    assert decided(**changes) == Usual(because)


def test_outside_the_accounts_window_nothing_goes() -> None:
    from zoneinfo import ZoneInfo

    window = Window(start_hour=12, end_hour=13, zone=ZoneInfo("UTC"))
    assert decided(account=account(window=window)) == Usual(Because.NOT_NOW)


def test_the_clock_that_is_ahead_counts_for_what_is_due() -> None:
    """The database set the time; a function whose clock is behind must not wait for it."""
    assert isinstance(decided(page=[message(due=2)], moment=at(2.01)), Go)


def test_a_burst_of_the_pace_is_room() -> None:
    cap = Cap.per_minute(40, burst=3)
    assert isinstance(decided(account=account(cap=cap), lane=Lane(tat=at(2.9))), Go)
    assert decided(account=account(cap=cap), lane=Lane(tat=at(3.1))) == Usual(Because.NOT_NOW)


@pytest.mark.parametrize(
    ("lane", "page", "work"),
    [
        (Lane(), [FIRST, message("request-2", due=90)], Later(at(90))),
        (Lane(next_due_at=at(70)), [FIRST, message("request-2", due=90)], Later(at(70))),
        (Lane(next_due_at=at(300)), [FIRST], Later(at(300))),
        (Lane(next_due_at=at(-1)), [FIRST], Nothing()),
    ],
    ids=["the second document", "the lane's, which may be younger", "the lane's alone", "one that has come"],
)
def test_what_is_left_is_known_without_another_query(lane: Lane, page: list[Any], work: Any) -> None:
    go = decided(lane=lane, page=page)
    assert isinstance(go, Go)
    assert go.work == work


def test_an_event_that_finds_its_own_message_in_flight_asks_for_a_task_at_the_end_of_the_lease() -> None:
    assert decided(lane=running(40), page=[sending(due=-1)]) == InFlight(at(40))
    assert decided(lane=running(40), page=[sending(due=-1)], events=frozenset({"other-1"})) == Usual(Because.BUSY)
    assert decided(lane=running(-1), page=[sending(due=-1)]) == Usual(Because.BUSY)


def test_a_wake_during_the_call_changes_the_lane_that_the_release_demands() -> None:
    go = decided()
    assert isinstance(go, Go)
    assert isinstance(wake(go.lane, at(1)), Marked)
    assert release(go.lane, go.hold, at(1), go.work).lane.tat == at(60)  # type: ignore[union-attr]


def test_files_are_not_worth_a_look() -> None:
    assert may_be_short(FIRST)
    assert not may_be_short(replace(FIRST, parts=(*FIRST.parts, FILE)))


ERROR = DeliveryError(code=ErrorCode.RATE_LIMITED, message="slow", retryable=True, at=NOW)
SENT = MarkSent(message=sending().sent(provider_message_id="p", at=NOW))
RETRY = RetryAt(message=sending().requeued(at=at(4), error=ERROR, failures=1), at=at(4))


def test_only_an_end_without_effects_is_completed_with_the_release() -> None:
    assert is_plain(SENT)
    assert is_plain(MarkFailed(message=sending().failed(ERROR)))
    assert not is_plain(RETRY)
    assert not is_plain(MarkFailed(message=sending().failed(ERROR), effects=(ThrottleLane(at(9)),)))


@pytest.mark.parametrize(
    ("verdict", "known", "work"),
    [
        (SENT, Nothing(), Nothing()),
        (SENT, Later(at(90)), Later(at(90))),
        (RETRY, Nothing(), Later(at(4))),
        (RETRY, Later(at(2)), Later(at(2))),
        (replace(RETRY, effects=(ThrottleLane(at(9)),)), Later(at(90)), More()),
        (MarkUncertain(message=RETRY.message, resolve_at=at(120)), Nothing(), Later(at(120))),
        (MarkUncertain(message=RETRY.message, resolve_at=None), Nothing(), Nothing()),
    ],
)
def test_what_is_left_after_the_call(verdict: Any, known: Any, work: Any) -> None:
    assert work_after(verdict, known) == work


def test_the_longest_call_must_end_before_the_deadline() -> None:
    assert isinstance(decided(deadline=at(32.1)), Go)
    assert decided(deadline=at(32.1), longest_call=timedelta(seconds=21)) == Usual(Because.DEADLINE)


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ([message(due=-1)], 5),
        ([message(due=-30), message(due=-1)], 30),
        ([message(due=-3_600)], 60),
        ([message(due=600)], 5),
        ([InvalidMessage(request_id="request-1", sentence="No.")], 5),
    ],
)
def test_a_busy_lane_is_left_alone_for_as_long_as_its_first_message_has_waited(page: Any, expected: float) -> None:
    assert stays_busy(sight(page=page, moment=NOW)) == s(expected)
