"""Every condition in the rules was true for one case and false for another, as Google's emulator saw it."""

from __future__ import annotations

import pytest

from tests.rules.coverage import Expression, expressions
from tests.rules.guarded import RULES, GuardedProject
from tests.rules.test_rules import CASES


async def test_every_condition_has_been_true_and_false(
    guarded: GuardedProject, capsys: pytest.CaptureFixture[str]
) -> None:
    for case in CASES:
        if case.name not in guarded.tried:
            await guarded.is_allowed(case)

    found = list(expressions(await guarded.coverage(), RULES.read_text(encoding="utf-8")))
    conditions = [one for one in found if one.is_condition]
    both = [one for one in conditions if one.went_both_ways]
    with capsys.disabled():
        print(
            f"\nfirestore.rules: {_share([one for one in found if one.was_evaluated], found)} expressions evaluated,"
            f" {_share(both, conditions)} conditions true and false, by {len(CASES)} cases"
        )
    assert not [str(one) for one in found if not one.was_evaluated]
    assert not [str(one) for one in conditions if not one.went_both_ways]
    assert len(conditions) > 100


def _share(some: list[Expression], all_of_them: list[Expression]) -> str:
    return f"{len(some)} of {len(all_of_them)}"
