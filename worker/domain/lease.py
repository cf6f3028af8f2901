"""The right to act, for a limited time, and the number that outlives it.

Who is authoritative: the document that carries the lease. A holder has a copy, its `Hold`, and trusts it for less time
than the lease lives: it counts from the moment it *asked*, on its own clock, and starts nothing new once `margin`
before the end. The margin covers the longest provider call plus the difference between two clocks.

The fence grows by one with each acquisition and never shrinks, so no two holds share one. A late holder's write
carries an old fence and is refused; that is a normal answer, not an error. What a crashed holder leaves is a lease
that ends by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

LEASE = timedelta(seconds=60)
MARGIN = timedelta(seconds=25)
"""Stop starting work this long before the end: a call of at most 20 s, and 5 s between two clocks."""


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

    def may_start(self, now: datetime, margin: timedelta = MARGIN) -> bool:
        """Whether work begun now is sure to end under this hold."""
        return now < self.until - margin

    def renew_at(self) -> datetime:
        """A third into the lease: two renewals may fail before work has to stop."""
        return self.asked_at + self.ttl / 3
