from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firestore_outbox.lane.lease import Hold
from firestore_outbox.lane.state import (
    LATEST_COMMIT,
    NO_DEBOUNCE,
    Acquired,
    Busy,
    Debounce,
    Entry,
    Failing,
    Idle,
    Lane,
    Later,
    Lost,
    Marked,
    More,
    NotDue,
    Nothing,
    Orphaned,
    Queued,
    Renewed,
    Requeued,
    Served,
    Sleeping,
    ThreadHold,
    Turn,
    Work,
    acquire,
    fail,
    overdue,
    release,
    renew,
    turn,
    wake,
    wake_later,
)
from firestore_outbox.lane.transitions import LaneState
from firestore_outbox.sending.backoff import Backoff
from tests.builders import NOW, at, s

TTL = s(60)
INBOUND = Debounce(quiet=s(5), most=s(15))
LANE_BACKOFF = Backoff(base=TTL, cap=s(900))


def ready(seconds: float = 0) -> Lane:
    woken = wake(Lane(), at(seconds))
    assert isinstance(woken, Queued)
    return woken.lane


def taken(lane: Lane | None = None, owner: str = "w1", seconds: float = 0) -> Acquired:
    acquired = acquire(lane or ready(seconds), owner, at(seconds), TTL)
    assert isinstance(acquired, Acquired)
    return acquired


# --- wake ---------------------------------------------------------------------------------------------------------


def test_a_wake_makes_an_idle_lane_ready_at_once() -> None:
    woken = wake(Lane(), NOW)
    assert isinstance(woken, Queued)
    assert (woken.at, woken.lane.state, woken.lane.ready_at) == (NOW, LaneState.READY, NOW)


def test_a_second_wake_of_a_ready_lane_costs_nothing() -> None:
    assert wake(ready(), at(1)) == Served()


def test_a_wake_of_a_running_lane_asks_for_a_rerun_and_only_the_first_costs_a_write() -> None:
    marked = wake(taken().lane, at(1))
    assert isinstance(marked, Marked)
    assert marked.lane.rerun_requested
    assert wake(marked.lane, at(2)) == Served()


def test_a_wake_of_a_lane_whose_holder_is_gone_makes_a_task_now() -> None:
    orphaned = wake(taken().lane, at(61))
    assert isinstance(orphaned, Orphaned)
    assert taken(orphaned.lane, "w2", 61).entry is Entry.TAKEOVER


def test_a_burst_of_wakes_becomes_one_run_when_it_is_quiet() -> None:
    lane = Lane()
    for seconds in (0, 2, 4):
        woken = wake(lane, at(seconds), INBOUND)
        assert isinstance(woken, Queued | Marked)
        lane = woken.lane
    assert acquire(lane, "w1", at(5), TTL) == NotDue(at(9))
    assert taken(lane, seconds=9).lane.state is LaneState.RUNNING


def test_wakes_that_never_stop_delay_the_run_no_longer_than_the_maximum() -> None:
    lane = Lane()
    for seconds in range(15):
        woken = wake(lane, at(seconds), INBOUND)
        lane = woken.lane if isinstance(woken, Queued | Marked) else lane
    assert lane.due_at == at(15)
    assert taken(lane, seconds=15)


def test_a_wake_during_a_run_is_debounced_too() -> None:
    marked = wake(taken().lane, at(1), INBOUND)
    assert isinstance(marked, Marked)
    released = release(marked.lane, taken().hold, at(2), Nothing())
    assert isinstance(released, Requeued)
    assert released.at == at(6)


def test_work_for_later_makes_an_idle_lane_sleep_until_the_earliest_of_it() -> None:
    first = wake_later(Lane(), at(3600), NOW)
    assert isinstance(first, Queued)
    assert (first.lane.state, first.at) == (LaneState.IDLE, at(3600))
    assert wake_later(first.lane, at(7200), NOW) == Served()
    earlier = wake_later(first.lane, at(60), NOW)
    assert isinstance(earlier, Queued)
    assert earlier.lane.next_due_at == at(60)


