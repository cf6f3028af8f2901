"""`outbox sim`: seeds run, progress shown, failures told with how to replay them."""

from __future__ import annotations

import json
import logging
import sys

from firestore_outbox.local.simulation.run import Report, run_seeds


def simulate(*, first: int, count: int, jobs: int, as_json: bool) -> bool:
    """Whether every invariant held in each of the runs."""
    logging.disable(logging.CRITICAL)  # what the workers say of their troubles is not what is asked for
    report = run_seeds(first, count, min(jobs, count), None if as_json else _Progress())
    if as_json:
        print(json.dumps(as_data(report)))
    else:
        _show(report, with_trace=count == 1)
    return not report.failures


def as_data(report: Report) -> dict[str, object]:
    return {
        "seeds": report.seeds,
        "messages": report.messages,
        "runs": report.runs,
        "attempts": report.attempts,
        "crashes": report.crashes,
        "virtualSeconds": round(report.virtual_seconds),
        "seconds": round(report.real_seconds, 1),
        "failures": [
            {"seed": failure.seed, "breaches": list(failure.breaches), "replay": replay(failure.seed)}
            for failure in report.failures
        ],
    }


def replay(seed: int) -> str:
    return f"outbox sim --seed {seed}"


LINE_EVERY_SEEDS = 500


class _Progress:
    """On a terminal a line that counts; elsewhere a line now and then. A seed that broke something is reported at
    once."""

    def __init__(self) -> None:
        self._told = 0

    def __call__(self, report: Report) -> None:
        for failure in report.failures[self._told :]:
            print(f"seed {failure.seed}: {failure.breaches[0]}", file=sys.stderr, flush=True)
        self._told = len(report.failures)
        if sys.stderr.isatty():
            print(f"\r{report.seeds:,} seeds", end="", file=sys.stderr, flush=True)
        elif report.seeds % LINE_EVERY_SEEDS == 0:
            print(f"{report.seeds:,} seeds, {report.real_seconds:.0f} s", file=sys.stderr, flush=True)


def _show(report: Report, *, with_trace: bool) -> None:
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    for failure in report.failures:
        print(f"seed {failure.seed}:")
        for breach in failure.breaches:
            print(f"  {breach}")
        if with_trace:
            for line in failure.trace:
                print(f"    {line}")
        else:
            print(f"  replay: {replay(failure.seed)}")
    days = report.virtual_seconds / 86_400
    print(
        f"{report.seeds:,} seeds, {report.messages:,} messages, {report.runs:,} runs, {report.attempts:,} attempts, "
        f"{report.crashes:,} crashes, {days:.1f} days of virtual time in {report.real_seconds:.1f} s: "
        + (f"{len(report.failures)} seeds broke an invariant" if report.failures else "every invariant holds")
    )
