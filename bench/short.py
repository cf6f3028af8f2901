"""The short path beside the usual one: dollars a message, and the time from a message's write to the provider's call.

    python -m bench.short [--embedded] [--small]

It fails when the short path costs more than 1.1 times the usual one in a row, when a message alone costs more than
$5.90 a million, or when, with 25 ms injected into each Firestore call, it is less than 2.5 times as fast. One row has
another bound: two messages at once may cost 1.1 times what they cost before turns saved reads and a write (`BEFORE`,
$6.95 a million), which is more than the usual path costs now. `--embedded` adds the embedded stack without injection,
and fails when the short path is less than 1.2 times as fast at 1 and 20 messages a second, or less than 0.95 times at
100.

Method. The usual path is `OUTBOX_SHORT_TURNS=0`. Dollars: the whole product on virtual time, counted on the wire as
Firestore, Cloud Tasks and Cloud Run bill it, from stored to sent, without the time that instances run. One account
without a pace; at a rate, messages are written at random moments (a Poisson process with a fixed seed) by one instance
of the functions; at once, they are written together and five instances of the functions get the events. The provider
answers after 100 ms. Time, injected: the same world with 12.5 ms each way between a process and Firestore or Cloud
Tasks; a message every ten seconds; rounds of both paths alternate, and the median of five rounds counts. Time,
embedded: the processes of `outbox dev`, as `bench.latency` has them, in alternating rounds.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from random import Random
from typing import Any

from bench.latency import embedded_run
from bench.prices import Bill, shown
from bench.report import arguments, heading, keep, say
from bench.streams import Kind, percentile
from bench.virtual import NO_RECEIPTS, Counted, in_virtual_time
from firestore_outbox.settings import Settings

RATES = (1 / 60, 0.2, 1.0, 5.0, 20.0)
AT_ONCE = (2, 60, 500)
MOST_DOLLARS_ALONE = 5.90
MOST_MORE = 1.10
"""How much a message may cost by the short path, as a multiple of the usual one."""
BEFORE = {"2 at once": 6.95}
"""Dollars a million before turns saved reads and a write (4.5 reads, 5 writes), where that is the bound: two messages
at once each pay for their instance's look."""
EACH_WAY_SECONDS = 0.0125
LEAST_INJECTED = 2.5
LEAST_EMBEDDED = {1.0: 1.2, 20.0: 1.2, 100.0: 0.95}
ROUNDS = 5
SECONDS = 10.0
"""Of a round on the embedded stack."""
Body = Callable[[Counted], Awaitable[int]]


def paths() -> dict[str, Settings]:
    return {"usual": Settings(short_turns=False), "short": Settings()}


# --- dollars


def at_a_rate(rate: float, count: int) -> Body:
    async def body(world: Counted) -> int:
        await _begin(world)
        random = Random("moments")
        for number in range(count):
            await world.send(f"message-{number:05}", account_id="shop", to=f"+49{number:03}")
            await asyncio.sleep(random.expovariate(rate) if rate >= 0.2 else 1 / rate)
        return await _ended(world, count)

    return body


def at_once(count: int) -> Body:
    async def body(world: Counted) -> int:
        world.functions += [world.machine("functions") for _ in range(4)]
        await _begin(world)
        await asyncio.gather(*(world.send(f"message-{n:05}", account_id="shop", to=f"+49{n:03}") for n in range(count)))
        return await _ended(world, count)

    return body


async def _begin(world: Counted) -> None:
    world.provider.faults = NO_RECEIPTS
    await world.account("shop", concurrency=50)
    await world.send("message-before", account_id="shop", to="+48000")  # looks for a throttle of the app, once
    await asyncio.sleep(60)
    world.reset()


async def _ended(world: Counted, count: int) -> int:
    await world.until(lambda: world.sent() == count + 1)
    await asyncio.sleep(30)
    world.deletes += count
    return count


def bill(body: Body, settings: Settings) -> Bill:
    async def measured(world: Counted) -> Bill:
        count = await body(world)
        return world.bill.each(count)

    return in_virtual_time(measured, settings=settings)


def costs(*, small: bool) -> list[dict[str, Any]]:
    cases: list[tuple[str, Body]] = []
    for rate in RATES[:2] if small else RATES:
        name = "one a minute" if rate < 0.1 else f"{rate:g} a second"
        cases.append((name, at_a_rate(rate, 5 if small else min(400, max(30, round(60 * rate))))))
    cases += [(f"{count} at once", at_once(count)) for count in (AT_ONCE[:1] if small else AT_ONCE)]
    rows = []
    for name, body in cases:
        say(f"dollars, {name}")
        bills = {path: bill(body, settings) for path, settings in paths().items()}
        rows.append(
            {
                "what": name,
                **{
                    path: {
                        "reads": round(one.reads, 2),
                        "writes": round(one.writes, 2),
                        "tasks": round(one.tasks, 2),
                        "invocations": round(one.invocations, 2),
                        "dollarsAMillion": round(one.dollars_for_a_million, 2),
                    }
                    for path, one in bills.items()
                },
            }
        )
    return rows


