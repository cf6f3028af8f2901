"""How long a message takes from its write to the provider's call, on the embedded stack.

    python -m bench.latency [--seconds N] [--bar-only] [--small]

It fails when, at 20 messages a second, the median is 50 ms or more or the 99th percentile 250 ms or more; or when, at
any rate, a message is lost, sent twice, or out of its thread's order.

Method. The embedded stack, each part a process on this machine: our Firestore and Cloud Tasks, the functions served by
functions-framework, the worker, and the provider simulator, which answers at once unless said otherwise and sends
three receipts for each message. A process besides writes messages with the Python client at random moments (a Poisson
process with a fixed seed) and does not wait for one before it writes the next; they go out from a handful of accounts
without a pace to many recipients in turn. A message's time is from just before its commit to the moment that the
provider noted for its call, both by the clock of this one machine. What a cold start costs is not in it: the first
messages warm everything up and are not counted. Processor time is that of each process; `othersBusy` is the share of
the machine that went to other processes, which says how much to believe the times.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from bench.report import arguments, heading, keep, say
from bench.streams import ACCOUNTS, RECIPIENTS, Kind, Run, measure, percentile
from firestore_outbox.local.dev import DevSettings, DevStack

MEDIAN_SECONDS, P99_SECONDS = 0.050, 0.250
SECONDS = 25.0
NO_CHANGES: Mapping[str, str] = {}
BAR = Kind(20.0)
KINDS = (Kind(1.0), BAR, Kind(100.0), Kind(20.0, provider_ms=300))
"""All but the one with the bar are for information."""


def faults(runs: list[Run]) -> list[str]:
    """What keeps it from being good."""
    found = [fault for run in runs for fault in run.faults]
    for run in runs:
        if run.kind == BAR and run.latencies:
            for share, name, most in ((0.5, "median", MEDIAN_SECONDS), (0.99, "99th percentile", P99_SECONDS)):
                if (seconds := percentile(run.latencies, share)) >= most:
                    found.append(f"at {run.kind} the {name} is {seconds * 1000:.1f} ms, not under {most * 1000:g}")
    return found


def figures(run: Run) -> dict[str, Any]:
    def millis(seconds: float) -> float:
        return round(seconds * 1000, 1)

    def spread(ordered: list[float]) -> dict[str, float]:
        """Nothing of what never came."""
        shares = {"median": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
        return {name: millis(percentile(ordered, share)) for name, share in shares.items() if ordered}

    return {
        "perSecond": run.kind.rate,
        "providerMs": run.kind.provider_ms,
        "messages": len(run.messages),
        "seconds": round(run.seconds, 1),
        "writeToCallMs": spread(run.latencies),
        "commitAcknowledgedMs": spread(run.commits),
        "cpuMsAMessage": {name: millis(cpu / len(run.messages)) for name, cpu in run.cpu.items()},
        "othersBusy": None if run.others_busy is None else round(run.others_busy, 3),
        "writerLateMs": millis(run.most_late),
        "lost": run.lost,
        "sentTwice": run.repeated,
        "outOfOrder": run.misordered,
    }


def report(runs: list[Run], load_before: tuple[float, float, float]) -> dict[str, Any]:
    return {
        **heading("from just before a message's commit to the provider's call, on the embedded stack", __doc__),
        "loadBefore": [round(load, 1) for load in load_before],
        "accounts": ACCOUNTS,
        "recipients": ACCOUNTS * RECIPIENTS,
        "bar": {
            "perSecond": BAR.rate,
            "providerMs": BAR.provider_ms,
            "medianMs": MEDIAN_SECONDS * 1000,
            "p99Ms": P99_SECONDS * 1000,
        },
        "runs": [figures(run) for run in runs],
        "faults": faults(runs),
    }


async def embedded_run(kind: Kind, seconds: float, environment: Mapping[str, str] = NO_CHANGES) -> Run:
    """On a stack of its own, which begins with nothing stored. `environment` is added to that of its processes."""
    settings = DevSettings(
        firestore_port=0,
        tasks_port=0,
        functions_port=0,
        worker_port=0,
        provider_port=0,
        environment={"OUTBOX_LOG_LEVEL": "ERROR", **environment},
    )
    async with DevStack(settings) as stack:
        return await measure(stack, kind, seconds)


async def measure_all(kinds: Sequence[Kind], seconds: float) -> list[Run]:
    runs = []
    for kind in kinds:
        run = await embedded_run(kind, seconds)
        times = figures(run)["writeToCallMs"]
        say(f"{kind}: " + ", ".join(f"{name} {value} ms" for name, value in times.items()))
        runs.append(run)
    return runs


def main() -> int:
    parser = arguments("From write to provider call, on the embedded stack.")
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="N", help="how long each rate is kept up")
    parser.add_argument("--bar-only", action="store_true", help="without the runs that are for information")
    options = parser.parse_args()
    kinds = (BAR,) if options.bar_only or options.small else KINDS
    seconds = 1.0 if options.small else options.seconds
    load_before = os.getloadavg()
    result = report(asyncio.run(measure_all(kinds, seconds)), load_before)
    keep(result, "latency", options)
    for fault in result["faults"]:
        print(f"not good: {fault}", file=sys.stderr)
    return 1 if result["faults"] and not options.small else 0


if __name__ == "__main__":
    sys.exit(main())
