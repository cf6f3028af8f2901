"""What to claim now. A claim is the mark "about to call the provider", so we claim only what can start at once:

    at most min(free concurrency, what the pace allows now)

A crash then leaves in doubt only what really was in flight. Documents that are not to be sent at all (cancelled, too
late, malformed) are ended in passing: they cost no pace, hold no thread and stop no message.

Who is authoritative: the documents. The plan is made from copies, and each write of it carries the version of its
copy; what changed in the meantime is simply not claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime

from firestore_outbox.accounts.account import Account, Closed, sending
from firestore_outbox.lane.hold_room import HoldRoom
from firestore_outbox.lane.lease import Hold
from firestore_outbox.lane.pacing import Allowance
from firestore_outbox.lane.state import Lane, ThreadHold
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.validation import InvalidMessage
from firestore_outbox.providers.outcome import DeliveryError, in_doubt_after
from firestore_outbox.sending.deadline import TICK, Deferred, TooLate, lateness
from firestore_outbox.sending.order import holds_now, named_by_elapsed, waits_for_another


@dataclass(frozen=True, slots=True)
class Cancel:
    message: OutboxMessage
    """To be written: `cancelled`; or `failed` with `outcome_unknown`, if it may have been sent."""


@dataclass(frozen=True, slots=True)
class Skip:
    message: OutboxMessage
    """To be written: `skipped`."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """A malformed document: only its status and error can be written."""

    request_id: str
    error: DeliveryError


@dataclass(frozen=True, slots=True)
class Defer:
    message: OutboxMessage
    """To be written: queued for the next opening of its window."""


Ending = Cancel | Skip | Refuse | Defer


@dataclass(frozen=True, slots=True, kw_only=True)
class Shut:
    """Threads with new contacts for which the account's day has no room."""

    threads: Collection[str]
    """Of new contacts."""
    until: datetime
    """The next day of the account."""
    to: Callable[[int], datetime]
    """The day to which one more message of a run is moved, behind that many of this plan. Pure."""
    error: DeliveryError


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    claims: tuple[OutboxMessage, ...] = ()
    """To be claimed, in order, in one commit."""
    endings: tuple[Ending, ...] = ()
    """To be written, in any order and at any time."""
    settle: tuple[OutboxMessage, ...] = ()
    """Uncertain ones whose wait for a receipt has ended: ask attempt.after_receipt_wait."""
    void_holds: frozenset[str] = frozenset()
    """Threads whose hold is to be dropped from the lane."""
    startable: int = 0
    """How many messages could start now. If 0, reading further documents is of no use."""
    is_crowded: bool = False
    """Messages had to wait because the lane has no room for the holds that they may leave. It has more when holds that
    have ended are dropped from it."""
    next_at: datetime | None = None
    """If nothing is claimed: when asking again, with the same documents, can claim or end something (now, if only
    concurrency is short). None: not before something happens: a completion, a wake, a person."""


def budget(account: Account, lane: Lane, *, in_flight: int, allowed: Allowance) -> int:
    """How many claims may be made now."""
    concurrency = account.concurrency
    if account.cap is None:  # with no pace to stretch, a reduced rate shows in how much we do at once
        concurrency = max(1, math.floor(concurrency * lane.rate_factor))
    free = max(0, concurrency - in_flight)
    return free if allowed.sends is None else min(free, allowed.sends)


def plan(
    candidates: Sequence[OutboxMessage | InvalidMessage],
    *,
    lane: Lane,
    account: Account,
    in_flight: Set[str],
    allowed: Allowance,
    room: HoldRoom,
    now: datetime,
    shut: Shut | None = None,
) -> Plan:
    """`candidates` as order.py asks for them; `in_flight` are the threadIds of claims not completed yet; `room` is for
    what is claimed, beside those. `shut`: new contacts that have no room today; None: there are none."""
    opens_at = _opens_at(lane, account, now)
    startable = budget(account, lane, in_flight=len(in_flight), allowed=allowed) if opens_at == now else 0
    holds = holds_now(lane.holds, _present(candidates, lane, now), now)
    busy = set(in_flight)
    claims: list[OutboxMessage] = []
    endings: list[Ending] = []
    settle: list[OutboxMessage] = []
    times: list[datetime] = []
    is_crowded, postponements = False, 0
    for candidate in candidates:
        ending = ending_of(candidate, now)
        if ending is not None:
            endings.append(ending)
            continue
        if isinstance(candidate, InvalidMessage) or candidate.next_attempt_at is None:
            continue
        if candidate.send_by is not None and candidate.status is OutboxStatus.QUEUED:
            times.append(candidate.send_by + TICK)  # to end it, should nothing come before
        due_at = max(candidate.next_attempt_at, holds.shut.get(candidate.thread_id, now))
        if candidate.status is OutboxStatus.UNCERTAIN:
            times.append(due_at)
            if due_at <= now:
                settle.append(candidate)
        elif candidate.status is not OutboxStatus.QUEUED or waits_for_another(candidate, holds, busy=busy):
            continue  # its time comes with an event: another message of its thread ends
        elif shut is not None and candidate.thread_id in shut.threads:
            if candidate.run_id is not None and due_at <= now:
                endings.append(Defer(postponed(candidate, shut.to(postponements), shut.error)))
                postponements += 1
            else:
                busy.add(candidate.thread_id)
                times.append(max(due_at, shut.until, opens_at or shut.until))
        elif due_at <= now and len(claims) < startable:
            busy.add(candidate.thread_id)  # without room as well: a later one with a shorter name might find some
            if not room.take(candidate):
                is_crowded = True
                continue
            claims.append(candidate)
            if len(claims) == startable:
                break  # what comes after has its turn when these have started
        elif opens_at is not None:
            times.append(max(due_at, opens_at, allowed.next_at))
    if is_crowded:
        times += holds.shut.values()
    return Plan(
        claims=tuple(claims),
        endings=tuple(endings),
        settle=tuple(settle),
        void_holds=holds.void,
        startable=0 if is_crowded else startable,
        is_crowded=is_crowded,
        next_at=None if claims else min(times, default=None),
    )


