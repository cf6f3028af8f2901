from __future__ import annotations

import math
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firestore_outbox.lane.pacing import (
    MIN_RATE,
    Allowance,
    Block,
    Cap,
    Gate,
    Taken,
    allowance,
    given_back,
    halved,
    pushed,
    recovered,
    reserve,
    reserve_through,
    take,
)
from firestore_outbox.providers.outcome import Scope
from tests.builders import NOW, at, s


def cap(interval: float = 1.5, burst: int = 1) -> Cap:
    return Cap(interval=s(interval), burst=burst)


def gate(of: Cap, *, sends: int = 100, scope: Scope = Scope.ACCOUNT, rate_factor: float = 1.0) -> Gate:
    block = reserve(of, None, now=NOW, sends=sends, rate_factor=rate_factor)
    return Gate(scope=scope, cap=of, block=block, rate_factor=rate_factor)


def sent_at(start: Gate, moments: list[datetime]) -> list[datetime]:
    """At which of these moments a send goes, when one is tried at each."""
    gates: tuple[Gate, ...] = (start,)
    gone: list[datetime] = []
    for moment in moments:
        match take(gates, moment):
            case Taken(gates=spent):
                gates = spent
                gone.append(moment)
            case Allowance():
                pass
    return gone


def assert_within(of: Cap, gone: list[datetime]) -> None:
    """Any window of length W has at most burst - 1 + ceil(W/T): enough to check those that begin and end at a send."""
    for first, start in enumerate(gone):
        for last in range(first, len(gone)):
            span = gone[last] - start  # a half-open window a little longer than this has all of them
            assert last - first + 1 <= of.burst + span // of.interval, (start, gone[last])


def test_forty_a_minute_is_one_in_a_second_and_a_half() -> None:
    assert Cap.per_minute(40) == cap(1.5)


def test_zero_a_minute_means_no_pace() -> None:
    assert Cap.per_minute(0) is None
    assert Cap.per_second(0) is None
    assert allowance([], NOW) == Allowance(sends=None, next_at=NOW)


def test_an_uneven_pace_is_rounded_to_the_slower_side() -> None:
    uneven = Cap.per_minute(7)
    assert uneven is not None
    assert uneven.interval * 7 >= timedelta(minutes=1)


def test_a_busy_account_sends_forty_in_a_minute_and_not_one_more() -> None:
    tries = [at(tenth / 10) for tenth in range(600)]
    assert len(sent_at(gate(cap()), tries)) == 40


def test_a_rested_account_sends_its_burst_at_once_and_then_at_its_pace() -> None:
    tries = sorted([NOW] * 5 + [at(half / 2) for half in range(1, 10)])
    gone = sent_at(gate(cap(1.0, burst=3)), tries)
    assert [(moment - NOW).total_seconds() for moment in gone] == [0, 0, 0, 1, 2, 3, 4]


def test_the_answer_says_when_the_next_can_go() -> None:
    spent = take([gate(cap())], NOW)
    assert isinstance(spent, Taken)
    assert take(spent.gates, at(1)) == Allowance(sends=0, next_at=at(1.5))


def test_time_not_used_is_not_saved_up() -> None:
    late = gate(cap(1.0), sends=10)
    assert len(sent_at(late, [at(5)] * 5)) == 1


def test_a_block_that_fell_behind_asks_for_a_reservation() -> None:
    small = gate(cap(1.0), sends=2)
    assert allowance([small], at(1.5)) == Allowance(sends=0, next_at=at(1.5), reserve=(Scope.ACCOUNT,))


def test_claims_that_have_not_started_count_against_the_allowance() -> None:
    assert allowance([gate(cap(1.0, burst=3))], NOW, waiting=2).sends == 1
    assert allowance([gate(cap(1.0, burst=3))], NOW, waiting=4).sends == 0


