"""More than the stack can drain, for a moment; `make overload` is the long one."""

from __future__ import annotations

import json
from pathlib import Path

from bench.overload import figures, measure
from tests.patience import PATIENCE_SECONDS


async def test_an_overloaded_stack_stays_up_loses_nothing_and_drains_when_the_flood_has_ended(tmp_path: Path) -> None:
    result = await measure(
        tmp_path,
        seconds=3,
        times=3,
        backlog=160,
        provider_ms=2_000,  # 8 accounts, 10 calls at once: at most 40 a second
        sample_seconds=0.25,
        answers_within_seconds=PATIENCE_SECONDS,
    )
    told = json.dumps(figures(result), indent=2)
    assert not result.faults, told
    assert result.acknowledged > result.called_meanwhile, told
