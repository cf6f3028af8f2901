"""Whether a measure that was taken again and again is flat. Pure.

The first third of a run warms everything up: pools fill, caches grow to their size. Of the rest, the last third is
compared with the one in the middle. The slope of a third is the median of the slopes between all pairs of its samples
(Theil and Sen), so that a few outliers, such as another program's minute on the machine, do not decide. What it comes
to over the whole third is the growth.

    memory and handles   the growth of the last third is at most the bar. It is not enough that it grew before too: what
                         grows at an even pace for ever is the very thing that is looked for.
    lag                  the median of the last third is at most the bar above that of the middle one, and so is the
                         growth
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

LEAST_SAMPLES = 4
"""In a third."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Whichever is more."""

    share: float
    """Of the middle third's level."""
    least: float
    """In the measure's own unit: what is noise, however low the level."""

    def most(self, level: float) -> float:
        return max(self.least, self.share * level)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flatness:
    middle: float
    """The median of the middle third."""
    last: float
    middle_growth: float
    """Over that third, by its slope."""
    last_growth: float
    allowed: float
    is_flat: bool


def growth(samples: Sequence[tuple[float, float]]) -> float:
    """Of (time, value) pairs, from the first time to the last."""
    slopes = [(late[1] - early[1]) / (late[0] - early[0]) for early, late in combinations(samples, 2)]
    return median(slopes) * (samples[-1][0] - samples[0][0]) if slopes else 0.0


def flatness(samples: Sequence[tuple[float, float]], bar: Bar, *, compare_levels: bool) -> Flatness | None:
    """None: there are too few samples to tell."""
    third = len(samples) // 3
    if third < LEAST_SAMPLES:
        return None
    middle, last = samples[third : 2 * third], samples[2 * third :]
    level, level_now = median(value for _, value in middle), median(value for _, value in last)
    grew, grows, allowed = growth(middle), growth(last), bar.most(level)
    is_flat = grows <= allowed and (not compare_levels or level_now - level <= allowed)
    return Flatness(
        middle=level, last=level_now, middle_growth=grew, last_growth=grows, allowed=allowed, is_flat=is_flat
    )
