"""The lane: a keyed serial executor, as state and decisions. Theory in docs/lane.md.

Who is authoritative: the stored lane document. Each function below takes it as read inside a transaction, and returns
what to write and what to do after the commit; losing a race is one of the answers.

The states and events are a table (lane/transitions.py). What the functions add to it:

    wake       on a ready lane moves dueAt (debounce); on a running one it sets rerunRequested
    acquire    needs a lane that is due and no live lease: otherwise Busy or NotDue, and nothing changes
    renew, fail, release by any other than the holder: Lost, and nothing changes

What a crash leaves: before the write, nothing; after it, a state with a time in it (readyAt, leaseUntil, nextDueAt)
that `overdue` recognises, so that the sweep can enqueue a task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

from firestore_outbox.handlers.progress import Progress
from firestore_outbox.health.day_use import DayUse
from firestore_outbox.lane.lease import Hold, Lease
from firestore_outbox.lane.marks import Mark
from firestore_outbox.lane.pacing import halved
from firestore_outbox.lane.recent import NOTHING_RECENT, Recent
from firestore_outbox.lane.transitions import TRANSITIONS, LaneEvent, LaneState
from firestore_outbox.sending.backoff import Backoff
from firestore_outbox.transitions import after


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadHold:
    """No message of this thread before `until`; after it only the named one, if there is a name."""

    until: datetime
    request_id: str | None = None
    """The message that the thread waits for; None if it is only the recipient's pace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """`lanes/{kind}:{key}`."""

    state: LaneState = LaneState.IDLE
    """Changes on wake, acquire and release."""
    fence: int = 0
    """Grows by one on acquire."""
    owner: str | None = None
    """Set on acquire, cleared on release."""
    lease_until: datetime | None = None
    """Set on acquire, moved by renew, cleared on release."""
    woken_at: datetime | None = None
    """The first wake of a burst: the maximum wait counts from here. Cleared on acquire."""
    due_at: datetime | None = None
    """The end of the debounce. Moves with each wake before it; cleared on acquire."""
    ready_at: datetime | None = None
    """The place in the queue: when the lane became ready, or will. Set on becoming ready; cleared on acquire."""
    rerun_requested: bool = False
    """Set by a wake while running; cleared on acquire and release."""
    next_due_at: datetime | None = None
    """When the lane is known to have work again, and a task for that time exists. Counts while the lane is idle. Set on
    release, moved by wake_later; a wake and an acquire keep it while it lies ahead, so that the release knows of it."""
    doubt_until: datetime | None = None
    """Until when a claim of an earlier holder may still arrive. Set by a takeover, left to pass."""
    tat: datetime | None = None
    """The end of what is reserved of the pace. Moves on reservation; back a little on a clean release."""
    rate_factor: float = 1.0
    """Halved on a throttle, a step up with accepted sends."""
    paused_until: datetime | None = None
    """Set by a throttle of the account or a lost session; cleared on resume, else left to pass."""
    throttled_until: datetime | None = None
    """The throttle's share of `paused_until`, which no session that comes up shortens. Set and cleared with it."""
    failures: int = 0
    """Turns in a row whose handler raised an error. Grows with each; 0 again on release."""
    retry_at: datetime | None = None
    """When a lane whose handler raised an error may be taken over. Set with `failures`, cleared on acquire."""
    progress: Progress | None = None
    """How far the user's handler has come with the lane's events. Moves with each successful run."""
    urgent_at: datetime | None = None
    """When the first urgent message is due that the holder does not know of. Set by a wake, cleared by the holder."""
    normal_at: datetime | None = None
    """The same of a normal message, which goes ahead of bulk."""
    since_bulk: int = 0
    """Messages that went before bulk since the last bulk one, while bulk waited. Set on release."""
    urgent_tat: datetime | None = None
    """The end of what urgent messages have used of their cap. Set on release."""
    holds: Mapping[str, ThreadHold] = field(default_factory=dict)
    """By threadId. Set when a tried message goes back to the queue, dropped when it has ended."""
    recent: Recent = NOTHING_RECENT
    """What was sent lately. Moves with every other write of the holder, never by itself."""
    day_use: DayUse | None = None
    """What is reserved of the account's day (health/day_use.py). Moves on acquire and renewal, back on a clean release;
    None: the account has no cap."""

    @property
    def lease(self) -> Lease | None:
        if self.state is not LaneState.RUNNING or self.owner is None or self.lease_until is None:
            return None
        return Lease(owner=self.owner, until=self.lease_until, fence=self.fence)

    @property
    def is_failing(self) -> bool:
        """Whether the last turn's handler raised an error, and the lane waits for its next try.

        A worker of the release before takes over without clearing `retry_at`; its lease then ends at another time.
        """
        return self.lease is not None and self.retry_at is not None and self.retry_at == self.lease_until

    def is_in_doubt(self, now: datetime) -> bool:
        """Whether a claim that an earlier holder sent may still arrive."""
        return self.doubt_until is not None and now < self.doubt_until

    def reserved(self, tat: datetime | None) -> Lane:
        return replace(self, tat=tat)

    def throttled(self, *, until: datetime, now: datetime) -> Lane:
        """Pause, and slow down. Calls that were in flight when the pause began are told the same: they slow us once."""
        already = self.paused_until is not None and self.paused_until > now
        return replace(
            self.held_back(until=until), rate_factor=self.rate_factor if already else halved(self.rate_factor)
        )

    def held_back(self, *, until: datetime) -> Lane:
        """Pause for a throttle that another account met: this lane's own rate is not to blame."""
        return replace(self.paused(until=until), throttled_until=_latest(until, self.throttled_until))

    def paused(self, *, until: datetime) -> Lane:
        return replace(self, paused_until=_latest(until, self.paused_until))

    def resumed(self, *, now: datetime) -> Lane:
        """Without its pauses, and without the wait after failed turns: an operator ends them."""
        ready_at = max(now, self.due_at or now) if self.state is LaneState.READY else self.ready_at
        lane = replace(self, paused_until=None, throttled_until=None, ready_at=ready_at)
        return replace(lane, lease_until=now, retry_at=None) if self.is_failing else lane

    def reconnected(self, *, now: datetime) -> Lane:
        """The session is up: of a pause there stays what a throttle asked for. Unchanged if nothing waits for it."""
        if self.paused_until is None or self.paused_until <= max(now, self.throttled_until or now):
            return self
        throttled_until = self.throttled_until if self.throttled_until and self.throttled_until > now else None
        ready_at = _latest(now, self.due_at, throttled_until) if self.state is LaneState.READY else self.ready_at
        return replace(self, paused_until=throttled_until, ready_at=ready_at)

    def marked(self, mark: Mark | None) -> Lane:
        """With a mark for the holder. One mark of a kind is enough: with the first, the holder finds all."""
        if mark is None:
            return self
        urgent_at, normal_at = self.urgent_at, self.normal_at or mark.normal_at
        if mark.urgent_at is not None:
            urgent_at = mark.urgent_at if urgent_at is None else min(urgent_at, mark.urgent_at)
        return replace(self, urgent_at=urgent_at, normal_at=normal_at)

    def holding(self, thread_id: str, hold: ThreadHold) -> Lane:
        return replace(self, holds={**self.holds, thread_id: hold})

    def without_holds(self, thread_ids: frozenset[str]) -> Lane:
        if not thread_ids:
            return self
        return replace(self, holds={key: hold for key, hold in self.holds.items() if key not in thread_ids})

    def without_names(self, thread_ids: frozenset[str], now: datetime) -> Lane:
        """The messages that these threads waited for have ended. What is left of a hold is the recipient's pace."""
        if not thread_ids:
            return self
        kept = {
            key: ThreadHold(until=hold.until) if key in thread_ids else hold
            for key, hold in self.holds.items()
            if key not in thread_ids or hold.until > now
        }
        return replace(self, holds=kept)

    def without_elapsed_holds(self, now: datetime) -> Lane:
        """Unnamed holds end with their time; a named one ends with its message."""
        kept = {key: hold for key, hold in self.holds.items() if hold.request_id is not None or hold.until > now}
        return self if len(kept) == len(self.holds) else replace(self, holds=kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Debounce:
    quiet: timedelta = timedelta(0)
    """How long no wake must come before the lane is due."""
    most: timedelta = timedelta(0)
    """But no longer than this after the first."""


NO_DEBOUNCE = Debounce()


# --- wake ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Queued:
    """Write the lane; enqueue a task for `at`."""

    lane: Lane
    at: datetime


@dataclass(frozen=True, slots=True)
class Marked:
    """Write the lane; its holder, or the task already enqueued, does the rest."""

    lane: Lane


@dataclass(frozen=True, slots=True)
class Orphaned:
    """The holder's lease has expired. Write the lane, and enqueue a task now: the next holder takes over."""

    lane: Lane


@dataclass(frozen=True, slots=True)
class Served:
    """Nothing to write: a run that will see the work is already sure to come."""


Woken = Queued | Marked | Orphaned | Served


def wake(lane: Lane, now: datetime, debounce: Debounce = NO_DEBOUNCE, mark: Mark | None = None) -> Woken:
    """There is work for now. The caller has committed the work first. `mark`: what the holder is to know of it."""
    match lane.state:
        case LaneState.IDLE:
            made = _ready(_debounced(lane.marked(mark), now, debounce), LaneEvent.WAKE, now)
            return Queued(made, made.ready_at or now)
        case LaneState.READY:
            if lane.due_at is None or lane.due_at <= now:
                return _only_marked(lane, mark)
            moved = _debounced(lane, now, debounce)
            return Served() if moved.due_at == lane.due_at else Marked(_ready(moved, LaneEvent.WAKE, now))
        case LaneState.RUNNING:
            return _wake_running(lane, now, debounce, mark)
        case _:
            assert_never(lane.state)


def wake_later(
    lane: Lane, at: datetime, now: datetime, debounce: Debounce = NO_DEBOUNCE, mark: Mark | None = None
) -> Woken:
    """There is work for a later time: a scheduled message. The caller breaks a far time into hops (schedule.py)."""
    if at <= now:
        return wake(lane, now, debounce, mark)
    match lane.state:
        case LaneState.IDLE:
            if lane.next_due_at is not None and lane.next_due_at <= at:
                return _only_marked(lane, mark)
            return Queued(replace(lane.marked(mark), next_due_at=at), at)
        case LaneState.READY:
            return _only_marked(lane, mark)  # the run to come looks for the next due time before it ends
        case LaneState.RUNNING:
            return _wake_running(lane, now, debounce, mark)
        case _:
            assert_never(lane.state)


def _only_marked(lane: Lane, mark: Mark | None) -> Woken:
    marked = lane.marked(mark)
    return Served() if marked == lane else Marked(marked)


def _wake_running(lane: Lane, now: datetime, debounce: Debounce, mark: Mark | None) -> Woken:
    settled = lane.rerun_requested and lane.due_at is not None and lane.due_at <= now
    marked = (lane if settled else replace(_debounced(lane, now, debounce), rerun_requested=True)).marked(mark)
    if lane.lease is None or not lane.lease.alive(now):
        return Orphaned(marked)
    return Served() if marked == lane else Marked(marked)


def _debounced(lane: Lane, now: datetime, debounce: Debounce) -> Lane:
    first = lane.woken_at or now
    return replace(lane, woken_at=first, due_at=min(now + debounce.quiet, max(first + debounce.most, now)))


def _ready(lane: Lane, event: LaneEvent, now: datetime) -> Lane:
    ready_at = _latest(now, lane.due_at, lane.paused_until)
    return replace(
        lane,
        state=after(TRANSITIONS, lane.state, event),
        owner=None,
        lease_until=None,
        ready_at=ready_at,
        rerun_requested=False,
    )


# --- acquire and renew --------------------------------------------------------------------------------------------


LATEST_COMMIT = timedelta(seconds=90)
"""How long after a holder's lease a commit of it may still arrive: all tries of a commit (52 s), and the difference
between two clocks."""


class Entry(StrEnum):
    FRESH = "fresh"
    TAKEOVER = "takeover"
    """A holder before us did not release: settle everything it left `sending` before claiming anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acquired:
    lane: Lane
    hold: Hold
    entry: Entry
    woken_at: datetime | None = None
    """When the first wake of the burst came that this run serves."""
    ready_at: datetime | None = None
    """When the lane became ready."""


@dataclass(frozen=True, slots=True)
class Busy:
    """Another worker holds it; its lease ends at `until` unless it renews."""

    until: datetime


@dataclass(frozen=True, slots=True)
class NotDue:
    """Come back at `at`; None: there is no work known."""

    at: datetime | None


@dataclass(frozen=True, slots=True)
class Renewed:
    lane: Lane
    hold: Hold


@dataclass(frozen=True, slots=True)
class Lost:
    """The lane is not ours any more. Drop everything; write nothing."""


def acquire(lane: Lane, owner: str, now: datetime, ttl: timedelta) -> Acquired | Busy | NotDue:
    lease = lane.lease
    if lease is not None and lease.alive(now):
        return Busy(lease.until)
    due = due_time(lane, now)
    if due is None or due > now:
        return NotDue(due)
    is_takeover = lane.state is LaneState.RUNNING
    taken = replace(
        lane,
        state=after(TRANSITIONS, lane.state, LaneEvent.ACQUIRE),
        owner=owner,
        lease_until=now + ttl,
        fence=lane.fence + 1,
        woken_at=None,
        due_at=None,
        ready_at=None,
        rerun_requested=False,
        next_due_at=lane.next_due_at if lane.next_due_at is not None and lane.next_due_at > now else None,
        retry_at=None,
        doubt_until=now + ttl + LATEST_COMMIT if is_takeover else lane.doubt_until,
    )
    return Acquired(
        lane=taken,
        hold=Hold(owner=owner, fence=taken.fence, asked_at=now, ttl=ttl),
        entry=Entry.TAKEOVER if is_takeover else Entry.FRESH,
        woken_at=lane.woken_at,
        ready_at=lane.ready_at,
    )


def due_time(lane: Lane, now: datetime) -> datetime | None:
    """When the lane may be acquired, if ever: now or earlier means at once."""
    match lane.state:
        case LaneState.IDLE:
            return None if lane.next_due_at is None else _latest(lane.next_due_at, lane.paused_until)
        case LaneState.READY:
            return _latest(lane.due_at or now, lane.ready_at, lane.paused_until)
        case LaneState.RUNNING:
            return lane.lease_until or now  # a pause does not delay a takeover: what is in doubt is settled first
        case _:
            assert_never(lane.state)


def acquirable_at(lane: Lane) -> datetime | None:
    """When a worker may acquire the lane if nothing happens before; None: it waits for a wake. Stored with the lane."""
    if lane.state is LaneState.RUNNING:
        return lane.lease_until
    at = lane.next_due_at if lane.state is LaneState.IDLE else lane.ready_at or lane.due_at or lane.woken_at
    return None if at is None else _latest(at, lane.due_at, lane.paused_until)


def renew(lane: Lane, hold: Hold, now: datetime) -> Renewed | Lost:
    """`now` is the holder's clock before asking. Even an expired lease may be renewed, if no worker took over."""
    if lane.lease is None or not lane.lease.belongs_to(hold):
        return Lost()
    until = max(now + hold.ttl, lane.lease.until)
    return Renewed(replace(lane, lease_until=until), replace(hold, asked_at=now))


# --- fail ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Failing:
    """Write the lane; enqueue a task for `retry_at`, when the next holder takes over."""

    lane: Lane
    retry_at: datetime


def fail(lane: Lane, hold: Hold, now: datetime, *, backoff: Backoff, jitter: float) -> Failing | Lost:
    """The handler raised an error. `jitter` is a uniform random number in [0, 1).

    The lane is not released: what the handler left in flight is in doubt, and a takeover settles that first. Instead
    the lease is moved to the next try, further away with each failure in a row. So every worker waits, also one of the
    release before, which knows leases and nothing of failures; and the sweep finds the lane by its lease.
    """
    if lane.lease is None or not lane.lease.belongs_to(hold):
        return Lost()
    failures = lane.failures + 1
    retry_at = max(now + backoff.delay(failures, jitter=jitter), lane.lease.until)
    return Failing(replace(lane, failures=failures, retry_at=retry_at, lease_until=retry_at), retry_at)


# --- release ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class More:
    """Work is left that could be done now: the quantum is used up, or the worker shuts down."""


@dataclass(frozen=True, slots=True)
class Later:
    """The next work is due at `at`: a retry, a scheduled message, the pace, a window."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Nothing:
    """No work is known."""


Work = More | Later | Nothing


@dataclass(frozen=True, slots=True)
class Requeued:
    """Back at the tail. Enqueue a task for `at`."""

    lane: Lane
    at: datetime


@dataclass(frozen=True, slots=True)
class Sleeping:
    """Idle until `at`. Enqueue a task for it, unless the lane has one."""

    lane: Lane
    at: datetime
    has_task: bool = False
    """`nextDueAt` stays as it was found, and a task exists for it already."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Idle until the next wake."""

    lane: Lane


TASK_IS_AHEAD = timedelta(minutes=1)
"""A task this far ahead has not been delivered, whatever two clocks differ by."""


def release(lane: Lane, hold: Hold, now: datetime, work: Work) -> Requeued | Sleeping | Idle | Lost:
    """A holder whose outcomes are not all written must not release, but let the lease end: see docs/lane.md."""
    if lane.lease is None or not lane.lease.belongs_to(hold):
        return Lost()
    lane = replace(lane, failures=0, retry_at=None)
    if lane.rerun_requested or isinstance(work, More):
        requeued = _ready(
            replace(lane, woken_at=lane.woken_at or now, due_at=lane.due_at or now), LaneEvent.REQUEUE, now
        )
        return Requeued(requeued, requeued.ready_at or now)
    at_rest = after(TRANSITIONS, lane.state, LaneEvent.REST)
    idle = replace(lane, state=at_rest, owner=None, lease_until=None, woken_at=None, due_at=None, ready_at=None)
    match work:
        case Later(at=at):
            at = _latest(at, lane.paused_until)
            # A task that comes soon may have come already, by another clock, and met the lane while it was held.
            has_task = lane.next_due_at == at and at - now > TASK_IS_AHEAD
            return Sleeping(replace(idle, next_due_at=at), at, has_task)
        case Nothing():
            return Idle(replace(idle, next_due_at=None))
        case _:
            assert_never(work)


# --- fairness and repair ------------------------------------------------------------------------------------------


class Turn(StrEnum):
    CONTINUE = "continue"
    YIELD = "yield"


def turn(*, started_at: datetime, now: datetime, quantum: timedelta, lanes_waiting: int) -> Turn:
    """A long lane yields to a waiting one, and otherwise goes on."""
    return Turn.YIELD if lanes_waiting > 0 and now - started_at >= quantum else Turn.CONTINUE


def overdue(lane: Lane, now: datetime, grace: timedelta) -> bool:
    """Whether a worker should have come by now and did not: the sweep enqueues a task."""
    due = due_time(lane, now)
    return due is not None and due + grace <= now


def _latest(first: datetime, *others: datetime | None) -> datetime:
    return max([first, *(other for other in others if other is not None)])
