"""A session's own lane: what it does next, and what follows from what it finds."""

from __future__ import annotations

import pytest

from firestore_outbox.sessions.memory import Astray, Memory, Trouble
from firestore_outbox.sessions.moves import Cool, Look, Move, Rest, Seen, Start, Stop, cooled, next_move, seen
from firestore_outbox.sessions.requests import News, Step
from firestore_outbox.sessions.slots import HotSet
from firestore_outbox.sessions.states import Rules, State
from tests.builders import NOW, at, s
from tests.sessions.builders import DAY, entry, hotset, idle, sticky, used, view, waiting

CONNECTING, DISCONNECTING, HOT = State.CONNECTING, State.DISCONNECTING, State.HOT


def found(hot: HotSet, what: Seen, seconds: float = 0, memory: Memory | None = None) -> Step:
    return seen(view(hot, memory=memory, now=at(seconds)), what, state_in(hot))


def state_in(hot: HotSet) -> State:
    return hot.entries["a"].state if "a" in hot.entries else State.COLD


# --- what to do


@pytest.mark.parametrize(
    ("hot", "memory", "move"),
    [
        (hotset(), Memory(), Rest(None)),
        (hotset(), Memory(astray=Astray.REPORTED), Look()),
        (hotset(), Memory(astray=Astray.UNWANTED), Stop()),
        (hotset(a=entry(CONNECTING)), Memory(), Start(at(60))),
        (hotset(a=entry(DISCONNECTING)), Memory(), Stop()),
        (hotset(a=used(40)), Memory(), Rest(at(40))),
        (hotset(a=idle(30)), Memory(), Rest(at(30))),
        (hotset(a=used(40, keep_until=at(50))), Memory(), Rest(at(50))),
        (hotset(a=sticky(s(100))), Memory(), Rest(at(100))),
        (hotset(a=sticky(DAY)), Memory(), Rest(at(300))),
        (hotset(a=entry()), Memory(), Cool()),
        (hotset(a=idle(0)), Memory(), Cool()),
        (hotset(a=sticky(s(0))), Memory(), Cool()),
        (hotset(a=used(doubted=True)), Memory(), Look()),
        (hotset(a=entry(seconds=-300, used_until=at(9))), Memory(), Look()),
    ],
)
def test_the_next_move_follows_from_the_state(hot: HotSet, memory: Memory, move: Move) -> None:
    assert next_move(view(hot, memory=memory)) == move


# --- connecting


def test_when_it_is_up_it_is_hot_and_waiting_lanes_are_woken() -> None:
    step = found(hotset(a=entry(CONNECTING, used_until=at(120))), Seen.UP, 10, Memory(failures=2, sticky_left=s(50)))
    up = step.hot.entries["a"]
    assert (up.state, up.hot_since, up.used_until, up.turn_since) == (HOT, at(10), at(70), at(10))
    assert step.news is News.UP
    assert step.memory == Memory(failures=2, sticky_left=s(50))


def test_one_that_came_up_for_its_seat_is_not_in_use() -> None:
    hot = hotset(a=entry(CONNECTING, sticky=True, sticky_left=DAY))
    up = found(hot, Seen.UP, memory=Memory(sticky_left=DAY)).hot.entries["a"]
    assert not up.in_use(NOW)
    assert up.sticky
    assert up.remaining(at(60)) == DAY - s(60)


def test_the_first_login_gives_the_budget() -> None:
    step = found(hotset(a=entry(CONNECTING)), Seen.UP)
    assert step.memory.sticky_left == DAY
    assert step.hot.entries["a"].sticky_left == DAY


def test_while_it_is_starting_it_is_waited_for_and_no_longer_than_a_minute() -> None:
    hot = hotset(a=entry(CONNECTING))
    assert found(hot, Seen.STARTING, 59) == Step(hot=hot, memory=Memory())
    step = found(hot, Seen.STARTING, 60)
    assert str(step.hot) == "a:disconnecting | -"
    assert (step.memory.trouble, step.memory.retry_at) == (Trouble.TOO_SLOW, at(90))


