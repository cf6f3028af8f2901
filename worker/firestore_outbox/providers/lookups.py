"""How many names a caller who has proven nothing may make us look up.

Anybody can call a webhook with any account's name, and a look into Secret Manager costs money and a place in its
quota. An allowance of lookups refills with time; a name that turns out to exist gives its lookup back, so only names
that do not exist use it up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

MOST_LOOKUPS = 30
"""At once, after a rest."""
LOOKUPS_PER_SECOND = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    left: float = MOST_LOOKUPS
    """As of `at`. Falls with each lookup, rises with time."""
    at: float = 0.0
    """On a clock that only counts, in seconds. Moves with each lookup."""

    def taken(self, now: float) -> Allowance | None:
        """With one lookup less; None if there is none left."""
        left = min(MOST_LOOKUPS, self.left + max(0.0, now - self.at) * LOOKUPS_PER_SECOND)
        return Allowance(left=left - 1, at=now) if left >= 1 else None

    def given_back(self) -> Allowance:
        return replace(self, left=min(MOST_LOOKUPS, self.left + 1))
