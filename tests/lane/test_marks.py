"""What a wake marks on the lane for its holder, and when that costs a write."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firestore_outbox.lane.marks import Mark, both
from firestore_outbox.lane.state import Lane, Marked, Queued, Served, acquire, wake, wake_later
from firestore_outbox.lane.transitions import LaneState
from tests.builders import NOW, at, s

NORMAL, URGENT = Mark(normal_at=NOW), Mark(urgent_at=NOW)
READY = Lane(state=LaneState.READY, due_at=NOW, ready_at=NOW)
RUNNING = Lane(state=LaneState.RUNNING, owner="w1", lease_until=at(60), rerun_requested=True, due_at=NOW, woken_at=NOW)


def test_the_wake_of_an_idle_lane_carries_the_mark_with_the_write_that_it_makes_anyway() -> None:
    woken = wake(Lane(), NOW, mark=URGENT)
    assert isinstance(woken, Queued)
    assert (woken.lane.urgent_at, woken.lane.normal_at) == (NOW, None)


@pytest.mark.parametrize("lane", [READY, RUNNING], ids=["ready", "running"])
@pytest.mark.parametrize("mark", [NORMAL, URGENT], ids=["normal", "urgent"])
def test_a_burst_writes_one_mark_of_a_kind(lane: Lane, mark: Mark) -> None:
    first = wake(lane, at(1), mark=mark)
    assert isinstance(first, Marked)
    assert isinstance(wake(first.lane, at(2), mark=mark), Served)
    assert isinstance(wake(lane, at(1)), Served), "without a mark there is nothing to write"


def test_a_mark_outlives_the_acquire_and_the_holder_clears_it() -> None:
    woken = wake(Lane(), NOW, mark=NORMAL)
    assert isinstance(woken, Queued)
    acquired = acquire(woken.lane, "w1", NOW, s(60))
    assert getattr(acquired, "lane", Lane()).normal_at == NOW


def test_the_earliest_urgent_message_counts_also_one_that_is_scheduled() -> None:
    later = wake_later(Lane(next_due_at=at(5)), at(100), NOW, mark=Mark(urgent_at=at(100)))
    assert isinstance(later, Marked)
    assert later.lane == replace(Lane(next_due_at=at(5)), urgent_at=at(100))
    assert later.lane.marked(Mark(urgent_at=at(50))).urgent_at == at(50)


def test_two_wakes_at_once_are_one_mark() -> None:
    assert both(NORMAL, Mark(urgent_at=at(1), normal_at=at(-1))) == Mark(urgent_at=at(1), normal_at=at(-1))
    assert both(None, URGENT) == URGENT
    assert both(None, None) is None
