"""Whether a recipient may get one more marketing message of runs: at most `messages` in `days` days.

A target counts at the time at which its run starts. All targets of a run have the same time, so a page of targets that
is made again gets the same answer, and a reminder that fires every day at nine is a day apart, however long each run
takes to send. A day is 24 hours here: no clock that people change has a part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class FrequencyCap:
    messages: int
    days: int

    @property
    def period(self) -> timedelta:
        return timedelta(days=self.days)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A target that a run made for the recipient."""

    at: datetime
    """When its run starts."""
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """What is the same for all targets of a run."""

    cap: FrequencyCap
    at: datetime
    run_id: str
    retry_of: str | None
    """The run whose failed targets are tried again: what was counted for one of those is not counted twice."""


@dataclass(frozen=True, slots=True)
class Admitted:
    counted: tuple[Counted, ...]
    """With the new target, and without what has no weight any more."""

    def expires_at(self, cap: FrequencyCap) -> datetime:
        return max(one.at for one in self.counted) + cap.period


@dataclass(frozen=True, slots=True)
class Capped:
    """One more would be above the cap."""


def judge(counted: Sequence[Counted], counting: Counting) -> Admitted | Capped:
    """Whatever starts later than this target counts too, because a run may start when its window opens. So no period
    of the cap's length has more than the cap, in whichever order runs make their targets."""
    since = counting.at - counting.cap.period
    kept = [one for one in counted if one.at > since]
    failed = next((one for one in kept if one.run_id == counting.retry_of), None)
    if failed is not None:
        kept.remove(failed)
    if len(kept) >= counting.cap.messages:
        return Capped()
    return Admitted((*kept, Counted(at=counting.at, run_id=counting.run_id)))