def test_work_for_later_is_not_lost_on_a_holder_that_has_looked_already() -> None:
    marked = wake_later(taken().lane, at(3600), at(1))
    assert isinstance(marked, Marked)
    assert marked.lane.rerun_requested


def test_a_wake_does_not_end_a_pause() -> None:
    woken = wake(Lane(paused_until=at(30)), NOW)
    assert isinstance(woken, Queued)
    assert woken.at == at(30)
    assert acquire(woken.lane, "w1", at(29), TTL) == NotDue(at(30))
    resumed = woken.lane.resumed(now=at(10))
    assert taken(resumed, seconds=10)


# --- acquire, renew -----------------------------------------------------------------------------------------------


def test_each_acquisition_has_a_fence_of_its_own() -> None:
    first = taken()
    assert (first.lane.fence, first.hold.fence, first.entry) == (1, 1, Entry.FRESH)
    second = taken(first.lane, "w2", 60)
    assert (second.hold.fence, second.entry) == (2, Entry.TAKEOVER)


def test_only_a_takeover_says_until_when_late_claims_may_arrive() -> None:
    first = taken()
    second = taken(first.lane, "w2", 61)
    assert first.lane.doubt_until is None
    assert second.lane.doubt_until == at(61) + TTL + LATEST_COMMIT
    assert second.lane.is_in_doubt(at(62))
    released = release(second.lane, second.hold, at(65), Nothing())
    assert isinstance(released, Idle)
    assert released.lane.is_in_doubt(at(66))
    assert not released.lane.is_in_doubt(at(61) + TTL + LATEST_COMMIT)


def test_a_held_lane_is_busy_until_its_lease_ends() -> None:
    assert acquire(taken().lane, "w2", at(59.9), TTL) == Busy(at(60))


def test_an_idle_lane_with_nothing_known_is_not_acquired() -> None:
    assert acquire(Lane(), "w1", NOW, TTL) == NotDue(None)


def test_an_idle_lane_is_acquired_when_its_next_work_is_due() -> None:
    lane = Lane(next_due_at=at(10))
    assert acquire(lane, "w1", at(9), TTL) == NotDue(at(10))
    assert taken(lane, seconds=10).entry is Entry.FRESH


def test_a_pause_does_not_keep_a_takeover_from_settling_what_is_in_doubt() -> None:
    lane = replace(taken().lane, paused_until=at(500))
    assert taken(lane, "w2", 61).entry is Entry.TAKEOVER


def test_a_holder_renews_from_the_moment_it_asks() -> None:
    acquired = taken()
    renewed = renew(acquired.lane, acquired.hold, at(20))
    assert isinstance(renewed, Renewed)
    assert (renewed.lane.lease_until, renewed.hold.until) == (at(80), at(80))


def test_a_late_holder_that_was_not_replaced_may_renew() -> None:
    acquired = taken()
    assert isinstance(renew(acquired.lane, acquired.hold, at(100)), Renewed)


def test_a_holder_that_was_replaced_has_lost_everything() -> None:
    first = taken()
    second = taken(first.lane, "w2", 61)
    assert renew(second.lane, first.hold, at(62)) == Lost()
    assert release(second.lane, first.hold, at(62), Nothing()) == Lost()


def test_the_same_worker_in_a_later_hold_is_another_owner() -> None:
    first = taken()
    again = taken(first.lane, "w1", 61)
    assert release(again.lane, first.hold, at(62), Nothing()) == Lost()


def test_a_holder_stops_starting_work_well_before_its_lease_ends() -> None:
    hold = taken().hold
    assert hold.may_start(at(34.9))
    assert not hold.may_start(at(35))
    assert hold.stop_at + hold.longest_call < hold.until
    assert hold.renew_at() == at(20)


# --- release ------------------------------------------------------------------------------------------------------


def test_a_released_lane_without_work_is_idle() -> None:
    acquired = taken()
    assert release(acquired.lane, acquired.hold, at(5), Nothing()) == Idle(Lane(fence=1))


def test_a_released_lane_with_work_ahead_sleeps_until_then() -> None:
    acquired = taken()
    slept = release(acquired.lane, acquired.hold, at(5), Later(at(300)))
    assert slept == Sleeping(Lane(fence=1, next_due_at=at(300)), at(300))


