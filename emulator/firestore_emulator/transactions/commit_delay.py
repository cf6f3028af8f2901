"""The gap between a commit's server timestamps and the moment at which its documents become visible.

Production stamps a request when it *arrives*. Rules, locks and replication take tens of milliseconds more, and only
then can a reader see the documents. So a document can appear behind a cursor that has already passed its timestamp. An
emulator that does both at one moment hides every reader that relies on the opposite; with a delay, this one does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitDelay:
    """Draws the gap of each commit, in seconds: from `shortest` to `longest`, most of them near `shortest`; now and
    then up to `slowest`."""

    random: Random
    shortest: float = 0.03
    longest: float = 0.15
    slowest: float = 0.0
    """The longest gap of a slow commit. 0: no commit is slow."""
    slow_rate: float = 0.02
    """The share of commits that are slow, if any are."""

    def __call__(self) -> float:
        if self.slowest and self.random.random() < self.slow_rate:
            return self.random.uniform(self.longest, self.slowest)
        return self.shortest + (self.longest - self.shortest) * self.random.random() ** 3
