"""The newest messages of a status, for an operator.

The index leads with the account, so no index takes the newest writes of the whole system at one end. A list over all
accounts therefore asks each account for its newest message, and only those accounts for more that can be on the page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.firestore.queries import Find
from firestore_outbox.messages import outbox_document
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.outbox_document import LARGEST_BYTES, PAGE_BYTES, Stored
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.store import MessageStore

MOST_ACCOUNTS = 10_000
EVERY_STATUS = tuple(status.value for status in OutboxStatus)
AT_ONCE = 20
"""Queries in flight while all accounts are asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """The place of a message in the order: a page continues behind it."""

    created_at: datetime
    request_id: str


@dataclass(frozen=True, slots=True)
class Listing:
    gateway: Gateway
    messages: MessageStore

    async def behind(self, request_id: str) -> Behind | None:
        """None: there is no such message, or it has no time of creation."""
        found = await self.gateway.get(paths.outbox(request_id)) if request_id and "/" not in request_id else None
        at = None if found is None else found.data.get("createdAt")
        return Behind(created_at=at, request_id=request_id) if isinstance(at, datetime) else None

    async def newest(
        self, status: OutboxStatus | None, *, account_id: str | None, limit: int, behind: Behind | None
    ) -> list[Stored]:
        """At most `limit` messages, the newest first; of all accounts if `account_id` is None, of every status if
        `status` is None. Malformed documents of a status without a time of creation come last, on the first page
        alone."""
        if account_id is not None:
            found = await self._of_account(status, account_id, limit, behind)
        else:
            accounts = await self.gateway.find(Find(collection="accounts", limit=MOST_ACCOUNTS, select=()))
            found = await self.of_accounts(status, [one.id for one in accounts], limit=limit, behind=behind)
        if len(found) < limit and behind is None and status is not None:
            known = {stored.request_id for stored in found}
            others = await self.messages.in_status(status, account_id=account_id, limit=limit)
            found += [stored for stored in others if stored.request_id not in known]
        return found[:limit]

    async def of_accounts(
        self, status: OutboxStatus | None, account_ids: Sequence[str], *, limit: int, behind: Behind | None
    ) -> list[Stored]:
        """The newest of these accounts together."""
        if len(account_ids) == 1:
            return await self._of_account(status, account_ids[0], limit, behind)
        firsts = await self._of_each(account_ids, status, 1, behind)
        ahead = [str(one.account_id) for one in _in_order(firsts)[:limit]]
        return _in_order(await self._of_each(ahead, status, limit, behind))[:limit]

    async def _of_each(
        self, account_ids: Sequence[str], status: OutboxStatus | None, limit: int, behind: Behind | None
    ) -> list[Stored]:
        room = asyncio.Semaphore(AT_ONCE)

        async def one(account_id: str) -> list[Stored]:
            async with room:
                return await self._of_account(status, account_id, limit, behind)

        pages = await asyncio.gather(*(one(account_id) for account_id in account_ids))
        return [stored for page in pages for stored in page]

    async def _of_account(
        self, status: OutboxStatus | None, account_id: str, limit: int, behind: Behind | None
    ) -> list[Stored]:
        wanted = ("status", "in", EVERY_STATUS) if status is None else ("status", "==", status.value)
        query = Find(
            collection=paths.OUTBOX,
            where=(("accountId", "==", account_id), wanted),
            order_by=("-createdAt", "-__name__"),
            limit=limit,
            start_after=None if behind is None else (behind.created_at, paths.outbox(behind.request_id)),
            most_bytes=PAGE_BYTES,
            hollow_above=LARGEST_BYTES,
        )
        return [outbox_document.read(snapshot) for snapshot in await self.gateway.find(query)]


def row_of(stored: Stored) -> dict[str, Any]:
    """What a list shows of a message."""
    message = stored.message
    row: dict[str, Any] = {
        "requestId": stored.request_id,
        "status": stored.status,
        "createdAt": stored.created,
        "accountId": stored.account_id,
    }
    if not isinstance(message, OutboxMessage):
        nothing = dict.fromkeys(("to", "attempts", "nextAttemptAt", "runId"))
        return {**row, **nothing, "code": "invalid_message", "error": message.sentence}
    error = message.last_error
    return {
        **row,
        "to": message.to,
        "attempts": message.attempts,
        "nextAttemptAt": message.next_attempt_at,
        "runId": message.run_id,
        "code": None if error is None else error.code.value,
        "error": None if error is None else error.message,
    }


def _in_order(found: Sequence[Stored]) -> list[Stored]:
    return sorted(found, key=lambda stored: (stored.created, stored.request_id), reverse=True)
