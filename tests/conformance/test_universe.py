"""The random cases of the differential test use everything that Firestore offers, and not only to be refused."""

from __future__ import annotations

from collections import Counter

from tests.conformance.cases import case_of
from tests.conformance.differential import ours
from tests.conformance.features import EVERYTHING, Subject, features, subjects

CASES = 300
AT_LEAST = 3

ALWAYS_REFUSED = {"precondition long ago", "precondition ahead"}
"""That they are refused is what they are for."""


async def test_three_hundred_cases_use_everything_and_are_answered() -> None:
    about: Counter[Subject] = Counter()
    drawn: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    for seed in range(CASES):
        case = case_of(seed)
        about.update(subjects(case))
        async with ours() as runner:
            for step in case:
                for answer in await runner.run(step):
                    used = set(features(answer.operation, step))
                    drawn.update(used)
                    if not answer.refused:
                        answered.update(used)
    assert all(about[subject] >= CASES // 30 for subject in Subject), about
    rare = {name: drawn[name] for name in EVERYTHING if drawn[name] < AT_LEAST}
    assert not rare, "hardly ever drawn"
    refused = {name: answered[name] for name in EVERYTHING - ALWAYS_REFUSED if answered[name] < AT_LEAST}
    assert not refused, "hardly ever answered with more than a refusal"
