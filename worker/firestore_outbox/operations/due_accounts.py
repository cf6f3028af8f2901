"""The sweep's search for accounts with due messages that no lane is going to look at: their event was lost.

The index has the waiting documents in the order of their accounts, so the search steps from account to account, one
document each. An account whose lane is held, or will be, needs nothing; nor does one that may not send.

With few such accounts, each sweep looks at all of them. With more than `FIRST`, most of them are busy, or parked with a
backlog, and a read for each of them each minute would be the largest cost of the system. Then a sweep looks at

- all documents that came due within the last `RECENT` (a lost event is younger than that), in parallel ranges, and
  skips accounts that this process knows to be busy or closed;
- `SLOW` accounts more, whatever the age of their documents, going on where the last sweep ended. These find what an
  operator opened by hand, and what is left of a time without sweeps.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from firestore_outbox.accounts.account import Account, Closed, sending
from firestore_outbox.accounts.store import AccountStore
from firestore_outbox.clock import Clock
from firestore_outbox.lane.ref import LaneRef, outbox_lane
from firestore_outbox.lane.state import Lane, due_time, overdue
from firestore_outbox.lane.store import LaneStore
from firestore_outbox.lane.transitions import LaneState
from firestore_outbox.lane.wake import Waker
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.operations.sweep_cursors import SweepCursors
from firestore_outbox.operations.sweep_step import Step, report, step, together

PATIENCE = timedelta(minutes=3)
"""A lane that is due within this is left to its own task: it waits for a retry, a receipt or its pace."""
FIRST = 100
"""Accounts that every sweep looks at."""
SLOW = 100
"""Accounts of the slow round in one sweep: 10,000 of them take 100 minutes and cost 300 reads a minute."""
RECENT = timedelta(minutes=15)
"""Longer than a lane can be held: an account that was busy is looked at again before its documents are older."""
RANGES = 32
MOST_AT_A_TIME = 256
"""Documents of one query. It begins with one, and doubles while each is of another account."""
CLOSED_FOR = timedelta(minutes=10)
"""For how long a sweep of many accounts does not ask again whether an account may send."""
BUSY_FOR = timedelta(minutes=2)
"""And whether a lane that was held or ready still is."""


class Scanned(Protocol):
    """Carries a scan out, and works on what it finds."""

    async def __call__(self, scan: Scan, *, is_many: bool) -> Step: ...


@dataclass(slots=True, kw_only=True)
class Scan:
    """A search within a range of accounts."""

    after: str
    before: str | None = None
    """None: to the last account."""
    since: datetime | None = None
    """Only documents that came due after this; None: all of them."""
    most: int | None = None
    """Accounts at which it ends; None: there is no such number."""
    until: datetime | None = None
    is_done: bool = False
    """It reached the end of its range."""
    found: list[str] = field(default_factory=list)


class DueAccounts:
    def __init__(
        self,
        messages: MessageStore,
        lanes: LaneStore,
        accounts: AccountStore,
        waker: Waker,
        cursors: SweepCursors,
        clock: Clock,
    ) -> None:
        self._messages = messages
        self._lanes = lanes
        self._accounts = accounts
        self._waker = waker
        self._cursors = cursors
        self._clock = clock
        self._busy: dict[str, datetime] = {}
        """Accounts whose lane was held or ready, and until when a sweep of many does not ask again."""
        self._closed: dict[str, datetime] = {}
        """The same for accounts that may not send."""

    async def step(self, now: datetime, *, until: datetime, grace: timedelta, known: set[LaneRef]) -> Step:
        """Wakes the lanes of forgotten accounts. `known` are lanes that this sweep made a task for."""
        self._busy, self._closed = _until(self._busy, now), _until(self._closed, now)
        looked_at: set[str] = set()

        async def scanned(scan: Scan, *, is_many: bool) -> Step:
            async def remember(account_id: str) -> bool:
                if account_id in looked_at:
                    return False  # another range had it
                looked_at.add(account_id)
                return await self._remember(account_id, now, grace, known, is_many=is_many)

            return await step("accounts", self._pages(scan, now - grace), remember)

        first = Scan(after="", most=FIRST)
        steps = [await scanned(first, is_many=False)]
        if not first.is_done and not steps[0].has_failed:
            try:
                steps += await self._many(first, now, until, scanned)
            except Exception as error:  # noqa: BLE001 - of the cursor: it is as the last sweep left it
                report("accounts", error)
                steps.append(Step("accounts", has_failed=True))
        return together(steps)

    async def _many(self, first: Scan, now: datetime, until: datetime, scanned: Scanned) -> list[Step]:
        cursor = await self._cursors.accounts()
        since = None if cursor.swept_at is None else min(now, cursor.swept_at) - RECENT
        edges = [first.after, *sorted({one for one in cursor.bounds if one > first.after})]
        recent = [
            Scan(after=after, before=before, since=since, until=until)
            for after, before in zip(edges, [*edges[1:], None], strict=True)
        ]
        slow = Scan(after=max(cursor.after, first.after), most=SLOW, until=until)
        steps = await asyncio.gather(*(scanned(scan, is_many=True) for scan in recent), scanned(slow, is_many=True))
        is_whole = all(scan.is_done for scan in recent) and not any(one.has_failed for one in steps)
        await self._cursors.keep_accounts(
            replace(
                cursor,
                after="" if slow.is_done else slow.after,
                swept_at=now if is_whole else cursor.swept_at,
                bounds=next_bounds(recent),
            )
        )
        return steps

    async def _pages(self, scan: Scan, due_by: datetime) -> AsyncIterator[list[str]]:
        """The accounts of a range, each once."""
        at_a_time = 1
        while True:
            if scan.most is not None:
                at_a_time = min(at_a_time, scan.most - len(scan.found))
            if at_a_time < 1 or (scan.until is not None and self._clock() >= scan.until):
                return
            page = await self._messages.due_by_account(
                due_by, after=scan.after, before=scan.before, since=scan.since, limit=at_a_time
            )
            accounts = list(dict.fromkeys(page))
            scan.found += accounts
            if accounts:
                scan.after = accounts[-1]
            scan.is_done = len(page) < at_a_time
            yield accounts
            if scan.is_done:
                return
            at_a_time = min(MOST_AT_A_TIME, at_a_time * 2) if len(accounts) == len(page) else 1

    # --- one account

    async def _remember(
        self, account_id: str, now: datetime, grace: timedelta, known: set[LaneRef], *, is_many: bool
    ) -> bool:
        ref = outbox_lane(account_id)
        if ref in known or (is_many and (account_id in self._busy or account_id in self._closed)):
            return False
        if account_id in self._closed and await self._is_closed(account_id, now):
            return False  # as the last sweep found it: its lane need not be read
        lane = (await self._lanes.read(ref)).lane
        if overdue(lane, now, grace):
            known.add(ref)  # a lane without a place in the index of acquirable lanes: the release before wrote it
            await self._waker.enqueue(ref, now)
            return True
        if _is_looked_after(lane, now):
            self._busy[account_id] = now + BUSY_FOR
            return False
        if await self._is_closed(account_id, now):
            self._closed[account_id] = now + CLOSED_FOR
            return False
        known.add(ref)
        await self._waker.wake(ref)
        return True

    async def _is_closed(self, account_id: str, now: datetime) -> bool:
        account = await self._accounts.read(account_id)
        return not isinstance(account, Account) or isinstance(sending(account, now), Closed)


def _until(known: dict[str, datetime], now: datetime) -> dict[str, datetime]:
    return {account_id: end for account_id, end in known.items() if end > now}


def _is_looked_after(lane: Lane, now: datetime) -> bool:
    """Whether a worker has the lane, or will have it soon, or it waits and knows for what."""
    if lane.state is not LaneState.IDLE:
        return True
    due = due_time(lane, now)
    return (due is not None and due <= now + PATIENCE) or (lane.paused_until is not None and lane.paused_until > now)


def next_bounds(scans: list[Scan], most: int = RANGES) -> tuple[str, ...]:
    """Accounts between which the next sweep searches: where ranges ended too early, and evenly between the others."""
    stops = {scan.after for scan in scans if not scan.is_done}
    found = sorted({account for scan in scans for account in scan.found})
    wanted = max(0, most - 1 - len(stops))
    apart = max(1, -(-len(found) // (wanted + 1)))
    return tuple(sorted({*stops, *found[apart - 1 :: apart][:wanted]}))