@pytest.mark.parametrize(
    ("what", "trouble", "wait"),
    [
        (Seen.DOWN, Trouble.BROKEN, 30),
        (Seen.BROKEN, Trouble.BROKEN, 30),
        (Seen.UNREACHABLE, Trouble.UNREACHABLE, 30),
        (Seen.REFUSED, Trouble.REFUSED, 30),
        (Seen.NEEDS_PAIRING, Trouble.NEEDS_PAIRING, 1800),
    ],
)
@pytest.mark.parametrize("state", [CONNECTING, HOT])
def test_trouble_puts_it_down_and_makes_it_wait(state: State, what: Seen, trouble: Trouble, wait: float) -> None:
    step = found(hotset(a=entry(state)), what)
    assert str(step.hot) == "a:disconnecting | -"
    assert (step.memory.trouble, step.memory.retry_at, step.memory.failures) == (trouble, at(wait), 1)
    assert step.news is News.DOWN


def test_trouble_ends_its_place_in_line() -> None:
    assert str(found(hotset({"a": waiting()}, a=used()), Seen.BROKEN).hot) == "a:disconnecting | -"


# --- hot


def test_a_look_at_one_that_is_up_moves_its_times() -> None:
    step = found(hotset(a=used(999)), Seen.UP, 300)
    looked = step.hot.entries["a"]
    assert (looked.look_at, looked.until, looked.hot_since) == (at(600), at(660), NOW)
    assert step.news is None


def test_a_doubt_that_was_unfounded_lets_waiting_lanes_go_on() -> None:
    step = found(hotset(a=used(doubted=True)), Seen.UP)
    assert not step.hot.entries["a"].doubted
    assert step.news is News.UP


def test_the_first_restart_keeps_its_place_and_is_followed_at_once() -> None:
    step = found(hotset(a=used(100, sticky_left=s(50))), Seen.STARTING, 10)
    assert str(step.hot) == "a:connecting | -"
    assert step.memory.sticky_left == s(40)
    assert step.hot.entries["a"].in_use(at(10))
    assert (step.memory.restarts, step.memory.retry_at) == (1, None)


@pytest.mark.parametrize(("before", "wait"), [(1, 30), (2, 60), (3, 120), (4, 600), (7, 600)])
def test_restarts_in_a_row_wait_longer_and_after_five_it_is_parked(before: int, wait: float) -> None:
    step = seen(view(hotset(a=used(100)), memory=Memory(restarts=before), now=at(10), jitter=0.0), Seen.STARTING, HOT)
    assert str(step.hot) == "a:disconnecting | -"
    assert step.memory.restarts == before + 1
    assert step.memory.trouble is Trouble.RESTARTED
    assert step.memory.retry_at is not None
    assert step.memory.retry_at - at(10) == s(wait if before >= 4 else wait * 0.75)


def test_a_restart_after_a_good_while_is_the_first_again() -> None:
    step = found(hotset(a=used(999)), Seen.STARTING, 60, Memory(restarts=4, failures=3))
    assert str(step.hot) == "a:connecting | -"
    assert (step.memory.restarts, step.memory.failures) == (1, 0)


def test_trouble_after_a_good_while_is_the_first_again() -> None:
    step = found(hotset(a=used(999)), Seen.BROKEN, 60, Memory(failures=5, restarts=3))
    assert (step.memory.failures, step.memory.restarts, step.memory.retry_at) == (1, 0, at(90))


# --- cooling


def test_one_that_is_not_needed_is_put_to_sleep() -> None:
    assert str(cooled(view(hotset(a=entry()))).hot) == "a:disconnecting | -"


def test_with_budget_left_it_takes_a_seat_instead() -> None:
    step = cooled(view(hotset(a=entry(sticky_left=DAY))))
    assert step.hot.entries["a"].sticky
    assert step.hot.entries["a"].state is HOT


def test_without_a_free_seat_it_gets_in_line_for_one() -> None:
    step = cooled(view(hotset(a=entry(sticky_left=DAY), x=sticky(DAY))))
    assert str(step.hot) == "a:disconnecting x:hot | a"
    assert step.hot.line["a"].sticky


def test_those_who_wait_for_a_seat_go_first() -> None:
    step = cooled(view(hotset({"b": waiting(-5, is_sticky=True, left=DAY)}, a=entry(sticky_left=DAY), x=used())))
    assert str(step.hot) == "a:disconnecting x:hot | b a"


# --- going down


