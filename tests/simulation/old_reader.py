"""In how many worlds a reader whose pages do not overlap breaks the order of a thread.

    python -m tests.simulation.old_reader --seeds 10000

Runs the worlds in which it may matter: with production's timestamps, and with several people who are written to twice
in quick succession, and prints how many break with that reader. `make sim` runs the same seeds with the product's own.
"""

from __future__ import annotations

import argparse
import logging
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from firestore_outbox.local.simulation.run import run_seed
from firestore_outbox.local.simulation.scenario import draw
from tests.simulation.test_mutations import pages_that_do_not_overlap


def may_matter(seed: int) -> bool:
    scenario = draw(seed)
    return scenario.commit_delay is not None and any(one.request_id.startswith("talk-") for one in scenario.messages)


def breaks_order(seed: int) -> bool:
    logging.disable(logging.CRITICAL)
    with pytest.MonkeyPatch.context() as monkeypatch:
        pages_that_do_not_overlap(monkeypatch)
        return any(breach.startswith("order") for breach in run_seed(seed).breaches)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=1_000, help="worlds from seed 0 on")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    seeds = [seed for seed in range(arguments.first, arguments.first + arguments.seeds) if may_matter(seed)]
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
        broken = [seed for seed, breaks in zip(seeds, pool.map(breaks_order, seeds), strict=True) if breaks]
    shown = ", ".join(map(str, broken[:20]))
    print(f"{arguments.seeds:,} seeds; in {len(seeds):,} it may matter; {len(broken):,} break the order: {shown}")


if __name__ == "__main__":
    main()