# --- time


def injected(rounds: int) -> dict[str, Any]:
    say("time, 25 ms injected per call")
    found: dict[str, list[float]] = {path: [] for path in paths()}
    for number in range(rounds):
        for path, settings in paths().items():
            found[path].append(in_virtual_time(_to_the_call(number), settings=settings))
    medians = {path: round(statistics.median(times) * 1000, 1) for path, times in found.items()}
    return {"millis": medians, "times": round(medians["usual"] / medians["short"], 2)}


def _to_the_call(number: int) -> Callable[[Counted], Awaitable[float]]:
    """The median over some messages, in seconds from the end of the write to the start of the provider's call."""

    async def body(world: Counted) -> float:
        world.network.each_way = (EACH_WAY_SECONDS, EACH_WAY_SECONDS)
        world.provider.faults = NO_RECEIPTS
        await world.account("shop", pace={"perMinute": 40}, concurrency=3)
        stored: dict[str, datetime] = {}
        for one in range(6):
            request_id = f"message-{number}-{one:03}"
            await world.send(request_id, account_id="shop", to=f"+49{one:03}")
            stored[request_id] = world.clock()
            await asyncio.sleep(10)
        began = {attempt.request_id: attempt.at for attempt in world.truth.attempts}
        return statistics.median([(began[name] - at).total_seconds() for name, at in list(stored.items())[1:]])

    return body


def on_the_stack(rounds: int, seconds: float) -> list[dict[str, Any]]:
    rows = []
    for rate, least in LEAST_EMBEDDED.items():
        found: dict[str, list[float]] = {"usual": [], "short": []}
        for _ in range(rounds):
            for path, switch in (("usual", "0"), ("short", "1")):
                say(f"time on the embedded stack, {rate:g} a second, {path}")
                run = asyncio.run(embedded_run(Kind(rate), seconds, {"OUTBOX_SHORT_TURNS": switch}))
                found[path].append(percentile(run.latencies, 0.5))
        medians = {path: round(statistics.median(times) * 1000, 1) for path, times in found.items()}
        times = round(medians["usual"] / medians["short"], 2)
        rows.append({"perSecond": rate, "millis": medians, "times": times, "least": least})
    return rows


# --- the report


def faults(result: dict[str, Any]) -> list[str]:
    found = []
    for row in result["dollars"]:
        usual, short = row["usual"]["dollarsAMillion"], row["short"]["dollarsAMillion"]
        usual = BEFORE.get(row["what"], usual)
        if short > usual * MOST_MORE:
            found.append(f"{row['what']}: ${short} a million, and ${usual} by the usual path")
        if row["what"] == "one a minute" and short > MOST_DOLLARS_ALONE:
            found.append(f"alone: ${short} a million, not {MOST_DOLLARS_ALONE}")
    if result["injected"]["times"] < LEAST_INJECTED:
        found.append(f"25 ms injected: {result['injected']['times']} times as fast, not {LEAST_INJECTED}")
    for row in result.get("embedded", ()):
        if row["times"] < row["least"]:
            found.append(f"embedded, {row['perSecond']:g} a second: {row['times']} times as fast, not {row['least']}")
    return found


def table(result: dict[str, Any]) -> str:
    names = [f"{path}: {name}" for path in paths() for name in ("reads", "writes", "$/M")]
    lines = [f"{'':<16}" + "".join(f"{name:>16}" for name in names)]
    for row in result["dollars"]:
        cells = [row[path][name] for path in paths() for name in ("reads", "writes", "dollarsAMillion")]
        lines.append(f"{row['what']:<16}" + "".join(f"{cell:>16.2f}" for cell in cells))
    times = [("25 ms injected", result["injected"])]
    times += [(f"{row['perSecond']:g} a second", row) for row in result.get("embedded", ())]
    for name, row in times:
        millis = row["millis"]
        lines.append(f"{name:<16}usual {millis['usual']} ms, short {millis['short']} ms: {row['times']} times as fast")
    return "\n".join(lines)


def main() -> int:
    parser = arguments("The short path beside the usual one.")
    parser.add_argument("--embedded", action="store_true", help="also the embedded stack: ten minutes more")
    options = parser.parse_args()
    result = {
        **heading("the short path beside the usual one", __doc__),
        "prices": shown(),
        "dollars": costs(small=options.small),
        "injected": injected(1 if options.small else ROUNDS),
    }
    if options.embedded:
        result["embedded"] = on_the_stack(1 if options.small else ROUNDS, 1.0 if options.small else SECONDS)
    result["faults"] = faults(result)
    keep(result, "short", options)
    print(table(result))
    for fault in result["faults"]:
        print(f"not good: {fault}", file=sys.stderr)
    return 1 if result["faults"] and not options.small else 0


if __name__ == "__main__":
    sys.exit(main())
