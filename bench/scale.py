"""Many busy accounts at once: which documents and index ranges take the most writes.

    python -m bench.scale [--accounts 10000] [--seconds 30] [--small]

It fails when a document takes more than one write a second, an index range whose values grow with time takes more than
300, or fewer messages are sent than the accounts' pace allows.

Method. The whole product on virtual time, in one process: our Firestore emulator with the product's indexes and its
hot-spot meter, Cloud Tasks, functions, and a worker for each 80 accounts. Each account has a pace of 40 messages a
minute and gets as many, at random times, each to another recipient; it begins with 20 in arrears. Ten seconds go by
before the meter starts; its window is the time that is measured. Documents that the app writes count in the rates, and
not in the reads and writes a message. Of each collection and index the busiest document and range are shown.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

from google.cloud import tasks_v2

from bench.report import arguments, heading, keep, say
from bench.virtual import NO_RECEIPTS, Counted, in_virtual_time
from firestore_emulator.events import delivery
from firestore_emulator.meters.hot_spots import HotSpots
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import create
from firestore_outbox.messages.enqueue import NewMessage, batch
from firestore_outbox.settings import Settings

ACCOUNTS = 10_000
SECONDS = 30.0
PER_MINUTE = 40.0
LANES_A_WORKER = 80
MOST_OF_A_DOCUMENT = 1.0
MOST_OF_A_RANGE = 300.0
LEAST_SHARE = 0.9
"""Of the pace of all accounts. With less, the rates would say nothing about it."""
LOAD_AT_A_TIME = 100
EVERYTHING = 1_000_000
QUEUES = 8
ARREARS = 20
"""So busy an account has always something to send. If its messages came one by one, see docs/capacity.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    accounts: int
    messages: int
    """Sent in the time that is measured."""
    spots: HotSpots
    bill: Mapping[str, float]
    """A message."""
    most_requests: int
    """Requests of tasks that were open at once."""
    workers: int

    @property
    def documents(self) -> dict[str, float]:
        """The busiest document of each collection, in writes a second."""
        found: dict[str, float] = {}
        for one in self.spots.documents:
            collection = one.name.split("/documents/", 1)[-1].split("/")[-2]
            found[collection] = max(found.get(collection, 0.0), one.per_second)
        return found

    @property
    def ranges(self) -> dict[str, float]:
        """The busiest growing range of each index, in writes a second."""
        found: dict[str, float] = {}
        for one in self.spots.ranges:
            name = f"{one.collection.rpartition('/')[2]}({', '.join(one.index)}) by {one.field}"
            found[name] = max(found.get(name, 0.0), one.per_second)
        return found

    @property
    def shared_ranges(self) -> dict[str, float]:
        """Those that grow with the number of accounts, in writes a message: behind no account, thread or run."""
        return {
            name: rate * self.spots.window_seconds / self.messages
            for name, rate in self.ranges.items()
            if not any(key in name.partition(" by ")[0] for key in ("accountId", "runId")) and "messages(" not in name
        }


