from __future__ import annotations

import pytest

from firestore_outbox.sessions.memory import Astray, Memory, Trouble, wait_after
from tests.builders import NOW, at, s
from tests.sessions.builders import DAY

FAILURES = [Trouble.TOO_SLOW, Trouble.BROKEN, Trouble.UNREACHABLE, Trouble.REFUSED]


@pytest.mark.parametrize("trouble", FAILURES)
@pytest.mark.parametrize(
    ("in_a_row", "seconds"),
    [(1, 30), (2, 60), (3, 120), (4, 300), (5, 600), (6, 1800), (7, 1800), (10**9, 1800), (0, 30)],
)
def test_waits_grow_to_half_an_hour_give_or_take_a_quarter(trouble: Trouble, in_a_row: int, seconds: float) -> None:
    assert wait_after(trouble, in_a_row, jitter=0.5) == s(seconds)
    assert wait_after(trouble, in_a_row, jitter=0.0) == s(seconds * 0.75)
    assert wait_after(trouble, in_a_row, jitter=1.0) == s(seconds * 1.25)


@pytest.mark.parametrize(("in_a_row", "seconds"), [(1, 0), (2, 30), (3, 60), (4, 120)])
def test_a_restart_is_followed_at_once_and_then_ever_later(in_a_row: int, seconds: float) -> None:
    assert wait_after(Trouble.RESTARTED, in_a_row, jitter=0.5) == s(seconds)
    assert wait_after(Trouble.RESTARTED, in_a_row, jitter=0.99) <= s(120)


@pytest.mark.parametrize("in_a_row", [5, 6, 100])
def test_after_five_restarts_in_a_row_the_session_is_parked_for_ten_minutes_and_some(in_a_row: int) -> None:
    assert wait_after(Trouble.RESTARTED, in_a_row, jitter=0.0) == s(600)
    assert wait_after(Trouble.RESTARTED, in_a_row, jitter=1.0) == s(900)


def test_pairing_is_left_to_a_person() -> None:
    assert wait_after(Trouble.NEEDS_PAIRING, 1, jitter=0.5) == s(1800)


def test_failures_count_in_a_row_and_restarts_on_their_own() -> None:
    memory = Memory()
    for trouble in (Trouble.BROKEN, Trouble.RESTARTED, Trouble.TOO_SLOW, Trouble.RESTARTED):
        memory = memory.troubled(trouble, NOW, steady=False, jitter=0.5)
    assert (memory.failures, memory.restarts) == (2, 2)
    assert (memory.trouble, memory.retry_at) == (Trouble.RESTARTED, at(30))


def test_coming_up_keeps_the_count_because_it_may_fall_again() -> None:
    memory = Memory(failures=3, retry_at=at(5), trouble=Trouble.BROKEN).came_up(DAY)
    assert (memory.failures, memory.retry_at, memory.trouble) == (3, None, None)
    assert memory.troubled(Trouble.BROKEN, NOW, steady=False, jitter=0.5).retry_at == at(300)


def test_a_session_that_was_steady_starts_the_count_again() -> None:
    memory = Memory(failures=5, restarts=4).troubled(Trouble.BROKEN, NOW, steady=True, jitter=0.5)
    assert (memory.failures, memory.restarts, memory.retry_at) == (1, 0, at(30))


def test_a_session_that_ended_in_good_order_forgets_its_failures() -> None:
    assert Memory(failures=3, restarts=2, sticky_left=DAY).ended(s(7)) == Memory(sticky_left=s(7))


def test_a_session_that_was_stopped_after_trouble_forgets_nothing() -> None:
    memory = Memory(failures=3, retry_at=at(9), trouble=Trouble.BROKEN, sticky_left=DAY, astray=Astray.UNWANTED)
    ended = memory.ended(s(7))
    assert (ended.failures, ended.retry_at, ended.sticky_left, ended.astray) == (3, at(9), s(7), None)


def test_only_the_first_login_gives_a_budget() -> None:
    first = Memory().came_up(DAY)
    assert first.sticky_left == DAY
    assert first.ended(s(0)).came_up(DAY).sticky_left == s(0)


def test_one_that_was_dropped_may_still_be_up() -> None:
    assert Memory(sticky_left=DAY).dropped(s(70)) == Memory(sticky_left=s(70), astray=Astray.UNWANTED)
    assert Memory(sticky_left=DAY).dropped(None).sticky_left == DAY


def test_an_account_that_never_came_up_keeps_its_first_login() -> None:
    assert Memory().ended(None).sticky_left is None
    assert Memory(sticky_left=DAY).ended(None).sticky_left == DAY


def test_a_wait_ends_with_its_time() -> None:
    memory = Memory(retry_at=at(10))
    assert memory.waits(at(9))
    assert not memory.waits(at(10))
    assert not Memory().waits(NOW)
