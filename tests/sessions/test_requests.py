"""What the outbox and webhooks want of the hot set."""

from __future__ import annotations

import pytest

from firestore_outbox.sessions.memory import Astray, Memory, Trouble
from firestore_outbox.sessions.requests import Hot, NotYet, Step, doubt, reported_up
from firestore_outbox.sessions.slots import HotSet
from firestore_outbox.sessions.states import Rules, State
from tests.builders import NOW, at
from tests.sessions.builders import DAY, RULES, entry, hotset, idle, is_done, sticky, used, view, waiting, wanted

CONNECTING, DISCONNECTING = State.CONNECTING, State.DISCONNECTING


def retry_at(step: Step) -> object:
    assert isinstance(step.answer, NotYet)
    return step.answer.retry_at


# --- a cold one


def test_a_cold_session_gets_a_free_place_and_its_lane_is_woken() -> None:
    step = wanted()
    assert str(step.hot) == "a:connecting | -"
    assert step.wake == {"a"}
    assert step.answer == NotYet(at(120))


def test_without_a_free_place_it_stands_in_line() -> None:
    step = wanted(hotset(x=used(), y=used()))
    assert str(step.hot) == "x:hot y:hot | a"
    assert step.answer == NotYet(at(120))
    assert step.wake == frozenset()


def test_the_first_to_come_goes_first_however_often_the_others_ask() -> None:
    hot = hotset(x=used(), y=used())
    for account_id in ("b", "a", "c"):
        hot = wanted(hot, account_id, now=at("bac".index(account_id))).hot
    assert str(wanted(hot, "c", now=at(30)).hot) == "x:hot y:hot | b a c"


def test_asking_again_keeps_the_place_in_line_alive() -> None:
    hot = wanted(hotset(x=used(500), y=used(500))).hot
    hot = wanted(hot, now=at(120)).hot
    assert (hot.line["a"].since, hot.line["a"].until) == (NOW, at(120 + 180))


def test_a_session_that_is_not_in_use_makes_room_and_its_lane_is_woken() -> None:
    step = wanted(hotset(x=used(), y=sticky(DAY)))
    assert str(step.hot) == "x:hot y:disconnecting | a y"
    assert step.wake == {"y"}


def test_when_the_line_is_full_it_comes_back_at_random_without_a_write() -> None:
    rules = Rules(slots=1, longest_line=1)
    hot = hotset({"b": waiting()}, x=used())
    early, late = wanted(hot, rules=rules, jitter=0.0), wanted(hot, rules=rules, jitter=0.99)
    assert early.hot == late.hot == hot
    assert (retry_at(early), retry_at(late)) == (at(60), at(60 + 118.8))


def test_those_who_wait_for_a_seat_and_those_who_never_came_back_do_not_fill_the_line() -> None:
    rules = Rules(slots=1, longest_line=1)
    seat, gone = waiting(is_sticky=True, left=DAY, until=9999), waiting(-999, until=-1)
    assert "a" in wanted(hotset({"b": seat, "c": gone}, x=used()), rules=rules).hot.line


def test_a_line_that_is_full_has_room_for_those_in_it() -> None:
    rules = Rules(slots=1, longest_line=1)
    step = wanted(hotset({"a": waiting(-50)}, x=used()), rules=rules)
    assert step.hot.line["a"].until == at(180)


def test_one_that_waited_for_a_seat_and_is_due_goes_to_the_line_of_the_due() -> None:
    hot = hotset({"a": waiting(-500, until=9999, is_sticky=True, left=DAY), "b": waiting(-5)}, x=used(), y=used())
    step = wanted(hot)
    assert str(step.hot) == "x:hot y:hot | b a"
    assert not step.hot.line["a"].sticky


# --- one on its way


def test_a_connection_under_way_is_waited_for() -> None:
    step = wanted(hotset(a=entry(CONNECTING, used_until=at(120))), now=at(10))
    assert step.answer == NotYet(at(120))
    assert step.wake == {"a"}


