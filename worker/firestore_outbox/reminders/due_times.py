"""When each target of a run comes due: a minute's worth at a time.

All of them at once would put the whole run before anything that people send meanwhile. A minute apart, messages of
people and of other runs take their places in between. Each minute's worth comes a little before the one before it can
be done, so that the lane never runs dry; and never earlier than that, however long the run is, or people would wait
longer and longer.
"""

from __future__ import annotations

from datetime import datetime, timedelta

_MINUTE = timedelta(minutes=1)
LEAD = 0.05
"""Of the time that a minute's worth takes at the account's pace: so much before its turn it comes due."""


def due_at(position: int, start: datetime, interval: timedelta | None) -> datetime:
    """For the target at that position, counted from 0; `interval` is one send's share of time, None without a pace."""
    if not interval:
        return start
    worth = max(1, _MINUTE // interval)
    before = position // worth
    return start + max(0, before - LEAD) * worth * interval if before else start
