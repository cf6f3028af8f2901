"""Urgent and normal messages beside the runs of a world, drawn from its seed.

From a sequence of their own, so that worlds without them stay what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

SHARE = 2 / 3
"""Of the worlds with reminders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A message that a person writes while a run of the account is under way."""

    at: float
    number: int
    account_id: str
    to: str
    priority: str | None


def draw_beside(seed: int, reminders: Sequence[tuple[str, float]], lasts: float) -> list[Beside]:
    """`reminders`: their accounts, and when each begins. At most three urgent ones, which may go one after the other;
    each to a recipient of its own."""
    random = Random(f"beside runs {seed}")
    if not reminders or random.random() >= SHARE:
        return []
    made = []
    for number in range(random.choice((2, 5))):
        account_id, begins = random.choice(list(reminders))
        priority = "urgent" if number < 3 and random.random() < 0.7 else random.choice((None, "normal"))
        at = begins + random.uniform(2, max(3.0, min(60.0, lasts)))
        made.append(Beside(at=at, number=number, account_id=account_id, to=f"+47{number}", priority=priority))
    return made
