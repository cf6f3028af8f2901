"""What times tell afterwards: whether a pace was kept, and whether messages of a thread overtook each other.

For the auditor, who has nothing but what is stored, and for the simulation, which knows the truth. Clocks differ and
calls take their time, so each question comes with a slack; what is found is certain, what is not found is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from firestore_outbox.lane.pacing import Cap


@dataclass(frozen=True, slots=True)
class TooFast:
    """The window in which a cap was exceeded by most."""

    sends: int
    since: datetime
    took: timedelta
    least: timedelta
    """What this number takes at least."""

    def __str__(self) -> str:
        return (
            f"{self.sends} sent in {self.took.total_seconds():.3f} s from {self.since:%Y-%m-%d %H:%M:%S.%f} on, "
            f"which takes {self.least.total_seconds():.3f} s at least"
        )


def too_fast(times: Iterable[datetime], cap: Cap, slack: timedelta) -> TooFast | None:
    """`n` sends take at least `n - burst` intervals, whichever they are (pacing.py). None: so they did."""
    ordered = sorted(times)
    worst, found = slack, None
    first = 0
    for last in range(cap.burst, len(ordered)):
        # Of all windows that end here, the one that begins latest behind its own schedule is the fastest.
        newest = last - cap.burst
        if ordered[newest] - ordered[first] > cap.interval * (newest - first):
            first = newest
        took, least = ordered[last] - ordered[first], cap.interval * (last - first - cap.burst + 1)
        if least - took > worst:
            worst, found = least - took, TooFast(last - first + 1, ordered[first], took, least)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """A message that was sent at its first attempt."""

    request_id: str
    made_at: datetime
    """By the database."""
    due_at: datetime
    sent_at: datetime
    """By the worker's clock."""
    stored_at: datetime
    """By the database; later than the call, how much is not known."""


def overtaken(sends: Iterable[Send], slack: timedelta) -> Iterator[tuple[Send, Send]]:
    """Messages of one thread: pairs in which the first was due before the second, and existed when that was due, and
    was sent after it all the same. Both clocks must say so, the workers' and the database's."""
    last: Send | None = None
    for send in sorted(sends, key=lambda send: send.due_at):
        if (
            last is not None
            and last.due_at < send.due_at
            and last.made_at <= send.due_at
            and last.sent_at > send.sent_at + slack
            and last.stored_at > send.stored_at
        ):
            yield last, send
        if last is None or send.sent_at > last.sent_at:
            last = send
