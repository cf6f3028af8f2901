"""The decisions about a shared limit: how it is divided, who may take how much, what a 429 changes.

A limit is a set of lines of time. (lane/pacing.py has the argument for one line: calls take intervals that do not
overlap.) Each line is a document, `limits/{name}/shards/{n}`, and has its share of the rate and of the burst. With S
lines, a window W has at most the sum of `burst_n + W * rate / S` calls, which is `burst + W * rate`: the promise of the
whole.

An instance reserves a block of a line, writes the block's end, and then makes the block's calls from memory. Two rules
make the sharing fair and keep each document below one write a second:

1. A block lasts up to one and a half seconds, less if the instance has fewer calls to make.
2. An instance takes any line that is idle at once. On a busy line it waits for its turn, in at most one queue at a
   time: its next turn comes after the turns of the others.

A crash leaves a block that no instance uses. The limit is slower for that second, and never faster.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from firestore_outbox.lane.pacing import Block, Cap, halved, pushed, reserve

LONGEST_BLOCK = timedelta(seconds=1.5)
LONGEST_QUEUE = timedelta(seconds=3)
"""An instance reserves nothing that begins later than this. So it learns of a pause within five seconds."""
MOST_SHARDS = 8
CALLS_A_SHARD = 10.0
"""A limit has one line for each of these, as far as its burst allows."""
SAME_THROTTLE = timedelta(seconds=1)
"""A 429 within this time after another comes from calls that were under way together, and slows nothing further."""
STEP = 1 / 16
STEP_EVERY = timedelta(seconds=4)
"""How the rate recovers from a 429: from a half to the whole in 32 seconds."""
DEFAULT_PAUSE = timedelta(seconds=1)
"""After a 429 that names no time."""
LONGEST_PAUSE = timedelta(minutes=15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """What `limits/{name}` or OUTBOX_LIMITS configures."""

    per_second: float
    burst: int = 1
    """How many calls may go at once after a rest."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.per_second) and self.per_second > 0) or self.burst < 1:
            raise ValueError("perSecond must be above 0, and burst at least 1")

    @property
    def lines(self) -> tuple[Cap, ...]:
        """Each line's share. A burst of two or more lets a call be a little late without losing its place."""
        count = max(1, min(MOST_SHARDS, self.burst // 2, math.ceil(self.per_second / CALLS_A_SHARD)))
        whole, rest = divmod(self.burst, count)
        caps = [Cap.per_second(self.per_second / count, burst=whole + (number < rest)) for number in range(count)]
        return tuple(cap for cap in caps if cap is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowed:
    """The rate is a fraction of the configured one, because the other side answered 429."""

    factor: float
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line as its document has it."""

    tat: datetime | None = None
    """Up to here it is reserved."""
    slowed: Slowed | None = None


@dataclass(frozen=True, slots=True)
class NotYet:
    """The line is reserved too far ahead."""

    ask_at: datetime


def factor_at(slowed: Slowed | None, now: datetime) -> float:
    """The fraction of the configured rate that is in force."""
    if slowed is None:
        return 1.0
    steps = max(timedelta(0), now - slowed.since) // STEP_EVERY
    return min(1.0, slowed.factor + STEP * steps)


def taken(cap: Cap, line: Line, *, now: datetime, calls: int, is_queued: bool) -> Block | NotYet:
    """A block for at most `calls`. `is_queued`: the instance waits for the turn of another block already."""
    usable_at = now if line.tat is None else line.tat - cap.tolerance
    if usable_at > now and is_queued:
        return NotYet(usable_at)
    if usable_at > now + LONGEST_QUEUE:
        return NotYet(usable_at - LONGEST_QUEUE)
    factor = factor_at(line.slowed, now)
    most = max(1, LONGEST_BLOCK // cap.stretched(factor))
    return reserve(cap, line.tat, now=now, sends=min(calls, most), rate_factor=factor)


def throttled(cap: Cap, line: Line, *, now: datetime, pause: timedelta) -> Line:
    """The line after a 429: nothing goes for `pause`, and then at half of the rate."""
    until = now + min(pause, LONGEST_PAUSE)
    factor = factor_at(line.slowed, now)
    if line.slowed is None or now - line.slowed.since >= SAME_THROTTLE:
        factor = halved(factor)
    return Line(tat=pushed(cap, line.tat, until=until), slowed=Slowed(factor=factor, since=until))


def next_line(known: Mapping[int, datetime], lines: Iterable[int], now: datetime) -> list[int]:
    """The order in which to try the lines: first those that are free as far as this instance knows."""
    return sorted(lines, key=lambda number: max(now, known.get(number, now)))


def rates(text: str) -> dict[str, Rate]:
    """OUTBOX_LIMITS: `notion=3/3,stripe=25` is name=per second/burst; without a burst it is the rate, at least 1."""
    found: dict[str, Rate] = {}
    for entry in (part.strip() for part in text.split(",") if part.strip()):
        name, equals, value = entry.partition("=")
        per_second, _, burst = value.partition("/")
        try:
            rate = float(per_second)
            found[name.strip()] = Rate(per_second=rate, burst=int(burst) if burst else max(1, int(rate)))
        except (ValueError, OverflowError):
            equals = ""
        if not equals or not is_limit_name(name.strip()):
            raise ValueError(f"{entry!r} must be NAME=PER_SECOND or NAME=PER_SECOND/BURST, such as notion=3/3")
    return found


def is_limit_name(name: str) -> bool:
    """`global` and `app-...` are limits of the outbox itself."""
    is_word = 0 < len(name) <= 100 and name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return is_word and name != "global" and not name.startswith("app-")
