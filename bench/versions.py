"""Our Firestore emulator as it is, beside the same emulator at an earlier commit.

    python -m bench.versions [--before COMMIT] [--rounds N] [--only ROW ...] [--small]

It fails when a row takes more than a tenth more processor time than before, or new documents in batches less than 1.8
times better.

Method. Both servers run from their sources in one environment, each in a process of its own, and get the same calls
in alternating rounds, after a round that is thrown away. A figure is the processor time of the server for one document
or claim, the least of the rounds: what else the machine does adds to it and never takes away. Processor time, because a
busy machine changes it far less than it changes rates.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from typing import Any

from bench import loads, places, report
from bench.report import say

BEFORE = "3778df6"
"""The first commit whose emulator is a package of its own."""
ROUNDS = 5
DOCUMENTS = 5_000
NEW_BATCHES = "new documents in batches"
LOADS = {
    "single writes": loads.single_writes,
    NEW_BATCHES: loads.batched_writes,
    "overwrites in batches": loads.overwrites,
    "mixed batches": loads.mixed_batches,
    "batches, each with a query after it": loads.write_then_query,
    "claims": loads.claims,
}
MOST = 1.1
BATCHES_BETTER = 1.8


async def measure(before: str, rows: list[str], documents: int, rounds: int) -> dict[str, dict[str, float]]:
    """What was measured -> the version -> microseconds."""
    least: dict[str, dict[str, float]] = {what: {} for what in rows}
    async with AsyncExitStack() as stack:
        servers = [
            ("before", await stack.enter_async_context(places.ours_of(before))),
            ("now", await stack.enter_async_context(places.ours_of("HEAD"))),
        ]
        for turn in range(rounds + 1):
            for what in rows:
                for name, place in servers if turn % 2 else reversed(servers):
                    sample = await LOADS[what](place, documents)
                    if turn == 0 or sample.server_cpu_seconds is None:
                        continue
                    micros = sample.server_cpu_seconds / sample.operations * 1e6
                    least[what][name] = min(micros, least[what].get(name, micros))
            say(f"round {turn} of {rounds}")
    return least


def main() -> int:
    parser = report.arguments("Our Firestore emulator beside an earlier version of itself.")
    parser.add_argument("--before", default=BEFORE, metavar="COMMIT", help=f"the earlier version; default {BEFORE}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help=f"how many count; default {ROUNDS}")
    parser.add_argument("--only", nargs="+", choices=LOADS, default=list(LOADS), metavar="ROW", help="not all rows")
    options = parser.parse_args()
    documents, rounds = (1_000, 1) if options.small else (DOCUMENTS, options.rounds)
    least = asyncio.run(measure(options.before, options.only, documents, rounds))
    rows: list[dict[str, Any]] = [
        {"what": what, **{name: round(value, 1) for name, value in found.items()}} for what, found in least.items()
    ]
    for row in rows:
        row["timesBetter"] = round(row["before"] / row["now"], 2)
        print(f"{row['what']:40}{row['before']:>10.1f}{row['now']:>10.1f} µs{row['timesBetter']:>8.2f} times better")
    result = report.heading("our Firestore emulator beside an earlier version", __doc__)
    if len(rows) == len(LOADS) or options.output:
        report.keep(result | {"before": options.before, "rows": rows}, "versions", options)
    worse = [row["what"] for row in rows if row["timesBetter"] < 1 / MOST]
    worse += [
        f"{row['what']} (not {BATCHES_BETTER} times better)"
        for row in rows
        if row["what"] == NEW_BATCHES and row["timesBetter"] < BATCHES_BETTER
    ]
    for one in worse:
        say(f"worse than before: {one}")
    return 1 if worse and not options.small else 0


if __name__ == "__main__":
    sys.exit(main())
