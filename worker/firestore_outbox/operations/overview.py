"""How everything stands at a moment: the accounts, what waits for a person, and what should have run by now."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from firestore_outbox.accounts.account import Account, Closed, Hindrance, InvalidAccount, parse_account, sending
from firestore_outbox.clock import Clock
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.firestore.queries import Find
from firestore_outbox.health.day_use import DayNow, day_now
from firestore_outbox.lane.recent import Minute
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.lane.state import Lane
from firestore_outbox.lane.store import LaneStore
from firestore_outbox.lane.transitions import LaneState
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.settings import Settings

LATE = timedelta(minutes=2)
"""A lane that should have run this long ago was missed by a sweep, too."""
MOST_LATE = 20
RATE_MINUTES = 5
DOLLARS_A_MILLION = (12.63, 28.85)
"""Of messages in bulk, and of messages that come alone: the sums of docs/deploy.md, which a test holds together."""
MOST_COUNTED = 50
"""Accounts whose messages are counted one by one."""


class Standing(StrEnum):
    """What an account does at the moment. The value is the word that people see."""

    SENDING = "sending"
    WAITING = "waiting"
    """Something is due, and no worker has taken it yet."""
    QUIET = "quiet"
    PAUSED = "paused"
    PARKED = "parked"
    CLOSED = "outside its hours"
    RESTING = "resting"
    """A throttle, a lost session or a failed turn: it goes on by itself."""
    FAULTY = "faulty"
    """The account's document cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountNow:
    account_id: str
    provider: str
    standing: Standing
    until: datetime | None
    """When the standing ends by itself; None: not by itself, or not at a known time."""
    sentence: str
    """Why, in words; empty if the standing says it all."""
    queued: int
    oldest_due: datetime | None
    """Since when its first due message waits; None: nothing is due."""
    per_minute: float | None
    """The pace that is in force; None: no pace."""
    rate_factor: float
    hour: tuple[Minute, ...]
    """What it sent in the last sixty minutes, the present one last. A worker that holds the lane adds to it every few
    seconds."""
    sent_today: int
    """In UTC."""
    day: DayNow | None
    """What is used of its caps for a day, on its own clock; None: it has none."""

    @property
    def rate(self) -> float:
        """Sent a minute, over the last minutes that are complete."""
        return sum(minute.sent for minute in self.hour[-1 - RATE_MINUTES : -1]) / RATE_MINUTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What waits for a person."""

    uncertain: int
    failed: int
    parked: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    late: tuple[tuple[str, datetime], ...]
    """Lanes that should have run, and since when; at most MOST_LATE."""
    ready: int
    """Lanes in the queue: they have work, and wait for a worker or for the end of their debounce."""


def standing(
    account: Account | InvalidAccount, lane: Lane, oldest_due: datetime | None, now: datetime
) -> tuple[Standing, datetime | None, str]:
    """What the account does, until when, and why."""
    if isinstance(account, InvalidAccount):
        return Standing.FAULTY, None, account.sentence
    state = sending(account, now)
    if isinstance(state, Closed):
        named = {
            Hindrance.PARKED: (Standing.PARKED, "The provider refuses its credentials. Correct them, then resume it."),
            Hindrance.PAUSED: (Standing.PAUSED, "A person paused it." if state.until is None else ""),
            Hindrance.WINDOW: (Standing.CLOSED, ""),
        }
        found, sentence = named[state.because]
        return found, state.until, sentence
    if lane.paused_until is not None and lane.paused_until > now:
        is_throttled = lane.throttled_until is not None and lane.throttled_until > now
        why = "The provider asked for a pause." if is_throttled else "Its session is down."
        return Standing.RESTING, lane.paused_until, why
    if lane.is_failing:
        return Standing.RESTING, lane.retry_at, f"Its last {lane.failures} turns ended in an error."
    if lane.state is LaneState.RUNNING:
        return Standing.SENDING, None, ""
    return (Standing.QUIET, None, "") if oldest_due is None else (Standing.WAITING, None, "")


@dataclass(frozen=True, slots=True)
class Overview:
    gateway: Gateway
    messages: MessageStore
    lanes: LaneStore
    settings: Settings
    clock: Clock

    async def accounts(
        self, account_ids: Sequence[str] | None, *, limit: int, after: str | None = None
    ) -> list[AccountNow]:
        """By id, behind `after`; all accounts if `account_ids` is None. Costs three reads for each account, and one
        more if something waits."""
        if account_ids is None:
            query = Find(
                collection="accounts",
                order_by=("__name__",),
                limit=limit,
                start_after=None if after is None else (paths.account(after),),
            )
            documents = {one.id: one.data for one in await self.gateway.find(query)}
        else:
            wanted = [one for one in sorted(account_ids) if after is None or one > after][:limit]
            found = await self.gateway.get_all([paths.account(one) for one in wanted])
            documents = {one.id: one.data for one in found.values()}
        names = sorted(documents)
        lanes = await self.lanes.read_all([outbox_lane(one) for one in names])
        return list(
            await asyncio.gather(
                *(self._now(one, documents[one], stored.lane) for one, stored in zip(names, lanes, strict=True))
            )
        )

    async def account(self, account_id: str, data: Mapping[str, Any]) -> AccountNow:
        """`data` is the account's document."""
        return await self._now(account_id, data, (await self.lanes.read(outbox_lane(account_id))).lane)

    async def _now(self, account_id: str, data: Mapping[str, Any], lane: Lane) -> AccountNow:
        """What is due is looked for only if something waits."""
        settings, now = self.settings, self.clock()
        account = parse_account(account_id, data, per_minute=settings.per_minute, concurrency=settings.send_concurrency)
        queued = await self.messages.count_in_status(account_id, OutboxStatus.QUEUED)
        due = (await self.messages.due(account_id, now, 1)).documents if queued else ()
        first = due[0].message if due else None
        oldest = first.next_attempt_at if isinstance(first, OutboxMessage) else None
        found, until, sentence = standing(account, lane, oldest, now)
        cap = account.cap if isinstance(account, Account) else None
        caps = account.caps if isinstance(account, Account) else None
        return AccountNow(
            account_id=account_id,
            provider=str(data.get("provider", "")),
            standing=found,
            until=until,
            sentence=sentence,
            queued=queued,
            oldest_due=oldest,
            per_minute=None if cap is None else 60 / cap.interval.total_seconds() * lane.rate_factor,
            rate_factor=lane.rate_factor,
            hour=lane.recent.last_hour(now),
            sent_today=lane.recent.today(now),
            day=None if caps is None else day_now(lane.day_use, caps, now),
        )

    async def waiting_for_a_person(self, account_ids: Sequence[str] | None) -> Waiting:
        """Of all accounts if `account_ids` is None. A count costs a read for each thousand messages, and one at
        least."""
        wanted: list[str | None] = [None] if account_ids is None else list(account_ids[:MOST_COUNTED])
        uncertain, failed, parked = await asyncio.gather(
            self._counted(wanted, OutboxStatus.UNCERTAIN),
            self._counted(wanted, OutboxStatus.FAILED),
            self.parked(account_ids),
        )
        return Waiting(uncertain=uncertain, failed=failed, parked=parked)

    async def parked(self, account_ids: Sequence[str] | None) -> tuple[str, ...]:
        """The accounts among these that the provider refuses; of all if `account_ids` is None."""
        if account_ids is None:
            query = Find(collection="accounts", where=(("status", "==", "parked"),), limit=MOST_COUNTED)
            return tuple(sorted(one.id for one in await self.gateway.find(query)))
        found = await self.gateway.get_all([paths.account(one) for one in account_ids[:MOST_COUNTED]])
        return tuple(sorted(one.id for one in found.values() if one.data.get("status") == "parked"))

    async def health(self) -> Health:
        """Costs two reads if nothing is late."""
        late, ready = await asyncio.gather(
            self.lanes.acquirable(self.clock() - LATE, MOST_LATE), self.lanes.count_ready()
        )
        return Health(late=tuple((str(one.ref), one.place[0]) for one in late), ready=ready)

    async def _counted(self, account_ids: Sequence[str | None], status: OutboxStatus) -> int:
        return sum(await asyncio.gather(*(self.messages.count_in_status(one, status) for one in account_ids)))