def measure(
    accounts: int, seconds: float, settings: Settings, *, before: float = 10.0, arrears: int = ARREARS
) -> Measured:
    """`before`: seconds that go by first. `arrears`: messages that each account begins with."""
    workers = max(2, -(-accounts // LANES_A_WORKER))

    async def body(world: Counted) -> Measured:
        world.provider.faults = NO_RECEIPTS
        for observer in [one for one in world.firestore.engine.after_commit if one == world.truth._committed]:
            world.firestore.engine.after_commit.remove(observer)  # it keeps every version of every document
        await _allow(world)
        random = Random(1)
        names = [f"account-{random.getrandbits(48):012x}" for _ in range(accounts)]
        fields = {"provider": "simulated", "timezone": "UTC", "status": "active", "pace": {"perMinute": PER_MINUTE}}
        gateway = world.client.system.gateway
        for first in range(0, accounts, LOAD_AT_A_TIME):
            some = names[first : first + LOAD_AT_A_TIME]
            await gateway.commit([create(paths.account(name), fields) for name in some])
        sending = [asyncio.create_task(_busy(world, name, Random(name), arrears)) for name in names]
        await asyncio.sleep(before)
        world.reset()
        sent_before = len(world.truth.accepted)
        world.firestore.engine.hot_spots.start(seconds)
        most = 0
        for _ in range(round(seconds)):
            await asyncio.sleep(1)
            most = max(most, sum(worker.system.requests.open for worker in world.workers))
        spots = world.firestore.engine.hot_spots.report(most=EVERYTHING)
        messages = len(world.truth.accepted) - sent_before
        for task in sending:
            task.cancel()
        await asyncio.gather(*sending, return_exceptions=True)
        bill = world.bill.each(max(1, messages))
        used = {"reads": bill.reads, "writes": bill.writes, "tasks": bill.tasks, "invocations": bill.invocations}
        return Measured(
            accounts=accounts, messages=messages, spots=spots, bill=used, most_requests=most, workers=workers
        )

    with _events_at_once(accounts):
        return in_virtual_time(body, settings=settings, workers=workers, functions=max(1, workers // 4))


@contextmanager
def _events_at_once(count: int) -> Iterator[None]:
    """Eventarc calls as many functions as it needs."""
    usual = delivery.IN_FLIGHT
    delivery.IN_FLIGHT = max(usual, count)
    try:
        yield
    finally:
        delivery.IN_FLIGHT = usual


async def _allow(world: Counted) -> None:
    """As many dispatches as Cloud Tasks allows."""
    tasks: Any = world.client.system.waker._tasks
    limits = tasks_v2.RateLimits(max_concurrent_dispatches=5_000, max_dispatches_per_second=500)
    for name in world.settings.queue_names:
        await tasks._client.update_queue(queue=tasks_v2.Queue(name=name, rate_limits=limits))


async def _busy(world: Counted, account_id: str, random: Random, arrears: int) -> None:
    """An account's users: as many messages as its pace allows, at random times."""
    gateway, pause = world.client.system.gateway, 60.0 / PER_MINUTE
    await asyncio.sleep(random.uniform(0, pause))
    for number in range(EVERYTHING):
        if number >= arrears:
            await asyncio.sleep(random.expovariate(1 / pause))
        new = NewMessage(
            request_id=f"{random.getrandbits(64):016x}",
            account_id=account_id,
            to=f"+49{random.getrandbits(32)}",
            parts=[{"type": "text", "text": "hello"}],
            created_by="bench",
        )
        await gateway.commit(batch(new))


def faults(measured: Measured) -> list[str]:
    documents = [
        f"{one.name.rpartition('/documents/')[2]} took {one.per_second:.2f} writes a second"
        for one in measured.spots.documents[:10]
        if one.per_second > MOST_OF_A_DOCUMENT
    ]
    ranges = [
        f"{name} took {rate:.0f} writes a second in one range"
        for name, rate in measured.ranges.items()
        if rate > MOST_OF_A_RANGE
    ]
    wanted = LEAST_SHARE * measured.accounts * PER_MINUTE / 60
    rate = measured.messages / measured.spots.window_seconds
    slow = [f"{rate:.0f} messages a second, less than {wanted:.0f}"] if rate < wanted else []
    return documents + ranges + slow


def shown(measured: Measured, seconds: float) -> dict[str, Any]:
    return {
        "accounts": measured.accounts,
        "messagesASecond": round(measured.messages / seconds, 1),
        "workers": measured.workers,
        "mostRequestsAtOnce": measured.most_requests,
        "aMessage": {name: round(value, 3) for name, value in measured.bill.items()},
        "documentsASecond": {name: round(rate, 2) for name, rate in sorted(measured.documents.items())},
        "rangesASecond": {name: round(rate, 2) for name, rate in sorted(measured.ranges.items())},
        "sharedRangesAMessage": {name: round(rate, 4) for name, rate in sorted(measured.shared_ranges.items())},
    }


def main() -> int:
    parser = arguments("Many busy accounts at once: hot documents and index ranges.")
    parser.add_argument("--accounts", type=int, default=ACCOUNTS, metavar="N")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    options = parser.parse_args()
    accounts, seconds = (60, 10.0) if options.small else (options.accounts, options.seconds)
    say(f"{accounts:,} accounts for {seconds:g} virtual seconds")
    measured = measure(accounts, seconds, Settings(queues=QUEUES))
    figures, wrong = shown(measured, seconds), faults(measured)
    keep({**heading("hot spots with many busy accounts", __doc__), **figures, "faults": wrong}, "scale", options)
    for name, value in figures.items():
        print(f"{name}: {value}")
    for fault in wrong:
        print(f"not good: {fault}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
