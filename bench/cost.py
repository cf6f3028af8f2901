"""What a message costs: reads, writes, deletes, calls, tasks and dollars, ours beside how others do it.

    python -m bench.cost [--small]

It fails when a message in bulk costs more than 1.1 reads or 3.1 writes, a run's target more than 1.2 reads or 5.1
writes (at 40 a minute 1.3 and 5.2), or a receipt more than a read and a write, beside the account that a function
reads once a minute.

Method. Ours: the whole product on virtual time with nothing going wrong, counted on the wire as Firestore and Cloud
Tasks bill it, from the moment that a message is stored until it is sent; what the app itself writes is not in it.
Deletes are the outbox documents that Firestore will remove by itself after their end. In bulk: a backlog of one
account without a pace, written all at once; or at 40 a minute; alone: one each minute, which finds its lane asleep. A
receipt is a third of accepted, delivered and read. A run's target is counted from the reminder to the target's
message, which only then exists, and the run's own end. Beside it the patterns of `bench/patterns` on the same engine,
in bulk and one message at a time; the polls that find nothing are not in it (see idle), nor is the server that polls.
Dollars are list prices for a million, without the time that instances run, which depends on what they share
(docs/deploy.md has it).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from google.cloud.firestore import AsyncClient

from bench import places
from bench.counted import Count
from bench.drains import ProviderCalls, load, request_id_of
from bench.patterns import locked_batch, polling
from bench.patterns.per_write import Functions
from bench.places import Place
from bench.prices import Bill, shown
from bench.report import arguments, heading, keep, say
from bench.virtual import NO_RECEIPTS, START, Counted, in_virtual_time
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import create
from firestore_outbox.lane.ref import reminder_lane
from firestore_outbox.local.simulators.faults import Faults

OURS = "our worker"
IN_BULK, PACED, ALONE, RECEIPT = ("in bulk", "in bulk, 40 a minute", "alone", "a receipt")
TARGET, PACED_TARGET = ("a run's target", "a run's target, 40 a minute")
MOST = {IN_BULK: (1.1, 3.1), RECEIPT: (1.01, 1.0), TARGET: (1.2, 5.1), PACED_TARGET: (1.3, 5.2)}
"""Reads and writes. A function that routes receipts reads their account once a minute: a hundredth of a read each."""


@dataclass(frozen=True)
class Row:
    who: str
    what: str
    count: int
    bill: Bill
    """Of one."""
    rpcs: float

    def figures(self) -> dict[str, Any]:
        used = {name: round(value, 4) for name, value in asdict(self.bill).items()}
        return {
            "who": self.who,
            "what": self.what,
            "count": self.count,
            **used,
            "firestoreCalls": round(self.rpcs, 4),
            "dollarsAMillion": round(self.bill.dollars_for_a_million, 2),
        }


# --- ours


def ours(what: str, count: int, body: Callable[[Counted], Awaitable[None]]) -> Row:
    async def measured(world: Counted) -> Row:
        await body(world)
        world.deletes += world.expiring() if what != RECEIPT else 0
        return Row(OURS, what, count, world.bill.each(count), world.rpcs / count)

    say(f"{OURS}, {what}")
    return in_virtual_time(measured)


def backlog(count: int, **account: Any) -> Callable[[Counted], Awaitable[None]]:
    """Written all at once; the events that follow are in it."""

    async def body(world: Counted) -> None:
        world.provider.faults = NO_RECEIPTS
        await world.account("shop", **account)
        await asyncio.sleep(5)
        world.reset()
        await asyncio.gather(*(world.send(f"message-{n:05}", account_id="shop", to=f"+49{n}") for n in range(count)))
        await world.until(lambda: world.sent() == count)
        await asyncio.sleep(30)

    return body


def one_a_minute(count: int) -> Callable[[Counted], Awaitable[None]]:
    async def body(world: Counted) -> None:
        world.provider.faults = NO_RECEIPTS
        await world.account("shop", pace={"perMinute": 40}, concurrency=3)
        await asyncio.sleep(5)
        world.reset()
        for number in range(count):
            await world.send(f"message-{number:05}", account_id="shop", to=f"+49{number}")
            await asyncio.sleep(60)
        await world.until(lambda: world.sent() == count)

    return body


def receipts(messages: int) -> Callable[[Counted], Awaitable[None]]:
    async def body(world: Counted) -> None:
        world.provider.faults = Faults(receiptDelayMs=60_000)
        await world.account("shop")
        for number in range(messages):
            await world.send(f"message-{number:05}", account_id="shop", to=f"+49{number}")
        await world.until(lambda: world.sent() == messages)
        await asyncio.sleep(10)
        world.reset()
        await world.until(lambda: _all_read(world, messages))

    return body


def _all_read(world: Counted, messages: int) -> bool:
    shown = [data for path, data in world.truth.latest().items() if "/messages/" in path]
    return [data.get("status") for data in shown].count("read") == messages


def run_of(targets: int, **account: Any) -> Callable[[Counted], Awaitable[None]]:
    async def body(world: Counted) -> None:
        world.provider.faults = NO_RECEIPTS
        await world.account("shop", **account)
        reminder = {
            "accountId": "shop",
            "targets": [{"id": f"t{number:05}", "to": f"{number:05}@g.us"} for number in range(targets)],
            "parts": [{"type": "text", "text": "The market opens at nine."}],
            "timezone": "UTC",
            "window": {"startHour": 0, "endHour": 24},
            "schedule": {"type": "once", "at": START + timedelta(seconds=5)},
            "createdAt": START,
        }
        system = world.client.system
        await system.gateway.commit([create(paths.reminder("rem"), reminder)])
        world.reset()
        await system.waker.wake(reminder_lane("rem"))
        await world.until(lambda: world.sent() == targets)
        await asyncio.sleep(120)

    return body


# --- the others


async def others(count: int, alone: int) -> list[Row]:
    rows = []
    async with places.in_process() as place:
        for who in ("polling", "locked batch", "function a write"):
            for what, times, messages in ((IN_BULK, 1, count), (ALONE, alone, 1)):
                say(f"{who}, {what}")
                rows.append(await _other(place, who, what, times, messages))
    return rows


async def _other(place: Place, who: str, what: str, times: int, messages: int) -> Row:
    """A number of messages at once, a number of times, each time in a project of its own."""
    counted, invocations = Count(), 0
    for number in range(times):
        project = f"bench-{who.replace(' ', '-')}-{messages}-{number}"
        await load(place.client(project, Count()), messages)
        calls = ProviderCalls(0.0)
        invocations += await _drained(who, place.client(project, counted), calls, messages)
        calls.check(messages)
    total = times * messages
    bill = Bill(reads=counted.reads, writes=counted.writes, deletes=counted.deletes, invocations=invocations)
    return Row(who, what, total, bill.each(total), counted.rpcs / total)


async def _drained(who: str, client: AsyncClient, calls: ProviderCalls, messages: int) -> int:
    """How many functions were called for it."""
    match who:
        case "polling":
            await polling.drain(client, calls.send, messages)
        case "locked batch":
            await locked_batch.drain(client, calls.send, messages)
        case _:
            functions = Functions(client, calls.send)
            await functions.drain(request_id_of(number) for number in range(messages))
            return functions.invocations
    return 0


# --- the report


def faults(rows: list[Row]) -> list[str]:
    found = []
    for row in rows:
        most = MOST.get(row.what)
        if row.who == OURS and most is not None and (row.bill.reads > most[0] or row.bill.writes > most[1]):
            found.append(f"{row.what} costs {row.bill.reads:.3f} reads and {row.bill.writes:.3f} writes, not {most}")
    return found


def table(rows: list[dict[str, Any]]) -> str:
    numbers = ("reads", "writes", "deletes", "tasks", "invocations", "firestoreCalls", "dollarsAMillion")
    lines = [f"{'who':<18}{'what':<30}" + "".join(f"{name:>16}" for name in numbers)]
    for row in rows:
        lines.append(f"{row['who']:<18}{row['what']:<30}" + "".join(f"{row[name]:>16,.2f}" for name in numbers))
    return "\n".join(lines)


def main() -> int:
    options = arguments("What a message costs, beside how others do it.").parse_args()
    bulk, few, targets = (60, 3, 20) if options.small else (2_000, 30, 1_000)
    rows = [
        ours(IN_BULK, bulk, backlog(bulk, concurrency=50)),
        ours(PACED, few * 10, backlog(few * 10, pace={"perMinute": 40}, concurrency=3)),
        ours(ALONE, few, one_a_minute(few)),
        ours(RECEIPT, few * 30, receipts(few * 10)),
        ours(TARGET, targets, run_of(targets, concurrency=50)),
        ours(PACED_TARGET, targets, run_of(targets, pace={"perMinute": 40}, concurrency=3)),
        *asyncio.run(others(min(bulk, 500), few)),
    ]
    result = {
        **heading("what one costs, from stored to sent", __doc__),
        "prices": shown(),
        "rows": [row.figures() for row in rows],
        "faults": faults(rows),
    }
    keep(result, "cost", options)
    print(table(result["rows"]))
    for fault in result["faults"]:
        print(f"not good: {fault}", file=sys.stderr)
    return 1 if result["faults"] and not options.small else 0


if __name__ == "__main__":
    sys.exit(main())