@pytest.mark.parametrize(
    ("next_due", "released_at", "has_task"),
    [(300, 5, True), (300, 239, True), (300, 240, False), (400, 5, False)],
    ids=["as found", "just over a minute ahead", "so near that the task may have come", "another time"],
)
def test_a_release_that_leaves_the_next_time_as_found_needs_no_task(
    next_due: float, released_at: float, has_task: bool
) -> None:
    woken = wake(Lane(next_due_at=at(300)), NOW)
    assert isinstance(woken, Queued)
    acquired = taken(woken.lane)

    slept = release(acquired.lane, acquired.hold, at(released_at), Later(at(next_due)))

    assert slept == Sleeping(Lane(fence=1, next_due_at=at(next_due)), at(next_due), has_task)


def test_a_paused_lane_sleeps_until_the_pause_has_ended() -> None:
    acquired = taken()
    slept = release(acquired.lane.paused(until=at(900)), acquired.hold, at(5), Later(at(300)))
    assert isinstance(slept, Sleeping)
    assert slept.at == at(900)


@pytest.mark.parametrize("work", [More(), Later(at(300)), Nothing()])
def test_a_rerun_goes_to_the_tail_whatever_the_holder_thinks_is_left(work: Work) -> None:
    acquired = taken()
    marked = wake(acquired.lane, at(1))
    assert isinstance(marked, Marked)
    requeued = release(marked.lane, acquired.hold, at(5), work)
    assert isinstance(requeued, Requeued)
    assert (requeued.lane.state, requeued.lane.ready_at, requeued.lane.rerun_requested) == (
        LaneState.READY,
        at(5),
        False,
    )


def test_a_long_lane_yields_to_a_waiting_one_and_to_no_other() -> None:
    assert turn(started_at=NOW, now=at(30), quantum=s(30), lanes_waiting=1) is Turn.YIELD
    assert turn(started_at=NOW, now=at(30), quantum=s(30), lanes_waiting=0) is Turn.CONTINUE
    assert turn(started_at=NOW, now=at(29), quantum=s(30), lanes_waiting=5) is Turn.CONTINUE


# --- throttles and holds ------------------------------------------------------------------------------------------


def test_calls_that_were_in_flight_together_slow_the_lane_once() -> None:
    lane = Lane()
    for seconds in (0, 0.1, 0.2):
        lane = lane.throttled(until=at(10 + seconds), now=at(seconds))
    assert (lane.rate_factor, lane.paused_until) == (0.5, at(10.2))
    assert lane.throttled(until=at(30), now=at(20)).rate_factor == 0.25


def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    assert Lane(paused_until=at(60)).paused(until=at(5)).paused_until == at(60)


def test_a_named_hold_outlives_its_time_and_an_unnamed_one_does_not() -> None:
    named, unnamed = ThreadHold(until=NOW, request_id="request-1"), ThreadHold(until=NOW)
    lane = Lane().holding("t1", named).holding("t2", unnamed)
    assert lane.without_elapsed_holds(at(1)).holds == {"t1": named}


# --- failing handlers ---------------------------------------------------------------------------------------------


def failed(acquired: Acquired, seconds: float, jitter: float = 0.5) -> Failing:
    failing = fail(acquired.lane, acquired.hold, at(seconds), backoff=LANE_BACKOFF, jitter=jitter)
    assert isinstance(failing, Failing)
    return failing


def test_the_wait_after_a_failure_doubles_with_each_in_a_row_up_to_its_bound() -> None:
    lane, now, waits = ready(), 0.0, []
    for _ in range(7):
        failing = failed(taken(lane, seconds=now), now + 1)
        waits.append((failing.retry_at - at(now + 1)).total_seconds())
        lane, now = failing.lane, (failing.retry_at - NOW).total_seconds()
    assert waits == [60, 120, 240, 480, 900, 900, 900]
    assert lane.failures == 7