def postponed(message: OutboxMessage, to: datetime, error: DeliveryError) -> OutboxMessage:
    """A run's message to a new contact, moved to a later day. If that is too late, it ends at its deadline."""
    late = lateness(message, to, to)
    if isinstance(late, Deferred):
        return message.postponed(to=late.to, send_by=late.send_by, error=error)
    if isinstance(late, TooLate) and message.send_by is not None:
        to = message.send_by + TICK
    return message.postponed(to=to, send_by=message.send_by, error=error)


def _present(candidates: Sequence[OutboxMessage | InvalidMessage], lane: Lane, now: datetime) -> Set[str]:
    named = set(named_by_elapsed(lane.holds, now))
    if not named:
        return named
    return {c.request_id for c in candidates if c.request_id in named and _goes_on(c, now)}


def _goes_on(candidate: OutboxMessage | InvalidMessage, now: datetime) -> bool:
    if isinstance(candidate, InvalidMessage) or candidate.next_attempt_at is None:
        return False
    waits = candidate.status in (OutboxStatus.QUEUED, OutboxStatus.UNCERTAIN)
    return waits and ending_of(candidate, now) is None


def ending_of(candidate: OutboxMessage | InvalidMessage, now: datetime) -> Ending | None:
    """How the document ends, or leaves the present queue, without being sent; None if it goes on. The sweep asks this
    too."""
    if isinstance(candidate, InvalidMessage):
        return Refuse(candidate.request_id, candidate.error(now))
    if candidate.status is not OutboxStatus.QUEUED:
        return None
    late = lateness(candidate, now, now)
    if late is None and not candidate.cancel_requested:
        return None
    if isinstance(late, Deferred) and not candidate.cancel_requested:
        return Defer(candidate.deferred(to=late.to, send_by=late.send_by))
    if candidate.maybe_sent and candidate.last_error is not None:
        return Cancel(candidate.failed(replace(in_doubt_after(candidate.last_error), at=now)))
    if candidate.cancel_requested or not isinstance(late, TooLate):
        return Cancel(candidate.cancelled(at=now))
    return Skip(candidate.skipped(late.error))


def claimed(message: OutboxMessage, hold: Hold) -> OutboxMessage:
    """The document as the claim writes it. Its lease is the lane's: what a takeover finds `sending` is not running."""
    return message.claimed(by=hold.claimed_by, lease_until=hold.until)


def lane_after_claims(lane: Lane, claims: Sequence[OutboxMessage], account: Account, now: datetime) -> Lane:
    """The lane with the recipients' pace spent: to be written before the claims. Unchanged if there is none.

    A hold that names a message goes on naming it: the claim may still fail, or be given back.
    """
    if not account.per_recipient or not claims:
        return lane
    until = now + account.per_recipient
    spent = {
        message.thread_id: replace(lane.holds.get(message.thread_id, ThreadHold(until=until)), until=until)
        for message in claims
    }
    lane = lane.without_elapsed_holds(now)
    return replace(lane, holds={**lane.holds, **spent})


def _opens_at(lane: Lane, account: Account, now: datetime) -> datetime | None:
    """When lane and account next let anything go; None: when a person says so."""
    at = max(now, lane.paused_until or now)
    closed = sending(account, at)
    while isinstance(closed, Closed):
        if closed.until is None:
            return None
        at = closed.until
        closed = sending(account, at)
    return at