def test_nested_caps_are_taken_together_or_not_at_all() -> None:
    account, app = gate(cap(1.0, burst=5)), gate(cap(1.0, burst=2), scope=Scope.APP)
    assert allowance([account, app], NOW).sends == 2
    gates: tuple[Gate, ...] = (account, app)
    for _ in range(2):
        taken = take(gates, NOW)
        assert isinstance(taken, Taken)
        gates = taken.gates
    refused = take(gates, NOW)
    assert refused == Allowance(sends=0, next_at=at(1))
    assert gates[0].room(NOW) == 3  # the account's cap paid for two sends, and not for the one refused


def test_the_next_time_is_that_of_the_slowest_cap() -> None:
    recipient, account = gate(cap(6.0), scope=Scope.RECIPIENT), gate(cap(1.5))
    taken = take([recipient, account], NOW)
    assert isinstance(taken, Taken)
    assert allowance(taken.gates, at(2)) == Allowance(sends=0, next_at=at(6))


def test_a_clean_release_gives_back_what_was_not_used() -> None:
    mine = reserve(cap(1.0), None, now=NOW, sends=10)
    after = Gate(scope=Scope.ACCOUNT, cap=cap(1.0), block=mine).after_send(NOW).block
    assert given_back(mine.until, after) == at(1)


def test_nothing_is_given_back_that_others_have_reserved_behind() -> None:
    mine = reserve(cap(1.0), None, now=NOW, sends=10)
    theirs = reserve(cap(1.0), mine.until, now=NOW, sends=10)
    assert given_back(theirs.until, mine) == theirs.until


def test_a_block_is_extended_in_place_if_no_block_came_behind_it() -> None:
    mine = reserve(cap(1.0), None, now=NOW, sends=2)
    more = reserve(cap(1.0), mine.until, now=NOW, sends=5, mine=mine)
    assert more == Block(tat=NOW, until=at(5))


def test_a_lease_long_block_costs_the_successor_nothing() -> None:
    mine = reserve_through(cap(1.5), None, now=NOW, through=at(60))
    assert mine.until == at(60)
    theirs = reserve_through(cap(1.5), mine.until, now=at(60), through=at(120))
    assert Gate(scope=Scope.ACCOUNT, cap=cap(1.5), block=theirs).next_at(at(60)) == at(60)


def test_a_pace_slower_than_the_lease_still_reserves_one_send() -> None:
    slow = reserve_through(cap(3600), None, now=NOW, through=at(60))
    assert Gate(scope=Scope.ACCOUNT, cap=cap(3600), block=slow).room(NOW) == 1


def test_a_pushed_cap_lets_nothing_go_before_its_time_and_no_burst_after_it() -> None:
    tat = pushed(cap(1.0, burst=3), NOW, until=at(30))
    fresh = Gate(scope=Scope.APP, cap=cap(1.0, burst=3), block=reserve(cap(1.0, burst=3), tat, now=NOW, sends=9))
    assert fresh.next_at(NOW) == at(30)
    assert fresh.room(at(29.9)) == 0
    assert fresh.room(at(30)) == 1


def test_a_throttle_halves_the_rate_down_to_a_sixteenth() -> None:
    rates = [1.0]
    for _ in range(6):
        rates.append(halved(rates[-1]))
    assert rates == [1, 0.5, 0.25, 0.125, 0.0625, 0.0625, 0.0625]


def test_the_rate_recovers_step_by_step_and_never_above_the_configured_pace() -> None:
    rate, steps = 0.5, 0
    while rate < 1:
        higher = recovered(rate, cap())
        assert rate < higher <= rate + 0.05
        rate, steps = higher, steps + 1
    assert 80 <= steps <= 81  # at 1.5 s each, stretched on the way: about three minutes
    assert recovered(rate, cap(), sends=1000) == 1


def test_half_the_rate_is_half_the_sends() -> None:
    tries = [at(tenth / 10) for tenth in range(600)]
    assert len(sent_at(gate(cap(), rate_factor=0.5), tries)) == 20


# --- properties ---------------------------------------------------------------------------------------------------

caps = st.builds(
    lambda interval_ms, burst: Cap(interval=timedelta(milliseconds=interval_ms), burst=burst),
    st.integers(1, 3000),
    st.integers(1, 5),
)
steps = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "reserve", "reserve", "wait", "wait", "release", "release", "crash", "throttle"]),
        st.integers(0, 1),  # which worker
        st.sampled_from([0, 0, 0.5, 1, 1, 1.5, 7]),  # intervals that pass before
        st.sampled_from([1, 4, 6]),  # sends to reserve
    ),
    max_size=40,
)