@pytest.mark.parametrize("what", [Seen.DOWN, Seen.NEEDS_PAIRING, Seen.BROKEN, Seen.STARTING, Seen.UP, Seen.REFUSED])
def test_when_the_order_was_taken_the_place_is_free_for_the_next(what: Seen) -> None:
    hot = hotset({"b": waiting()}, a=entry(DISCONNECTING, sticky_left=s(5)), x=used())
    step = found(hot, what, memory=Memory(failures=2, sticky_left=DAY))
    assert str(step.hot) == "b:connecting x:hot | -"
    assert step.wake == {"b"}
    assert step.memory == Memory(sticky_left=s(5))


def test_a_gateway_that_does_not_answer_is_asked_again_and_given_up_after_two_minutes() -> None:
    hot = hotset(a=entry(DISCONNECTING))
    assert found(hot, Seen.UNREACHABLE, 119).hot == hot
    step = found(hot, Seen.UNREACHABLE, 120)
    assert step.hot == HotSet()
    assert step.memory.astray is Astray.UNWANTED


def test_one_that_was_given_up_is_stopped_when_its_gateway_answers_again() -> None:
    memory = Memory(astray=Astray.UNWANTED)
    assert next_move(view(memory=memory)) == Stop()
    assert found(HotSet(), Seen.UNREACHABLE, memory=memory).memory == memory
    assert found(HotSet(), Seen.DOWN, memory=memory).memory == Memory()


@pytest.mark.parametrize("state", [State.COLD, CONNECTING, HOT])
@pytest.mark.parametrize("what", list(Seen))
def test_what_was_found_in_a_state_that_has_ended_says_nothing(state: State, what: Seen) -> None:
    hot, memory = hotset(a=entry(DISCONNECTING)), Memory(failures=1)
    assert seen(view(hot, memory=memory), what, state) == Step(hot=hot, memory=memory)


def test_after_trouble_the_count_and_the_wait_stay() -> None:
    memory = Memory(failures=2, trouble=Trouble.BROKEN, retry_at=at(60))
    assert found(hotset(a=entry(DISCONNECTING)), Seen.DOWN, memory=memory).memory == memory


def test_one_that_is_wanted_again_while_it_goes_down_is_next_if_no_other_was_before_it() -> None:
    hot = hotset({"a": waiting()}, a=entry(DISCONNECTING), x=used())
    assert str(found(hot, Seen.DOWN).hot) == "a:connecting x:hot | -"


# --- astray


def test_a_session_that_came_up_by_itself_takes_a_free_place_and_forgets_its_trouble() -> None:
    memory = Memory(astray=Astray.REPORTED, failures=3, retry_at=at(999), trouble=Trouble.NEEDS_PAIRING)
    step = found(hotset(x=used()), Seen.UP, memory=memory)
    assert str(step.hot) == "a:hot x:hot | -"
    assert step.memory == Memory(sticky_left=DAY, contacts_next=0)
    assert step.hot.entries["a"].sticky
    assert step.news is News.UP


@pytest.mark.parametrize(
    "hot", [hotset(x=used(), y=used()), hotset({"b": waiting(), "c": waiting()}, x=entry(DISCONNECTING))]
)
def test_without_a_place_for_it_it_is_stopped_but_its_trouble_has_ended(hot: HotSet) -> None:
    memory = Memory(astray=Astray.REPORTED, failures=3, retry_at=at(999), trouble=Trouble.NEEDS_PAIRING)
    step = found(hot, Seen.UP, memory=memory)
    assert step.hot == hot
    assert (step.memory.astray, step.memory.trouble, step.news) == (Astray.UNWANTED, None, News.UP)
    assert found(hot, Seen.DOWN, memory=step.memory).memory.astray is None


@pytest.mark.parametrize("what", [one for one in Seen if one is not Seen.UP])
def test_news_that_were_wrong_are_forgotten(what: Seen) -> None:
    memory = Memory(astray=Astray.REPORTED, failures=3, retry_at=at(9), trouble=Trouble.BROKEN)
    step = found(HotSet(), what, memory=memory)
    assert step.memory.astray is None
    assert step.memory.failures == 3
    assert step.news is None


def test_with_one_place_only_the_session_that_is_wanted_is_up() -> None:
    step = seen(view(hotset(), memory=Memory(astray=Astray.REPORTED), rules=Rules(slots=1)), Seen.UP, State.COLD)
    assert not step.hot.entries["a"].sticky
