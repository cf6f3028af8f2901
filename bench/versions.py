"""Our Firestore emulator as it is, beside the same emulator at an earlier commit.

    python -m bench.versions [--before COMMIT] [--small]

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
LOADS = {
    "single writes": loads.single_writes,
    "new documents in batches": loads.batched_writes,
    "overwrites in batches": loads.overwrites,
    "mixed batches": loads.mixed_batches,
    "batches, each with a query after it": loads.write_then_query,
    "claims": loads.claims,
}
MOST = 1.1
BATCHES_BETTER = 1.8


async def measure(before: str, documents: int, rounds: int) -> dict[str, dict[str, float]]:
    """What was measured -> the version -> microseconds."""
    least: dict[str, dict[str, float]] = {what: {} for what in LOADS}
    async with AsyncExitStack() as stack:
        servers = [
            ("before", await stack.enter_async_context(places.ours_of(before))),
            ("now", await stack.enter_async_context(places.ours_of("HEAD"))),
        ]
        for turn in range(rounds + 1):
            for what, load in LOADS.items():
                for name, place in servers if turn % 2 else reversed(servers):
                    sample = await load(place, documents)
                    if turn == 0 or sample.server_cpu_seconds is None:
                        continue
                    micros = sample.server_cpu_seconds / sample.operations * 1e6
                    least[what][name] = min(micros, least[what].get(name, micros))
            say(f"round {turn} of {rounds}")
    return least


def main() -> int:
    parser = report.arguments("Our Firestore emulator beside an earlier version of itself.")
    parser.add_argument("--before", default=BEFORE, metavar="COMMIT", help=f"the earlier version; default {BEFORE}")
    options = parser.parse_args()
    documents, rounds = (1_000, 1) if options.small else (DOCUMENTS, ROUNDS)
    least = asyncio.run(measure(options.before, documents, rounds))
    rows: list[dict[str, Any]] = [
        {"what": what, **{name: round(value, 1) for name, value in found.items()}} for what, found in least.items()
    ]
    for row in rows:
        row["timesBetter"] = round(row["before"] / row["now"], 2)
        print(f"{row['what']:40}{row['before']:>10.1f}{row['now']:>10.1f} µs{row['timesBetter']:>8.2f} times better")
    result = report.heading("our Firestore emulator beside an earlier version", __doc__)
    report.keep(result | {"before": options.before, "rows": rows}, "versions", options)
    worse = [row["what"] for row in rows if row["timesBetter"] < 1 / MOST]
    if rows[1]["timesBetter"] < BATCHES_BETTER:
        worse.append(f"{rows[1]['what']} (not {BATCHES_BETTER} times better)")
    for one in worse:
        say(f"worse than before: {one}")
    return 1 if worse and not options.small else 0


if __name__ == "__main__":
    sys.exit(main())