@settings(max_examples=500)
@given(of=caps, script=steps)
def test_no_window_exceeds_the_pace_whatever_crashes_and_restarts(
    of: Cap, script: list[tuple[str, int, float, int]]
) -> None:
    """Two workers share one stored tat; each reserves, crashes or releases, in any order, and sends whenever it may."""
    stored: datetime | None = None
    blocks: dict[int, Block] = {}
    rate = 1.0
    now = NOW
    gone: list[datetime] = []
    for action, worker, pause, count in script:
        now += of.interval * pause
        mine = blocks.get(worker)
        match action:
            case "reserve":
                blocks[worker] = reserve(of, stored, now=now, sends=count, mine=mine, rate_factor=rate)
                assert stored is None or blocks[worker].until >= stored
                stored = blocks[worker].until
            case "release" if mine is not None:
                stored = given_back(stored, blocks.pop(worker))
            case "crash":
                blocks.pop(worker, None)
            case "throttle":
                rate = halved(rate)
        for each, block in blocks.items():
            view = Gate(scope=Scope.APP, cap=of, block=block, rate_factor=rate)
            while isinstance(taken := take([view], now), Taken):
                (view,) = taken.gates
                gone.append(now)
            blocks[each] = view.block
    assert_within(of, gone)


@given(of=caps, waits=st.lists(st.integers(0, 5000), max_size=60))
def test_the_answer_never_names_a_time_too_early_or_too_late(of: Cap, waits: list[int]) -> None:
    mine, now = gate(of, sends=10_000_000), NOW
    for wait in waits:
        now += timedelta(milliseconds=wait)
        allowed = allowance([mine], now)
        if allowed.sends == 0:
            just_before = allowed.next_at - timedelta(microseconds=1)
            assert just_before < now or mine.room(just_before) == 0
            now = allowed.next_at
        assert mine.room(now) >= 1
        mine = mine.after_send(now)


@given(of=caps, factor=st.floats(MIN_RATE, 1))
def test_a_reduced_rate_is_never_faster_than_the_configured_one(of: Cap, factor: float) -> None:
    assert of.stretched(factor) >= of.interval


@given(of=caps, now_ms=st.integers(0, 10**6), tries=st.integers(1, 50))
def test_room_is_exactly_how_many_can_be_taken(of: Cap, now_ms: int, tries: int) -> None:
    mine, now = gate(of, sends=20), NOW + timedelta(milliseconds=now_ms)
    room, taken = mine.room(now), 0
    while isinstance(result := take([mine], now), Taken):
        (mine,) = result.gates
        taken += 1
    assert taken == room


@pytest.mark.parametrize("restarts", [0, 1, 3])
def test_two_hundred_messages_take_five_minutes_with_or_without_clean_restarts(restarts: int) -> None:
    of, stored, now = cap(), None, NOW
    gone: list[datetime] = []
    boundaries = [math.ceil(200 * part / (restarts + 1)) for part in range(1, restarts + 2)]
    for boundary in boundaries:
        mine = Gate(scope=Scope.ACCOUNT, cap=of, block=reserve(of, stored, now=now, sends=500))
        while len(gone) < boundary:
            now = mine.next_at(now)
            mine = mine.after_send(now)
            gone.append(now)
        stored = given_back(mine.block.until, mine.block)
    assert_within(of, gone)
    assert gone[-1] - gone[0] == s(1.5 * 199)


@pytest.mark.parametrize("interval", [1.5, 30, 60, 90, 3600])
def test_a_reservation_has_room_for_a_send_although_writing_it_takes_time(interval: float) -> None:
    """Also where one send's share is as long as the lease."""
    block = reserve_through(cap(interval), None, now=NOW, through=at(60))
    a_while_later = at(min(interval, 20))
    held = Gate(scope=Scope.ACCOUNT, cap=cap(interval), block=block)
    assert held.room(a_while_later) == 1
