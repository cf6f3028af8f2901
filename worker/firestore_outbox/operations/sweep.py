"""The sweep, once a minute for the whole system: what was dropped is picked up.

It finds lanes whose time has passed (an expired lease, a lost task), accounts with due messages that no lane is going
to look at (a lost event), and claims that outlived their lease; it wakes their lanes. The lane's holder then does the
work, under its lease.

The sweep itself ends messages whose author cancelled them, also if the lane would reach them in a hundred days only.
That needs no lease, since nothing is sent.

Each step stands alone, and so does each document in it: an error is logged and counted, and the sweep goes on with the
next. Only if Firestore or Cloud Tasks cannot be used does a step end early, since the rest of it would fail as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar, assert_never

from firestore_outbox import log, metrics
from firestore_outbox.accounts.account import Account, Closed, sending
from firestore_outbox.accounts.store import AccountStore
from firestore_outbox.clock import Clock
from firestore_outbox.errors import Unavailable
from firestore_outbox.lane.ref import LaneRef, outbox_lane
from firestore_outbox.lane.state import due_time, overdue
from firestore_outbox.lane.store import LaneStore
from firestore_outbox.lane.transitions import LaneState
from firestore_outbox.lane.wake import Waker
from firestore_outbox.messages.outbox_document import Stored
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.sending.plan import Cancel, Defer, Refuse, Skip, ending_of
from firestore_outbox.sending.refuse import refuse

T = TypeVar("T")

GRACE = timedelta(seconds=10)
"""How late something must be before the sweep takes it for dropped."""
PATIENCE = timedelta(minutes=3)
"""A lane that is due within this is left to its own task: it waits for a retry, a receipt or its pace."""
MOST_LANES = 300
AT_ONCE = 16
"""Documents worked on at the same time: a sweep of many accounts ends within its minute, and loads no one else."""


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
        self, messages: MessageStore, lanes: LaneStore, accounts: AccountStore, waker: Waker, clock: Clock
    ) -> None:
        self._messages = messages
        self._lanes = lanes
        self._accounts = accounts
        self._waker = waker
        self._clock = clock

    async def run(self) -> Swept:
        """Never raises, except when cancelled."""
        now = self._clock()
        cancels = await _step("cancels", self._messages.cancel_requested, lambda found: self._cancel(found, now))
        lanes = await _step("lanes", lambda: self._dropped_lanes(now), lambda ref: self._enqueue(ref, now))
        claims = await _step("claims", lambda: self._abandoned(now), lambda name: self._settle_abandoned(name, now))
        accounts = await _step("accounts", lambda: self._due_accounts(now), lambda name: self._remember(name, now))
        swept = Swept(
            lanes.done + claims.done,
            accounts.done,
            tuple(step.name for step in (cancels, lanes, claims, accounts) if step.has_failed),
        )
        log.sweep_found(swept.lanes, swept.accounts)
        metrics.sweep_find("lane", swept.lanes)
        metrics.sweep_find("account", swept.accounts)
        return swept

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

    async def _dropped_lanes(self, now: datetime) -> list[LaneRef]:
        return [ref for ref, lane in await self._lanes.overdue(now - GRACE, MOST_LANES) if overdue(lane, now, GRACE)]

    async def _enqueue(self, ref: LaneRef, now: datetime) -> bool:
        await self._waker.enqueue(ref, now)
        return True

    async def _abandoned(self, now: datetime) -> list[str]:
        """Accounts with claims that arrived late, after their lane had changed hands: no lane's lease shows them."""
        return sorted(await self._messages.accounts_with_abandoned(now - GRACE))

    async def _settle_abandoned(self, account_id: str, now: datetime) -> bool:
        lease = (await self._lanes.read(outbox_lane(account_id))).lane.lease
        if lease is not None and not lease.alive(now):
            return False  # a takeover is due, and the step before enqueued it
        await self._waker.wake(outbox_lane(account_id))
        return True

    async def _due_accounts(self, now: datetime) -> list[str]:
        found: list[str] = []
        account_id: str | None = ""
        while (account_id := await self._messages.next_account_due(now - GRACE, after=account_id or "")) is not None:
            found.append(account_id)
        return found

    async def _remember(self, account_id: str, now: datetime) -> bool:
        if not await self._is_forgotten(account_id, now):
            return False
        await self._waker.wake(outbox_lane(account_id))
        return True

    async def _is_forgotten(self, account_id: str, now: datetime) -> bool:
        lane = (await self._lanes.read(outbox_lane(account_id))).lane
        if lane.state is not LaneState.IDLE:
            return False  # a worker has it, or will
        due = due_time(lane, now)
        if (due is not None and due <= now + PATIENCE) or (lane.paused_until is not None and lane.paused_until > now):
            return False  # it waits, and knows for what
        account = await self._accounts.read(account_id)
        return isinstance(account, Account) and not isinstance(sending(account, now), Closed)


# --- steps


@dataclass(frozen=True, slots=True)
class _Step:
    name: str
    done: int = 0
    has_failed: bool = False


async def _step(name: str, find: Callable[[], Awaitable[Iterable[T]]], work: Callable[[T], Awaitable[bool]]) -> _Step:
    """Finds, and works on each that was found. Every error ends here, in the log and the metrics."""
    done, failed = 0, False
    try:
        found = list(await find())
        for first in range(0, len(found), AT_ONCE):
            some = found[first : first + AT_ONCE]
            for result in await asyncio.gather(*(work(one) for one in some), return_exceptions=True):
                if isinstance(result, bool):
                    done += result
                elif isinstance(result, Unavailable) or not isinstance(result, Exception):
                    raise result
                else:
                    failed = True
                    log.sweep_failed(name, result)
                    metrics.sweep_failure(name)
    except Exception as error:  # noqa: BLE001 - whatever failed, the other steps are worth trying
        failed = True
        log.sweep_failed(name, error)
        metrics.sweep_failure(name)
    return _Step(name, done, failed)
