"""The limits of plans, and what they allow. Pure.

A message uses a unit from its claim on. A message that fails, is skipped or is cancelled gives its unit back; one in
flight or in doubt keeps it until its outcome is known. So there are two counts: what was sent, which is final, and what
is open. A message is refused only when the sent ones alone reach a limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

FOR_EVER = datetime(1970, 1, 1, tzinfo=UTC)
PLAN_NAME = re.compile(r"[a-z0-9-]{1,40}")
_ENTRY = re.compile(r"(total|day|month):([0-9]{1,9})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    name: str
    total: int | None = None
    per_day: int | None = None
    per_month: int | None = None
    """None of the three: no limit."""

    @property
    def is_limited(self) -> bool:
        return any(limit is not None for limit in (self.total, self.per_day, self.per_month))

    def windows(self, now: datetime) -> dict[datetime, int]:
        """Since when sent messages count -> how many are allowed. Days and months are those of UTC."""
        day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        limits = {FOR_EVER: self.total, day.replace(day=1): self.per_month}
        found = {since: limit for since, limit in limits.items() if limit is not None}
        if self.per_day is not None:  # on the first of a month both begin at the same moment
            found[day] = min(self.per_day, found.get(day, self.per_day))
        return found


def plans(text: str) -> dict[str, Plan]:
    """`free=total:3 basic=day:100,month:1000 pro=`: by name. Raises ValueError with a sentence."""
    found: dict[str, Plan] = {}
    for entry in text.split():
        name, separator, limits = entry.partition("=")
        if not separator or not PLAN_NAME.fullmatch(name) or name in found:
            raise ValueError(f"{entry[:60]!r} is no plan; write NAME=LIMITS, such as free=total:3 or pro=")
        numbers: dict[str, int] = {}
        for limit in filter(None, limits.split(",")):
            match = _ENTRY.fullmatch(limit)
            if match is None or match[1] in numbers:
                raise ValueError(f"{limit[:60]!r} of {name} is no limit; write total:N, day:N or month:N")
            numbers[match[1]] = int(match[2])
        found[name] = Plan(
            name=name, total=numbers.get("total"), per_day=numbers.get("day"), per_month=numbers.get("month")
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTerm:
    """The plan that an account has, and the one that follows if a payment stays away."""

    plan: str | None
    until: datetime | None = None
    """The end of a grace period; None: the plan has no end."""
    after: str | None = None
    """The plan from then on; None: as before."""

    def at(self, now: datetime) -> str | None:
        has_ended = self.until is not None and now >= self.until
        return self.after if has_ended and self.after is not None else self.plan


NO_PLAN = PlanTerm(plan=None)


def term_of(account: Mapping[str, Any]) -> PlanTerm:
    """From the account's document. A field of another type counts as absent."""
    plan, until, after = (account.get(name) for name in ("plan", "planUntil", "planAfter"))
    return PlanTerm(
        plan=plan if isinstance(plan, str) else None,
        until=until if isinstance(until, datetime) else None,
        after=after if isinstance(after, str) else None,
    )


def plan_of(known: Mapping[str, Plan], name: str | None) -> Plan | None:
    """The plan whose limits apply; None: no limit. A plan that is not configured limits nothing."""
    plan = None if name is None else known.get(name)
    return plan if plan is not None and plan.is_limited else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one look found."""

    sent: Mapping[datetime, int]
    """For each of `Plan.windows`."""
    open: int
    """In flight or in doubt, also if it is queued again. At the API all that is queued."""


@dataclass(frozen=True, slots=True)
class Room:
    units: int
    """At least 1: as many messages may be claimed."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """Open messages hold the last units. What becomes of them decides."""


@dataclass(frozen=True, slots=True)
class UsedUp:
    limit: int


def allows(plan: Plan, usage: Usage, now: datetime) -> Room | Undecided | UsedUp:
    windows = plan.windows(now)
    for since, limit in windows.items():
        if usage.sent.get(since, 0) >= limit:
            return UsedUp(limit)
    units = min(limit - usage.sent.get(since, 0) for since, limit in windows.items()) - usage.open
    return Room(units) if units >= 1 else Undecided()


def sentence(plan: Plan, limit: int) -> str:
    return f"the plan {plan.name} allows {limit:,} messages, and they are used up; choose a larger plan"
