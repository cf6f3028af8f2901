"""A small calm world: the production code on virtual time, with nothing going wrong unless a test says so."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from firestore_emulator.virtual_time import run
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import WriteOp, create, update
from firestore_outbox.handlers.context import Context
from firestore_outbox.handlers.registration import Registration
from firestore_outbox.lane.ref import INBOUND
from firestore_outbox.local.simulation.network import NO_BAD_LUCK
from firestore_outbox.local.simulation.world import World
from firestore_outbox.local.simulators.faults import Faults
from firestore_outbox.messages.enqueue import NewMessage, batch
from firestore_outbox.settings import Settings

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
T = TypeVar("T")


class Calm:
    """A world with accounts and messages, and the questions that tests ask of it."""

    def __init__(self, **options: Any) -> None:
        settings, receipts = options.pop("settings", Settings()), options.pop("receipts", True)
        seed, luck = options.pop("seed", 1), options.pop("luck", NO_BAD_LUCK)
        self.world = World(seed, settings=settings, luck=luck, **options)
        if not receipts:
            self.world.provider.faults = Faults(receiptLossRate=1.0)
        self.gateway = self.world.client.system.gateway
        self._sweeper: asyncio.Task[None] | None = None

    async def start(self, *, sweeps: bool = True) -> None:
        await self.world.start()
        if sweeps:
            self._sweeper = asyncio.create_task(self._sweep())

    async def stop(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        await self.world.stop()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(60)
            await self.world.sweep()

    # --- what people write

    async def account(self, account_id: str = "shop", **fields: Any) -> None:
        data = {"provider": "simulated", "timezone": "UTC", "status": "active", "pace": {"perMinute": 0}, **fields}
        await self.gateway.commit([create(paths.account(account_id), data)])

    async def send(self, request_id: str, *, to: str = "+491", account_id: str = "shop", **options: Any) -> None:
        parts = options.pop("parts", [{"type": "text", "text": "hello"}])
        await self.gateway.commit(
            batch(
                NewMessage(request_id=request_id, account_id=account_id, to=to, parts=parts, created_by="u", **options)
            )
        )

    async def send_many(self, count: int, *, account_id: str = "shop", threads: int | None = None) -> None:
        for number in range(count):
            to = f"+49{number % (threads or count)}"
            await self.send(f"{account_id}-{number:05d}", to=to, account_id=account_id)

    async def write(self, *writes: WriteOp) -> None:
        await self.gateway.commit(list(writes))

    async def change_account(self, account_id: str = "shop", **fields: Any) -> None:
        await self.gateway.commit([update(paths.account(account_id), fields, version=None)])

    # --- what is there

    def document(self, path: str) -> dict[str, Any]:
        return self.world.truth.latest()[path]

    def outbox(self, request_id: str) -> dict[str, Any]:
        return self.document(paths.outbox(request_id))

    def status(self, request_id: str) -> str:
        return str(self.outbox(request_id).get("status"))

    def statuses(self) -> Counter[str]:
        return Counter(str(data.get("status")) for data in self.world.truth.collection("outbox").values())

    def lane(self, account_id: str = "shop") -> dict[str, Any]:
        return self.document(paths.lane("outbox", account_id))

    def sent_at(self, request_id: str) -> float:
        """Seconds from the start to the first attempt."""
        return self.seconds(next(a.at for a in self.world.truth.attempts if a.request_id == request_id))

    def order_of_calls(self) -> list[str]:
        return [attempt.request_id for attempt in self.world.truth.attempts]

    def seconds(self, at: datetime) -> float:
        return (at - START).total_seconds()

    async def until(self, condition: Callable[[], bool], *, within: timedelta = timedelta(minutes=30)) -> None:
        """Virtual time goes by until it holds. Looked at when something was written, but not more often than a person
        could tell; and from time to time, for what is not written: the longer all was quiet, the more seldom."""
        ends, truth = self.world.clock() + within, self.world.truth
        quiet = 5.0
        while not condition():
            assert self.world.clock() < ends, f"not within {within}: {self.statuses()}"
            seen = len(truth.changes)
            await asyncio.sleep(0.05)
            if len(truth.changes) == seen:
                await truth.stirs(within_seconds=quiet)
            quiet = 5.0 if len(truth.changes) > seen else min(60.0, quiet * 1.5)


def handling(function: Callable[[str], Awaitable[None]]) -> dict[str, Registration]:
    """A handler of conversations that is given the threadId."""

    async def handle(context: Context) -> None:
        await function(context.key)

    return {INBOUND: Registration(kind=INBOUND, function=handle)}


def simulate(test: Callable[[Calm], Awaitable[T]], *, sweeps: bool = True, **options: Any) -> T:
    """Runs a test's coroutine in a calm world of its own. More than half of a world's time goes into receipts; those of
    large tests that need none are run with `receipts=False`."""

    async def main() -> T:
        calm = Calm(**options)
        await calm.start(sweeps=sweeps)
        try:
            return await test(calm)
        finally:
            await calm.stop()

    with _silence():
        return run(main(), seed=1, start=START, time_limit=timedelta(days=400))


@contextmanager
def _silence() -> Iterator[None]:
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


class Meter:
    """Documents read and written, as Firestore bills them, and tasks made, counted on the wire."""

    def __init__(self, calm: Calm) -> None:
        self.reset()
        calm.world.network.on_answer = self._count

    def _count(self, path: str, answer: Any) -> None:
        match path.rsplit("/", 1)[-1]:
            case "BatchGetDocuments":
                self.reads += len(answer)
            case "RunQuery":
                self.reads += max(1, sum(one.HasField("document") for one in answer))
            case "RunAggregationQuery":
                self.reads += 1
            case "Commit":
                self.writes += len(answer.write_results)
            case "CreateTask":
                self.tasks += 1

    def reset(self) -> None:
        self.reads = self.writes = self.tasks = 0
