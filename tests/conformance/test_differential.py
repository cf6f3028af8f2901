"""The same random operations on Google's emulator and on ours, every answer compared.

OUTBOX_DIFFERENTIAL_CASES says how many cases to run. In CI they are the same in each run; elsewhere they are new each
time, and a failure prints the case as data and the blob that reproduces it.
"""

from __future__ import annotations

import asyncio
import os
import secrets

import pytest
from hypothesis import HealthCheck, given, note, settings

from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.rpc.inprocess import InProcessChannel
from tests.conformance.backends import Backend, Place
from tests.conformance.known_differences import explained
from tests.conformance.operations import Case
from tests.conformance.runner import Runner
from tests.conformance.tally import Tally
from tests.conformance.universe import cases

CASES = int(os.environ.get("OUTBOX_DIFFERENTIAL_CASES", "300"))


@pytest.mark.timeout(600 + 3 * CASES)
@settings(
    max_examples=CASES,
    deadline=None,
    derandomize="CI" in os.environ,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
@given(case=cases)
async def test_random_operations_are_answered_as_by_googles_emulator(
    official_place: Place, tally: Tally, case: Case
) -> None:
    project = f"p-{secrets.token_hex(6)}"
    # A fresh engine for each case: the indexes that it makes for one case's queries would only slow the next.
    emulator = FirestoreEmulator()
    await emulator.start()
    try:
        googles = Runner(Backend(official_place, project))
        ours = Runner(Backend(Place("inprocess", InProcessChannel([emulator.service]), None), project))
        tally.differential_cases += 1
        for number, step in enumerate(case):
            note(f"step {number}: {step}")
            expected, answered = await asyncio.gather(googles.run(step), ours.run(step))
            tally.differential_answers += len(expected)
            for theirs, mine in zip(expected, answered, strict=True):
                if theirs == mine:
                    continue
                operation = theirs.operation
                reason = explained(operation, theirs.text, mine.text)
                assert reason, f"step {number}: {operation}\n\nGoogle's: {theirs.text}\n\nours:     {mine.text}"
                tally.explained[reason] += 1
                if operation is step:
                    return  # the two databases may hold different documents from here on
    finally:
        await emulator.stop()
