"""Three times as many messages as the stack can drain: it stays up, the queue grows old, and then it drains.

    python -m bench.overload [--seconds N] [--times N] [--backlog N] [--provider-ms N] [--small]

It fails when a process dies or does not answer, when the queue did not grow (then it was no overload), when a message
that was acknowledged is lost, sent twice or out of its thread's order, or when the queue is not empty in the end.

Method. The embedded stack with its data on disk, each part a process on this machine; the provider answers at once,
or after `--provider-ms`: then the provider bounds what the stack drains, however busy the machine is.
First a backlog is written while the accounts are paused; they are resumed, and how fast the provider is called between
a tenth and nine tenths of it is what the stack drains. Then clients write three times as many a second for two minutes,
twenty messages in each commit, without waiting for one before the next, with at most 64 commits under way. Every two
seconds each process is asked for its health and the age of the oldest due message is read. Clients and stack share the
machine: what the ones cost, the other does not have.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from bench.processes import all_held, health
from bench.report import arguments, heading, keep, say
from bench.traffic import Traffic, durable_stack, traffic_to
from firestore_outbox.errors import StoreUnavailable
from firestore_outbox.local.dev import DevStack

SECONDS, TIMES, BACKLOG = 120.0, 3.0, 3_000
TOGETHER = 20
SAMPLE_SECONDS = 2.0
ANSWERS_WITHIN_SECONDS = 10.0
BACKLOG_SECONDS = 300.0
"""Never waited out unless something is wrong."""


@dataclass
class Overload:
    drains: float = 0.0
    """Messages a second, of a backlog."""
    offered: float = 0.0
    seconds: float = 0.0
    ages: list[float] = field(default_factory=list)
    """Of the oldest due message, by sample while clients write."""
    slowest_answers: dict[str, float] = field(default_factory=dict)
    most_megabytes: dict[str, float] = field(default_factory=dict)
    called_meanwhile: int = 0
    written: int = 0
    acknowledged: int = 0
    refused: int = 0
    drained_after: float | None = None
    statuses: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


async def measure(
    data: Path,
    *,
    seconds: float,
    times: float,
    backlog: int,
    provider_ms: int = 0,
    sample_seconds: float = SAMPLE_SECONDS,
    answers_within_seconds: float = ANSWERS_WITHIN_SECONDS,
) -> Overload:
    result = Overload(seconds=seconds)
    async with durable_stack(data) as stack, traffic_to(stack, data) as traffic:
        await _slow_down(stack, provider_ms)
        result.drains = await drained_backlog(traffic, backlog)
        result.offered = times * result.drains
        say(f"it drains {result.drains:.0f} messages a second; {result.offered:.0f} a second are written from now on")
        before = len(traffic.asked), len(traffic.acknowledged), len(traffic.calls)
        result.ages.append(await traffic.oldest_queued_seconds())
        flooded = asyncio.Event()
        watch = partial(_watch, stack, answers_within_seconds)
        watching = asyncio.create_task(watch(traffic, result, sample_seconds, flooded))
        await traffic.write(result.offered, seconds, together=TOGETHER)
        flooded.set()
        try:
            await watching
        except StoreUnavailable as error:
            result.faults.append(f"Firestore could not be read while it was overloaded: {error}")
        traffic.read_calls()
        result.written, result.acknowledged = len(traffic.asked) - before[0], len(traffic.acknowledged) - before[1]
        result.called_meanwhile, result.refused = len(traffic.calls) - before[2], traffic.refused
        left = len(traffic.asked) - len(traffic.calls)
        say(f"{result.written} were written, {result.called_meanwhile} called meanwhile; {left} are left")
        result.drained_after = await traffic.drained(BACKLOG_SECONDS + 5 * left / result.drains)
        result.faults += (await health(stack, answers_within_seconds)).faults
        result.statuses = await traffic.statuses()
        traffic.read_calls()
        result.faults += _judged(result, traffic)
    return result


async def _slow_down(stack: DevStack, provider_ms: int) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=ANSWERS_WITHIN_SECONDS) as http:
        answer = await http.put(f"{stack.provider_url}/_sim/faults", json={"latencyMs": provider_ms})
    answer.raise_for_status()


async def drained_backlog(traffic: Traffic, backlog: int) -> float:
    """Messages a second."""
    await traffic.make_accounts("paused")
    await traffic.write_at_once(backlog, together=TOGETHER)
    await traffic.make_accounts("active")
    await traffic.write_at_once(len(traffic.account_ids), together=1)  # each account's next message wakes its lane
    if await traffic.drained(BACKLOG_SECONDS) is None:
        raise RuntimeError(f"the backlog of {backlog} was not drained within {BACKLOG_SECONDS:g} s")
    traffic.read_calls()
    times = sorted(calls[0] for calls in traffic.calls.values())
    first, last = len(times) // 10, len(times) * 9 // 10
    return (last - first) / (times[last] - times[first])


async def _watch(
    stack: DevStack,
    answers_within_seconds: float,
    traffic: Traffic,
    result: Overload,
    sample_seconds: float,
    flooded: asyncio.Event,
) -> None:
    """A look every so often while clients write, and a last one when they have just stopped."""
    began = time.monotonic()
    while not flooded.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(sample_seconds):
                await flooded.wait()
        answered = await health(stack, answers_within_seconds)
        result.faults += [fault for fault in answered.faults if fault not in result.faults]
        for name, seconds in answered.seconds.items():
            result.slowest_answers[name] = max(seconds, result.slowest_answers.get(name, 0.0))
        for name, holds in all_held(stack).items():
            if holds is not None:
                result.most_megabytes[name] = max(holds.megabytes, result.most_megabytes.get(name, 0.0))
        result.ages.append(await traffic.oldest_queued_seconds())
        traffic.read_calls()
        say(
            f"{time.monotonic() - began:5.0f} s  written {len(traffic.asked)}, acknowledged "
            f"{len(traffic.acknowledged)}, called {len(traffic.calls)}, oldest due for {result.ages[-1]:.1f} s"
        )


def _judged(result: Overload, traffic: Traffic) -> list[str]:
    found = traffic.faults()
    third = max(1, len(result.ages) // 3)
    early, late = max(result.ages[:third], default=0.0), max(result.ages[-third:], default=0.0)
    if result.called_meanwhile >= result.acknowledged or late <= early:
        found.append(
            f"the queue did not grow ({early:.1f} s old at first, {late:.1f} s in the end): it was no overload"
        )
    if result.drained_after is None:
        found.append(f"the queue was not empty in the end: {result.statuses}")
    if result.statuses.keys() - {"sent"}:
        found.append(f"not all were sent: {result.statuses}")
    return found


def figures(result: Overload) -> dict[str, Any]:
    return {
        "drainsPerSecond": round(result.drains, 1),
        "offeredPerSecond": round(result.offered, 1),
        "seconds": result.seconds,
        "written": result.written,
        "acknowledged": result.acknowledged,
        "notAcknowledged": result.refused,
        "acknowledgedPerSecond": round(result.acknowledged / result.seconds, 1),
        "calledMeanwhile": result.called_meanwhile,
        "oldestDueSeconds": [round(age, 1) for age in result.ages],
        "slowestHealthSeconds": {name: round(took, 2) for name, took in sorted(result.slowest_answers.items())},
        "mostMegabytes": {name: round(most) for name, most in sorted(result.most_megabytes.items())},
        "drainedAfterSeconds": None if result.drained_after is None else round(result.drained_after, 1),
        "finalStatus": result.statuses,
        "faults": result.faults,
    }


def report(result: Overload, load_before: tuple[float, float, float]) -> dict[str, Any]:
    return {
        **heading("more messages than the embedded stack can drain, and what it does with them", __doc__),
        "loadBefore": [round(load, 1) for load in load_before],
        **figures(result),
    }


def main() -> int:
    parser = arguments("Three times what the stack drains, and the way back.")
    parser.add_argument("--seconds", type=float, metavar="N", help="how long it is overloaded (120)")
    parser.add_argument("--times", type=float, default=TIMES, metavar="N", help="by how much (3)")
    parser.add_argument("--backlog", type=int, metavar="N", help="to measure what it drains (3,000)")
    parser.add_argument("--provider-ms", type=int, default=0, metavar="N", help="how long a call takes (0)")
    options = parser.parse_args()
    seconds, backlog = options.seconds or (10 if options.small else SECONDS), options.backlog
    load_before = os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="outbox-overload-") as directory:
        work = measure(
            Path(directory),
            seconds=seconds,
            times=options.times,
            provider_ms=options.provider_ms,
            backlog=backlog or (300 if options.small else BACKLOG),
        )
        result = report(asyncio.run(work), load_before)
    keep(result, "overload", options)
    for fault in result["faults"]:
        say(f"not good: {fault}")
    return 1 if result["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
