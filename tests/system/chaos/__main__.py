"""`make chaos`: ten minutes of faults over 20,000 messages, and an account of each.

    python -m tests.system.chaos [--minutes N] [--messages N] [--seed N] [--json]

Exit status 1 if a message was lost, repeated, misordered or misreported: it says which, and keeps data and logs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
from pathlib import Path
from random import SystemRandom

from tests.system.chaos.report import report, table
from tests.system.chaos.run import Options, run

RESULTS = Path(__file__).resolve().parents[3] / "bench" / "results" / "chaos.json"
MINUTES, MESSAGES = 10.0, 20_000
SHOWN = 40
"""Breaches that are printed; the JSON has all."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.system.chaos", description="Proof by faults, on real processes."
    )
    parser.add_argument("--minutes", type=float, default=MINUTES, metavar="N", help="how long faults happen (10)")
    parser.add_argument("--messages", type=int, metavar="N", help="written meanwhile; by default 2,000 a minute")
    parser.add_argument(
        "--seed", type=int, metavar="N", help="the plan of faults; by default a new one, which is printed"
    )
    parser.add_argument("--json", action="store_true", help="print the JSON instead of the table")
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="FILE", help="where the JSON goes")
    parser.add_argument("--data", type=Path, metavar="DIR", help="an empty directory for data and logs; it is kept")
    return parser.parse_args()


def main() -> int:
    arguments = _arguments()
    options = Options(
        seed=SystemRandom().randrange(1_000_000) if arguments.seed is None else arguments.seed,
        minutes=arguments.minutes,
        messages=arguments.messages or round(MESSAGES * arguments.minutes / MINUTES),
    )
    directory = arguments.data or Path(tempfile.mkdtemp(prefix="outbox-chaos-"))
    _say(f"data and logs are in {directory}")
    outcome = asyncio.run(run(options, directory, _say))
    found = report(outcome)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=2) if arguments.json else "\n".join(table(found)))
    if not outcome.breaches:
        if arguments.data is None:
            shutil.rmtree(directory)
        return 0
    for breach in outcome.breaches[:SHOWN]:
        _say(breach)
    if len(outcome.breaches) > SHOWN:
        _say(f"and {len(outcome.breaches) - SHOWN} more, in {arguments.output}")
    _say(f"data and logs are kept in {directory}")
    return 1


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
