"""The random cases of the differential test use everything that Firestore offers, and not only to be refused."""

from __future__ import annotations

from collections import Counter
from random import Random

from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.rpc.inprocess import InProcessChannel
from tests.conformance.backends import Backend, Place
from tests.conformance.features import EVERYTHING, features
from tests.conformance.runner import Runner
from tests.conformance.universe import CASE_BYTES, build_case

CASES = 300
AT_LEAST = 3

ALWAYS_REFUSED = {"precondition long ago", "precondition ahead"}
"""That they are refused is what they are for."""


async def test_three_hundred_cases_use_everything_and_are_answered() -> None:
    random = Random(1)
    drawn: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    for _ in range(CASES):
        # A fresh engine for each case: the indexes that it makes for one case's queries would only slow the next.
        emulator = FirestoreEmulator()
        await emulator.start()
        runner = Runner(Backend(Place("inprocess", InProcessChannel([emulator.service]), None)))
        for step in build_case(random.randbytes(CASE_BYTES)):
            for answer in await runner.run(step):
                used = set(features(answer.operation, step))
                drawn.update(used)
                if not answer.refused:
                    answered.update(used)
        await emulator.stop()
    rare = {name: drawn[name] for name in EVERYTHING if drawn[name] < AT_LEAST}
    assert not rare, "hardly ever drawn"
    refused = {name: answered[name] for name in EVERYTHING - ALWAYS_REFUSED if answered[name] < AT_LEAST}
    assert not refused, "hardly ever answered with more than a refusal"
