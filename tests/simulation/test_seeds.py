"""Many worlds, each with its own troubles; in each of them every invariant holds. OUTBOX_SIM_SEEDS says how many."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from firestore_outbox.lane.hold_room import ROOM_BYTES, HoldRoom
from firestore_outbox.local.simulation.command import replay
from firestore_outbox.local.simulation.run import Report, Result, run_seed, run_seeds
from firestore_outbox.local.simulation.scenario import draw
from firestore_outbox.messages.model import OutboxMessage
from tests.patience import PATIENCE_SECONDS

SEEDS = int(os.environ.get("OUTBOX_SIM_SEEDS", "200"))


ONCE_BROKEN = (
    139,
    668,
    778,
    2268,
    2445,
    2714,
    2774,
    2775,
    2838,
    3453,
    4092,
    4319,
    4815,
    4998,
    5462,
    6421,
    7427,
    7702,
    7721,
    7833,
    9591,
)

pytestmark = pytest.mark.timeout(3600)


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


@pytest.mark.parametrize("seed", ONCE_BROKEN)
def test_a_world_that_broke_an_invariant_once_breaks_none(seed: int) -> None:
    result = run_seed(seed)
    assert not result.breaches, told([result])


def test_in_some_worlds_lanes_are_without_room_for_what_their_messages_may_leave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = [seed for seed in range(SEEDS) if draw(seed).hold_room_bytes < ROOM_BYTES]
    assert len(small) > SEEDS / 8
    refused: list[str] = []
    take = HoldRoom.take

    def told(self: HoldRoom, message: OutboxMessage) -> bool:
        is_enough = take(self, message)
        if not is_enough:
            refused.append(message.request_id)
        return is_enough

    monkeypatch.setattr(HoldRoom, "take", told)
    for seed in small:
        assert not run_seed(seed).breaches
        if refused:
            return
    pytest.fail("no lane was ever crowded")


def test_a_seed_gives_the_same_run_again() -> None:
    assert run_seed(3) == run_seed(3)


HELPED = """
from multiprocessing import active_children
from firestore_outbox.local.simulation import run

def tell(report):
    print(*(helper.pid for helper in active_children()), flush=True)

if __name__ == "__main__":
    run.SEEDS_A_TASK = 1
    run.run_seeds(0, 1000, jobs=2, on_progress=tell)
"""


def test_the_processes_of_a_simulation_end_with_the_one_that_was_killed(tmp_path: Path) -> None:
    script = tmp_path / "helped.py"
    script.write_text(HELPED, encoding="utf-8")
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdout is not None
        helpers = [os.pidfd_open(int(pid)) for pid in asking.stdout.readline().split()]
        asking.kill()
    assert len(helpers) == 2
    for helper in helpers:
        assert select.select([helper], [], [], PATIENCE_SECONDS)[0] == [helper], "it is still there"
        os.close(helper)
