"""Many accounts with one message each: how long until all are sent, and what a message costs.

    python -m bench.lanes [--accounts 10 1000 10000] [--small]

It fails when a message costs 10 % more reads or writes with many accounts than with few.

Method. Our Firestore emulator in a process of its own, in memory, with the product's indexes. Each account has one
message and a lane that never ran. The clock starts when the events of all messages are handed to the function's code,
16 at a time, and stops when the last message is stored as sent. Cloud Tasks is a list in memory: a task calls the
worker's lane engine at once, which runs 8 lanes at a time as it does by default. So function and worker share one
process and there is no HTTP between them; the provider takes 5 ms. Each message is checked to have been handed to the
provider once. Counted in the client's channel as Firestore bills it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any

from bench import places
from bench.counted import Count
from bench.drains import ProviderCalls, account, new_message, our_worker, stored_as
from bench.places import Place
from bench.prices import Bill, shown
from bench.report import arguments, heading, keep, say
from firestore_outbox.clock import system_clock
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.firestore.writes import SERVER_TIME
from firestore_outbox.lane.engine import LaneEngine
from firestore_outbox.lane.ref import LaneRef
from firestore_outbox.local.product import INDEXES
from firestore_outbox.messages.enqueue import NewMessage, batch
from firestore_outbox.wiring import System

ACCOUNTS = (10, 1_000, 10_000)
PROVIDER_SECONDS = 0.005
EVENTS_AT_A_TIME = 16
LOAD_AT_A_TIME = 100
MOST_DIFFERENCE = 0.10


class TasksAtOnce:
    """Cloud Tasks that calls back without delay."""

    def __init__(self) -> None:
        self.engine: LaneEngine | None = None
        self.made = 0
        self.running: set[asyncio.Task[Any]] = set()

    async def enqueue(self, path: str, body: dict[str, Any], at: datetime) -> None:
        assert self.engine is not None, "the worker was built"
        self.made += 1
        task = asyncio.create_task(self.engine.run(LaneRef(body["kind"], body["key"])))
        self.running.add(task)
        task.add_done_callback(self.running.discard)

    async def all_done(self) -> None:
        while self.running:
            await asyncio.gather(*self.running)


def _message(number: int) -> NewMessage:
    return new_message(number, account_id=f"account-{number:05}")


async def _load(gateway: Gateway, accounts: int) -> None:
    for first in range(0, accounts, LOAD_AT_A_TIME):
        numbers = range(first, min(first + LOAD_AT_A_TIME, accounts))
        await gateway.commit([write for n in numbers for write in (account(f"account-{n:05}"), *batch(_message(n)))])


async def _deliver_events(system: System, numbers: Iterator[int]) -> None:
    for number in numbers:
        *_, outbox = batch(_message(number))
        now = system_clock()
        data = {name: now if value is SERVER_TIME else value for name, value in outbox.fields.items()}
        await system.trigger.created(_message(number).request_id, data)


async def run_once(place: Place, accounts: int) -> dict[str, Any]:
    project = f"bench-{accounts}"
    await _load(Gateway(place.client(project, Count())), accounts)
    count, calls, tasks = Count(), ProviderCalls(PROVIDER_SECONDS), TasksAtOnce()
    system = our_worker(place.client(project, count), place.queries(count), calls.send, tasks)
    tasks.engine = system.engine
    began = time.perf_counter()
    numbers = iter(range(accounts))
    await asyncio.gather(*(_deliver_events(system, numbers) for _ in range(EVENTS_AT_A_TIME)))
    await tasks.all_done()
    seconds = time.perf_counter() - began
    await system.providers.close()
    calls.check(accounts)
    found = await stored_as(place.client(project, Count()), "status", "sent")
    if found != accounts:
        raise RuntimeError(f"{found} of {accounts} messages are sent")
    bill = Bill(
        reads=count.reads,
        writes=count.writes,
        deletes=accounts,  # each outbox document, by itself, after its end
        tasks=tasks.made,
        invocations=accounts + tasks.made,
    ).each(accounts)
    return {
        "accounts": accounts,
        "seconds": round(seconds, 2),
        "perSecond": round(accounts / seconds, 1),
        **{name: round(value, 3) for name, value in asdict(bill).items()},
        "firestoreCalls": round(count.rpcs / accounts, 3),
        "dollarsAMillion": round(bill.dollars_for_a_million, 2),
    }


async def measure(sizes: list[int]) -> list[dict[str, Any]]:
    rows = []
    async with places.ours(durable=False, indexes=INDEXES) as place:
        await run_once(place, 20)  # warms up
        for accounts in sizes:
            rows.append(await run_once(place, accounts))
            say(f"{accounts:,} accounts: {rows[-1]['seconds']} s")
    return rows


def faults(rows: list[dict[str, Any]]) -> list[str]:
    found = []
    for what in ("reads", "writes"):
        costs = [row[what] for row in rows]
        if max(costs) > min(costs) * (1 + MOST_DIFFERENCE):
            found.append(f"{what} a message are not flat: {costs}")
    return found


def main() -> int:
    parser = arguments("Many accounts with one message each.")
    parser.add_argument("--accounts", type=int, nargs="+", default=list(ACCOUNTS), metavar="N")
    options = parser.parse_args()
    rows = asyncio.run(measure([5, 30] if options.small else options.accounts))
    result = {
        **heading("many accounts with one message each, from their events to all sent", __doc__),
        "prices": shown(),
        "rows": rows,
        "faults": faults(rows),
    }
    keep(result, "lanes", options)
    for row in rows:
        print(", ".join(f"{name} {value:,}" for name, value in row.items()))
    for fault in result["faults"]:
        print(f"not good: {fault}", file=sys.stderr)
    return 1 if result["faults"] and not options.small else 0


if __name__ == "__main__":
    sys.exit(main())
