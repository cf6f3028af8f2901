"""Short turns: the function that receives an event sends the message itself, if it came alone. Theory in docs/lane.md.

    read lane, account and page    in parallel; the account may come from memory
    acquire and claim              one commit, on the versions that were read
    send
    complete and release           one commit

express.py decides. What is not plain wakes the lane, and a worker takes its turn. Events of one lane are joined within
an instance, and a lane that was found busy is woken without a look for a while, so that a burst does not pay for looks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from firestore_outbox import log, metrics
from firestore_outbox.accounts.account import Account, InvalidAccount
from firestore_outbox.errors import StoreUnavailable, Unwritable
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Committed
from firestore_outbox.lane.holder import Holder, LaneLost
from firestore_outbox.lane.joined import Joined
from firestore_outbox.lane.marks import Mark, both
from firestore_outbox.lane.ref import LaneRef
from firestore_outbox.lane.releaser import Releaser
from firestore_outbox.lane.slots import Slots
from firestore_outbox.lane.state import Entry
from firestore_outbox.lane.store import LaneStore, StoredLane
from firestore_outbox.lane.wake import Waker
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.outbox_document import Stored, rewritten
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.store import Page
from firestore_outbox.plans.plan import plan_of
from firestore_outbox.sending.account_in_use import ACCOUNT_FRESH
from firestore_outbox.sending.express import (
    PAGE,
    SHORTEST_BUSY,
    Because,
    Go,
    InFlight,
    NothingWaits,
    Sight,
    Usual,
    express,
    stays_busy,
)
from firestore_outbox.sending.outbox import Outbox
from firestore_outbox.sending.short_attempt import ShortAttempt

SLOW_CALL_SECONDS, SLOW = 2.0, timedelta(minutes=1)
"""After a call that took this long, the account's lane is left to workers for a minute: they send several messages of
an account at once, and a short turn sends one."""
MOST_KEPT = 10_000
"""Lanes and accounts in an instance's memory."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    events: frozenset[str]
    """The requestIds of the events."""
    deadline: datetime
    """When the first of them must be answered."""
    mark: Mark | None
    """For the holder, if the lane is woken."""


@dataclass(frozen=True, slots=True)
class _Copy:
    account: Account
    read_at: datetime


