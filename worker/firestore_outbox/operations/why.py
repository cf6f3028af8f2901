"""Why a message has not been sent yet: what it waits for, and the earliest time it can go. Closed data, and a sentence.

The answer is made of the same decisions that the worker uses (account, window, holds, pace, session), so that it cannot
differ from what the worker will do. It does not know how many messages are ahead in the queue: "the earliest" is a
bound, not a promise.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from firestore_outbox.accounts.account import Account, Closed, Hindrance, sending
from firestore_outbox.lane.hold_room import HoldRoom
from firestore_outbox.lane.state import Lane
from firestore_outbox.lane.transitions import LaneState
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.priority import Priority
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.providers.outcome import ErrorCode
from firestore_outbox.sessions.why import SessionWait
from firestore_outbox.shown_time import shown_time


class Cause(StrEnum):
    ENDED = "ended"
    """It is sent, failed, skipped or cancelled: it waits for nothing."""
    IN_FLIGHT = "in_flight"
    """A worker is calling the provider with it."""
    IN_DOUBT = "in_doubt"
    """Perhaps sent; waiting for a receipt."""
    NEEDS_A_PERSON = "needs_a_person"
    """Perhaps sent, and the account holds such messages."""
    CANCELLING = "cancelling"
    TOO_LATE = "too_late"
    """It cannot go before its deadline, and will be skipped."""
    SCHEDULED = "scheduled"
    RETRY = "retry"
    ACCOUNT_PARKED = "account_parked"
    ACCOUNT_PAUSED = "account_paused"
    WINDOW = "window"
    THROTTLED = "throttled"
    """The lane pauses: the provider asked for it, or the session is down."""
    SESSION = "session"
    """The account's provider needs a session, and it is not up."""
    LANE_FAILING = "lane_failing"
    """The last turn of the account's lane ended in an error."""
    THREAD = "thread"
    """An earlier message of its thread goes first, or its recipient's pace has no room."""
    ROOM = "room"
    """The lane has no room for another thread's hold, and begins no new thread."""
    PACE = "pace"
    DAY = "day"
    """The account's day has no more room: for any message, or for one to a new contact."""
    QUEUE = "queue"
    """Nothing but its turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    cause: Cause
    until: datetime | None
    """When this reason ends by itself; None: not by itself, or not at a known time."""
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    reasons: tuple[Reason, ...]
    """The one that lasts longest first."""
    earliest: datetime | None
    """None: never, or not before an operator or the provider acts."""
    sentence: str


def why(
    message: OutboxMessage,
    lane: Lane,
    account: Account,
    now: datetime,
    *,
    session: SessionWait | None = None,
    is_new_contact: bool = False,
) -> Why:
    """`session` is what the account's session waits for; None: it is up, was not asked for, or is not needed.
    `is_new_contact`: whether nothing was ever sent to the recipient; asked only if new contacts have a cap."""
    if message.status is not OutboxStatus.QUEUED:
        return _alone(_not_queued(message))
    if message.cancel_requested:
        return _alone(_reason(Cause.CANCELLING, None, "Its cancellation is requested; it will not be sent."))
    own = _own(message, now)
    waits_for_session = session if session is not None and not own else None  # what is not due yet asks for no session
    contact = _new_contact(lane, account, now) if is_new_contact else []
    reasons = [*own, *_lane(message, lane, account, now), *contact, *_session(waits_for_session)]
    earliest: datetime | None = max([now, *(reason.until for reason in reasons if reason.until is not None)])
    hindrance, earliest = account_reasons(account, earliest)
    if waits_for_session is not None and waits_for_session.needs_a_person:
        earliest = None
    reasons = [*hindrance, *reasons]
    if message.send_by is not None and (message.send_by < now or (earliest and message.send_by < earliest)):
        return _alone(
            _reason(Cause.TOO_LATE, None, f"It was to be sent by {shown_time(message.send_by)}; it will be skipped.")
        )
    if not reasons:
        reasons = [_queue(message, lane, now)]
    reasons.sort(key=lambda reason: (reason.until is not None, _descending(reason.until or now)))
    when = "" if earliest is None or earliest <= now else f" The earliest it can go is {shown_time(earliest)}."
    return Why(reasons=tuple(reasons), earliest=earliest, sentence=reasons[0].sentence + when)


def _not_queued(message: OutboxMessage) -> Reason:
    error = f": {message.last_error.message}" if message.last_error else ""
    match message.status:
        case OutboxStatus.SENDING:
            until = message.lease_until
            return _reason(Cause.IN_FLIGHT, until, f"{message.claimed_by or 'A worker'} is sending it now.")
        case OutboxStatus.UNCERTAIN if message.next_attempt_at is None:
            return _reason(Cause.NEEDS_A_PERSON, None, f"It may have been sent{error}. An operator must decide.")
        case OutboxStatus.UNCERTAIN:
            until = message.next_attempt_at
            return _reason(
                Cause.IN_DOUBT, until, f"It may have been sent{error}. We wait for a receipt until {shown_time(until)}."
            )
        case OutboxStatus.SENT:
            return _reason(Cause.ENDED, None, f"It was sent at {shown_time(message.sent_at)}.")
        case OutboxStatus.FAILED | OutboxStatus.SKIPPED | OutboxStatus.CANCELLED | OutboxStatus.QUEUED:
            return _reason(Cause.ENDED, None, f"It is {message.status.value}{error}.")


def _own(message: OutboxMessage, now: datetime) -> list[Reason]:
    at = message.next_attempt_at
    if at is None or at <= now:
        return []
    if message.attempts == 0:
        if message.last_error is not None and message.last_error.code is ErrorCode.NEW_CONTACT_CAPPED:
            return [_reason(Cause.DAY, at, f"It waits until {shown_time(at)}: {message.last_error.message}.")]
        return [_reason(Cause.SCHEDULED, at, f"It is scheduled for {shown_time(at)}.")]
    error = f" ({message.last_error.code.value})" if message.last_error else ""
    return [
        _reason(Cause.RETRY, at, f"Attempt {message.attempts} did not succeed{error}; the next is at {shown_time(at)}.")
    ]


def lane_reasons(lane: Lane, now: datetime) -> list[Reason]:
    """What keeps all messages of the account back: a throttle, or errors of its lane."""
    reasons: list[Reason] = []
    if lane.paused_until is not None and lane.paused_until > now:
        until = lane.paused_until
        reasons.append(_reason(Cause.THROTTLED, until, f"The account does not send until {shown_time(until)}."))
    if lane.is_failing and lane.retry_at is not None and lane.retry_at > now:
        times = "once" if lane.failures == 1 else f"{lane.failures} times in a row"
        sentence = f"The account's lane failed {times}; the next try is at {shown_time(lane.retry_at)}."
        reasons.append(_reason(Cause.LANE_FAILING, lane.retry_at, f"{sentence} See lane_failed in the log."))
    return reasons


def day_reasons(lane: Lane, account: Account, now: datetime) -> list[Reason]:
    """The daily cap or the warm-up, if it is used up."""
    caps, use = account.caps, lane.day_use
    if caps is None or use is None or use.day < caps.day_of(now) or lane.state is LaneState.RUNNING:
        return []
    limit = caps.sends_on(use.day)
    if limit is None or use.sends < limit:
        return []
    until = caps.after(use.day)
    sentence = f"The account has used up {caps.sentence(use.day)}; its next day begins at {shown_time(until)}."
    return [_reason(Cause.DAY, until, sentence)]


def has_contact_room(lane: Lane, account: Account, now: datetime) -> bool:
    """Whether the account may still write to a new contact on this day."""
    caps, use = account.caps, lane.day_use
    if caps is None or caps.new_contacts is None or use is None or use.day < caps.day_of(now):
        return True
    return use.contacts < caps.new_contacts


def _new_contact(lane: Lane, account: Account, now: datetime) -> list[Reason]:
    caps, use = account.caps, lane.day_use
    if caps is None or use is None or has_contact_room(lane, account, now):
        return []
    until = caps.after(use.day)
    sentence = f"Its recipient is a new contact, and the account has written to {caps.new_contacts:,} today"
    return [_reason(Cause.DAY, until, f"{sentence}; its next day begins at {shown_time(until)}.")]


def _lane(message: OutboxMessage, lane: Lane, account: Account, now: datetime) -> list[Reason]:
    reasons = [*lane_reasons(lane, now), *day_reasons(lane, account, now)]
    hold = lane.holds.get(message.thread_id)
    if hold is not None and hold.request_id != message.request_id:
        if hold.request_id is not None:
            held = max(hold.until, now)
            sentence = f"{hold.request_id} of the same thread goes first, at {shown_time(held)} or later."
            reasons.append(_reason(Cause.THREAD, held, sentence))
        elif hold.until > now:
            sentence = f"Its recipient had a message just now; the next may go at {shown_time(hold.until)}."
            reasons.append(_reason(Cause.THREAD, hold.until, sentence))
    if not HoldRoom(lane.holds, ()).take(message):
        free_at = min((hold.until for hold in lane.holds.values() if hold.until > now), default=now)
        others, when = f"{len(lane.holds):,} other threads of the account wait", shown_time(free_at)
        reasons.append(_reason(Cause.ROOM, free_at, f"{others}; a new one can begin at {when} or later."))
    if account.cap is not None and lane.tat is not None and lane.state is not LaneState.RUNNING:
        free_at = lane.tat - account.cap.tolerance
        if free_at > now:
            reasons.append(_reason(Cause.PACE, free_at, f"The account's pace has room again at {shown_time(free_at)}."))
    return reasons


def _session(wait: SessionWait | None) -> list[Reason]:
    return [] if wait is None else [_reason(Cause.SESSION, wait.until, wait.sentence)]


def account_reasons(account: Account, at: datetime | None) -> tuple[list[Reason], datetime | None]:
    """What the account says about that time, and when it lets a message go from then on."""
    reasons: list[Reason] = []
    while at is not None:
        closed = sending(account, at)
        if not isinstance(closed, Closed):
            break
        at = closed.until
        reasons.append(closed_reason(closed))
    return reasons, at


def closed_reason(closed: Closed) -> Reason:
    match closed.because:
        case Hindrance.PARKED:
            sentence = "The account is parked: the provider refuses it. Correct its credentials and resume it."
            return _reason(Cause.ACCOUNT_PARKED, None, sentence)
        case Hindrance.PAUSED:
            end = "until an operator resumes it" if closed.until is None else f"until {shown_time(closed.until)}"
            return _reason(Cause.ACCOUNT_PAUSED, closed.until, f"The account is paused {end}.")
        case Hindrance.WINDOW:
            sentence = f"The account's delivery window is closed until {shown_time(closed.until)}."
            return _reason(Cause.WINDOW, closed.until, sentence)


_ORDER = {
    Priority.URGENT: "before the account's other messages and at its pace: it is urgent",
    Priority.NORMAL: "in order and at the account's pace",
    Priority.BULK: "after people's messages and at the account's pace: it is bulk",
}


def _queue(message: OutboxMessage, lane: Lane, now: datetime) -> Reason:
    match lane.state:
        case LaneState.RUNNING:
            sentence = f"{lane.owner} is working on the account; its turn comes {_ORDER[message.priority]}."
        case LaneState.READY:
            sentence = "It is due; the account's lane waits for a worker."
        case LaneState.IDLE if lane.next_due_at is not None and lane.next_due_at > now:
            when = shown_time(lane.next_due_at)
            sentence = f"It is due; the account's lane looks at it again at {when}, or when it is woken."
        case LaneState.IDLE:
            sentence = "It is due; the account's lane has not been woken yet. The sweep will do it within a minute."
    return _reason(Cause.QUEUE, None, sentence)


def _alone(reason: Reason) -> Why:
    return Why(reasons=(reason,), earliest=None, sentence=reason.sentence)


def _reason(cause: Cause, until: datetime | None, sentence: str) -> Reason:
    return Reason(cause=cause, until=until, sentence=sentence)


def _descending(at: datetime) -> float:
    return -at.timestamp()
