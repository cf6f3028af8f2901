"""Messages written at a rate over a long time, for `bench.soak` and `bench.overload`, and what became of each.

What the provider was called for is read from the file that the simulator writes, line by line as it grows: to ask it
for everything again and again would cost more than what is measured.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import AsyncClient

from bench.places import pointed_at
from firestore_outbox.errors import StoreUnavailable
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Conflict, Gateway
from firestore_outbox.firestore.queries import Find
from firestore_outbox.local.dev import PROJECT, DevSettings, DevStack
from firestore_outbox.messages.enqueue import NewMessage, batch

ACCOUNTS, RECIPIENTS = 8, 50
"""Recipients of each account."""
CONCURRENCY = 10
LOOK_SECONDS = 1.0
IN_WAITING = ("queued", "sending", "uncertain")


@dataclass
class Traffic:
    """Times are of the machine's clock, in seconds."""

    db: AsyncClient
    record: Path
    """The simulator's file of calls."""
    account_ids: tuple[str, ...] = tuple(f"bench-{number}" for number in range(ACCOUNTS))
    asked: dict[str, float] = field(default_factory=dict)
    """By requestId, just before its commit; in the order of the writes."""
    acknowledged: dict[str, float] = field(default_factory=dict)
    """By requestId, when that commit was answered."""
    refused: int = 0
    """Messages whose commit failed or was not answered."""
    calls: dict[str, list[float]] = field(default_factory=dict)
    """By requestId, when the provider was called; in the order of the calls."""
    threads: dict[str, tuple[str, str]] = field(default_factory=dict)
    _read: int = 0

    def __post_init__(self) -> None:
        self._gateway = Gateway(self.db)

    # --- writing

    async def make_accounts(self, status: str = "active") -> None:
        for account_id in self.account_ids:
            fields = {"provider": "simulated", "status": status, "pace": {"perMinute": 0}, "concurrency": CONCURRENCY}
            await self.db.document(f"accounts/{account_id}").set(fields)

    async def write(self, rate: float, seconds: float, *, together: int = 1, in_flight: int = 64) -> None:
        """Write messages at this rate a second, `together` in each commit. It does not wait for one before it writes
        the next, up to the bound of what may be under way: clients that hear nothing do not ask for ever."""
        began, slots = time.monotonic(), asyncio.Semaphore(in_flight)
        async with asyncio.TaskGroup() as writes:
            for number in range(max(1, round(rate * seconds / together))):
                await asyncio.sleep(max(0.0, began + number * together / rate - time.monotonic()))
                if time.monotonic() - began > seconds:
                    return
                await slots.acquire()
                writes.create_task(self._commit(together)).add_done_callback(lambda _: slots.release())

    async def write_at_once(self, count: int, *, together: int, in_flight: int = 8) -> None:
        """As fast as they are taken."""
        numbers = iter(range(-(-count // together)))

        async def client() -> None:
            for _ in numbers:
                await self._commit(together)

        await asyncio.gather(*(client() for _ in range(in_flight)))

    async def _commit(self, together: int) -> None:
        new = [self._next(len(self.asked) + number) for number in range(together)]
        writes = [write for one in new for write in batch(one)]
        self.asked.update(dict.fromkeys((one.request_id for one in new), time.time()))
        self.threads.update((one.request_id, (one.account_id, one.to)) for one in new)
        try:
            answer = await self._gateway.commit(writes)
        except StoreUnavailable:
            self.refused += together
            return
        if isinstance(answer, Conflict) and not answer.maybe_ours:
            raise RuntimeError("a message of this name is there already")
        self.acknowledged.update(dict.fromkeys((one.request_id for one in new), time.time()))

    def _next(self, number: int) -> NewMessage:
        return NewMessage(
            request_id=str(uuid.uuid4()),
            account_id=self.account_ids[number % ACCOUNTS],
            to=f"+49170{number // ACCOUNTS % RECIPIENTS:04d}",
            parts=[{"type": "text", "text": "hello"}],
            created_by="bench",
        )

    # --- what became of it

    def read_calls(self) -> list[float]:
        """Of the messages that were called since the last time: the seconds from write to call, sorted."""
        took = []
        for call in self._new_calls():
            request_id, at = call["request_id"], datetime.fromisoformat(call["at"]).timestamp()
            times = self.calls.setdefault(request_id, [])
            times.append(at)
            if len(times) == 1 and request_id in self.asked:
                took.append(at - self.asked[request_id])
        return sorted(took)

    def _new_calls(self) -> Iterator[dict[str, str]]:
        if not self.record.exists():
            return
        with self.record.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # it is being written
                self._read += len(line)
                yield json.loads(line)

    async def oldest_queued_seconds(self) -> float:
        """The age of the message that is due for longest; 0 if none is."""
        now, ages = datetime.now(UTC), [0.0]
        for account_id in self.account_ids:
            found = await self._gateway.find(
                Find(
                    collection=paths.OUTBOX,
                    where=(("accountId", "==", account_id), ("status", "==", "queued")),
                    order_by=("nextAttemptAt", "createdAt"),
                    limit=1,
                )
            )
            ages += [(now - one.data["nextAttemptAt"]).total_seconds() for one in found]
        return max(ages)

    async def drained(self, patience_seconds: float) -> float | None:
        """How many seconds until nothing waited any more; None if that did not come."""
        began = time.monotonic()
        while True:
            if not sum([await self._count(status) for status in IN_WAITING]):
                return time.monotonic() - began
            if time.monotonic() - began > patience_seconds:
                return None
            await asyncio.sleep(LOOK_SECONDS)

    async def statuses(self) -> dict[str, int]:
        every = (*IN_WAITING, "sent", "failed", "skipped", "cancelled")
        counts = {status: await self._count(status) for status in every}
        return {status: count for status, count in counts.items() if count}

    async def _count(self, status: str) -> int:
        return await self._gateway.count(Find(collection=paths.OUTBOX, where=(("status", "==", status),)))

    def faults(self) -> list[str]:
        """What was acknowledged and not called, what was called twice, and what overtook another."""
        lost = self.acknowledged.keys() - self.calls.keys()
        repeated = [request_id for request_id, times in self.calls.items() if len(times) > 1]
        found = {"lost": len(lost), "sent twice": len(repeated), "out of order": self._overtaken()}
        return [f"{count} messages were {what}" for what, count in found.items() if count]

    def _overtaken(self) -> int:
        """Of those of one conversation, where the first was acknowledged before the second was written."""
        place = {request_id: number for number, request_id in enumerate(self.calls)}
        threads: dict[tuple[str, str], list[str]] = {}
        for request_id in self.asked:
            if request_id in place and request_id in self.acknowledged:
                threads.setdefault(self.threads[request_id], []).append(request_id)
        return sum(
            any(self.acknowledged[one] < self.asked[later] and place[later] < place[one] for one in thread[:number])
            for thread in threads.values()
            for number, later in enumerate(thread)
        )


@asynccontextmanager
async def durable_stack(data: Path, **environment: str) -> AsyncIterator[DevStack]:
    settings = DevSettings(
        firestore_port=0,
        tasks_port=0,
        functions_port=0,
        worker_port=0,
        provider_port=0,
        data=data,
        environment={"OUTBOX_LOG_LEVEL": "ERROR", **environment},
    )
    async with DevStack(settings) as stack:
        yield stack


@asynccontextmanager
async def traffic_to(stack: DevStack, data: Path) -> AsyncIterator[Traffic]:
    with pointed_at(stack.firestore):
        db = AsyncClient(project=PROJECT, credentials=AnonymousCredentials())
    try:
        yield Traffic(db, data / "provider-calls.jsonl")
    finally:
        db.close()


def percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
