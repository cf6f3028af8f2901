"""The sweep, once a minute for the whole system: what was dropped is picked up.

It finds lanes whose time has passed (an expired lease, a lost task), claims that outlived their lease, and accounts
with due messages that no lane is going to look at (a lost event); it wakes their lanes. The lane's holder then does the
work, under its lease.

The sweep itself ends messages whose author cancelled them, also if the lane would reach them in a hundred days only.
That needs no lease, since nothing is sent. Nor does the deletion of what an account keeps no longer (retain.py).

Each step stands alone, and so does each document in it: an error is logged and counted, and the sweep goes on with the
next. Only if Firestore or Cloud Tasks cannot be used does a step end early, since the rest of it would fail as well.
A step reads in pages and stops after `LONGEST`; the next sweep then goes on where it stopped (operations/rounds.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from firestore_outbox import log, metrics
from firestore_outbox.clock import Clock
from firestore_outbox.lane.ref import LaneRef, outbox_lane
from firestore_outbox.lane.state import overdue
from firestore_outbox.lane.store import Acquirable, Behind, LaneStore
from firestore_outbox.lane.wake import Waker
from firestore_outbox.messages.outbox_document import Stored
from firestore_outbox.messages.store import InFlight, MessageStore
from firestore_outbox.operations.due_accounts import DueAccounts
from firestore_outbox.operations.retain import Retain
from firestore_outbox.operations.rounds import Page, rounds
from firestore_outbox.operations.sweep_cursors import SweepCursors
from firestore_outbox.operations.sweep_step import step
from firestore_outbox.sending.plan import Cancel, Defer, Refuse, Skip, ending_of
from firestore_outbox.sending.refuse import refuse

GRACE = timedelta(seconds=10)
"""How late something must be before the sweep takes it for dropped."""
LONGEST = timedelta(seconds=40)
"""A step reads no further page after this time: the next sweep begins after a minute."""
PAGE = 300


@dataclass(frozen=True, slots=True)
class Swept:
    lanes: int
    """Lanes that no worker came for."""
    accounts: int
    """Accounts with due messages that no lane knew of."""
    failed: tuple[str, ...] = ()
    """Steps in which something failed. The next sweep repeats them."""


class Sweep:
    def __init__(
        self,
        messages: MessageStore,
        lanes: LaneStore,
        waker: Waker,
        cursors: SweepCursors,
        due_accounts: DueAccounts,
        retain: Retain,
        clock: Clock,
    ) -> None:
        self._messages = messages
        self._lanes = lanes
        self._waker = waker
        self._cursors = cursors
        self._clock = clock
        self._due_accounts = due_accounts
        self._retain = retain

    async def run(self) -> Swept:
        """Never raises, except when cancelled."""
        now = self._clock()
        known: set[LaneRef] = set()
        """Lanes that this sweep made a task for: the other steps leave them alone."""
        cancels, lanes, claims = await asyncio.gather(
            step("cancels", self._cancelled(), lambda found: self._cancel(found, now)),
            step("lanes", self._acquirable(now), lambda found: self._enqueue(found, now, known)),
            step("claims", self._abandoned(now), lambda account_id: self._settle_abandoned(account_id, now, known)),
        )
        accounts, retention = await asyncio.gather(
            self._due_accounts.step(now, until=now + LONGEST, grace=GRACE, known=known),
            self._retain.step(now, until=now + LONGEST),
        )
        swept = Swept(
            lanes.done + claims.done,
            accounts.done,
            tuple(one.name for one in (cancels, lanes, claims, accounts, retention) if one.has_failed),
        )
        log.sweep_found(swept.lanes, swept.accounts)
        metrics.sweep_find("lane", swept.lanes)
        metrics.sweep_find("account", swept.accounts)
        return swept

    # --- cancelled messages

    async def _cancelled(self) -> AsyncIterator[list[Stored]]:
        yield await self._messages.cancel_requested()

    async def _cancel(self, stored: Stored, now: datetime) -> bool:
        ending = ending_of(stored.message, now)
        match ending:
            case Cancel(message=message) | Skip(message=message) | Defer(message=message):
                await self._messages.end(stored, message)
            case Refuse(error=error):
                await refuse(self._messages, stored, error)
            case None:
                return False
            case _:
                assert_never(ending)
        return True

    # --- lanes

    def _acquirable(self, now: datetime) -> AsyncIterator[list[Acquirable]]:
        async def read(after: Behind | None) -> Page[Acquirable, Behind]:
            found = await self._lanes.acquirable(now - GRACE, PAGE, after)
            return Page(found, found[-1].place if len(found) == PAGE else None)

        return rounds(read, self._cursors.lanes, place=lambda found: found.place, is_late=lambda: self._is_late(now))

    async def _enqueue(self, found: Acquirable, now: datetime, known: set[LaneRef]) -> bool:
        if not overdue(found.lane, now, GRACE):
            return False
        known.add(found.ref)
        await self._waker.enqueue(found.ref, now)
        return True

    # --- claims that arrived late, after their lane had changed hands: no lane's lease shows them

    async def _abandoned(self, now: datetime) -> AsyncIterator[list[str]]:
        after: InFlight | None = None
        seen: set[str] = set()
        while not self._is_late(now):
            page = await self._messages.in_flight(now - GRACE, PAGE, after)
            found = {
                one.account_id for one in page if one.lease_until is not None and one.lease_until <= now - GRACE
            } - seen
            seen |= found
            yield sorted(found)
            if len(page) < PAGE:
                return
            after = page[-1]

    async def _settle_abandoned(self, account_id: str, now: datetime, known: set[LaneRef]) -> bool:
        ref = outbox_lane(account_id)
        if ref in known:
            return False
        lease = (await self._lanes.read(ref)).lane.lease
        if ref in known:
            return False
        known.add(ref)
        if lease is not None and not lease.alive(now):
            await self._waker.enqueue(ref, now)  # a takeover is due
        else:
            await self._waker.wake(ref)
        return True

    def _is_late(self, began: datetime) -> bool:
        return self._clock() - began >= LONGEST
