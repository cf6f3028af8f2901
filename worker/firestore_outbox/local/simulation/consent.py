"""Who opts out in the middle of runs, in which hours recipients get something, and how often, drawn from a seed.

From a sequence of its own, so that worlds without any of it stay what they are. A world lasts minutes around one hour,
so the hours of recipients are chosen like those of runs: they open or close at that hour, stay open, or stay closed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from firestore_outbox.local.simulation.reminders import ReminderSpec

WORDS = ("Stop!", "STOP", "unsubscribe")
Hours = tuple[int, int]

_OPEN_BY_DAY: Hours = (7, 22)
"""In Berlin from the hour on, in Tokyo open, in New York closed for hours, in UTC for one."""
_OPEN_AT_NIGHT: Hours = (0, 7)
"""In Berlin until the hour, in Tokyo closed for hours, in New York open, in UTC for one hour more."""
_ZONES: tuple[str | None, ...] = (None, "Europe/Berlin", "Asia/Tokyo", "America/New_York")
_ZONES_OF_RUNS_THAT_GO_ON: tuple[str | None, ...] = (None, "Europe/Berlin", "Asia/Tokyo")
_ENDS_EARLIER: Mapping[Hours, Hours] = {(0, 24): (0, 7), (6, 18): (6, 7)}
"""Windows of runs in such a world: what waits for hours that open later is skipped, and the world ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptOut:
    at: float
    """Seconds from the beginning."""
    account_id: str
    address: str
    word: str | None
    """What the person writes; None: an operator does it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    opt_outs: tuple[OptOut, ...] = ()
    recipient_hours: Mapping[str, Hours] = field(default_factory=dict)
    """accountId -> hours."""
    most_marketing: Mapping[str, int] = field(default_factory=dict)
    """accountId -> messages for each recipient in a day."""
    reminders: tuple[ReminderSpec, ...] = ()
    """As they are in such a world."""


def draw_consent(seed: int, reminders: Sequence[ReminderSpec], lasts: float) -> Consent:
    random = Random(f"consent {seed}")
    if not reminders:
        return Consent()
    opt_outs = _opt_outs(random, reminders, lasts) if random.random() < 0.4 else ()
    hours = _recipient_hours(random, reminders) if random.random() < 0.25 else {}
    caps = {one.account_id: random.choice((1, 1, 2)) for one in reminders} if random.random() < 0.3 else {}
    marketing = frozenset(one.reminder_id for one in reminders if random.random() < 0.8) if caps else frozenset()
    return Consent(
        opt_outs=opt_outs,
        recipient_hours=hours,
        most_marketing=caps,
        reminders=tuple(
            replace(
                _within_hours(random, one) if hours else one,
                category="marketing" if one.reminder_id in marketing else "utility",
            )
            for one in reminders
        ),
    )


def _opt_outs(random: Random, reminders: Sequence[ReminderSpec], lasts: float) -> tuple[OptOut, ...]:
    """Most of them while a run makes its targets, or sends to them."""
    made = []
    for _ in range(random.choice((1, 3, 8))):
        one = random.choice(list(reminders))
        begins = one.at + (one.fires_after or 0.0)
        within = random.choice((1.0, 10.0, max(10.0, lasts - begins)))
        made.append(
            OptOut(
                at=begins + random.uniform(0, within),
                account_id=one.account_id,
                address=one.address(random.randrange(one.total)),
                word=random.choice(WORDS) if random.random() < 0.6 else None,
            )
        )
    return tuple(made)


def _recipient_hours(random: Random, reminders: Sequence[ReminderSpec]) -> dict[str, Hours]:
    """Nothing of a run that goes on the next day waits for longer than the window itself is shut."""
    go_on = {one.account_id for one in reminders if one.resumes}
    return {
        account_id: _OPEN_BY_DAY if account_id in go_on else random.choice((_OPEN_BY_DAY, _OPEN_AT_NIGHT))
        for account_id in dict.fromkeys(one.account_id for one in reminders)
    }


def _within_hours(random: Random, one: ReminderSpec) -> ReminderSpec:
    zones = _ZONES_OF_RUNS_THAT_GO_ON if one.resumes else _ZONES
    return replace(
        one,
        hours=_ENDS_EARLIER.get(one.hours, one.hours),
        zones=tuple(random.choice(zones) for _ in range(random.choice((1, 3)))),
    )