def test_no_worker_takes_a_failing_lane_over_before_its_next_try_and_the_sweep_comes_then() -> None:
    failing = failed(taken(), 1)
    just_before, then = failing.retry_at - s(1), failing.retry_at
    assert acquire(failing.lane, "w2", just_before, TTL) == Busy(then)
    assert not overdue(failing.lane, just_before, s(0))
    assert overdue(failing.lane, then, s(0))
    again = acquire(failing.lane, "w2", then, TTL)
    assert isinstance(again, Acquired)
    assert (again.entry, again.lane.failures, again.lane.is_failing) == (Entry.TAKEOVER, 1, False)


def test_the_next_try_is_never_before_the_lease_ends() -> None:
    """What the handler left in flight is in doubt until then."""
    assert failed(taken(), 1, jitter=0.0).retry_at == at(60)


def test_a_wake_of_a_failing_lane_leaves_a_mark_and_brings_no_worker_early() -> None:
    failing = failed(taken(), 1).lane
    woken = wake(failing, at(2))
    assert isinstance(woken, Marked)
    assert wake(woken.lane, at(3)) == Served()


def test_a_release_ends_the_count_of_failures() -> None:
    failing = failed(taken(), 1)
    again = taken(failing.lane, seconds=(failing.retry_at - NOW).total_seconds())
    released = release(again.lane, again.hold, failing.retry_at, Nothing())
    assert isinstance(released, Idle)
    assert (released.lane.failures, released.lane.retry_at) == (0, None)


def test_an_operator_ends_the_wait_of_a_failing_lane() -> None:
    resumed = failed(taken(), 1).lane.resumed(now=at(2))
    assert isinstance(acquire(resumed, "w2", at(2), TTL), Acquired)


def test_a_holder_that_lost_its_lane_leaves_no_failure_on_it() -> None:
    first = taken()
    second = taken(first.lane, "w2", seconds=61)
    assert fail(second.lane, first.hold, at(62), backoff=LANE_BACKOFF, jitter=0.5) == Lost()


def test_a_lane_that_the_release_before_took_over_is_not_shown_as_failing() -> None:
    """It clears the fields that it knows."""
    failing = failed(taken(), 1).lane
    assert failing.is_failing
    assert not replace(failing, owner="old", lease_until=at(400), fence=2).is_failing


# --- the sweep ----------------------------------------------------------------------------------------------------


def test_the_sweep_finds_what_was_dropped_in_each_state() -> None:
    grace = s(30)
    dropped = [ready(), taken().lane, Lane(next_due_at=NOW)]
    assert [overdue(lane, at(100), grace) for lane in dropped] == [True, True, True]
    assert [overdue(lane, at(29), grace) for lane in dropped] == [False, False, False]
    assert not overdue(Lane(), at(10**6), grace)


# --- properties ---------------------------------------------------------------------------------------------------

steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["wake", "wake", "later", "acquire", "acquire", "renew", "release", "release", "pause", "fail"]
        ),
        st.sampled_from([0, 0, 0, 1, 2]),  # which hold, counted back from the last: the late ones act too
        st.sampled_from([0, 1, 1, 5, 10, 61]),  # seconds that pass before
        st.sampled_from([More(), Nothing(), Later(at(5000))]),
    ),
    max_size=40,
)


