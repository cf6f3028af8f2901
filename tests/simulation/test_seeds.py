"""Many worlds, each with its own troubles; in each of them every invariant holds. OUTBOX_SIM_SEEDS says how many."""

from __future__ import annotations

import os

import pytest

from emulator.simulation.command import replay
from emulator.simulation.run import Report, Result, run_seed, run_seeds

SEEDS = int(os.environ.get("OUTBOX_SIM_SEEDS", "200"))


pytestmark = pytest.mark.timeout(1800)


def told(failures: list[Result]) -> str:
    lines = []
    for failure in failures:
        lines += [f"seed {failure.seed}, replay with `{replay(failure.seed)}`:", *failure.breaches]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def report() -> Report:
    return run_seeds(0, SEEDS, jobs=os.cpu_count() or 1)


def test_every_invariant_holds_in_every_world(report: Report) -> None:
    assert not report.failures, told(report.failures)
    assert report.seeds == SEEDS


def test_the_worlds_are_as_hostile_as_they_should_be(report: Report) -> None:
    assert report.messages > 10 * SEEDS
    assert report.attempts > report.messages / 2
    assert report.crashes > SEEDS / 2
    assert report.runs > SEEDS / 2


def test_a_seed_gives_the_same_run_again() -> None:
    assert run_seed(3) == run_seed(3)