class ShortTurns:
    def __init__(
        self, outbox: Outbox, *, lanes: LaneStore, waker: Waker, owner: str, is_stopping: Callable[[], bool]
    ) -> None:
        self._outbox = outbox
        self._lanes = lanes
        self._waker = waker
        self._owner = owner
        self._is_stopping = is_stopping
        self._releaser = Releaser(waker, outbox.clock)
        self._joined = Joined(self._serve, _together)
        self._busy_until: dict[LaneRef, float] = {}
        self._copies: dict[str, _Copy] = {}

    async def created(self, ref: LaneRef, request_id: str, mark: Mark | None) -> None:
        """A message was written for now. Returns when it is sent, or its lane and its task know of it."""
        if self._is_busy(ref) and not self._joined.is_under_way(ref):
            await self._waker.wake(ref, mark=mark)
            return
        deadline = self._outbox.clock() + timedelta(seconds=self._outbox.settings.function_seconds)
        await self._joined(ref, _Wanted(frozenset({request_id}), deadline, mark))

    async def _serve(self, ref: LaneRef, wanted: _Wanted) -> None:
        if self._is_busy(ref) or self._is_stopping():
            await self._waker.wake(ref, mark=wanted.mark)
            return
        stored, account, page = await self._look(ref)
        asked, now = _loop_time(), self._outbox.clock()
        settings = self._outbox.settings
        sight = Sight(
            lane=stored.lane,
            account=account,
            page=[one.message for one in page.documents],
            moment=page.moment,
            events=wanted.events,
            has_shared_cap=self._outbox.shared is not None,
            needs_session=isinstance(account, Account)
            and self._outbox.providers[account.provider].sessions is not None,
            is_limited=isinstance(account, Account)
            and (account.caps is not None or plan_of(self._outbox.plans, account.plan.at(now)) is not None),
            room_bytes=self._outbox.hold_room_bytes,
            longest_call=timedelta(seconds=settings.send_timeout_seconds),
            deadline=wanted.deadline,
        )
        decision = express(sight, owner=self._owner, now=now, lease=settings.lease)
        if isinstance(decision, Go) and await self._is_throttled(account):  # asked last: it may cost a read
            decision = Usual(Because.THROTTLED)
        match decision:
            case Go():
                assert isinstance(account, Account), "an account that cannot be used goes the usual way"
                await self._go(ref, stored, page.documents[0], decision, account, asked, wanted)
            case NothingWaits():
                metrics.short_turn("nothing waits")
            case InFlight(until=until):
                metrics.short_turn("in flight")
                await self._waker.enqueue(ref, until)
            case Usual(because=because):
                metrics.short_turn(because.value)
                self._note_busy(ref, stays_busy(sight))
                await self._waker.wake(ref, known=stored, mark=wanted.mark)
            case _:
                assert_never(decision)

    # --- the look

    async def _look(self, ref: LaneRef) -> tuple[StoredLane, Account | InvalidAccount, Page]:
        (stored, account), page = await asyncio.gather(
            self._lane_and_account(ref), self._outbox.messages.waiting(ref.key, PAGE)
        )
        return stored, account, page

    async def _lane_and_account(self, ref: LaneRef) -> tuple[StoredLane, Account | InvalidAccount]:
        copy, now = self._copies.get(ref.key), self._outbox.clock()
        if copy is not None and timedelta(0) <= now - copy.read_at < ACCOUNT_FRESH:
            return await self._lanes.read(ref), copy.account
        stored, snapshot = await self._lanes.read_beside(ref, paths.account(ref.key))
        account = self._outbox.accounts.parsed(ref.key, snapshot)
        self._copies.pop(ref.key, None)
        if isinstance(account, Account):
            _make_room(self._copies)
            self._copies[ref.key] = _Copy(account, now)
        return stored, account

    async def _is_throttled(self, account: Account | InvalidAccount) -> bool:
        if isinstance(account, InvalidAccount):
            return False
        return await self._outbox.app_throttles.not_before(account.provider) is not None

    # --- the turn

    async def _go(
        self,
        ref: LaneRef,
        stored: StoredLane,
        found: Stored,
        go: Go,
        account: Account,
        asked: float,
        wanted: _Wanted,
    ) -> None:
        deadline = wanted.deadline
        held = await self._acquire(ref, stored, found, go)
        if held is None:
            metrics.short_turn("lost a race")
            self._note_busy(ref, SHORTEST_BUSY)
            await self._waker.wake(ref, mark=wanted.mark)
            return
        lane, claim = held
        log.lane_acquired(ref, ref.account_id, Entry.FRESH, go.hold.fence)
        settings = self._outbox.settings
        holder = Holder(
            ref,
            lane,
            go.hold,
            asked=asked,
            lanes=self._lanes,
            clock=self._outbox.clock,
            quantum=timedelta(seconds=settings.quantum_seconds),
            ends_at=lambda: deadline,
            slots=Slots(1),
        )
        began = _loop_time()
        attempt = ShortAttempt(self._outbox, holder, account, go, lanes=self._lanes, releaser=self._releaser)
        with suppress(LaneLost):  # the holder that took over settles what is left
            if await attempt.run(claim, deadline):
                self._copies.pop(ref.key, None)  # what the provider said may have changed the account
        metrics.short_turn("sent" if attempt.is_sent else "tried")
        if _loop_time() - began >= SLOW_CALL_SECONDS:
            self._note_busy(ref, SLOW)

    async def _acquire(
        self, ref: LaneRef, stored: StoredLane, found: Stored, go: Go
    ) -> tuple[StoredLane, Stored | None] | None:
        """The lane and the claim as they are written; None: another writer was faster."""
        acquired = self._lanes.write_op(ref, go.lane, stored)
        assert acquired is not None, "an acquire changes the lane"
        try:
            result = await self._outbox.messages.write([acquired, rewritten(found, go.claim)])
        except Unwritable:
            return None  # a worker finds out which of them, and ends it
        except StoreUnavailable:
            return await self._ours(ref, go)
        if isinstance(result, Committed):
            claim = replace(found, message=go.claim, version=result.versions[1])
            return self._lanes.written(ref, go.lane, result.versions[0]), claim
        return await self._ours(ref, go) if result.maybe_ours else None

    async def _ours(self, ref: LaneRef, go: Go) -> tuple[StoredLane, Stored | None] | None:
        """After a commit whose answer was lost: it was applied whole or not at all, and our name tells."""
        stored = await self._lanes.read(ref)
        if stored.lane.lease is None or not stored.lane.lease.belongs_to(go.hold):
            return None
        for found in await self._outbox.messages.get([go.claim.request_id]):
            message = found.message
            is_claimed = isinstance(message, OutboxMessage) and message.status is OutboxStatus.SENDING
            if is_claimed and found.valid.claimed_by == go.hold.claimed_by:
                return stored, found
        return stored, None

    # --- what an instance remembers

    def _is_busy(self, ref: LaneRef) -> bool:
        until = self._busy_until.get(ref)
        if until is None or until > _loop_time():
            return until is not None
        del self._busy_until[ref]
        return False

    def _note_busy(self, ref: LaneRef, expected: timedelta) -> None:
        _make_room(self._busy_until)
        self._busy_until[ref] = _loop_time() + expected.total_seconds()


def _together(one: _Wanted, other: _Wanted) -> _Wanted:
    return _Wanted(one.events | other.events, min(one.deadline, other.deadline), both(one.mark, other.mark))


def _make_room(kept: dict[LaneRef, float] | dict[str, _Copy]) -> None:
    if len(kept) >= MOST_KEPT:
        kept.clear()


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
