"""Firestore evaluates at most 1,000 expressions for a document; the largest message leaves a tenth of them."""

from __future__ import annotations

import math

import pytest

from tests.rules.actions import Case, parts, send
from tests.rules.budget import ASKS_NOTHING, MESSAGES, RULES_OF, padded, room
from tests.rules.guarded import RULES, GuardedProject, RulesEmulator
from tests.rules.people import AGENT
from tests.rules.scene import TEXT


@pytest.mark.parametrize("rule", RULES_OF.values(), ids=RULES_OF)
async def test_the_largest_messages_leave_a_tenth_of_the_expressions_unused(
    rules_emulator: RulesEmulator, rule: str
) -> None:
    spare = math.ceil(await room(rules_emulator, ASKS_NOTHING, "free", [TEXT]) / 10)
    project = GuardedProject(rules_emulator)
    await project.load(padded(RULES.read_text(encoding="utf-8"), rule, spare))
    for what, values in MESSAGES.items():
        assert await project.is_allowed(Case(what, AGENT, send(parts(*values)), allowed=True)), what
