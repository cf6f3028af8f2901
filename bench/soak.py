"""Half an hour at a steady 50 messages a second on the embedded stack: nothing grows that should not.

    python -m bench.soak [--minutes N] [--rate N] [--small]

It fails when memory, open handles or lag are not flat by the bars below (bench/flatness.py says how that is judged),
when a process dies, or when a message is lost, sent twice or out of its thread's order.

Method. The embedded stack with its data on disk, each part a process on this machine; the provider answers at once and
sends three receipts for each message. Clients write one message a commit, at even intervals, over 8 accounts and 400
recipients. Every 10 s each process's resident memory and open handles are read from /proc; and, of the messages called
since, the median and the 99th percentile of the time from write to call, and the age of the oldest due message. The
provider simulator keeps every call it has seen in memory, by design: its memory is shown and not judged. The emulators'
process holds SQLite's page cache, which grows to 64 MB for each of two databases and stays there.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.flatness import Bar, flatness
from bench.processes import Held, all_held
from bench.report import arguments, heading, keep, say
from bench.traffic import Traffic, durable_stack, percentile, traffic_to
from firestore_outbox.local.dev import DevStack

MINUTES, SMALL_MINUTES, RATE = 30.0, 2.5, 50.0
SAMPLE_SECONDS = 10.0
PATIENCE_SECONDS = 120.0
JUDGED_MEMORY = ("google", "functions", "worker")
MEMORY = Bar(share=0.02, least=3.0)
"""In megabytes, over ten minutes of a full run."""
HANDLES = Bar(share=0.1, least=4.0)
MEDIAN_LAG = Bar(share=0.25, least=0.010)
P99_LAG = Bar(share=0.5, least=0.100)
OLDEST = Bar(share=0.5, least=1.0)


@dataclass(frozen=True, slots=True)
class Sample:
    at: float
    """Seconds since the first message."""
    held: dict[str, Held]
    median_lag: float
    p99_lag: float
    oldest_due: float
    called: int
    """Since the sample before."""


@dataclass
class Soak:
    samples: list[Sample] = field(default_factory=list)
    written: int = 0
    drained_after: float | None = None
    statuses: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


async def measure(data: Path, *, seconds: float, rate: float) -> Soak:
    result = Soak()
    async with durable_stack(data) as stack, traffic_to(stack, data) as traffic:
        await traffic.make_accounts()
        watching = asyncio.create_task(_watch(stack, traffic, result))
        await traffic.write(rate, seconds)
        watching.cancel()
        for ended in await asyncio.gather(watching, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended
        result.written = len(traffic.asked)
        result.drained_after = await traffic.drained(PATIENCE_SECONDS)
        result.statuses = await traffic.statuses()
        traffic.read_calls()
        result.faults += traffic.faults()
        result.faults += [f"{name} is gone" for name, process in stack.processes.items() if not process.is_running]
    if traffic.refused:
        result.faults.append(f"{traffic.refused} messages were not acknowledged")
    if result.drained_after is None or result.statuses.keys() - {"sent"}:
        result.faults.append(f"not all were sent in the end: {result.statuses}")
    return result


async def _watch(stack: DevStack, traffic: Traffic, result: Soak) -> None:
    began = time.monotonic()
    while True:
        await asyncio.sleep(max(0.0, began + SAMPLE_SECONDS * (len(result.samples) + 1) - time.monotonic()))
        oldest, lags = await traffic.oldest_queued_seconds(), traffic.read_calls()
        sample = Sample(
            at=time.monotonic() - began,
            held={name: holds for name, holds in all_held(stack).items() if holds is not None},
            median_lag=percentile(lags, 0.5),
            p99_lag=percentile(lags, 0.99),
            oldest_due=oldest,
            called=len(lags),
        )
        result.samples.append(sample)
        memory = ", ".join(f"{name} {holds.megabytes:.0f} MB {holds.handles}" for name, holds in sample.held.items())
        say(
            f"{sample.at:6.0f} s  {sample.called} called, lag {sample.median_lag * 1000:.0f} ms (99 %: "
            f"{sample.p99_lag * 1000:.0f}), oldest {oldest:.1f} s; {memory}"
        )


def judged(samples: Sequence[Sample]) -> dict[str, Any]:
    """By measure: how flat it is, or that there are too few samples to tell."""
    found: dict[str, Any] = {}

    def judge(name: str, values: Callable[[Sample], float | None], bar: Bar, *, compare_levels: bool) -> None:
        series = [(sample.at, value) for sample in samples if (value := values(sample)) is not None]
        flat = flatness(series, bar, compare_levels=compare_levels)
        found[name] = None if flat is None else {key: _rounded(value) for key, value in asdict(flat).items()}

    def memory(process: str) -> Callable[[Sample], float | None]:
        return lambda sample: sample.held[process].megabytes if process in sample.held else None

    def handles(process: str) -> Callable[[Sample], float | None]:
        return lambda sample: float(sample.held[process].handles) if process in sample.held else None

    for process in samples[-1].held if samples else ():
        judge(f"{process} handles", handles(process), HANDLES, compare_levels=False)
        if process in JUDGED_MEMORY:
            judge(f"{process} megabytes", memory(process), MEMORY, compare_levels=False)
    judge("median lag, seconds", lambda sample: sample.median_lag, MEDIAN_LAG, compare_levels=True)
    judge("p99 lag, seconds", lambda sample: sample.p99_lag, P99_LAG, compare_levels=True)
    judge("oldest due, seconds", lambda sample: sample.oldest_due, OLDEST, compare_levels=True)
    return found


def _rounded(value: float | bool) -> float | bool:
    return value if isinstance(value, bool) else round(value, 4)


def faults(result: Soak, flat: dict[str, Any]) -> list[str]:
    found = list(result.faults)
    for name, one in flat.items():
        if one is None:
            found.append(f"{name}: too few samples to tell; the run was too short")
        elif not one["is_flat"]:
            found.append(
                f"{name} is not flat: {one['middle']:g}, then {one['last']:g}; it grew by {one['middle_growth']:g}, "
                f"then by {one['last_growth']:g}, and may by {one['allowed']:g}"
            )
    return found


def report(result: Soak, minutes: float, rate: float, load_before: tuple[float, float, float]) -> dict[str, Any]:
    flat = judged(result.samples)
    return {
        **heading("a steady stream of messages on the embedded stack, and what its processes hold meanwhile", __doc__),
        "loadBefore": [round(load, 1) for load in load_before],
        "minutes": minutes,
        "perSecond": rate,
        "messages": result.written,
        "drainedAfterSeconds": None if result.drained_after is None else round(result.drained_after, 1),
        "finalStatus": result.statuses,
        "flatness": flat,
        "samples": [_shown(sample) for sample in result.samples],
        "faults": faults(result, flat),
    }


def _shown(sample: Sample) -> dict[str, Any]:
    return {
        "at": round(sample.at),
        "called": sample.called,
        "medianLagMs": round(sample.median_lag * 1000, 1),
        "p99LagMs": round(sample.p99_lag * 1000, 1),
        "oldestDueSeconds": round(sample.oldest_due, 2),
        "megabytes": {name: round(holds.megabytes, 1) for name, holds in sample.held.items()},
        "handles": {name: holds.handles for name, holds in sample.held.items()},
    }


def main() -> int:
    parser = arguments("A steady stream for half an hour: nothing grows that should not.")
    parser.add_argument("--minutes", type=float, metavar="N", help="how long (30)")
    parser.add_argument("--rate", type=float, default=RATE, metavar="N", help="messages a second (50)")
    options = parser.parse_args()
    minutes = options.minutes or (SMALL_MINUTES if options.small else MINUTES)
    load_before = os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="outbox-soak-") as directory:
        work = measure(Path(directory), seconds=minutes * 60, rate=options.rate)
        result = report(asyncio.run(work), minutes, options.rate, load_before)
    keep(result, "soak", options)
    for fault in result["faults"]:
        say(f"not good: {fault}")
    return 1 if result["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
