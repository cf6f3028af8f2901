"""How many messages a second go from queued to sent: our worker beside the usual polling worker, on several Firestores.

    python -m bench.throughput [--messages N] [--rounds N] [--json]

It fails when, with a provider that takes 5 ms, ours on Google's emulator is less than 8 times the polling pattern, or
ours on the embedded stack is less than twice ours on Google's emulator. The same with a provider that takes no time at
all is for information: no provider is like that, and worker and server then wait for each other, fifty by fifty.

Method. One account without a pace, 50 sends at a time, each message to another recipient; the provider is a stub that
accepts everything after a fixed time. Every run begins with the same backlog, in a project of its own, and ends when
its messages are `sent` in both of their documents, which is checked. The polling pattern (every 500 ms a query for at
most 50 documents; for one after the other a claim in a transaction, the send, an update of each of the two documents)
takes only the first few hundred of the same backlog, because it is slow; its pauses between polls count. Both use the
real client library on one connection, and one process besides the server's. Runs alternate: each round has one of
every kind, after a round that is thrown away. Rates are medians; a ratio is the median of the rounds' own ratios, so
that what else the machine does falls on both sides of it. Reads, writes and calls are counted in the client's channel
as Firestore bills them; processor time is that of the client's process and of the server's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import secrets
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench import places
from bench.counted import Count
from bench.drains import CONCURRENCY, drain_by_polling, drain_ours, load, provider_call, sent
from bench.places import Place
from emulator.official import EmulatorMissing

RESULTS = Path(__file__).parent / "results" / "throughput.json"
MESSAGES, ROUNDS = 5_000, 3
POLLED = 300
"""How many of the backlog the polling pattern is given time for."""
LATENCIES_SECONDS = (0.005, 0.0)
JUDGED_SECONDS = 0.005
LEAST_OVER_POLLING, LEAST_OVER_GOOGLES = 8.0, 2.0

OURS, POLLING = "our worker", "polling"
GOOGLES, MEMORY, DURABLE, IN_PROCESS = (
    "Google's emulator",
    "ours, in memory",
    "ours, a data directory",
    "ours, in process",
)


@dataclass(frozen=True)
class Kind:
    """What is measured: who drains, where, and how long the provider takes."""

    who: str
    where: str
    latency_seconds: float


@dataclass(frozen=True)
class Run:
    messages: int
    seconds: float
    waited_seconds: float
    """Of these, how long the polling pattern slept between polls."""
    client_cpu_seconds: float
    server_cpu_seconds: float | None
    count: Count

    @property
    def rate(self) -> float:
        return self.messages / self.seconds


@dataclass
class Measured:
    runs: dict[Kind, list[Run]] = field(default_factory=dict)

    def rate(self, kind: Kind) -> float | None:
        runs = self.runs.get(kind)
        return statistics.median(run.rate for run in runs) if runs else None

    def ratio(self, one: Kind, other: Kind) -> float | None:
        """By how much `one` is faster, round by round."""
        pairs = list(zip(self.runs.get(one, []), self.runs.get(other, []), strict=False))
        return statistics.median(a.rate / b.rate for a, b in pairs) if pairs else None


async def run_once(kind: Kind, place: Place, backlog: int) -> Run:
    project = f"bench-{secrets.token_hex(4)}"
    await load(place.client(project, Count()), backlog)
    count = Count()
    client, send = place.client(project, count), provider_call(kind.latency_seconds)
    messages = min(POLLED, backlog) if kind.who == POLLING else backlog
    server_before, client_before, before = place.cpu_seconds(), time.process_time(), time.perf_counter()
    waited = 0.0
    if kind.who == POLLING:
        waited = await drain_by_polling(client, send, messages)
    else:
        await drain_ours(client, place.queries(count), send)
    seconds, client_cpu, server_after = (
        time.perf_counter() - before,
        time.process_time() - client_before,
        place.cpu_seconds(),
    )
    found = await sent(place.client(project, Count()))
    if found != messages:
        raise RuntimeError(f"{kind}: {found} of {messages} messages are sent")
    server_cpu = None if server_before is None or server_after is None else server_after - server_before
    return Run(messages, seconds, waited, client_cpu, server_cpu, count)


async def measure(backlog: int, rounds: int, say: Callable[[str], None]) -> tuple[Measured, str | None]:
    """All runs; and why Google's emulator was left out, if it was."""
    measured, missing = Measured(), None
    async with AsyncExitStack() as stack:
        found: dict[str, Place] = {}
        try:
            found[GOOGLES] = await stack.enter_async_context(places.googles())
        except EmulatorMissing as error:
            missing = str(error)
            say(f"Google's emulator is not measured: {missing}")
        found[MEMORY] = await stack.enter_async_context(places.ours(durable=False))
        found[DURABLE] = await stack.enter_async_context(places.ours(durable=True))
        found[IN_PROCESS] = await stack.enter_async_context(places.in_process())
        kinds = [
            Kind(who, where, latency)
            for latency in LATENCIES_SECONDS
            for who, where in [(POLLING, GOOGLES), *((OURS, where) for where in found)]
            if where in found
        ]
        for round_number in range(rounds + 1):
            for kind in kinds:
                run = await run_once(kind, found[kind.where], backlog)
                note = "warming up" if round_number == 0 else f"round {round_number}"
                say(f"{note}: {kind.who} on {kind.where}, {kind.latency_seconds * 1000:g} ms: {run.rate:,.0f}/s")
                if round_number > 0:
                    measured.runs.setdefault(kind, []).append(run)
    return measured, missing