@settings(max_examples=500)
@given(script=steps, debounce=st.sampled_from([NO_DEBOUNCE, INBOUND]))
def test_never_two_holders_and_no_wake_lost(script: list[tuple[str, int, int, Work]], debounce: Debounce) -> None:
    """Any interleaving of wakes and runs, with holders that crash, stall and come back. Work is numbered."""
    lane, now = Lane(), NOW
    holds: list[Hold] = []  # as their holders believe, one for each acquisition
    holder: int | None = None  # who holds the lane in truth: an index into holds
    work_now = work_later = seen = 0
    for action, back, pause, work in script:
        now += timedelta(seconds=pause)
        who = len(holds) - 1 - back
        match action:
            case "wake":
                work_now = max(work_now, work_later) + 1
                woken = wake(lane, now, debounce)
                lane = lane if isinstance(woken, Served) else woken.lane
            case "later":
                work_later = max(work_now, work_later) + 1
                woken = wake_later(lane, at(5000), now, debounce)
                lane = lane if isinstance(woken, Served) else woken.lane
            case "acquire":
                acquired = acquire(lane, f"w{back}", now, TTL)
                if isinstance(acquired, Acquired):
                    assert holder is None or holds[holder].until <= now
                    assert acquired.hold.fence == len(holds) + 1
                    lane, holder = acquired.lane, len(holds)
                    holds.append(acquired.hold)
                    seen = max(work_now, work_later)  # a run looks for work, due now or later, once it has the lane
            case "renew" if who >= 0:
                renewed = renew(lane, holds[who], now)
                assert isinstance(renewed, Renewed) == (holder == who)
                if isinstance(renewed, Renewed):
                    lane, holds[who] = renewed.lane, renewed.hold
            case "release" if who >= 0:
                released = release(lane, holds[who], now, work)
                assert isinstance(released, Lost) == (holder != who)
                if not isinstance(released, Lost):
                    lane, holder = released.lane, None
                    holds[who] = replace(holds[who], ttl=s(0))  # it knows that it has let go
            case "fail" if who >= 0:
                failing = fail(lane, holds[who], now, backoff=LANE_BACKOFF, jitter=0.5)
                assert isinstance(failing, Failing) == (holder == who)
                lane = failing.lane if isinstance(failing, Failing) else lane
            case "pause":
                lane = lane.paused(until=now + s(20))
        assert sum(hold.may_start(now) for hold in holds) <= 1
        if work_now > seen:  # a worker is sure to come: at once, or when the holder ends
            assert lane.state is LaneState.READY or (lane.state is LaneState.RUNNING and lane.rerun_requested)
        if work_later > seen:
            assert lane.state is not LaneState.IDLE or (lane.next_due_at and lane.next_due_at <= at(5000))
            assert lane.state is not LaneState.RUNNING or lane.rerun_requested

    for _ in range(200):  # all holders have gone; the sweep comes once a minute, and a worker after it
        now += timedelta(seconds=60)
        if overdue(lane, now, s(0)):
            acquired = acquire(lane, "w9", now, TTL)
            assert isinstance(acquired, Acquired)
            seen = max(work_now, work_later)
            released = release(acquired.lane, acquired.hold, now, Nothing())
            assert not isinstance(released, Lost)
            lane = released.lane
    assert lane.state is LaneState.IDLE
    assert seen == max(work_now, work_later)


@given(
    wakes=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10)), min_size=1, max_size=40),
    debounce=st.sampled_from([NO_DEBOUNCE, INBOUND]),
)
def test_lanes_are_served_in_the_order_in_which_they_became_ready(
    wakes: list[tuple[int, int]], debounce: Debounce
) -> None:
    lanes, now = {key: Lane() for key in range(4)}, NOW
    became_ready: dict[int, datetime] = {}
    for key, pause in wakes:
        now += timedelta(seconds=pause)
        woken = wake(lanes[key], now, debounce)
        if not isinstance(woken, Served):
            lanes[key] = woken.lane
            assert woken.lane.ready_at is not None
            became_ready[key] = woken.lane.ready_at
    queue = sorted(became_ready, key=lambda key: became_ready[key])
    now += s(15)
    assert all(lanes[key].ready_at == became_ready[key] for key in queue)
    for key in queue:  # a run at the head asks for a rerun, and goes behind everybody who waits
        acquired = taken(lanes[key], seconds=(now - NOW).total_seconds())
        requeued = release(acquired.lane, acquired.hold, now, More())
        assert isinstance(requeued, Requeued)
        assert all(requeued.lane.ready_at > became_ready[other] for other in queue)  # type: ignore[operator]  # set when ready


def test_the_first_to_be_quiet_is_served_first() -> None:
    """U1 comes, U2 comes, U1 comes again: U2 is quiet first."""
    first = wake(Lane(), at(0), INBOUND)
    second = wake(Lane(), at(1), INBOUND)
    assert isinstance(first, Queued)
    assert isinstance(second, Queued)
    again = wake(first.lane, at(2), INBOUND)
    assert isinstance(again, Marked)
    assert (again.lane.ready_at, second.lane.ready_at) == (at(7), at(6))
