"""How fast and how large our Firestore emulator is, beside Google's.

    python -m bench.emulator [--before COMMIT] [--small] [--json]

Writes one by one and in batches of 500 (new documents, overwrites, both with deletes, and new ones with a query after
each batch), claims in a transaction (distinct documents, and 50 at a time for the same 10),
the outbox's query as the collection grows, how long a change takes to 1, 20 and 100 listeners, start-up, memory. It
fails when ours is behind on any of them, in memory or with a data directory. Writes and claims are also made on ours as
it was at an earlier commit, in memory, in the same rounds: `timesBetterThanEarlier`.

Method. Three servers, each a process of its own as a user starts it, are loaded by one process over gRPC on one
connection (listeners: twenty a connection), by the same calls. Requests are serialized before the clock starts and
answers are not parsed, except for the few fields that a claim needs; what was done is checked after the clock has
stopped. The collections that are written to have the outbox's index. Runs alternate: each round has one of every load
on every server, after a round that is thrown away, so that Java has compiled what it will. Figures are medians of the
rounds, a latency's that of the rounds' own medians; a ratio is the median of the rounds' own ratios, so that what else
the machine does falls on both sides of it. Queries run on fresh servers whose collection grows, four at a time, for a
few seconds at each size; what is not loaded or answered within its time is given as not finished. Start-up is from
starting the process to the first answered call; for Google's this includes up to 50 ms of looking whether it is there.
Memory is resident, right after start-up and after 100,000 documents. `clientShare` is the processor time of the loading
process over the wall time: near 1, the client is what limits the figure and not the server.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from grpc import aio

from bench import loads, places, report
from bench.loads import Calls, Sample
from bench.places import Place
from bench.report import say
from bench.versions import BEFORE
from firestore_emulator.official import EmulatorMissing, Installed, find_installed

GOOGLES, MEMORY, DURABLE = "Google's emulator", "ours, in memory", "ours, a data directory"
EARLIER = "ours earlier, in memory"
Open = Callable[[], AbstractAsyncContextManager[Place]]
SERVERS: dict[str, Open] = {
    GOOGLES: places.googles,
    MEMORY: partial(places.ours, durable=False),
    DURABLE: partial(places.ours, durable=True),
}
MEMORY_AT = 100_000


@dataclass(frozen=True)
class Size:
    """How much of everything is done."""

    rounds: int = 3
    single: int = 4_000
    batched: int = 20_000
    claims: int = 2_000
    contended: int = 500
    contended_seconds: float = 15.0
    listeners: tuple[int, ...] = (1, 20, 100)
    listener_rounds: int = 2
    """Few, on servers that have done nothing else: Google's takes longer with each listener that it has ever had."""
    changes: int = 40
    collections: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    queries: int = 1_000
    query_seconds: float = 4.0
    query_rounds: int = 3
    load_seconds: float = 300.0
    """For the whole way from one size of the collection to the next."""
    answer_seconds: float = 30.0
    """For one query; a server that needs longer has not finished."""
    starts: int = 5


SMALL = Size(
    rounds=1,
    single=100,
    batched=1_000,
    claims=50,
    contended=50,
    contended_seconds=2.0,
    listeners=(1, 5),
    listener_rounds=1,
    changes=5,
    collections=(1_000,),
    queries=20,
    query_seconds=1.0,
    query_rounds=1,
    starts=1,
)


@dataclass
class Figure:
    """One line of the result: what each server did, round by round."""

    what: str
    unit: str
    more_is_better: bool
    decimals: int = 1
    values: dict[str, list[float]] = field(default_factory=dict)
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    unfinished: dict[str, str] = field(default_factory=dict)

    def add(self, server: str, value: float, sample: Sample | None = None) -> None:
        self.values.setdefault(server, []).append(value)
        if sample is not None:
            self.samples.setdefault(server, []).append(sample)

    def median(self, server: str) -> float | None:
        values = self.values.get(server)
        return statistics.median(values) if values else None

    def times_better(self, server: str, other: str = GOOGLES) -> float | None:
        """By how much a server is ahead of another; None where there is nothing to compare with."""
        pairs = zip(self.values.get(server, []), self.values.get(other, []), strict=False)
        ratios = [(own / others if self.more_is_better else others / own) for own, others in pairs]
        return statistics.median(ratios) if ratios else None

    def is_behind(self, server: str) -> bool:
        ratio = self.times_better(server)
        return server in self.unfinished or (ratio is not None and ratio <= 1)

    def json(self) -> dict[str, Any]:
        found = {"what": self.what, "unit": self.unit, "servers": {name: self._of(name) for name in SERVERS}}
        if EARLIER in self.values:
            found["earlier"] = self._of(EARLIER)
        return found

    def _of(self, server: str) -> dict[str, Any]:
        if server in self.unfinished:
            return {"notFinished": self.unfinished[server]}
        median, ratio = self.median(server), self.times_better(server)
        if median is None:
            return {"notMeasured": True}
        found: dict[str, Any] = {
            "median": round(median, self.decimals),
            "rounds": [round(value, self.decimals) for value in self.values[server]],
        }
        if ratio is not None and server != GOOGLES:
            found["timesBetterThanGoogles"] = round(ratio, 2)
        earlier = self.times_better(server, EARLIER)
        if earlier is not None and server == MEMORY:
            found["timesBetterThanEarlier"] = round(earlier, 2)
        samples = self.samples.get(server)
        if samples:
            found["clientShare"] = round(statistics.median(one.client_cpu_seconds / one.seconds for one in samples), 2)
            found["clientCpuMicroseconds"] = _micros([one.client_cpu_seconds / one.operations for one in samples])
            server_cpu = [one.server_cpu_seconds / one.operations for one in samples if one.server_cpu_seconds]
            if server_cpu:
                found["serverCpuMicroseconds"] = _micros(server_cpu)
        return found


