"""Who has a place, who stands in line, who must go. Sets of two places, one of them a seat, unless a test says so."""

from __future__ import annotations

from datetime import timedelta

import pytest

from firestore_outbox.sessions.slots import HotSet, settled
from firestore_outbox.sessions.states import Rules, State
from tests.builders import NOW, at, s
from tests.sessions.builders import DAY, RULES, entry, hotset, idle, sticky, used, waiting

CONNECTING, DISCONNECTING, HOT = State.CONNECTING, State.DISCONNECTING, State.HOT


def made(hot: HotSet, seconds: float = 0, rules: Rules = RULES) -> str:
    return str(settled(hot, at(seconds), rules).hot)


def test_a_free_place_goes_to_the_head_of_the_line() -> None:
    result = settled(hotset({"b": waiting(2), "a": waiting(1)}, x=used()), NOW, RULES)
    assert str(result.hot) == "a:connecting x:hot | b"
    assert result.wake == {"a"}


def test_a_session_in_use_is_never_taken_away() -> None:
    hot = hotset({"a": waiting()}, x=used(), y=used(sticky=True, sticky_left=s(1)))
    assert settled(hot, NOW, RULES).hot == hot


def test_a_session_that_is_merely_kept_warm_goes_for_a_message_that_is_due() -> None:
    result = settled(hotset({"a": waiting()}, x=used(), y=idle()), NOW, RULES)
    assert str(result.hot) == "x:hot y:disconnecting | a"
    assert result.wake == {"y"}


def test_warm_ones_go_before_sticky_ones_and_the_longest_idle_first() -> None:
    rules = Rules(slots=4)
    hot = hotset({"a": waiting()}, u=sticky(s(1)), v=idle(40), w=idle(20), x=used())
    assert made(hot, rules=rules) == "u:hot v:hot w:disconnecting x:hot | a"


def test_of_sticky_ones_the_least_budget_goes_first() -> None:
    rules = Rules(slots=3)
    hot = hotset({"a": waiting()}, u=sticky(s(500)), v=sticky(s(400)), w=sticky(s(450), seconds=-100))
    assert made(hot, rules=rules) == "u:hot v:hot w:disconnecting | a w"


def test_one_whose_lane_is_not_heard_of_goes_before_all_others() -> None:
    lost = entry(HOT, -1000, sticky=True, sticky_left=DAY)
    assert made(hotset({"a": waiting()}, x=idle(), y=lost)) == "x:hot y:disconnecting | a y"


def test_one_that_is_in_use_stays_although_its_lane_is_not_heard_of() -> None:
    assert made(hotset({"a": waiting()}, x=used(), y=entry(HOT, -1000, used_until=at(5)))) == "x:hot y:hot | a"


def test_a_connection_for_a_seat_alone_can_be_taken_away_too() -> None:
    hot = hotset({"a": waiting()}, x=used(), y=entry(CONNECTING, sticky=True, sticky_left=DAY))
    assert made(hot) == "x:hot y:disconnecting | a y"


def test_no_more_sessions_go_than_are_needed() -> None:
    rules = Rules(slots=4)
    leaving = {"v": entry(DISCONNECTING), "w": idle(), "x": idle(), "y": idle()}
    assert made(hotset({"a": waiting()}, **leaving), rules=rules) == "v:disconnecting w:hot x:hot y:hot | a"
    two = {"a": waiting(1), "b": waiting(2)}
    assert made(hotset(two, **leaving), rules=rules) == "v:disconnecting w:disconnecting x:hot y:hot | a b"


def test_one_that_was_told_to_finish_counts_as_about_to_be_free_while_it_is_in_use() -> None:
    line = {"a": waiting(1), "x": waiting(2)}
    assert made(hotset(line, x=used(), y=idle())) == "x:hot y:hot | a x"
    assert made(hotset(line, x=idle(10), y=used())) == "x:disconnecting y:hot | a x"


def test_places_in_line_end_with_their_time() -> None:
    assert made(hotset({"a": waiting(until=5)}, x=used(99), y=used(99)), 5) == "x:hot y:hot | -"