def test_a_connection_for_a_seat_is_in_use_once_something_is_due() -> None:
    step = wanted(hotset(a=entry(CONNECTING, sticky=True, sticky_left=DAY)))
    assert step.hot.entries["a"].in_use(at(100))


def test_a_connection_that_is_overdue_is_not_asked_for_at_once_again() -> None:
    assert retry_at(wanted(hotset(a=entry(CONNECTING, -500)))) == at(15)


def test_a_session_that_is_going_down_is_waited_for_in_line() -> None:
    step = wanted(hotset(a=entry(DISCONNECTING)))
    assert str(step.hot) == "a:disconnecting | a"


def test_a_session_in_doubt_is_not_used_before_its_lane_has_looked() -> None:
    step = wanted(hotset(a=entry(doubted=True)))
    assert isinstance(step.answer, NotYet)
    assert step.wake == {"a"}


# --- after trouble


@pytest.mark.parametrize("hot", [hotset(), hotset(a=entry(DISCONNECTING)), hotset({"a": waiting()})])
def test_after_trouble_it_waits_and_takes_no_place_meanwhile(hot: HotSet) -> None:
    memory = Memory(retry_at=at(30), trouble=Trouble.BROKEN)
    step = wanted(hot, memory=memory)
    assert step.answer == NotYet(at(30), Trouble.BROKEN)
    assert "a" not in step.hot.line
    assert step.hot.entries.keys() == hot.entries.keys()


def test_when_the_wait_has_ended_it_is_tried_again() -> None:
    step = wanted(memory=Memory(retry_at=at(30), trouble=Trouble.BROKEN, failures=2), now=at(30))
    assert str(step.hot) == "a:connecting | -"
    assert step.memory.failures == 2


def test_refused_credentials_are_left_to_the_send_to_find() -> None:
    step = wanted(memory=Memory(retry_at=at(30), trouble=Trouble.REFUSED))
    assert step.answer == Hot(at(60))
    assert step.hot == HotSet()


# --- a hot one


def test_a_hot_session_is_used_and_not_taken_away() -> None:
    step = wanted(hotset(a=idle()))
    assert step.answer == Hot(at(60))
    assert step.hot.entries["a"].in_use(at(59))


def test_asking_often_costs_no_writes() -> None:
    hot = wanted(hotset(a=idle())).hot
    step = wanted(hot, now=at(10))
    assert step.hot == hot
    assert step.answer == Hot(at(60))
    assert wanted(hot, now=at(20)).answer == Hot(at(80))


def test_its_lane_is_woken_if_it_is_not_heard_of() -> None:
    step = wanted(hotset(a=entry(seconds=-1000)))
    assert isinstance(step.answer, Hot)
    assert step.wake == {"a"}


def test_a_turn_ends_when_others_wait_and_the_session_stays_until_what_is_in_flight_is_done() -> None:
    hot = hotset({"b": waiting(-5)}, a=used(60, turn_since=at(-120)), x=used())
    step = wanted(hot)
    assert step.answer == NotYet(at(120))
    assert str(step.hot) == "a:hot x:hot | b a"
    assert step.hot.entries["a"].in_use(NOW)
    again = wanted(step.hot, now=at(5))
    assert isinstance(again.answer, NotYet)
    assert again.hot == step.hot


def test_a_turn_goes_on_if_no_lane_waits() -> None:
    hot = hotset(a=used(60, turn_since=at(-1200)), x=used())
    assert isinstance(wanted(hot).answer, Hot)


def test_a_turn_goes_on_if_there_is_room_for_all_who_wait() -> None:
    hot = hotset({"b": waiting()}, a=used(60, turn_since=at(-1200)), x=entry(DISCONNECTING))
    assert isinstance(wanted(hot).answer, Hot)


def test_a_short_turn_is_not_cut_shorter() -> None:
    hot = hotset({"b": waiting()}, a=used(60, turn_since=at(-119)), x=used())
    assert isinstance(wanted(hot).answer, Hot)


