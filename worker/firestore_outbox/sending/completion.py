"""What follows from a decision: for the lane, and for a completion that lost its precondition.

A message that goes back to the queue leaves a hold that names it, so that it stays first in its thread; a message that
ended drops the hold it left before. Both are written with the completion, under the lane's fence.

Completion is one commit without a read, on the version that the claim returned. If that fails, another writer touched
the document in between, and `reconcile` says what our result is still worth:

    still our claim (a cancel was requested)     write again, on the new version
    settled by a receipt, or ended               leave it
    given up by a takeover, but we know: sent    confirm it, so that it does not go out again
    claimed by another                           leave it
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from firestore_outbox.lane.recent import Minute
from firestore_outbox.lane.state import Lane, ThreadHold
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.sending.decide import (
    MarkFailed,
    MarkSent,
    MarkSkipped,
    MarkUncertain,
    ParkAccount,
    PauseLane,
    RetryAt,
    ThrottleApp,
    ThrottleLane,
    Verdict,
)


def lane_after(lane: Lane, verdict: Verdict, now: datetime) -> Lane:
    """The lane with the hold that the message leaves, or without the one it left before; paused, if it must be."""
    message = verdict.message
    until = thread_held_until(verdict)
    before = lane.holds.get(message.thread_id)
    if until is not None:
        if before is not None:
            until = max(until, before.until)
        lane = lane.holding(message.thread_id, ThreadHold(until=until, request_id=message.request_id))
    elif before is not None and before.request_id == message.request_id:
        lane = lane.without_names(frozenset({message.thread_id}), now)
    for effect in verdict.effects:
        match effect:
            case ThrottleLane(until=end) | ThrottleApp(until=end):
                lane = lane.throttled(until=end, now=now)
            case PauseLane(until=end):
                lane = lane.paused(until=end)
            case ParkAccount():
                pass  # the account document says it
            case _:
                assert_never(effect)
    return lane


def thread_held_until(verdict: Verdict) -> datetime | None:
    """Until when the message keeps its thread waiting; None if it lets it go."""
    match verdict:
        case RetryAt(at=at, is_deferred=is_deferred):
            return None if is_deferred else at
        case MarkUncertain(resolve_at=resolve_at):
            return resolve_at
        case MarkSent() | MarkFailed() | MarkSkipped():
            return None
        case _:
            assert_never(verdict)


def counted(verdict: Verdict) -> Minute:
    """For the counters that people see (lane/recent.py)."""
    is_throttled = any(isinstance(effect, ThrottleLane | ThrottleApp) for effect in verdict.effects)
    return Minute(
        sent=int(isinstance(verdict, MarkSent)),
        failed=int(isinstance(verdict, MarkFailed)),
        throttled=int(is_throttled),
    )


@dataclass(frozen=True, slots=True)
class WriteAgain:
    """Write this on the version just read."""

    message: OutboxMessage


@dataclass(frozen=True, slots=True)
class LeaveIt:
    """Another worker settled it, or goes on with it. Our result is not needed."""


def reconcile(current: OutboxMessage | None, claimed: OutboxMessage, verdict: Verdict) -> WriteAgain | LeaveIt:
    """The slow path of completion. `claimed` is the document as our claim left it, `current` as it is now."""
    if current is None:
        return LeaveIt()
    if current.status is OutboxStatus.SENDING and current.claimed_by == claimed.claimed_by:
        return WriteAgain(replace(verdict.message, cancel_requested=current.cancel_requested))
    if not isinstance(verdict, MarkSent) or current.series != claimed.series:
        return LeaveIt()  # the latter: what we sent bounced meanwhile, and an operator put the message back
    accepted = verdict.message
    if current.status in (OutboxStatus.QUEUED, OutboxStatus.UNCERTAIN):
        # Another worker gave us up and put it back; but we know that it was accepted. It must not go out again.
        at = accepted.sent_at or current.created_at
        return WriteAgain(current.sent(provider_message_id=accepted.provider_message_id, at=at))
    if current.status is OutboxStatus.SENT and current.provider_message_id is None:
        return WriteAgain(replace(current, provider_message_id=accepted.provider_message_id))
    return LeaveIt()
