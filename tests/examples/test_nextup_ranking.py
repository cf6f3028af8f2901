"""examples/nextup: the order of a person's tasks, and the day on which each is done."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from nextup.ranking import Change, Task, business_day, changes, projected_completion, ranked

MONDAY, FRIDAY, SATURDAY = date(2026, 3, 2), date(2026, 3, 6), date(2026, 3, 7)


def task(name: str, importance: float = 50, **fields: object) -> Task:
    made = Task(id=name, name=name, importance=importance, days=1, started=None, rank=None, completion=None)
    return replace(made, **fields)  # type: ignore[arg-type]  # each test names fields of its own


def test_the_most_important_task_is_first_and_equals_keep_their_order() -> None:
    tasks = [task("c", 10), task("b", 90), task("d", 90), task("a", 50)]
    assert [one.id for one in ranked(tasks)] == ["b", "d", "a", "c"]
    assert ranked(reversed(tasks)) == ranked(tasks)


@pytest.mark.parametrize(
    ("start", "number", "day"),
    [
        (MONDAY, 1, MONDAY),
        (MONDAY, 5, FRIDAY),
        (MONDAY, 6, date(2026, 3, 9)),
        (FRIDAY, 2, date(2026, 3, 9)),
        (SATURDAY, 1, date(2026, 3, 9)),
        (MONDAY, 0, MONDAY),
        (MONDAY, 11, date(2026, 3, 16)),
    ],
)
def test_weekends_are_no_business_days(start: date, number: int, day: date) -> None:
    assert business_day(start, number) == day


def test_a_task_is_projected_from_its_start_or_from_today() -> None:
    assert projected_completion(task("a", days=2, started=FRIDAY), MONDAY) == date(2026, 3, 9)
    assert projected_completion(task("a", days=2), MONDAY) == date(2026, 3, 3)


def test_only_values_that_differ_are_changed() -> None:
    right = task("right", 90, rank=1, completion=MONDAY)
    moved = task("moved", 80, rank=7, completion=MONDAY)
    new = task("new", 70)
    late = task("late", 60, rank=4, completion=SATURDAY)
    assert changes([late, new, moved, right], MONDAY) == [
        Change(task=moved, rank=2, completion=None),
        Change(task=new, rank=3, completion=MONDAY),
        Change(task=late, rank=None, completion=MONDAY),
    ]


def test_what_was_written_needs_no_second_write() -> None:
    tasks = [task("a", 10), task("b", 20, started=FRIDAY, days=3)]
    written = [
        replace(one.task, rank=one.rank or one.task.rank, completion=one.completion or one.task.completion)
        for one in changes(tasks, MONDAY)
    ]
    assert changes(written, MONDAY) == []


def test_a_person_without_tasks_has_no_changes() -> None:
    assert changes([], MONDAY) == []
