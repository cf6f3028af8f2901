"""How long to wait before the next attempt: 1, 2, 4, 8, 16 … 60 seconds, give or take a quarter.

The jitter keeps messages that failed together from coming back together. What the provider asks for wins over all
of it, and is obeyed exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

JITTER = 0.25
_MAX_DOUBLINGS = 40
"""Beyond any cap; keeps the power of two small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    base: timedelta = timedelta(seconds=1)
    cap: timedelta = timedelta(seconds=60)
    """Of the wait before jitter."""

    def nominal(self, attempt: int) -> timedelta:
        """The wait after the given attempt, counted from 1, before jitter."""
        factor = 1 << min(max(attempt - 1, 0), _MAX_DOUBLINGS)
        if self.base and factor > self.cap / self.base:
            return self.cap
        return self.base * factor

    def delay(self, attempt: int, *, jitter: float, retry_after: timedelta | None = None) -> timedelta:
        """`jitter` is a uniform random number in [0, 1)."""
        if retry_after is not None:
            return max(retry_after, timedelta(0))
        return self.nominal(attempt) * (1 - JITTER + 2 * JITTER * jitter)


DEFAULT_BACKOFF = Backoff()
