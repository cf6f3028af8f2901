"""The plan: the same for a seed, and with everything in it that a run is to show."""

from __future__ import annotations

from itertools import pairwise

from tests.system.chaos.plan import OTHERS, WORKERS, Cut, Jump, Kill, Manner, Pause, plan
from tests.system.chaos.stack import LINKS
from tests.system.chaos.tempo import tempo_of

SEEDS = range(100)
SHORT, LONG = 0.35, 10.0


def faults_of(seed: int, minutes: float) -> tuple[Kill | Pause | Cut | Jump, ...]:
    return plan(seed, minutes * 60, tempo_of(minutes), LINKS)


def test_a_seed_gives_the_same_plan_each_time_and_another_seed_another_one() -> None:
    assert faults_of(7, LONG) == faults_of(7, LONG)
    assert faults_of(7, LONG) != faults_of(8, LONG)


def test_the_shortest_run_has_every_kind_of_fault_whatever_its_seed() -> None:
    for seed in SEEDS:
        faults = faults_of(seed, SHORT)
        killed = {fault.part for fault in faults if isinstance(fault, Kill)}
        assert set(OTHERS) <= killed, seed
        assert killed & set(WORKERS), seed
        assert {fault.manner for fault in faults if isinstance(fault, Cut)} == set(Manner), seed
        ahead = [fault.ahead_seconds for fault in faults if isinstance(fault, Jump)]
        assert min(ahead) < 0 < max(ahead), seed
        assert any(isinstance(fault, Pause) for fault in faults), seed


def test_a_pause_outlasts_a_lease_and_its_worker_is_not_killed_meanwhile() -> None:
    for seed in SEEDS:
        faults = faults_of(seed, LONG)
        for pause in (fault for fault in faults if isinstance(fault, Pause)):
            assert pause.seconds > tempo_of(LONG).lease_seconds
            kills = [fault.at for fault in faults if isinstance(fault, Kill) and fault.part == pause.part]
            assert not [at for at in kills if pause.at <= at <= pause.at + pause.seconds], seed


def test_one_clock_at_most_is_wrong_at_a_time() -> None:
    for seed in SEEDS:
        jumps = [fault for fault in faults_of(seed, LONG) if isinstance(fault, Jump)]
        for first, second in pairwise(jumps):
            assert (first.ahead_seconds == 0) != (second.ahead_seconds == 0), seed
            assert first.part == second.part or first.ahead_seconds == 0, seed
        assert jumps[-1].ahead_seconds == 0, seed


def test_something_is_killed_every_two_to_five_seconds() -> None:
    for seed in SEEDS:
        times = [fault.at for fault in faults_of(seed, LONG) if isinstance(fault, Kill)]
        assert all(2 <= later - earlier <= 5 for earlier, later in pairwise([0.0, *times])), seed
        assert times[-1] > LONG * 60 - 5, seed
