"""The same random operations on Google's emulator and on ours, every answer compared.

OUTBOX_DIFFERENTIAL_CASES says how many cases to run. In CI the cases are the same in each run; elsewhere they are new
each time, and a failure prints the blob that reproduces it.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections import Counter

import pytest
from hypothesis import HealthCheck, example, given, settings

from tests.conformance.backends import Backend, Place
from tests.conformance.known_differences import explained
from tests.conformance.operations import Case, Reads
from tests.conformance.runner import Runner
from tests.conformance.universe import cases

CASES = int(os.environ.get("OUTBOX_DIFFERENTIAL_CASES", "500"))


@settings(
    max_examples=CASES,
    deadline=None,
    derandomize="CI" in os.environ,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
@given(case=cases)
async def test_random_operations_are_answered_as_by_googles_emulator(
    inprocess_place: Place, official_place: Place, case: Case
) -> None:
    project = f"p-{secrets.token_hex(6)}"
    googles = Runner(Backend(official_place, project))
    ours = Runner(Backend(inprocess_place, project))
    for number, step in enumerate(case):
        expected, answered = await asyncio.gather(googles.run(step), ours.run(step))
        operations = step.reads if isinstance(step, Reads) else [step]
        for operation, theirs, mine in zip(operations, expected, answered, strict=True):
            if theirs == mine:
                continue
            if explained(operation, theirs, mine) is None:
                pytest.fail(f"step {number}: {operation}\n\nGoogle's: {theirs}\n\nours:     {mine}", pytrace=False)
            if operation is step:
                return  # the two databases may hold different documents from here on
