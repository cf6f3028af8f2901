"""The whole product on virtual time, with nothing going wrong, and everything counted that Google would bill.

Firestore, Cloud Tasks, functions, workers and the provider are those of the simulation: production code on our engines,
in one process, where a day takes seconds. What the app itself writes is not counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from bench.prices import Bill
from firestore_emulator.outgoing import Answered, HttpCall
from firestore_emulator.virtual_time import run
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import create
from firestore_outbox.local.simulation.network import NO_BAD_LUCK
from firestore_outbox.local.simulation.world import World
from firestore_outbox.local.simulators.faults import Faults
from firestore_outbox.messages.enqueue import NewMessage, batch
from firestore_outbox.settings import Settings

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
NO_RECEIPTS = Faults(latencyMs=100, receiptLossRate=1.0)
PATIENCE = timedelta(hours=12)
T = TypeVar("T")
W = TypeVar("W", bound="Counted")


class Counted(World):
    """A world that counts from `reset` on."""

    def __init__(self, settings: Settings | None = None, **options: Any) -> None:
        self.reset()
        super().__init__(1, settings=settings or Settings(), luck=NO_BAD_LUCK, **options)
        self.network.on_answer = self._answered

    def reset(self) -> None:
        self.reads = self.writes = self.deletes = self.rpcs = self.tasks_made = self.invocations = 0

    @property
    def bill(self) -> Bill:
        return Bill(
            reads=self.reads,
            writes=self.writes,
            deletes=self.deletes,
            tasks=self.tasks_made,
            invocations=self.invocations,
        )

    def _answered(self, path: str, answer: Any) -> None:
        method = path.rsplit("/", 1)[-1]
        if method == "CreateTask":
            self.tasks_made += 1
            return
        self.rpcs += 1
        match method:
            case "BatchGetDocuments":
                self.reads += len(answer)
            case "RunQuery":
                self.reads += max(1, sum(one.HasField("document") for one in answer))
            case "RunAggregationQuery":
                self.reads += 1
            case "Commit":
                # What was deleted has no time of its last update.
                deleted = sum(not result.HasField("update_time") for result in answer.write_results)
                self.deletes += deleted
                self.writes += len(answer.write_results) - deleted

    # --- who is called

    async def _event(self, call: HttpCall) -> Answered:
        self.invocations += 1
        return await super()._event(call)

    async def _webhook(self, call: HttpCall) -> Answered:
        self.invocations += 1
        return await super()._webhook(call)

    async def _task(self, call: HttpCall) -> Answered:
        self.invocations += 1
        return await super()._task(call)

    async def sweep(self) -> None:
        self.invocations += 1
        await super().sweep()

    # --- what people do

    async def account(self, account_id: str, **fields: Any) -> None:
        data = {"provider": "simulated", "timezone": "UTC", "status": "active", "pace": {"perMinute": 0}, **fields}
        await self.client.system.gateway.commit([create(paths.account(account_id), data)])

    async def send(self, request_id: str, *, account_id: str, to: str) -> None:
        parts = [{"type": "text", "text": "hello"}]
        new = NewMessage(request_id=request_id, account_id=account_id, to=to, parts=parts, created_by="bench")
        await self.client.system.gateway.commit(batch(new))

    # --- what is there

    def outbox(self) -> Mapping[str, dict[str, Any]]:
        return self.truth.collection("outbox")

    def sent(self) -> int:
        return sum(data.get("status") == "sent" for data in self.outbox().values())

    def expiring(self) -> int:
        """Documents that Firestore will delete by itself, which is billed as any delete."""
        return sum(data.get("expireAt") is not None for data in self.outbox().values())

    async def until(self, condition: Callable[[], bool], *, look_seconds: float = 1.0) -> None:
        """Virtual time goes by until it holds."""
        ends = self.clock() + PATIENCE
        while not condition():
            if self.clock() > ends:
                raise RuntimeError(f"nothing after {PATIENCE}")
            await asyncio.sleep(look_seconds)


def in_virtual_time(body: Callable[[W], Awaitable[T]], *, world: type[W] = Counted, **options: Any) -> T:  # type: ignore[assignment]
    """Runs a coroutine in a world of its own, of that class; `options` are those of the world."""
    made = world

    async def main() -> T:
        world = made(**options)
        await world.start()
        try:
            return await body(world)
        finally:
            await world.stop()

    logging.disable(logging.ERROR)
    try:
        return run(main(), seed=1, start=START, time_limit=timedelta(days=30))
    finally:
        logging.disable(logging.NOTSET)
