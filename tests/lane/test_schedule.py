from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.lane.schedule import LONGEST_TASK, Arrive, Hop, next_hop
from tests.builders import NOW, at


def test_a_near_time_is_reached_at_once() -> None:
    assert next_hop(at(3600), NOW) == Arrive(at(3600))


def test_a_time_in_the_past_is_now() -> None:
    assert next_hop(at(-3600), NOW) == Arrive(NOW)


def test_a_far_time_is_reached_in_hops() -> None:
    assert next_hop(NOW + timedelta(days=40), NOW) == Hop(NOW + LONGEST_TASK)


def test_a_year_takes_thirteen_tasks() -> None:
    target, now, tasks = NOW + timedelta(days=365), NOW, 1
    while isinstance(hop := next_hop(target, now), Hop):
        now, tasks = hop.at, tasks + 1
    assert (hop.at, tasks) == (target, 13)


@given(
    ahead=st.timedeltas(timedelta(days=-1), timedelta(days=365)), late=st.timedeltas(timedelta(0), timedelta(hours=2))
)
def test_hops_always_arrive_on_time_and_no_task_is_longer_than_allowed(ahead: timedelta, late: timedelta) -> None:
    """Even if each hop comes late."""
    target, now = NOW + ahead, NOW
    for _ in range(20):
        hop = next_hop(target, now)
        assert timedelta(0) <= hop.at - now <= timedelta(days=30)
        if isinstance(hop, Arrive):
            assert hop.at == max(target, now)
            return
        now = hop.at + late
    raise AssertionError("it never arrived")