def test_a_session_that_could_not_be_stopped_is_dropped_and_its_lane_is_woken() -> None:
    leaving = entry(DISCONNECTING, sticky_left=s(70))
    result = settled(hotset({"a": waiting(until=999)}, x=used(999), y=leaving), at(120), RULES)
    assert str(result.hot) == "a:connecting x:hot | -"
    assert result.dropped == {"y": s(70)}
    assert result.wake == {"a", "y"}


def test_a_session_that_is_being_stopped_keeps_its_place_until_then() -> None:
    assert made(hotset(x=entry(DISCONNECTING)), 119) == "x:disconnecting | -"
    assert made(hotset(x=entry(DISCONNECTING)), 120) == "- | -"


# --- seats


def test_a_free_seat_goes_to_a_session_that_waits_for_one() -> None:
    result = settled(hotset({"a": waiting(is_sticky=True, left=DAY)}), NOW, RULES)
    assert str(result.hot) == "a:connecting | -"
    assert (result.hot.entries["a"].sticky, result.hot.entries["a"].in_use(NOW)) == (True, False)
    assert result.hot.entries["a"].sticky_left == DAY


def test_there_are_never_more_seats_than_allowed() -> None:
    line = {name: waiting(number, is_sticky=True, left=DAY) for number, name in enumerate("abc")}
    assert made(hotset(line)) == "a:connecting | b c"


def test_a_session_that_is_due_goes_before_one_that_waits_for_a_seat() -> None:
    line = {"a": waiting(0, is_sticky=True, left=DAY), "b": waiting(9)}
    assert made(hotset(line, x=used())) == "b:connecting x:hot | a"


def test_a_sticky_one_that_lost_its_place_stands_in_line_for_a_seat() -> None:
    hot = settled(hotset({"a": waiting()}, x=used(), y=sticky(s(100))), at(30), RULES).hot
    assert (hot.line["y"].sticky, hot.line["y"].sticky_left) == (True, s(70))


def test_a_budget_that_is_spent_waits_for_no_seat() -> None:
    assert made(hotset({"a": waiting()}, x=used(), y=sticky(s(10))), 30) == "x:hot y:disconnecting | a"


def test_the_line_has_an_end() -> None:
    rules = Rules(slots=2, longest_line=1)
    hot = hotset({"a": waiting(), "b": waiting(is_sticky=True, left=DAY)}, x=used(), y=sticky(DAY))
    assert made(hot, rules=rules) == "x:hot y:disconnecting | a b"


def test_with_one_place_there_are_no_seats() -> None:
    rules = Rules(slots=1)
    assert made(hotset({"a": waiting(is_sticky=True, left=DAY)}), rules=rules) == "- | a"


# --- what is missing


@pytest.mark.parametrize(
    ("line", "missing"),
    [((), 0), (("a",), 0), (("a", "b"), 0), (("a", "b", "c"), 1), (("a", "b", "c", "x"), 0), (("a", "b", "y"), 1)],
)
def test_what_is_missing_is_counted_against_what_becomes_free(line: tuple[str, ...], missing: int) -> None:
    hot = hotset({name: waiting() for name in line}, x=used(), y=entry(DISCONNECTING))
    assert hot.shortage(NOW, Rules(slots=3)) == missing


def test_an_account_can_be_left_out_of_the_line() -> None:
    hot = hotset({"a": waiting(), "b": waiting()}, x=used())
    assert hot.shortage(NOW, Rules(slots=1)) == 2
    assert hot.shortage(NOW, Rules(slots=1), except_for="b") == 1


def test_the_set_says_what_it_is() -> None:
    assert str(HotSet()) == "- | -"
    line = {"c": waiting(1, is_sticky=True), "b": waiting(2)}
    assert str(hotset(line, y=used(), x=entry(CONNECTING))) == "x:connecting y:hot | b c"


def test_settling_twice_changes_nothing_more() -> None:
    line = {"a": waiting(1), "b": waiting(2), "c": waiting(3, is_sticky=True, left=timedelta(hours=1))}
    once = settled(hotset(line, x=used(), y=sticky(DAY)), NOW, RULES).hot
    again = settled(once, NOW, RULES)
    assert again.hot == once
    assert again.wake == frozenset()
