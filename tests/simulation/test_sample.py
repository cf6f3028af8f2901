"""A sample of the simulated worlds for the fast tier; test_seeds.py has the many."""

from __future__ import annotations

import pytest

from firestore_outbox.local.simulation.command import replay
from firestore_outbox.local.simulation.run import run_seed

SAMPLE = range(24)


@pytest.mark.parametrize("seed", SAMPLE)
def test_every_invariant_holds_in_a_world(seed: int) -> None:
    result = run_seed(seed)
    assert not result.breaches, "\n".join([f"replay with `{replay(seed)}`:", *result.breaches])
