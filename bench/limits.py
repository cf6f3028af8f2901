"""A shared limit: how much of its rate instances use together, how even their turns are, and what it writes.

    python -m bench.limits [--small]

Method. In virtual time on our emulator, each instance with its own connection: eight instances whose 50 callers never
rest, then one instance alone with 200 callers, for five minutes each, at 100 calls a second and a burst of 10. Then
eight real processes on the emulator, ten callers each, until each has made its calls. `share` is calls made of calls
allowed; `mostWritesASecond` is the busiest document's average; `longestGapSeconds` is the longest time in which a busy
instance had no turn.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any

from bench import report
from bench.report import say
from firestore_emulator.pytest_plugin import serving
from firestore_emulator.virtual_time import run
from firestore_outbox.limits.limiter import Limiter
from firestore_outbox.limits.line import Rate
from firestore_outbox.limits.store import LimitStore
from firestore_outbox.local.simulation.network import NO_BAD_LUCK
from firestore_outbox.local.simulation.world import World
from firestore_outbox.settings import Settings

RATE = Rate(per_second=100, burst=10)
PROCESSES = 8
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
PROGRAM = """
import asyncio, json, sys, time
from firestore_outbox import Limit

async def main():
    limit, calls = Limit("api", per_second=100, burst=10), []
    await limit.acquire()
    print("ready", flush=True)
    sys.stdin.readline()
    async def caller():
        while len(calls) < int(sys.argv[1]):
            await limit.acquire()
            calls.append(time.time())
    await asyncio.gather(*(caller() for _ in range(10)))
    await limit.close()
    print(json.dumps(calls))

asyncio.run(main())
"""


async def _virtual(instances: int, callers: int, seconds: int) -> dict[str, Any]:
    world = World(1, settings=Settings(), luck=NO_BAD_LUCK)
    await world.start()
    calls: list[list[float]] = [[] for _ in range(instances)]
    loop = asyncio.get_running_loop()

    async def call(limiter: Limiter, made: list[float]) -> None:
        while True:
            await limiter.acquire()
            made.append(loop.time())

    limiters = []
    for number in range(instances):
        machine = world.machine("client")
        store = LimitStore(machine.system.gateway)
        limiters.append(Limiter("api", store, default=RATE, clock=machine.clock, random=Random(number)))
    work = [
        asyncio.create_task(call(limiter, made))
        for limiter, made in zip(limiters, calls, strict=True)
        for _ in range(callers)
    ]
    await asyncio.sleep(seconds)
    for task in work:
        task.cancel()
    await asyncio.gather(*work, return_exceptions=True)
    for limiter in limiters:
        await limiter.close()
    writes = Counter(change.path for change in world.truth.changes if change.path.startswith("limits/"))
    await world.stop()
    return {
        "instances": instances,
        "share": round(sum(map(len, calls)) / (RATE.per_second * seconds), 4),
        "mostWritesASecond": round(max(writes.values()) / seconds, 2),
        "longestGapSeconds": round(max(later - at for made in calls for at, later in pairwise(made)), 2),
    }


def _in_virtual_time(instances: int, callers: int, seconds: int) -> dict[str, Any]:
    return run(_virtual(instances, callers, seconds), seed=1, start=START, time_limit=timedelta(days=1))


def _real(calls_each: int) -> dict[str, Any]:
    with serving() as host:
        environment = os.environ | {"FIRESTORE_EMULATOR_HOST": host, "GOOGLE_CLOUD_PROJECT": "demo-outbox"}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        command = [sys.executable, "-c", PROGRAM, str(calls_each)]
        processes = [subprocess.Popen(command, env=environment, **pipes) for _ in range(PROCESSES)]
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        calls = sorted(at for process in processes for at in json.loads(process.communicate()[0]))
    first_end = len(calls) * 9 // 10  # the last ones wait for processes that are done
    seconds = calls[first_end] - calls[0]
    most = max(sum(at <= other < at + 1 for other in calls[place : place + 300]) for place, at in enumerate(calls))
    return {
        "processes": PROCESSES,
        "share": round(first_end / seconds / RATE.per_second, 4),
        "mostInASecond": most,
    }


def main() -> None:
    options = report.arguments("How instances share a limit.").parse_args()
    seconds = 10 if options.small else 300
    result = {
        **report.heading("A limit of 100 calls a second, shared", __doc__),
        "together": _in_virtual_time(8, 50, seconds),
        "alone": _in_virtual_time(1, 200, seconds),
        "real": _real(30 if options.small else 500),
    }
    say(json.dumps({name: result[name] for name in ("together", "alone", "real")}, indent=2))
    report.keep(result, "limits", options)


if __name__ == "__main__":
    main()
