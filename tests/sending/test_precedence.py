"""Which message goes first: urgent, then what people write, then bulk; and never out of order within a thread."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.lane.pacing import Cap
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.priority import Priority, priority_of
from firestore_outbox.sending.precedence import (
    BULK_EVERY,
    URGENT_BURST,
    Precedence,
    after_claims,
    ranked,
    urgent_cap,
)
from tests.builders import NOW, at, message

CAP = urgent_cap(10, Cap.per_minute(40))


def one(request_id: str, priority: str, *, to: str | None = None, due: float = 0) -> OutboxMessage:
    return message(request_id, to=to or request_id, due=due, priority=Priority(priority))


def order(*candidates: OutboxMessage, **given: Any) -> list[str]:
    options = {"precedence": Precedence(), "cap": CAP, "blocked": frozenset(), "now": NOW, **given}
    return [found.request_id for found in ranked(candidates, **options).candidates]


def sent_in_turn(waiting: list[OutboxMessage], slots: int, *, seconds: float = 1.5) -> list[str]:
    """One message at a time, each at its place of the pace."""
    precedence, sent = Precedence(), []
    for slot in range(slots):
        now = at(slot * seconds)
        ranking = ranked(waiting, precedence, CAP, blocked=frozenset(), now=now)
        first = ranking.candidates[0]
        assert isinstance(first, OutboxMessage)
        precedence = after_claims(precedence, ranking, [first], CAP, now)
        waiting = [other for other in waiting if other is not first]
        sent.append(first.priority.value)
    return sent


def test_urgent_goes_before_normal_and_normal_before_bulk() -> None:
    assert order(one("b", "bulk"), one("n", "normal", due=1), one("u", "urgent", due=2)) == ["u", "n", "b"]


def test_messages_of_one_priority_go_in_the_order_of_their_times() -> None:
    assert order(one("a", "normal"), one("b", "normal", due=1)) == ["a", "b"]


def test_a_document_without_the_field_is_normal_and_that_of_a_run_is_bulk() -> None:
    assert priority_of(None, is_of_run=False) is Priority.NORMAL
    assert priority_of(None, is_of_run=True) is Priority.BULK
    assert priority_of("urgent", is_of_run=False) is Priority.URGENT


def test_an_urgent_message_takes_the_earlier_ones_of_its_thread_along() -> None:
    earlier, later = one("code", "bulk", to="7"), one("more", "bulk", to="7", due=9)
    assert order(one("b", "bulk"), earlier, one("u", "urgent", to="7", due=5), later) == ["code", "u", "b", "more"]


def test_of_every_four_messages_one_is_bulk_while_bulk_waits() -> None:
    waiting = [*(one(f"n{n}", "normal", due=n) for n in range(30)), *(one(f"b{n}", "bulk", due=n) for n in range(30))]

    sent = sent_in_turn(waiting, 24)

    assert [sent[start : start + BULK_EVERY].count("bulk") for start in range(0, 24, BULK_EVERY)] == [1] * 6


def test_the_place_of_bulk_goes_to_a_thread_that_can_use_it() -> None:
    due = Precedence(since_bulk=BULK_EVERY - 1)
    bulk = [one("b1", "bulk", to="1"), one("b2", "bulk", to="2"), one("b3", "bulk", to="3")]
    normal = one("n", "normal", to="2", due=-1)
    assert order(normal, *bulk, precedence=due, blocked={bulk[0].thread_id})[0] == "b3"
    assert order(normal, bulk[1], precedence=due) == ["n", "b2"], "it is behind a message of its own thread"


def test_above_its_cap_an_urgent_message_is_normal() -> None:
    waiting = [*(one(f"n{n}", "normal", due=n) for n in range(60)), *(one(f"u{n}", "urgent", due=n) for n in range(60))]

    sent = sent_in_turn(waiting, 40)

    assert sent[:URGENT_BURST] == ["urgent"] * URGENT_BURST
    ahead = sum(1 for place, priority in enumerate(sent) if priority == "urgent" and place < 40)
    assert ahead < 30, "at most ten a minute go ahead, and the others by their times"
    assert "normal" in sent[URGENT_BURST : URGENT_BURST + 4]


def test_urgent_messages_take_at_most_half_of_the_pace() -> None:
    slow = urgent_cap(10, Cap.per_minute(6))
    assert slow is not None
    assert slow.interval.total_seconds() == 20
    assert urgent_cap(0, Cap.per_minute(40)) is None, "none may go ahead"
    assert order(one("n", "normal"), one("u", "urgent", due=1), cap=None) == ["n", "u"]


PRIORITIES = st.sampled_from(["urgent", "normal", "bulk"])


@given(
    drawn=st.lists(st.tuples(PRIORITIES, st.sampled_from("1234")), max_size=25),
    since_bulk=st.integers(0, 5),
    per_minute=st.sampled_from([0, 10, 1000]),
    blocked=st.sets(st.sampled_from(["acme__1", "acme__2"])),
)
def test_no_message_passes_an_earlier_one_of_its_thread_and_none_is_left_out(
    drawn: list[tuple[str, str]], since_bulk: int, per_minute: float, blocked: set[str]
) -> None:
    candidates = [one(f"r{place:03}", priority, to=to, due=place) for place, (priority, to) in enumerate(drawn)]
    found = ranked(
        candidates, Precedence(since_bulk=since_bulk), urgent_cap(per_minute, None), blocked=blocked, now=NOW
    ).candidates
    assert sorted(one.request_id for one in found) == [one.request_id for one in candidates]
    for to in "1234":
        ids = [one.request_id for one in found if isinstance(one, OutboxMessage) and one.to == to]
        assert ids == sorted(ids)
