"""What a day costs on which nothing is sent, for one account and for ten thousand, ours beside how others do it.

    python -m bench.idle [--small]

It fails when ours costs more for ten thousand accounts than for one.

Method. Ours: the whole product on virtual time. Each account has sent a message long ago, so that its lane, its thread
and its outbox document are there (those of one account are made by sending, those of the others are copies), and a day
goes by with Cloud Scheduler's sweep each minute. Polling: a query each 500 ms for each account, as its index on the
account asks for; a locked batch: a query each 10 s for all; each runs on the same engine for some minutes or, with ten
thousand accounts, some rounds, and the result is scaled to a day. A function a write does nothing while nothing is
written, and nothing is found that was left behind. Counted on the wire as Firestore bills it: a query that finds
nothing is a read. The server that polls is not in it.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from google.cloud.firestore import AsyncClient

from bench import places
from bench.counted import Count
from bench.drains import ProviderCalls
from bench.patterns import locked_batch, polling
from bench.prices import Bill, shown
from bench.report import arguments, heading, keep, say
from bench.virtual import NO_RECEIPTS, Counted, in_virtual_time
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import WriteOp, create

ACCOUNTS = (1, 10_000)
DAY = timedelta(days=1)
SWEEP = timedelta(minutes=1)
POLLED_SECONDS = 600.0
MOST_POLLS = 20_000
"""Of all accounts together."""
COPIED_AT_A_TIME = 100


# --- ours


def ours(accounts: int, lasting: timedelta) -> Bill:
    """The bill of so long a time."""

    async def body(world: Counted) -> Bill:
        world.provider.faults = NO_RECEIPTS
        await world.account("shop-00000")
        await world.send("message-00000", account_id="shop-00000", to="+49170")
        await world.until(lambda: world.sent() == 1)
        await asyncio.sleep(600)
        await _copy(world, accounts)
        await asyncio.sleep(3600)  # the copies' own events are over
        world.reset()
        began = world.clock()
        for number in range(1, round(lasting / SWEEP) + 1):
            await asyncio.sleep((began + number * SWEEP - world.clock()).total_seconds())
            await world.sweep()
        return world.bill

    return in_virtual_time(body)


async def _copy(world: Counted, accounts: int) -> None:
    """What the first account left behind, for each of the others."""
    gateway = world.client.system.gateway
    found = {path: data for path, data in world.truth.latest().items() if "message" in path or "shop-00000" in path}
    writes: list[WriteOp] = []
    for number in range(1, accounts):
        for path, data in found.items():
            writes.append(
                create(_renamed(path, number), {name: _renamed(value, number) for name, value in data.items()})
            )
        if len(writes) >= COPIED_AT_A_TIME or number == accounts - 1:
            await gateway.commit(writes)
            writes = []
    copies = sum(path.startswith(f"{paths.LANES}/") for path in world.truth.latest())
    if copies != accounts:
        raise RuntimeError(f"{copies} lanes for {accounts} accounts")


def _renamed(value: Any, number: int) -> Any:
    if not isinstance(value, str):
        return value
    return value.replace("shop-00000", f"shop-{number:05}").replace("message-00000", f"message-{number:05}")


# --- the others


async def polled(accounts: int, lasting_seconds: float) -> tuple[Bill, float]:
    """The bill of this number of polls of each account, and how many times more a day has."""
    count = Count()
    rounds = max(1, min(round(lasting_seconds / polling.POLL_SECONDS), MOST_POLLS // accounts))
    async with places.in_process() as place:
        client: AsyncClient = place.client("bench", count)
        for _ in range(rounds):
            for number in range(accounts):
                await polling.poll(client, f"shop-{number:05}")
    return Bill(reads=count.reads, writes=count.writes), DAY.total_seconds() / (rounds * polling.POLL_SECONDS)


async def cycled(lasting_seconds: float) -> tuple[Bill, float]:
    count, rounds = Count(), max(1, round(lasting_seconds / locked_batch.POLL_SECONDS))
    async with places.in_process() as place:
        for _ in range(rounds):
            await locked_batch.cycle(place.client("bench", count), ProviderCalls(0.0).send)
    return Bill(reads=count.reads, writes=count.writes), DAY.total_seconds() / (rounds * locked_batch.POLL_SECONDS)


# --- the report


def figures(who: str, accounts: int, bill: Bill, times: float) -> dict[str, Any]:
    """Of a day."""
    a_day = bill.each(1 / times)
    used = {name: round(value) for name, value in asdict(a_day).items()}
    return {"who": who, "accounts": accounts, **used, "dollarsADay": round(a_day.dollars, 4)}


def measure(accounts: tuple[int, ...], lasting: timedelta, polled_seconds: float) -> list[dict[str, Any]]:
    rows = []
    for many in accounts:
        say(f"our worker, {many:,} accounts")
        rows.append(figures("our worker", many, ours(many, lasting), DAY / lasting))
    for many in accounts:
        say(f"polling, {many:,} accounts")
        rows.append(figures("polling", many, *asyncio.run(polled(many, polled_seconds))))
    for many in accounts:  # one query for all, however many they are
        rows.append(figures("locked batch", many, *asyncio.run(cycled(polled_seconds))))
    return rows + [figures("function a write", many, Bill(), 1.0) for many in accounts]


def main() -> int:
    options = arguments("What a day costs on which nothing is sent.").parse_args()
    accounts, lasting, polled_seconds = ACCOUNTS, DAY, POLLED_SECONDS
    if options.small:
        accounts, lasting, polled_seconds = (1, 20), timedelta(hours=1), 20.0
    rows = measure(accounts, lasting, polled_seconds)
    result = {**heading("a day on which nothing is sent", __doc__), "prices": shown(), "rows": rows}
    keep(result, "idle", options)
    for row in rows:
        print(
            ", ".join(f"{name} {value:,}" if isinstance(value, int | float) else value for name, value in row.items())
        )
    first, *_, last = [cost_of(row) for row in rows if row["who"] == "our worker"]
    if last != first:
        print(f"not good: ours costs more for more accounts: {first}, {last}", file=sys.stderr)
        return 1
    return 0


def cost_of(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "accounts"}


if __name__ == "__main__":
    sys.exit(main())
