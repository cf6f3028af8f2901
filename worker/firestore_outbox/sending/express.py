"""Whether a message that came alone may take the short path, and what its acquiring write is. Theory in docs/lane.md.

The function that receives an event has read the lane and the account, and at one moment the first documents of the
account that wait or are in flight. Who is authoritative: the lane's document and those documents. The write that
follows from `Go` demands the versions of both as they were read, so whatever changed meanwhile refuses it.

Everything that is not plain goes the usual way: the lane is woken, and a worker takes its turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from firestore_outbox.accounts.account import Account, InvalidAccount
from firestore_outbox.lane.hold_room import HoldRoom
from firestore_outbox.lane.lease import Hold
from firestore_outbox.lane.pacing import Gate, allowance
from firestore_outbox.lane.state import Acquired, Lane, Later, More, Nothing, Queued, Work, acquire, wake
from firestore_outbox.lane.transitions import LaneState
from firestore_outbox.messages.model import OutboxMessage, TemplatePart, TextPart
from firestore_outbox.messages.priority import Priority
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.validation import InvalidMessage
from firestore_outbox.providers.outcome import Scope
from firestore_outbox.sending.completion import thread_held_until
from firestore_outbox.sending.decide import MarkFailed, MarkSent, MarkSkipped, RetryAt, Verdict
from firestore_outbox.sending.order import named_by_elapsed
from firestore_outbox.sending.plan import claimed, ending_of, lane_after_claims, plan
from firestore_outbox.sending.reservation import Reserved, reserved_through

PAGE = 2
"""How many documents a short turn reads: the message, and whether it is alone."""
FAR = timedelta(minutes=1)
"""A second document that is due later than this does not concern the first: no clock is so far ahead that it could be
in flight, and the lane rests until then anyway."""
SHORTEST_BUSY, LONGEST_BUSY = timedelta(seconds=5), timedelta(minutes=1)
"""For how long an instance wakes a lane that was busy without another look."""
ROOM_TO_COMPLETE = timedelta(seconds=12)
"""Kept before the function's deadline for the completing commit: longer than one try of it."""


class Because(StrEnum):
    """Why a message goes the usual way."""

    BUSY = "busy"
    """The lane is held or waits for a worker."""
    CROWD = "crowd"
    """More than one message is due, or soon."""
    DOUBT = "doubt"
    """Something is in flight or uncertain: a holder may give it back."""
    HELD = "held"
    """A thread waits for a message that was tried before."""
    RUN = "run"
    ENDING = "ending"
    """The message is malformed, cancelled or too late: it is ended, not sent."""
    ACCOUNT = "account"
    """The account cannot be used."""
    NOT_NOW = "not now"
    """The account, the lane, a hold or the pace does not let the message go at this moment."""
    SHARED_CAP = "shared cap"
    PLAN = "plan"
    """The account's plan has a limit, or its day has."""
    THROTTLED = "throttled"
    """The provider throttled the app. The function asks this last, because it may cost a read."""
    SESSION = "session"
    """The provider needs a session."""
    FILE = "file"
    """A part needs an upload, a signed address or a key."""
    DEADLINE = "deadline"
    """The longest call would not end before the function's deadline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What the function has read, and what it knows."""

    lane: Lane
    account: Account | InvalidAccount
    page: Sequence[OutboxMessage | InvalidMessage]
    """The first `PAGE` documents that wait or are in flight, in order."""
    moment: datetime
    """The page's read time, by the database."""
    events: frozenset[str]
    """The requestIds of the events that this turn serves."""
    has_shared_cap: bool
    needs_session: bool
    room_bytes: int
    """For the holds of the lane."""
    is_limited: bool = False
    """Whether the account's plan or its day has a limit: its messages are counted, which a short turn does not do."""
    longest_call: timedelta
    deadline: datetime
    """When the function is cut off, by its own clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """Write `lane` and `claim` in one commit, each on the version that was read; then send."""

    lane: Lane
    hold: Hold
    claim: OutboxMessage
    reserved: Reserved | None
    work: Work
    """What is known to be left after the message."""


@dataclass(frozen=True, slots=True)
class NothingWaits:
    """The events are old: what they tell of has ended."""


@dataclass(frozen=True, slots=True)
class InFlight:
    """An event came again for the message that is being sent. Enqueue a task for `until`, the end of the lease: the
    function that sends may be dead."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Usual:
    """Wake the lane."""

    because: Because


def may_be_short(message: OutboxMessage) -> bool:
    """Whether every part is sent as it is. Also asked of the event's copy, before anything is read."""
    return all(isinstance(part, TextPart | TemplatePart) for part in message.parts)