# --- the bars


@dataclass(frozen=True)
class Bar:
    sentence: str
    ratio: float | None
    least: float | None
    """None: for information."""

    @property
    def is_met(self) -> bool:
        return self.ratio is None or self.least is None or self.ratio >= self.least

    def __str__(self) -> str:
        if self.ratio is None:
            return f"{self.sentence}: not measured"
        if self.least is None:
            return f"{self.sentence}: {self.ratio:.1f} times"
        verdict = "at least" if self.is_met else "LESS THAN"
        return f"{self.sentence}: {self.ratio:.1f} times, {verdict} the {self.least:g} asked for"


def bars(measured: Measured) -> list[Bar]:
    found = []
    for latency in LATENCIES_SECONDS:
        on_googles = Kind(OURS, GOOGLES, latency)
        with_latency = f"with a provider of {latency * 1000:g} ms"
        over_polling = measured.ratio(on_googles, Kind(POLLING, GOOGLES, latency))
        over_googles = measured.ratio(Kind(OURS, MEMORY, latency), on_googles)
        least = (LEAST_OVER_POLLING, LEAST_OVER_GOOGLES) if latency == JUDGED_SECONDS else (None, None)
        found += [
            Bar(f"ours over polling on Google's emulator, {with_latency}", over_polling, least[0]),
            Bar(f"ours on the embedded stack over Google's emulator, {with_latency}", over_googles, least[1]),
        ]
    return found


# --- the report


def figures(kind: Kind, runs: list[Run]) -> dict[str, Any]:
    def a_message(of: Callable[[Run], float | None]) -> float | None:
        values = [value / run.messages for run in runs if (value := of(run)) is not None]
        return statistics.median(values) if values else None

    def millis(seconds: float | None) -> float | None:
        return None if seconds is None else round(seconds * 1000, 3)

    rates = [run.rate for run in runs]
    return {
        "who": kind.who,
        "where": kind.where,
        "providerMs": kind.latency_seconds * 1000,
        "messages": runs[0].messages,
        "perSecond": round(statistics.median(rates), 1),
        "perSecondOfRounds": [round(rate, 1) for rate in rates],
        "shareWaitingForPolls": round(statistics.median(run.waited_seconds / run.seconds for run in runs), 3),
        "clientCpuMsAMessage": millis(a_message(lambda run: run.client_cpu_seconds)),
        "serverCpuMsAMessage": millis(a_message(lambda run: run.server_cpu_seconds)),
        "callsAMessage": round(a_message(lambda run: run.count.rpcs) or 0, 3),
        "readsAMessage": round(a_message(lambda run: run.count.reads) or 0, 3),
        "writesAMessage": round(a_message(lambda run: run.count.writes) or 0, 3),
    }


def table(rows: list[dict[str, Any]]) -> str:
    head = ("provider", "who", "where", "a second", "client CPU", "server CPU", "calls", "reads", "writes")
    widths = (9, 11, 23, 9, 11, 11, 7, 7, 7)
    lines = [
        "".join(
            f"{name:<{w}}" if n < 3 else f"{name:>{w}}" for n, (name, w) in enumerate(zip(head, widths, strict=True))
        )
    ]
    for row in rows:
        cells = (
            f"{row['providerMs']:g} ms",
            row["who"],
            row["where"],
            f"{row['perSecond']:,.0f}",
            _shown_ms(row["clientCpuMsAMessage"]),
            _shown_ms(row["serverCpuMsAMessage"]),
            f"{row['callsAMessage']:.2f}",
            f"{row['readsAMessage']:.2f}",
            f"{row['writesAMessage']:.2f}",
        )
        lines.append(
            "".join(f"{c:<{w}}" if n < 3 else f"{c:>{w}}" for n, (c, w) in enumerate(zip(cells, widths, strict=True)))
        )
    return "\n".join(lines)


def _shown_ms(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} ms"


def report(measured: Measured, missing: str | None, backlog: int, rounds: int) -> dict[str, Any]:
    return {
        "what": f"from queued to sent: {backlog:,} messages of one account, no pace, {CONCURRENCY} sends at a time",
        "method": " ".join((__doc__ or "").partition("Method. ")[2].split()),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": {
            "cores": os.cpu_count(),
            "loadAtTheEnd": [round(load, 1) for load in os.getloadavg()],
            "system": platform.system(),
            "architecture": platform.machine(),
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "grpcio": version("grpcio"),
        },
        "rounds": rounds,
        "bars": [
            {"what": bar.sentence, "ratio": None if bar.ratio is None else round(bar.ratio, 2), "least": bar.least}
            for bar in bars(measured)
        ],
        "googlesEmulator": {"notMeasured": missing} if missing else "measured",
        "runs": [figures(kind, runs) for kind, runs in measured.runs.items()],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Messages a second, beside the polling pattern and on each Firestore.")
    parser.add_argument("--messages", type=int, default=MESSAGES, metavar="N", help="how many are queued")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help="measured rounds, after one to warm up")
    parser.add_argument("--json", action="store_true", help="print the JSON instead of the table")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the JSON goes")
    options = parser.parse_args()

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    measured, missing = asyncio.run(measure(options.messages, options.rounds, say))
    result = report(measured, missing, options.messages, options.rounds)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2, ensure_ascii=False) if options.json else table(result["runs"]))
    for bar in bars(measured):
        print(bar, file=sys.stderr if options.json else sys.stdout)
    return 0 if all(bar.is_met for bar in bars(measured)) else 1


if __name__ == "__main__":
    sys.exit(main())
