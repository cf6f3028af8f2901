"""A function for each write of a document: how Firebase's own extension for email (firestore-send-email) works.

Each write of a message's document, its own included, calls a function with the document as it was after the write. A
new document gets `PENDING` in a transaction; that write's call makes it `PROCESSING` with a lease of 60 s, in a
transaction, reads it again, sends, and makes it `SUCCESS` in a transaction that reads nothing; the call for
`PROCESSING` looks in a transaction whether the lease has ended; the one for `SUCCESS` does nothing. So a message takes
four calls, three writes and four reads. A message is one document. Nothing looks for what was left behind.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from google.cloud import firestore
from google.cloud.firestore import AsyncClient, AsyncDocumentReference, AsyncTransaction

from bench.drains import CONCURRENCY, Send

LEASE = timedelta(seconds=60)


class Functions:
    """Up to fifty calls at a time; a write's call comes after the call that wrote it."""

    def __init__(self, client: AsyncClient, send: Send) -> None:
        self._client = client
        self._send = send
        self._events: deque[tuple[str, str | None]] = deque()
        """A document's id, and its state after the write."""
        self.invocations = 0

    async def drain(self, request_ids: Iterable[str]) -> None:
        """All that follows from the creation of these documents."""
        self._events.extend((request_id, None) for request_id in request_ids)
        await asyncio.gather(*(self._one_instance() for _ in range(CONCURRENCY)))

    async def _one_instance(self) -> None:
        while self._events:
            self.invocations += 1
            await self._on_write(*self._events.popleft())

    async def _on_write(self, request_id: str, state: str | None) -> None:
        if state == "SUCCESS":
            return
        reference = self._client.document("outbox", request_id)
        # The decorated function keeps state between calls: it must be made anew for each.
        written = await firestore.async_transactional(_advanced)(self._client.transaction(), reference)
        if written is not None:
            self._events.append((request_id, written))
        if written == "PROCESSING":
            await self._deliver(reference)

    async def _deliver(self, reference: AsyncDocumentReference) -> None:
        payload = (await reference.get()).to_dict() or {}
        if payload.get("delivery", {}).get("state") != "PROCESSING":
            return
        provider_id = await self._send(reference.id)
        await firestore.async_transactional(_delivered)(self._client.transaction(), reference, provider_id)
        self._events.append((reference.id, "SUCCESS"))


async def _advanced(transaction: AsyncTransaction, reference: AsyncDocumentReference) -> str | None:
    """The state that was written; None: nothing was."""
    payload: dict[str, Any] = (await reference.get(transaction=transaction)).to_dict() or {}
    delivery, now = payload.get("delivery"), datetime.now(UTC)
    if delivery is None:
        started = {"startTime": now, "state": "PENDING", "attempts": 0, "error": None}
        transaction.update(reference, {"delivery": started})
        return "PENDING"
    if delivery["state"] == "PENDING":
        transaction.update(reference, {"delivery.state": "PROCESSING", "delivery.leaseExpireTime": now + LEASE})
        return "PROCESSING"
    if delivery["state"] == "PROCESSING" and delivery["leaseExpireTime"] < now:
        expired = {"delivery.state": "ERROR", "delivery.error": "Message processing lease expired."}
        transaction.update(reference, expired)
        return "ERROR"
    return None


async def _delivered(transaction: AsyncTransaction, reference: AsyncDocumentReference, provider_id: str) -> None:
    transaction.update(
        reference,
        {
            "delivery.attempts": firestore.Increment(1),
            "delivery.endTime": firestore.SERVER_TIMESTAMP,
            "delivery.error": None,
            "delivery.leaseExpireTime": None,
            "delivery.state": "SUCCESS",
            "delivery.info": {"messageId": provider_id},
        },
    )
