"""The right to act, for a limited time, and the number that outlives it.

Who is authoritative: the document that carries the lease. A holder has a copy, its `Hold`, and trusts it for less time
than the lease lives: it counts from the moment it *asked*, on its own clock, and starts nothing new from `stop_at`
on. The time between that and the end covers the longest provider call plus the difference between two clocks.

The fence grows by one with each acquisition and never shrinks, so no two holds share one. A late holder's write
carries an old fence and is refused; that is a normal answer, not an error. What a crashed holder leaves is a lease
that ends by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

_CALL_SHARE = 1 / 3
"""The share of a lease that one provider call may take: 20 s of 60."""
_SKEW_SHARE = 1 / 12
"""The share left for the difference between two clocks: 5 s of 60."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """As the document has it."""

    owner: str
    """Changes on acquire."""
    until: datetime
    """Moves on acquire and renew."""
    fence: int
    """Grows by one on acquire; never changes otherwise."""

    def alive(self, now: datetime) -> bool:
        return now < self.until

    def belongs_to(self, hold: Hold) -> bool:
        return self.fence == hold.fence and self.owner == hold.owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """As the holder has it: the claim that each of its later writes must show."""

    owner: str
    fence: int
    asked_at: datetime
    """The holder's clock just before it asked. Moves with each renewal."""
    ttl: timedelta

    @property
    def until(self) -> datetime:
        """When anybody else may take over. Claims made under this hold must not live longer."""
        return self.asked_at + self.ttl

    @property
    def claimed_by(self) -> str:
        """The name put on claimed documents: it tells two holds of one worker apart."""
        return f"{self.owner}#{self.fence}"

    @property
    def longest_call(self) -> timedelta:
        """The timeout to give to a provider call, so that work begun before `stop_at` ends under this hold."""
        return self.ttl * _CALL_SHARE

    @property
    def stop_at(self) -> datetime:
        """Start nothing from here on."""
        return self.until - self.ttl * (_CALL_SHARE + _SKEW_SHARE)

    def may_start(self, now: datetime) -> bool:
        return now < self.stop_at

    def renew_at(self) -> datetime:
        """A third into the lease: a renewal may fail once before work has to stop."""
        return self.asked_at + self.ttl / 3
