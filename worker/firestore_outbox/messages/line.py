"""Looks beyond what a page of an account's line has: urgent messages, a thread's, and whether a contact is new.
sending/ahead.py and sending/day_budget.py use them."""

from __future__ import annotations

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.firestore.queries import Find
from firestore_outbox.messages import outbox_document
from firestore_outbox.messages.outbox_document import LARGEST_BYTES, PAGE_BYTES, Stored
from firestore_outbox.messages.priority import Priority
from firestore_outbox.messages.states import MessageStatus, OutboxStatus
from firestore_outbox.messages.store import WAITING_OR_CLAIMED


class Line:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def urgent(self, account_id: str, limit: int) -> list[Stored]:
        """The account's urgent documents that wait, whenever they are due, in order."""
        query = Find(
            collection=paths.OUTBOX,
            where=(
                ("accountId", "==", account_id),
                ("priority", "==", Priority.URGENT.value),
                ("status", "==", OutboxStatus.QUEUED.value),
            ),
            order_by=("nextAttemptAt",),
            limit=limit,
            most_bytes=PAGE_BYTES,
            hollow_above=LARGEST_BYTES,
        )
        return [outbox_document.read(snapshot) for snapshot in await self._gateway.find(query)]

    async def of_thread(self, account_id: str, thread_id: str, limit: int) -> list[Stored]:
        """What waits or is in flight of a thread, in no order."""
        query = Find(
            collection=paths.OUTBOX,
            where=(
                ("accountId", "==", account_id),
                ("threadId", "==", thread_id),
                ("status", "in", WAITING_OR_CLAIMED),
            ),
            limit=limit,
            most_bytes=PAGE_BYTES,
            hollow_above=LARGEST_BYTES,
        )
        return [outbox_document.read(snapshot) for snapshot in await self._gateway.find(query)]

    async def has_spoken(self, thread_id: str) -> bool:
        """Whether a message of the conversation was ever sent or received."""
        statuses = [status.value for status in (MessageStatus.SENT, MessageStatus.DELIVERED, MessageStatus.READ)]
        where = (("status", "in", statuses),)
        return bool(
            await self._gateway.find(
                Find(collection=f"{paths.thread(thread_id)}/{paths.MESSAGES}", where=where, limit=1)
            )
        )