def _micros(seconds: list[float]) -> float:
    return round(statistics.median(seconds) * 1e6, 1)


class Figures:
    """All lines, each made when it is first added to."""

    def __init__(self) -> None:
        self.found: dict[str, Figure] = {}

    def of(self, what: str, unit: str, *, more_is_better: bool, decimals: int = 1) -> Figure:
        return self.found.setdefault(what, Figure(what, unit, more_is_better, decimals))

    def rate(self, what: str, unit: str, server: str, sample: Sample) -> None:
        self.of(what, f"{unit} a second", more_is_better=True).add(server, sample.rate, sample)

    def latency(self, what: str, server: str, sample: Sample) -> None:
        ordered = sorted(sample.latencies)
        median, p99 = statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
        self.of(f"{what}, median", "ms", more_is_better=False, decimals=2).add(server, median * 1000, sample)
        self.of(f"{what}, p99", "ms", more_is_better=False, decimals=2).add(server, p99 * 1000, sample)


# --- the measurements


async def measure(size: Size, before: str) -> tuple[Figures, str | None]:
    """All figures; and why Google's emulator was left out, if it was."""
    figures, servers, missing = Figures(), dict(SERVERS), None
    installed = find_installed()
    if not isinstance(installed, Installed):
        missing = str(EmulatorMissing(installed))
        say(f"Google's emulator is not measured: {missing}")
        del servers[GOOGLES]
    await measure_start_up(figures, servers, size)
    await measure_loads(figures, servers | {EARLIER: partial(places.ours_of, before)}, size)
    await measure_listeners(figures, servers, size)
    await measure_queries(figures, servers, size)
    return figures, missing


async def measure_start_up(figures: Figures, servers: dict[str, Open], size: Size) -> None:
    for number in range(1, size.starts + 1):
        for name, start in servers.items():
            async with AsyncExitStack() as stack:
                before = time.perf_counter()
                place = await stack.enter_async_context(start())
                await Calls(place.channel).answers()
                seconds = time.perf_counter() - before
                figures.of("start-up", "s", more_is_better=False, decimals=3).add(name, seconds)
                memory = place.memory_mb()
                if memory is not None:
                    figures.of("memory, empty", "MB", more_is_better=False).add(name, memory)
            say(f"start {number}: {name}: {seconds:.2f} s")


def _loads(size: Size) -> dict[str, tuple[str, Callable[[Place], Awaitable[Sample]]]]:
    """By name: what is counted, and the load."""
    return {
        "single writes": ("documents", partial(loads.single_writes, documents=size.single)),
        "batched writes": ("documents", partial(loads.batched_writes, documents=size.batched)),
        "overwrites in batches": ("documents", partial(loads.overwrites, documents=size.batched)),
        "mixed batches": ("documents", partial(loads.mixed_batches, documents=size.batched)),
        "batches, each with a query after it": ("documents", partial(loads.write_then_query, documents=size.batched)),
        "claims": ("claims", partial(loads.claims, documents=size.claims)),
        "contended claims": (
            "claims",
            partial(loads.contended_claims, claimed=size.contended, most_seconds=size.contended_seconds),
        ),
    }


async def measure_loads(figures: Figures, servers: dict[str, Open], size: Size) -> None:
    async with AsyncExitStack() as stack:
        found = {name: await stack.enter_async_context(start()) for name, start in servers.items()}
        for number in range(size.rounds + 1):
            note = f"round {number}" if number else "warming up"
            for what, (unit, load) in _loads(size).items():
                for name, place in found.items():
                    sample = await load(place)
                    say(f"{note}: {what} on {name}: {sample.rate:,.0f}/s")
                    if number:
                        figures.rate(what, unit, name, sample)


