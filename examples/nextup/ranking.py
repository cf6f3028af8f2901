"""The decisions: in which order a person works, and when each task is done. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

SATURDAY = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    id: str
    name: str
    importance: float
    days: int
    """Business days of work."""
    started: date | None
    """None: not started; it is projected from today."""
    rank: int | None
    """The Queue Rank that is stored. None: never ranked."""
    completion: date | None
    """The Projected Completion that is stored. None: never projected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """New values of a task. A value of None stays as it is."""

    task: Task
    rank: int | None
    completion: date | None


def changes(tasks: Iterable[Task], today: date) -> list[Change]:
    """What to write, the first in the queue first. A task whose values are right is left out."""
    found = []
    for rank, task in enumerate(ranked(tasks), start=1):
        completion = projected_completion(task, today)
        change = Change(
            task=task,
            rank=None if rank == task.rank else rank,
            completion=None if completion == task.completion else completion,
        )
        if change.rank is not None or change.completion is not None:
            found.append(change)
    return found


def ranked(tasks: Iterable[Task]) -> list[Task]:
    """The most important first; of equals the one with the smaller id, so that ranks do not change by chance."""
    return sorted(tasks, key=lambda task: (-task.importance, task.id))


def projected_completion(task: Task, today: date) -> date:
    return business_day(task.started or today, task.days)


def business_day(start: date, number: int) -> date:
    """The n-th business day from `start` on: Friday's second one is Monday. A number below 1 counts as 1."""
    day, left = start, max(1, number)
    while True:
        left -= day.weekday() < SATURDAY
        if left == 0:
            return day
        day += timedelta(days=1)