def test_for_one_that_waits_only_one_gives_way() -> None:
    hot = hotset({"b": waiting()}, a=used(60, turn_since=at(-200)), x=used(60, turn_since=at(-200)))
    hot = wanted(hot, "a").hot
    assert isinstance(wanted(hot, "x").answer, Hot)


def test_one_that_gave_way_goes_on_if_no_lane_waits_any_more() -> None:
    hot = hotset({"a": waiting()}, a=used(60, turn_since=at(-200)), x=used())
    step = wanted(hot)
    assert isinstance(step.answer, Hot)
    assert "a" not in step.hot.line


# --- done


def test_a_session_is_kept_warm_when_it_is_done_with() -> None:
    kept = is_done(hotset(a=used())).hot.entries["a"]
    assert (kept.in_use(NOW), kept.keep_until) == (False, at(60))


@pytest.mark.parametrize(("next_at", "keep_until"), [(5, 60), (59, 89), (120, 150), (121, 60)])
def test_it_is_kept_for_a_message_that_comes_soon(next_at: float, keep_until: float) -> None:
    kept = is_done(hotset(a=used()), next_at=at(next_at)).hot.entries["a"]
    assert kept.keep_until == at(keep_until)


def test_with_budget_left_it_takes_a_free_seat() -> None:
    assert is_done(hotset(a=used(sticky_left=DAY))).hot.entries["a"].sticky
    assert not is_done(hotset(a=used())).hot.entries["a"].sticky
    assert not is_done(hotset(a=used(sticky_left=DAY), x=sticky(DAY))).hot.entries["a"].sticky


def test_if_a_lane_waits_it_goes_at_once() -> None:
    step = is_done(hotset({"b": waiting()}, a=used(), x=used()))
    assert str(step.hot) == "a:disconnecting x:hot | b"
    assert step.wake == {"a"}


def test_one_that_gave_way_goes_and_waits_for_its_next_turn() -> None:
    hot = hotset({"b": waiting(1), "a": waiting(2)}, a=used(sticky_left=DAY), x=used())
    step = is_done(hot)
    assert str(step.hot) == "a:disconnecting x:hot | b a"
    assert not step.hot.line["a"].sticky


@pytest.mark.parametrize(
    "hot", [hotset(), hotset(a=entry(CONNECTING, used_until=at(99))), hotset(a=entry(DISCONNECTING))]
)
def test_to_be_done_with_a_session_that_is_not_hot_changes_nothing(hot: HotSet) -> None:
    assert is_done(hot).hot == hot


# --- hearsay


def test_a_doubt_makes_the_lane_look_and_changes_nothing_else() -> None:
    step = doubt(view(hotset(a=used())))
    assert step.hot.entries["a"].doubted
    assert step.hot.entries["a"].state is State.HOT
    assert step.wake == {"a"}


@pytest.mark.parametrize(
    "hot", [hotset(), hotset(a=entry(CONNECTING)), hotset(a=entry(DISCONNECTING)), hotset(a=entry(doubted=True))]
)
def test_a_doubt_of_a_session_that_is_not_hot_is_no_news(hot: HotSet) -> None:
    step = doubt(view(hot))
    assert (step.hot, step.wake) == (hot, frozenset())


def test_news_of_a_session_that_came_up_by_itself_make_its_lane_look() -> None:
    step = reported_up(view())
    assert step.memory.astray is Astray.REPORTED
    assert step.wake == {"a"}
    assert step.hot == HotSet()


@pytest.mark.parametrize("state", [State.CONNECTING, State.HOT, State.DISCONNECTING])
def test_news_of_a_session_that_we_brought_up_are_no_news(state: State) -> None:
    hot = hotset(a=entry(state))
    step = reported_up(view(hot))
    assert (step.hot, step.memory, step.wake) == (hot, Memory(), frozenset())


def test_the_rules_of_these_tests_are_those_of_production_except_for_the_size() -> None:
    assert Rules(slots=2) == RULES
