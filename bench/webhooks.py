"""How fast webhooks are answered in a flood of receipts, and that nothing of it is lost.

    python -m bench.webhooks [--receipts N] [--in-flight N] [--small]

It fails when an answer is not 200, when a message does not end as its receipts say, when a receipt is dropped, or when
the 99th percentile of the answers is 250 ms or more.

Method. The embedded stack, each part a process on this machine: our Firestore and Cloud Tasks, the worker, and the
function as production has it, served by functions-framework. Messages are stored in every state in which a receipt can
find them (bench/floods.py). Then all receipts are posted, shuffled and three in ten of them doubled, a fixed number at
a time and each as soon as one is answered; an answer's time is from the first byte sent to its last byte read, in the
process that posts, which shares the machine. In the end every message's status is compared with the furthest of its
receipts.
"""

from __future__ import annotations

import asyncio
import sys
from random import Random
from typing import Any

from bench.floods import IN_FLIGHT, STATES, Outcome, Plan, flood, plan
from bench.report import arguments, heading, keep
from firestore_outbox.local.dev import DevSettings, DevStack

RECEIPTS = 5_000
MOST_SECONDS = 0.250
SEED = 7


async def measure(receipts: int, in_flight: int) -> tuple[Plan, Outcome]:
    planned = plan(receipts, Random(SEED))
    settings = DevSettings(
        firestore_port=0,
        tasks_port=0,
        functions_port=0,
        worker_port=0,
        provider_port=0,
        environment={"OUTBOX_LOG_LEVEL": "ERROR", "OUTBOX_RECEIPT_RETRY_SECONDS": "2,5,10,60"},
    )
    async with DevStack(settings) as stack:
        return planned, await flood(stack, planned, in_flight=in_flight)


def faults(outcome: Outcome) -> list[str]:
    """What keeps it from being good."""
    found = []
    if others := {status: count for status, count in outcome.answers.items() if status != 200}:
        found.append(f"answers that were not 200: {others}")
    if outcome.wrong:
        first = next(iter(outcome.wrong.items()))
        found.append(f"{len(outcome.wrong)} messages did not end as their receipts say; the first: {first}")
    if dropped := outcome.receipts.get("dropped"):
        found.append(f"{dropped:.0f} receipts were dropped")
    if outcome.percentile(0.99) >= MOST_SECONDS:
        found.append(f"the 99th percentile of the answers is not under {MOST_SECONDS * 1000:.0f} ms")
    return found


def report(planned: Plan, outcome: Outcome, in_flight: int) -> dict[str, Any]:
    def millis(seconds: float) -> float:
        return round(seconds * 1000, 1)

    return {
        **heading(
            f"{planned.receipts:,} receipts, {planned.duplicates:,} of them doubled, shuffled, over HTTP", __doc__
        ),
        "messages": {state: sum(message.state == state for message in planned.messages) for state in STATES},
        "bodies": len(planned.bodies),
        "inFlight": in_flight,
        "seconds": round(outcome.seconds, 2),
        "receiptsPerSecond": round(planned.receipts / outcome.seconds),
        "answers": {str(status): count for status, count in outcome.answers.items()},
        "answerMs": {
            "median": millis(outcome.percentile(0.5)),
            "p95": millis(outcome.percentile(0.95)),
            "p99": millis(outcome.percentile(0.99)),
            "max": millis(max(outcome.latencies)),
        },
        "bar": {"p99Ms": millis(MOST_SECONDS)},
        "settledAfterSeconds": round(outcome.settled_after_seconds, 2),
        "throughCloudTasks": outcome.receipts,
        "wrong": len(outcome.wrong),
        "faults": faults(outcome),
    }


def main() -> int:
    parser = arguments("A flood of receipts, at the real function.")
    parser.add_argument("--receipts", type=int, default=RECEIPTS, metavar="N")
    parser.add_argument("--in-flight", type=int, default=IN_FLIGHT, metavar="N", help="posted at a time")
    options = parser.parse_args()
    planned, outcome = asyncio.run(measure(100 if options.small else options.receipts, options.in_flight))
    result = report(planned, outcome, options.in_flight)
    keep(result, "webhooks", options)
    times = result["answerMs"]
    print(f"{result['what']}: {result['seconds']} s, {result['receiptsPerSecond']} receipts a second")
    print("answers in ms: " + ", ".join(f"{name} {value}" for name, value in times.items()))
    if not outcome.wrong:
        print(f"every status as it should be after {result['settledAfterSeconds']} s more")
    for fault in result["faults"]:
        print(f"not good: {fault}", file=sys.stderr)
    return 1 if result["faults"] and not options.small else 0


if __name__ == "__main__":
    sys.exit(main())
