"""How a run gets on: its rate as it shows, how long one message of it takes, and when its document is refreshed.

Before anything was sent, the rate is an estimate from the account's pace, its concurrency, and the parts of a message
with the pauses between them. From then on it is learned from what was done between two refreshes, which contains all
that no estimate knows: how fast the provider answers, throttles and retries.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

CALL = timedelta(milliseconds=150)
"""What one call to a provider takes, as long as nothing better is known."""
LEAST_DONE = 10
"""Messages between two refreshes from which a rate is learned; fewer are noise, and wait for the next refresh."""
NEWEST_WEIGHT = 0.8
"""Of the newest rate in the one that is shown: a provider that recovers is believed within two refreshes."""
LEAST_EVERY = timedelta(seconds=5)
"""Between two refreshes: a run's document must stay far below one write a second."""
MOST_EVERY = timedelta(minutes=5)
REFRESHES = 10
"""In the life of a run, roughly: a refresh costs a dozen reads and three writes, whatever the run's size."""
CLOSED_EVERY = timedelta(minutes=5)
"""Between two refreshes while the account sends nothing, and it is not known until when."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """What a run document remembers between two refreshes."""

    waiting: int
    """Messages that waited at that time: the run's, and others of the account that go between them."""
    at: datetime
    each: timedelta | None
    """How long one message takes, learned so far; None before the first rate."""


def estimated(interval: timedelta | None, *, parts: int, concurrency: int, pause: timedelta) -> timedelta:
    """How long one message takes before anything is known. `interval` is its share of the account's pace, None without
    one; `pause` is the average one between two parts."""
    takes = parts * CALL + max(0, parts - 1) * pause
    return max(interval or timedelta(0), takes / max(1, concurrency))


def learned(before: Rate | None, waiting: int, now: datetime, *, is_open: bool) -> Rate:
    """The rate with a new sample. While the account is closed nothing is learned: the time counts from its opening.
    What other runs send counts, too: two runs take turns by the minute, and neither is slow while the other sends."""
    each = None if before is None else before.each
    if before is None or not is_open or waiting > before.waiting:
        return Rate(waiting=waiting, at=now, each=each)
    done = before.waiting - waiting
    if done < LEAST_DONE:
        return before
    newest = (now - before.at) / done
    blended = newest if each is None else NEWEST_WEIGHT * newest + (1 - NEWEST_WEIGHT) * each
    return Rate(waiting=waiting, at=now, each=blended)


def refresh_at(started: datetime, ends_at: datetime | None, now: datetime) -> datetime:
    """When the document is refreshed next: a tenth of the run later, within the bounds; at its end, if that is
    sooner."""
    if ends_at is None:
        return now + CLOSED_EVERY
    every = min(MOST_EVERY, max(LEAST_EVERY, (ends_at - started) / REFRESHES))
    return min(now + every, max(ends_at, now + LEAST_EVERY))


def later_if_nothing_changed(at: datetime, counted_at: datetime, now: datetime) -> datetime:
    """For counts that are the same as at `counted_at`: the time between two refreshes doubles, up to that of a closed
    account. A run whose last messages wait for tomorrow would be counted every few seconds otherwise."""
    return max(at, now + min(CLOSED_EVERY, 2 * (now - counted_at)))
