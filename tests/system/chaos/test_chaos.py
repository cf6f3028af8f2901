"""Twenty seconds of every kind of fault on real processes; `make chaos` is the long one."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from random import SystemRandom

from tests.system.chaos.plan import OTHERS, Manner
from tests.system.chaos.report import figures
from tests.system.chaos.run import Options, run

EVERY_KIND = {
    *(f"kill {part}" for part in ("worker", *OTHERS)),
    *(f"cut {manner}" for manner in Manner),
    "clock ahead",
    "clock behind",
    "pause",
}


async def test_under_kills_pauses_cuts_and_wrong_clocks_nothing_is_lost_repeated_or_misordered() -> None:
    """A new plan each time, except in CI, where all that changes is what the processes make of it.

    A failure tells the seed and what happened, and leaves data and logs behind: in a directory of its own, since
    pytest's are cleared away by the runs after it.
    """
    directory = Path(tempfile.mkdtemp(prefix="outbox-chaos-"))
    said = [f"data and logs: {directory}"]
    seed = 1 if "CI" in os.environ else SystemRandom().randrange(1_000_000)
    options = Options(seed=seed, minutes=0.35, messages=240)
    outcome = await run(options, directory, said.append)
    told = "\n".join([*said, json.dumps(figures(outcome), indent=2)])
    assert not outcome.breaches, told
    assert outcome.done.kinds() == EVERY_KIND, told
    assert len(outcome.evidence.delivered) > options.messages / 2, f"too little was sent to show anything\n{told}"
    shutil.rmtree(directory)
