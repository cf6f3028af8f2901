"""Old messages and empty threads of accounts with `retentionDays`, deleted by the sweep (accounts/retention.py).

A pass begins every six hours and asks one query for all accounts that have the setting. For each of them it asks three
queries for old messages and one for old threads, deletes what they find page by page, and stops when the sweep's time
is up; this process then goes on with its next sweep. Nothing is remembered in Firestore: a pass that dies leaves less
to delete, and the next one finds the rest.

Each deletion holds only for the version that was read. A message that an operator redrives, or a thread that gets a
new message, has another version and stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from firestore_outbox import log
from firestore_outbox.accounts.retention import cutoff, days_of, is_time, sent_cutoff
from firestore_outbox.clock import Clock
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Committed, Gateway, Snapshot
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import delete
from firestore_outbox.messages.states import SHOWN_ENDS, MessageStatus
from firestore_outbox.operations.sweep_step import Step, step
from firestore_outbox.plans.plan import Plan, plan_of, term_of

PAGE = 200
"""Documents of one query, and deletions of one commit."""
SENT = (MessageStatus.SENT, MessageStatus.DELIVERED, MessageStatus.READ)
IsOld = Callable[[Snapshot], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """An account with the setting."""

    account_id: str
    days: int
    plan: Plan | None
    """The plan with a limit that it has now; None: nothing is counted."""


class Retain:
    def __init__(self, gateway: Gateway, plans: Mapping[str, Plan], clock: Clock, *, window: timedelta) -> None:
        """`window`: see `is_time`."""
        self._gateway = gateway
        self._plans = plans
        self._clock = clock
        self._window = window
        self._is_unfinished = False
        """The last pass of this process ran out of time; the next sweep goes on with it."""
        self._after: tuple[Any, ...] | None = None
        """The last account of the pages that such a pass finished."""

    async def step(self, now: datetime, *, until: datetime) -> Step:
        """A step of the sweep. Without a pass that is due, it reads nothing."""
        if not self._is_unfinished and not is_time(now, self._window):
            return Step("retention")
        return await step("retention", self._pages(now, until), lambda found: self._account(found, now, until))

    async def _pages(self, now: datetime, until: datetime) -> AsyncIterator[list[Retained]]:
        """The step asks for the next page when it has worked on the one before."""
        after, self._after = (self._after if self._is_unfinished else None), None
        self._is_unfinished = False
        while True:
            page = await self._gateway.find(_accounts(after))
            found = [(one, days) for one in page if (days := days_of(one.data.get("retentionDays"))) is not None]
            yield [
                Retained(account_id=one.id, days=days, plan=plan_of(self._plans, term_of(one.data).at(now)))
                for one, days in found
            ]
            if self._clock() >= until:
                self._is_unfinished, self._after = True, after  # this page again: some of it may be left
                return
            if len(page) < PAGE:
                return
            after = (page[-1].data["retentionDays"], page[-1].path)

    async def _account(self, found: Retained, now: datetime, until: datetime) -> bool:
        account_id, old = found.account_id, cutoff(found.days, now)
        sent = _messages(account_id, "outbound", SENT, "sentAt", sent_cutoff(found.days, found.plan, now))
        ended = _messages(account_id, "outbound", tuple(sorted(SHOWN_ENDS)), "createdAt", old)
        received = _messages(account_id, "inbound", (MessageStatus.DELIVERED,), "createdAt", old)
        # Times of providers may be wrong; when a document was created and changed is Firestore's own knowledge.
        messages = await self._delete_old(sent, until, lambda one: one.created < old)
        messages += await self._delete_old(received, until, lambda one: one.created < old)
        messages += await self._delete_old(ended, until, lambda one: one.updated < old)
        threads = await self._delete_empty(account_id, old, until)
        if messages or threads:
            log.retention_deleted(account_id, messages, threads)
        return bool(messages or threads)

    async def _delete_old(self, query: Find, until: datetime, is_old: IsOld) -> int:
        deleted = 0
        async for page in self._read(query, until):
            deleted += await self._delete([one for one in page if is_old(one)])
        return deleted

    async def _delete_empty(self, account_id: str, before: datetime, until: datetime) -> int:
        """Threads whose newest message is old, and which have no message left."""
        deleted = 0
        async for page in self._read(_threads(account_id, before), until):
            left = await asyncio.gather(*(self._gateway.find(_first_message(one)) for one in page))
            deleted += await self._delete([one for one, some in zip(page, left, strict=True) if not some])
        return deleted

    async def _read(self, query: Find, until: datetime) -> AsyncIterator[list[Snapshot]]:
        """Pages, each after the last document of the one before, which may have stayed."""
        after: tuple[Any, ...] | None = None
        field = query.order_by[0].removeprefix("-")
        while self._clock() < until:
            page = await self._gateway.find(replace(query, start_after=after))
            yield page
            if len(page) < PAGE:
                return
            after = (page[-1].data[field], page[-1].path)

    async def _delete(self, found: Sequence[Snapshot]) -> int:
        """Those that are still as they were read. Returns how many."""
        writes = [delete(one.path, version=one.version) for one in found]
        if not writes or isinstance(await self._gateway.commit(writes), Committed):
            return len(writes)
        alone = [await self._gateway.commit([write]) for write in writes]
        return sum(isinstance(one, Committed) for one in alone)


def _accounts(after: tuple[Any, ...] | None) -> Find:
    """Accounts without the setting are not in the index, and not read."""
    return Find(
        collection="accounts",
        where=(("retentionDays", ">", 0),),
        order_by=("retentionDays", "__name__"),
        limit=PAGE,
        start_after=after,
    )


def _messages(
    account_id: str, direction: str, statuses: tuple[MessageStatus, ...], field: str, before: datetime
) -> Find:
    return Find(
        collection=paths.MESSAGES,
        group=True,
        where=(
            ("accountId", "==", account_id),
            ("direction", "==", direction),
            ("status", "in", [status.value for status in statuses]),
            (field, "<", before),
        ),
        order_by=(field, "__name__"),
        limit=PAGE,
        select=(field,),
    )


def _threads(account_id: str, before: datetime) -> Find:
    return Find(
        collection=paths.THREADS,
        where=(("accountId", "==", account_id), ("lastMessageAt", "<", before)),
        order_by=("-lastMessageAt", "-__name__"),
        limit=PAGE,
        select=("lastMessageAt",),
    )


def _first_message(thread: Snapshot) -> Find:
    return Find(collection=f"{thread.path}/{paths.MESSAGES}", limit=1, select=("__name__",))
