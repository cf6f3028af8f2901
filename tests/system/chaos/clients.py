"""Clients that write messages steadily, and remember what they were told.

Each conversation's messages are written one after the other, so their order is known. A write that is not answered is
tried again under the same requestId, as firestore_outbox/backend/batch.py says, until it is acknowledged; but some
clients go away instead, and it is unknown whether their message is there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random

from google.api_core.exceptions import AlreadyExists, GoogleAPICallError, RetryError
from google.cloud.firestore import AsyncClient

from firestore_outbox.backend import batch as outbox

ANSWER_SECONDS = 5.0
PAUSE_SECONDS = 0.5
GOES_AWAY = 0.1
"""The share of unanswered writes whose client does not try again."""
RECIPIENTS = 12
"""Of each account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    account_id: str
    provider: str

    @property
    def is_resend_safe(self) -> bool:
        return self.provider == "simulated-idempotent"

    @property
    def echoes(self) -> bool:
        """Whether its receipts name the message: then whatever was accepted is known in the end."""
        return self.provider != "simulated-mute"


ACCOUNTS = tuple(
    Account(account_id=f"{provider}-{number}", provider=provider)
    for number in range(4)
    for provider in ("simulated", "simulated-idempotent", "simulated-mute")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A message as its client knows it."""

    request_id: str
    account_id: str
    to: str
    tries: int
    acknowledged_at: float | None
    """None: its client went away without an answer."""

    @property
    def is_acknowledged(self) -> bool:
        return self.acknowledged_at is not None


class Clients:
    """`written` grows in the order of the answers; within a conversation that is the order of the writes."""

    def __init__(self, db: AsyncClient, accounts: Sequence[Account], random: Random) -> None:
        self.written: list[Written] = []
        self._db = db
        self._random = random
        self._threads = [(account.account_id, f"+49170{n:04d}") for n in range(RECIPIENTS) for account in accounts]
        self._numbers = count()
        self._turns: dict[tuple[str, str], asyncio.Lock] = {thread: asyncio.Lock() for thread in self._threads}

    async def write(self, messages: int, seconds: float) -> None:
        """Writes that number of messages evenly over the time, without waiting for one before the next; returns when
        all have ended."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as writes:
            for number, (account_id, to) in zip(range(messages), self._in_turn(), strict=False):
                await asyncio.sleep(max(0.0, began + seconds * number / messages - time.monotonic()))
                writes.create_task(self._one(f"chaos-{next(self._numbers):06d}", account_id, to))

    async def write_one(self, account_id: str, to: str) -> str:
        """One more message, of a conversation of its own; its requestId."""
        request_id = f"chaos-{next(self._numbers):06d}"
        self._turns.setdefault((account_id, to), asyncio.Lock())
        await self._one(request_id, account_id, to)
        return request_id

    def _in_turn(self) -> Iterator[tuple[str, str]]:
        while True:
            yield from self._threads

    async def _one(self, request_id: str, account_id: str, to: str) -> None:
        async with self._turns[account_id, to]:
            tries, is_there = 1, await self._tried(request_id, account_id, to)
            while not is_there and self._random.random() >= GOES_AWAY:
                await asyncio.sleep(PAUSE_SECONDS)
                tries, is_there = tries + 1, await self._tried(request_id, account_id, to)
            acknowledged_at = time.time() if is_there else None
            self.written.append(
                Written(
                    request_id=request_id, account_id=account_id, to=to, tries=tries, acknowledged_at=acknowledged_at
                )
            )

    async def _tried(self, request_id: str, account_id: str, to: str) -> bool:
        """Whether the message is there, as far as the answer tells."""
        batch = self._db.batch()
        new = outbox.send_message(
            batch, self._db, request_id=request_id, account_id=account_id, to=to, uid="chaos", text=request_id
        )
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                try:
                    await batch.commit()
                except AlreadyExists:  # an earlier try of ours, whose answer was lost
                    return await new.is_stored_async()
        except (GoogleAPICallError, RetryError, TimeoutError):
            return False
        return True