def express(sight: Sight, *, owner: str, now: datetime, lease: timedelta) -> Go | NothingWaits | InFlight | Usual:
    """`now` is the function's clock, just before it asks for the lane."""
    if not sight.page:
        return NothingWaits()
    if sight.lane.state is not LaneState.IDLE:
        return _not_idle(sight, now)
    message = _alone(sight, now)
    if not isinstance(message, OutboxMessage):
        return Usual(message)
    if isinstance(sight.account, InvalidAccount):
        return Usual(Because.ACCOUNT)
    if (hindrance := _hindrance(sight, message, now)) is not None:
        return Usual(hindrance)
    woken = wake(sight.lane, now)
    acquired = acquire(woken.lane, owner, now, lease) if isinstance(woken, Queued) else None
    if not isinstance(acquired, Acquired):
        return Usual(Because.NOT_NOW)
    reserved = reserved_through(sight.account.cap, acquired.lane, acquired.hold, now)
    if not _may_go(sight, sight.account, message, acquired.lane, reserved, _at(sight, now)):
        return Usual(Because.NOT_NOW)
    lane = acquired.lane if reserved is None else acquired.lane.reserved(reserved.block.until)
    if message.priority is Priority.URGENT:
        lane = replace(lane, urgent_tat=max(now, lane.urgent_tat or now))
    return Go(
        lane=lane_after_claims(lane, [message], sight.account, now),
        hold=acquired.hold,
        claim=claimed(message, acquired.hold),
        reserved=reserved,
        work=_left(sight, acquired.lane),
    )


def stays_busy(sight: Sight) -> timedelta:
    """How long the lane of a message that goes the usual way is expected to stay busy.

    As long as its first message has been due: at a steady pace, a queue takes about that long to become empty."""
    first = sight.page[0]
    if not isinstance(first, OutboxMessage) or first.next_attempt_at is None:
        return SHORTEST_BUSY
    return min(max(sight.moment - first.next_attempt_at, SHORTEST_BUSY), LONGEST_BUSY)


def _not_idle(sight: Sight, now: datetime) -> InFlight | Usual:
    first, lease = sight.page[0], sight.lane.lease
    is_in_flight = isinstance(first, OutboxMessage) and first.status is OutboxStatus.SENDING
    if is_in_flight and first.request_id in sight.events and lease is not None and lease.alive(now):
        return InFlight(lease.until)
    return Usual(Because.BUSY)


def _alone(sight: Sight, now: datetime) -> OutboxMessage | Because:
    """The one message that is due, if the page shows that it is the only one."""
    for message in sight.page:
        if isinstance(message, InvalidMessage):
            return Because.ENDING
        if message.status is not OutboxStatus.QUEUED:
            return Because.DOUBT
        if message.run_id is not None:
            return Because.RUN
    first, *others = [one for one in sight.page if isinstance(one, OutboxMessage)]
    horizon = _at(sight, now) + FAR
    if any(one.next_attempt_at is None or one.next_attempt_at <= horizon for one in others):
        return Because.CROWD
    if first.next_attempt_at is None or first.next_attempt_at > sight.moment:
        return Because.NOT_NOW
    return first


def _hindrance(sight: Sight, message: OutboxMessage, now: datetime) -> Because | None:
    at = _at(sight, now)
    if ending_of(message, at) is not None:
        return Because.ENDING
    if named_by_elapsed(sight.lane.holds, at):
        return Because.HELD
    if sight.has_shared_cap:
        return Because.SHARED_CAP
    if sight.is_limited:
        return Because.PLAN
    if sight.needs_session:
        return Because.SESSION
    if not may_be_short(message):
        return Because.FILE
    return Because.DEADLINE if now + sight.longest_call + ROOM_TO_COMPLETE > sight.deadline else None


def _may_go(
    sight: Sight, account: Account, message: OutboxMessage, lane: Lane, reserved: Reserved | None, at: datetime
) -> bool:
    """As a worker's turn would decide: account, window, pauses, holds, their room, and the pace."""
    gates = (
        ()
        if reserved is None
        else (Gate(scope=Scope.ACCOUNT, cap=reserved.cap, block=reserved.block, rate_factor=lane.rate_factor),)
    )
    planned = plan(
        [message],
        lane=lane,
        account=account,
        in_flight=frozenset(),
        allowed=allowance(gates, at),
        room=HoldRoom(lane.holds, (), room_bytes=sight.room_bytes),
        now=at,
    )
    return planned.claims == (message,)


def _at(sight: Sight, now: datetime) -> datetime:
    """The present, by the clock that is ahead: what is due for the database is due."""
    return max(now, sight.moment)


def _left(sight: Sight, lane: Lane) -> Work:
    """The second document's time; or what the lane knows, which may be younger than the page."""
    times = [one.next_attempt_at for one in sight.page[1:] if isinstance(one, OutboxMessage)]
    known = [at for at in (*times, lane.next_due_at) if at is not None]
    return Later(min(known)) if known else Nothing()


# --- after the call


def is_plain(verdict: Verdict) -> bool:
    """Whether the message ends and leaves nothing on its lane: completion and release are one commit."""
    return isinstance(verdict, MarkSent | MarkFailed | MarkSkipped) and not verdict.effects


def work_after(verdict: Verdict, known: Work) -> Work:
    """What the release says is left. If the call had effects on the lane or the account, a worker looks at once."""
    if verdict.effects:
        return More()
    at = verdict.at if isinstance(verdict, RetryAt) else thread_held_until(verdict)
    if at is None:
        return known
    return Later(min(at, known.at)) if isinstance(known, Later) else Later(at)