async def measure_listeners(figures: Figures, servers: dict[str, Open], size: Size) -> None:
    async with AsyncExitStack() as stack:
        found = {name: await stack.enter_async_context(start()) for name, start in servers.items()}
        for number in range(size.listener_rounds + 1):
            note = f"round {number}" if number else "warming up"
            for listeners in size.listeners:
                for name, place in found.items():
                    sample = await loads.listen(place, listeners, size.changes)
                    say(f"{note}: {listeners} listeners on {name}: {statistics.median(sample.latencies) * 1000:.1f} ms")
                    if number:
                        figures.latency(f"a change to {listeners} listeners", name, sample)


async def measure_queries(figures: Figures, servers: dict[str, Open], size: Size) -> None:
    """A server that cannot keep up with one size is not asked for the next."""
    async with AsyncExitStack() as stack:
        found = {name: await stack.enter_async_context(start()) for name, start in servers.items()}
        loaded = 0
        for documents in size.collections:
            what = f"queries at {documents:,} documents"
            figure = figures.of(what, "queries a second", more_is_better=True)
            for name, place in list(found.items()):
                say(f"loading {documents:,} documents: {name}")
                failure = await _not_grown(place, loaded, documents, size)
                if failure is not None:
                    figure.unfinished[name] = failure
                    del found[name]
                elif documents == MEMORY_AT and (memory := place.memory_mb()) is not None:
                    at = f"memory, {MEMORY_AT:,} documents"
                    figures.of(at, "MB", more_is_better=False).add(name, memory)
            loaded = documents
            for number in range(size.query_rounds + 1):
                for name, place in list(found.items()):
                    try:
                        async with asyncio.timeout(size.answer_seconds):
                            sample = await loads.queries(place, size.queries, size.query_seconds)
                    except TimeoutError:
                        figure.unfinished[name] = (
                            f"no {loads.QUERIES_IN_FLIGHT + 1} answers in {size.answer_seconds:g} s"
                        )
                        del found[name]
                        continue
                    say(f"{what} on {name}: {sample.rate:,.1f}/s")
                    if number:
                        figures.rate(what, "queries", name, sample)


async def _not_grown(place: Place, first: int, end: int, size: Size) -> str | None:
    """Why the collection has not as many documents as it should; None: it has."""
    failure = None
    try:
        if not await loads.grow(place, first, end, size.load_seconds):
            failure = f"not loaded in {size.load_seconds:g} s"
    except* aio.AioRpcError:
        failure = f"failed before {end:,} documents"  # out of memory, for one
    return failure


# --- the report


def table(figures: Figures) -> str:
    lines = [f"{'':42}" + "".join(f"{name:>28}" for name in SERVERS)]
    for figure in figures.found.values():
        cells = []
        for name in SERVERS:
            median, ratio = figure.median(name), figure.times_better(name)
            if name in figure.unfinished:
                cells.append(figure.unfinished[name])
            elif median is None:
                cells.append("not measured")
            else:
                shown = f"{median:,.{figure.decimals}f}"
                cells.append(shown if name == GOOGLES or ratio is None else f"{shown} ({ratio:.1f} x)")
        lines.append(f"{f'{figure.what} ({figure.unit})':42}" + "".join(f"{cell:>28}" for cell in cells))
        if (earlier := figure.times_better(MEMORY, EARLIER)) is not None:
            lines.append(f"{'  in memory, over the earlier version':42}{earlier:>28.2f} x")
    return "\n".join(lines)


def main() -> int:
    parser = report.arguments("Our Firestore emulator beside Google's: speed, start-up, memory.")
    parser.add_argument("--json", action="store_true", help="print the JSON instead of the table")
    parser.add_argument("--before", default=BEFORE, metavar="COMMIT", help=f"the earlier version; default {BEFORE}")
    options = parser.parse_args()
    figures, missing = asyncio.run(measure(SMALL if options.small else Size(), options.before))
    behind = [
        f"{figure.what}: {server}"
        for figure in figures.found.values()
        for server in (MEMORY, DURABLE)
        if figure.is_behind(server)
    ]
    result = report.heading("our Firestore emulator beside Google's", __doc__) | {
        "googlesEmulator": {"notMeasured": missing} if missing else "measured",
        "behindGoogles": behind,
        "earlier": options.before,
        "figures": [figure.json() for figure in figures.found.values()],
    }
    report.keep(result, "emulator", options)
    print(json.dumps(result, indent=2, ensure_ascii=False) if options.json else table(figures))
    for one in behind:
        say(f"behind Google's emulator: {one}")
    return 1 if behind and not options.small else 0


if __name__ == "__main__":
    sys.exit(main())
