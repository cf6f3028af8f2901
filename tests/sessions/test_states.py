from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from firestore_outbox.sessions.states import (
    TRANSITIONS,
    Event,
    IllegalTransition,
    Rules,
    State,
    adopted,
    after,
    granted,
)
from tests.builders import NOW, at, s
from tests.sessions.builders import DAY, RULES, entry, sticky, used

PAIRS = [(state, event) for state in State for event in Event]


@pytest.mark.parametrize(("state", "event"), PAIRS)
def test_a_pair_that_is_not_in_the_table_is_an_error(state: State, event: Event) -> None:
    if (state, event) in TRANSITIONS:
        assert after(state, event) is TRANSITIONS[state, event]
    else:
        with pytest.raises(IllegalTransition):
            after(state, event)


def test_the_document_and_the_table_say_the_same() -> None:
    text = (Path(__file__).parents[2] / "docs" / "sessions.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (cold|connecting|hot|disconnecting) \| ([a-z ]+?)(?: \(.*)? \| ([a-z]+) \|$", text, re.MULTILINE
    )
    written = {(State(state), Event(event.replace(" ", "_"))): State(becomes) for state, event, becomes in rows}
    assert written == TRANSITIONS


def test_every_state_is_left_and_every_event_is_used() -> None:
    assert {state for state, _ in TRANSITIONS} == set(State)
    assert {event for _, event in TRANSITIONS} == set(Event)


# --- an entry's times


def test_a_granted_place_is_in_use_until_the_connection_and_a_send_are_over() -> None:
    made = granted("waha", s(0), NOW, RULES, sticky=False)
    assert (made.state, made.used_until, made.until) == (State.CONNECTING, at(120), at(120))


def test_a_place_for_a_seat_is_not_in_use() -> None:
    assert not granted("waha", DAY, NOW, RULES, sticky=True).in_use(NOW)


@pytest.mark.parametrize(
    ("before", "event", "until"),
    [
        (State.CONNECTING, Event.CAME_UP, 300 + 60),
        (State.CONNECTING, Event.FAILED, 120),
        (State.CONNECTING, Event.PREEMPTED, 120),
        (State.HOT, Event.RESTARTED, 60 + 60),
        (State.HOT, Event.COOLED, 120),
        (State.HOT, Event.PREEMPTED, 120),
        (State.HOT, Event.FAILED, 120),
    ],
)
def test_every_state_has_an_end(before: State, event: Event, until: float) -> None:
    assert entry(before, -30).on(event, NOW, RULES).until == at(until)


def test_an_event_that_ends_the_entry_leaves_none() -> None:
    with pytest.raises(IllegalTransition):
        entry(State.DISCONNECTING).on(Event.STOPPED, NOW, RULES)


def test_a_session_that_goes_down_is_not_in_use_and_has_no_seat() -> None:
    leaving = used(sticky=True, sticky_left=DAY).on(Event.FAILED, NOW, RULES)
    assert not leaving.in_use(NOW)
    assert not leaving.sticky


def test_a_restart_keeps_its_user_and_its_seat() -> None:
    again = used(sticky=True, sticky_left=DAY).on(Event.RESTARTED, NOW, RULES)
    assert again.in_use(NOW)
    assert again.sticky


# --- the budget


def test_the_budget_burns_only_while_the_session_is_hot() -> None:
    made = granted("waha", s(100), NOW, RULES, sticky=True)
    assert made.remaining(at(40)) == s(100)
    hot = made.on(Event.CAME_UP, at(40), RULES)
    assert hot.remaining(at(70)) == s(70)
    leaving = hot.on(Event.PREEMPTED, at(70), RULES)
    assert leaving.sticky_left == s(70)
    assert leaving.remaining(at(500)) == s(70)


def test_the_budget_ends_at_nothing_and_never_grows() -> None:
    hot = sticky(s(10))
    assert hot.remaining(at(100)) == s(0)
    assert hot.remaining(at(-100)) == s(10)


def test_a_restart_settles_the_budget() -> None:
    again = sticky(s(100)).on(Event.RESTARTED, at(30), RULES)
    assert (again.sticky_left, again.hot_since) == (s(70), None)


def test_a_session_is_kept_for_the_longest_reason() -> None:
    assert entry().kept_until(NOW) == NOW
    assert used(20).kept_until(NOW) == at(20)
    assert used(20, keep_until=at(50)).kept_until(NOW) == at(50)
    assert sticky(s(1000), keep_until=at(50)).kept_until(at(10)) == at(1000)
    assert sticky(s(5)).kept_until(at(10)) == at(10)


def test_an_adopted_session_is_hot_at_once_and_kept_warm() -> None:
    made = adopted("waha", DAY, NOW, RULES, sticky=False)
    assert (made.state, made.hot_since, made.keep_until, made.look_at) == (State.HOT, NOW, at(60), at(300))


# --- rules


@pytest.mark.parametrize(("slots", "seats"), [(1, 0), (2, 1), (5, 4)])
def test_all_places_but_one_may_be_seats(slots: int, seats: int) -> None:
    assert Rules(slots=slots).seats == seats


@pytest.mark.parametrize(("slots", "seats"), [(2, 3), (2, -1)])
def test_rules_that_make_no_sense_are_refused(slots: int, seats: int) -> None:
    with pytest.raises(ValueError, match="hot set"):
        Rules(slots=slots, sticky_slots=seats)


def test_a_use_lasts_longer_than_two_calls() -> None:
    assert Rules().use / 2 > timedelta(seconds=20)
