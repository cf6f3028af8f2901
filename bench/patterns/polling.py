"""Poll, claim one, send one: the worker of a well-known kind of WhatsApp backend.

Every 500 ms it asks for queued documents of an account that are due, and for one after the other it claims the document
in a transaction (still queued, and without a lease), sends, and writes the outcome to the outbox document and to
the message.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from google.cloud import firestore
from google.cloud.firestore import AsyncClient, AsyncDocumentReference, AsyncTransaction
from google.cloud.firestore_v1.base_query import FieldFilter

from bench.drains import ACCOUNT, Send

POLL_SECONDS = 0.5
POLL_LIMIT = 50
LEASE = timedelta(seconds=60)


async def drain(client: AsyncClient, send: Send, messages: int) -> float:
    """Until that many are sent. Returns the seconds spent waiting for the next poll."""
    done, waited = 0, 0.0
    loop = asyncio.get_running_loop()
    while done < messages:
        began = loop.time()
        for snapshot in await poll(client, ACCOUNT, min(POLL_LIMIT, messages - done)):
            # The decorated function keeps state between calls: it must be made anew for each.
            if not await firestore.async_transactional(_claimed)(client.transaction(), snapshot.reference):
                continue
            await _sent_one(client, snapshot.reference, snapshot.get("threadId"), await send(snapshot.id))
            done += 1
        pause = began + POLL_SECONDS - loop.time()
        if done < messages and pause > 0:
            await asyncio.sleep(pause)
            waited += pause
    return waited


async def poll(client: AsyncClient, account_id: str, limit: int = POLL_LIMIT) -> list[Any]:
    query = (
        client.collection("outbox")
        .where(filter=FieldFilter("accountId", "==", account_id))
        .where(filter=FieldFilter("status", "==", "queued"))
        .where(filter=FieldFilter("nextAttemptAt", "<=", datetime.now(UTC)))
        .order_by("nextAttemptAt")
        .limit(limit)
    )
    return list(await query.get())


async def _claimed(transaction: AsyncTransaction, reference: AsyncDocumentReference) -> bool:
    snapshot = await reference.get(transaction=transaction)
    data, now = snapshot.to_dict() or {}, datetime.now(UTC)
    lease_until = data.get("leaseUntil")
    if data.get("status") != "queued" or (lease_until is not None and lease_until > now):
        return False
    claim = {"status": "sending", "claimedBy": "worker-1", "leaseUntil": now + LEASE, "attempts": data["attempts"] + 1}
    transaction.update(reference, claim)
    return True


async def _sent_one(client: AsyncClient, outbox: AsyncDocumentReference, thread_id: str, provider_id: str) -> None:
    at = firestore.SERVER_TIMESTAMP
    await outbox.update({"status": "sent", "providerMessageId": provider_id, "sentAt": at, "leaseUntil": None})
    message = client.document("threads", thread_id, "messages", outbox.id)
    await message.update({"status": "sent", "providerMessageId": provider_id, "sentAt": at})
