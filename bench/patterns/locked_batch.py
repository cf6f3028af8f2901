"""Poll, lock all that is due, send fifty at a time, save in batches: a scheduler of bulk messages.

Ten seconds after its last cycle it asks for everything that is due within five seconds, of all accounts, marks all of
it as in work, sends fifty at a time, and saves the outcomes fifty by fifty as they come, one save after the other. A
message is one document. It holds no lease: what was marked when the process dies stays marked until a person resets it,
which is also why marking needs no transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from google.cloud import firestore
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.base_query import FieldFilter

from bench.drains import CONCURRENCY, Send

POLL_SECONDS = 10.0
AHEAD = timedelta(seconds=5)
LOCKED_AT_A_TIME = 500
SAVED_AT_A_TIME = 50

Sent = tuple[Any, str]
"""A document's reference, and the provider's id for it."""


async def drain(client: AsyncClient, send: Send, messages: int) -> float:
    """Until that many are sent. Returns the seconds spent waiting for the next poll."""
    done, waited = 0, 0.0
    while True:
        done += await cycle(client, send)
        if done >= messages:
            return waited
        await asyncio.sleep(POLL_SECONDS)
        waited += POLL_SECONDS


async def cycle(client: AsyncClient, send: Send) -> int:
    """How many it found, and sent."""
    query = (
        client.collection("outbox")
        .where(filter=FieldFilter("status", "==", "queued"))
        .where(filter=FieldFilter("nextAttemptAt", "<=", datetime.now(UTC) + AHEAD))
    )
    found = [snapshot.reference for snapshot in await query.get()]
    for first in range(0, len(found), LOCKED_AT_A_TIME):
        batch = client.batch()
        for reference in found[first : first + LOCKED_AT_A_TIME]:
            batch.update(reference, {"status": "processing"})
        await batch.commit()
    outcomes: asyncio.Queue[Sent | None] = asyncio.Queue()
    saving = asyncio.create_task(_save_all(client, outcomes))
    waiting = iter(found)
    await asyncio.gather(*(_send_some(waiting, send, outcomes) for _ in range(CONCURRENCY)))
    outcomes.put_nowait(None)
    await saving
    return len(found)


async def _send_some(waiting: Iterator[Any], send: Send, outcomes: asyncio.Queue[Sent | None]) -> None:
    for reference in waiting:
        outcomes.put_nowait((reference, await send(reference.id)))


async def _save_all(client: AsyncClient, outcomes: asyncio.Queue[Sent | None]) -> None:
    """Until None comes."""
    buffer: list[Sent] = []
    while (outcome := await outcomes.get()) is not None:
        buffer.append(outcome)
        if len(buffer) == SAVED_AT_A_TIME:
            await _save(client, buffer)
            buffer = []
    if buffer:
        await _save(client, buffer)


async def _save(client: AsyncClient, buffer: Sequence[Sent]) -> None:
    batch = client.batch()
    for reference, provider_id in buffer:
        fields = {"status": "sent", "providerMessageId": provider_id, "sentAt": firestore.SERVER_TIMESTAMP}
        batch.update(reference, fields)
    await batch.commit()
