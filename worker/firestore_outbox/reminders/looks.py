"""When the lanes of reminders and runs look again, and the randomness that runs need."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

SECOND_LOOK = timedelta(seconds=30)
"""After a step that another lane should have been woken for: a crash may have come before the wake."""
SOON = timedelta(seconds=5)
"""Until the next look while something is still in flight that a step waits for."""

RandomId = Callable[[], str]
"""128 random bits in hexadecimal."""
