"""What it costs to make a run's outbox documents: time, memory, reads and writes for each target, at three sizes.

    python -m bench.fanout [--sizes 1000 10000 100000] [--small]

It fails when the process that expands takes more than 200 MB of memory, or when a target costs 10 % more at one
size than at another.

Method. Our Firestore emulator in a process of its own, in memory. For each size a process of its own: it writes a
reminder whose targets stand in documents of 1,000, then runs the reminder's lane and the run's lane as the worker does,
until every target has its outbox document; nothing is sent. Memory is the highest resident size of that process, the
interpreter and all its libraries included. Reads and writes are counted in the client's channels as Firestore
bills them, and include those of the lanes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from random import Random
from typing import Any

from bench import places
from bench.counted import Count
from bench.places import Place
from bench.report import arguments, heading, keep
from firestore_outbox.clock import system_clock
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import upsert
from firestore_outbox.lane.ref import reminder_lane, run_lane
from firestore_outbox.providers.credentials import FixedCredentials
from firestore_outbox.providers.http import Http
from firestore_outbox.providers.registry import Providers
from firestore_outbox.reminders.run import run_id_of
from firestore_outbox.settings import Settings
from firestore_outbox.wiring import System, assemble

SIZES = (1_000, 10_000, 100_000)
MOST_MEMORY_MB = 200
MOST_DIFFERENCE = 0.10
CHUNK = 1_000


class _NoTasks:
    async def enqueue(self, path: str, body: dict[str, Any], at: datetime) -> None:
        """The measurement runs the lanes itself."""


def _chunks(targets: int) -> Iterator[list[dict[str, str]]]:
    for first in range(0, targets, CHUNK):
        yield [{"id": f"t{n:06}", "to": f"{n:06}@g.us"} for n in range(first, min(first + CHUNK, targets))]


async def expand(place: Place, targets: int) -> dict[str, Any]:
    count, project = Count(), f"bench-{targets}"
    client = place.client(project, count)
    system = assemble(
        Settings(project=project, longest_hold_seconds=3_000),
        client=client,
        tasks=_NoTasks(),
        providers=Providers([], FixedCredentials({}), Http()),
        owner="bench",
        clock=system_clock,
        random=Random(1),
        queries=place.queries(count),
    )
    fire_at = system_clock().replace(microsecond=0)
    await system.gateway.commit([upsert(paths.account("acc"), {"provider": "none", "pace": {"perMinute": 40}})])
    reminder = {
        "accountId": "acc",
        "parts": [{"type": "text", "text": "The market opens at nine. " * 4}],
        "timezone": "UTC",
        "window": {"startHour": 0, "endHour": 24},
        "schedule": {"type": "once", "at": fire_at},
        "status": "active",
    }
    await system.runs.add_reminder("rem", reminder, list(_chunks(targets)))
    await _made_due(system, fire_at)
    await system.waker.wake(reminder_lane("rem"))
    await system.engine.run(reminder_lane("rem"))
    before, began = Count(count.rpcs, count.reads, count.writes), time.perf_counter()
    run_id = run_id_of("rem", fire_at)
    await system.engine.run(run_lane(run_id))
    seconds = time.perf_counter() - began
    stored = await system.runs.run(run_id)
    if stored is None or stored.run.total != targets or not stored.run.is_expanded:
        raise RuntimeError(f"not all of {targets} targets have their document: {stored}")
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "targets": targets,
        "seconds": round(seconds, 2),
        "microsecondsATarget": round(seconds / targets * 1e6, 1),
        "memoryMB": round(peak_mb, 1),
        "readsATarget": round((count.reads - before.reads) / targets, 4),
        "writesATarget": round((count.writes - before.writes) / targets, 4),
        "callsATarget": round((count.rpcs - before.rpcs) / targets, 4),
    }


async def _made_due(system: System, fire_at: datetime) -> None:
    """No fire comes before the reminder was made; here it is made first and fires at once."""
    written = {"createdAt": fire_at}
    await system.gateway.commit([upsert(paths.reminder("rem"), written)])


async def one(targets: int, address: str) -> None:
    async with places.open_channel(address) as channel:
        print(json.dumps(await expand(Place("ours", channel, address, lambda: None), targets)))


async def measure(sizes: list[int]) -> list[dict[str, Any]]:
    found = []
    async with places.ours(durable=False) as place:
        for targets in sizes:
            command = ["-m", "bench.fanout", "--one", str(targets), "--address", place.address]
            process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.PIPE)
            output, _ = await process.communicate()
            if process.returncode:
                raise SystemExit(process.returncode)
            found.append(json.loads(output.splitlines()[-1]))
            print(found[-1], file=sys.stderr, flush=True)
    return found


def faults(found: list[dict[str, Any]]) -> Iterator[str]:
    for size in found:
        if size["memoryMB"] > MOST_MEMORY_MB:
            yield f"{size['targets']:,} targets took {size['memoryMB']} MB, more than {MOST_MEMORY_MB}"
    for what in ("readsATarget", "writesATarget"):
        costs = [size[what] for size in found]
        # A read is shared by hundreds of targets: what counts is the whole of a target's cost.
        if what == "writesATarget" and max(costs) > min(costs) * (1 + MOST_DIFFERENCE):
            yield f"{what} is not flat: {costs}"


def main() -> int:
    parser = arguments("The cost of making a run's outbox documents, at three sizes.")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="N")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        asyncio.run(one(options.one, options.address))
        return 0
    found = asyncio.run(measure([100] if options.small else options.sizes))
    keep({**heading("a run's targets become outbox documents", __doc__), "sizes": found}, "fanout", options)
    wrong = list(faults(found))
    print("\n".join(wrong) or "memory and cost a target are within their bounds")
    return 1 if wrong and not options.small else 0


if __name__ == "__main__":
    sys.exit(main())
