"""The same random operations on Google's emulator and on ours, every answer compared.

OUTBOX_DIFFERENTIAL_CASES says how many cases to run, and OUTBOX_DIFFERENTIAL_SEED with which to begin: the case of a
seed is always the same. Without a seed CI begins with 0, and a run elsewhere with a random one. A failure prints the
seed and the smallest part of its case that still fails.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.conformance.backends import Place
from tests.conformance.cases import case_of
from tests.conformance.differential import compare
from tests.conformance.features import subjects
from tests.conformance.http_side import HttpSide
from tests.conformance.operations import Case
from tests.conformance.shrink import shrunk
from tests.conformance.tally import Tally

CASES_VARIABLE, SEED_VARIABLE = "OUTBOX_DIFFERENTIAL_CASES", "OUTBOX_DIFFERENTIAL_SEED"
CASES = int(os.environ.get(CASES_VARIABLE, "300"))
ANY_SEED = 10**9
AT_ONCE = 4
"""Cases that run at the same time, so that this process works while Google's emulator does."""
REPORT_EVERY = 500
"""Cases between two lines of progress."""


@pytest_asyncio.fixture(loop_scope="session")
async def http(official_place: Place) -> AsyncIterator[HttpSide]:
    side = HttpSide.at(official_place)
    yield side
    await side.close()


@pytest.mark.timeout(600 + 3 * CASES)
async def test_random_operations_are_answered_as_by_googles_emulator(
    official_place: Place, http: HttpSide, tally: Tally, capsys: pytest.CaptureFixture[str]
) -> None:
    first = _first_seed()
    seeds = iter(range(first, first + CASES))
    disagreeing: list[int] = []
    began = time.monotonic()

    async def run_cases() -> None:
        for seed in seeds:
            case = case_of(seed)
            comparison = await compare(case, official_place, http)
            if comparison.disagreement is not None:
                disagreeing.append(seed)
            if disagreeing:
                return
            tally.differential_cases += 1
            tally.differential_answers += comparison.answers
            tally.explained += comparison.explained
            tally.subjects.update(subjects(case))
            if tally.differential_cases % REPORT_EVERY == 0:
                with capsys.disabled():
                    spent = time.monotonic() - began
                    print(f"\n{tally.differential_cases} of {CASES} cases from seed {first}, {spent:.0f} s", flush=True)

    await asyncio.gather(*(run_cases() for _ in range(AT_ONCE)))
    if disagreeing:
        pytest.fail(await _explained(disagreeing[0], official_place, http))


def _first_seed() -> int:
    given = os.environ.get(SEED_VARIABLE)
    if given is not None:
        return int(given)
    return 0 if "CI" in os.environ else secrets.randbelow(ANY_SEED)


async def _explained(seed: int, official: Place, http: HttpSide) -> str:
    """What a person needs who looks into a disagreement."""

    async def fails(smaller: Case) -> bool:
        return (await compare(smaller, official, http)).disagreement is not None

    smallest = await shrunk(case_of(seed), fails)
    steps = "\n".join(f"  {number}: {step}" for number, step in enumerate(smallest))
    again = (await compare(smallest, official, http)).disagreement
    return (
        f"the emulators disagree; {SEED_VARIABLE}={seed} {CASES_VARIABLE}=1 runs this case alone\n\n"
        f"{steps}\n\n{again or 'not always'}"
    )
