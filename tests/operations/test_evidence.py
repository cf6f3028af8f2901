from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.lane.pacing import Cap
from firestore_outbox.operations.audit.evidence import Send, overtaken, too_fast
from tests.builders import at, s

NO_SLACK = timedelta(0)


def test_a_pace_that_was_kept_is_not_too_fast() -> None:
    cap = Cap(interval=s(2), burst=2)
    assert too_fast([at(0), at(0), at(2), at(4), at(30)], cap, NO_SLACK) is None


def test_the_worst_window_is_reported() -> None:
    found = too_fast([at(0), at(15), at(30), at(31), at(32), at(42)], Cap(interval=s(10)), NO_SLACK)
    assert found is not None
    assert (found.sends, found.since, found.took, found.least) == (3, at(30), s(2), s(20))


def test_slack_is_for_the_whole_window() -> None:
    times = [at(0), at(8), at(16)]
    assert too_fast(times, Cap(interval=s(10)), s(4)) is None
    assert too_fast(times, Cap(interval=s(10)), s(3)) is not None


@given(
    times=st.lists(st.integers(0, 200), max_size=12),
    interval=st.integers(1, 30),
    burst=st.integers(1, 4),
    slack=st.integers(0, 30),
)
def test_it_finds_what_a_look_at_every_window_finds(times: list[int], interval: int, burst: int, slack: int) -> None:
    ordered = sorted(times)
    windows = [(first, last) for last in range(len(times)) for first in range(last) if last - first >= burst]
    excess = [interval * (last - first - burst + 1) - (ordered[last] - ordered[first]) for first, last in windows]
    worst = max(excess, default=0)

    found = too_fast([at(time) for time in times], Cap(interval=s(interval), burst=burst), s(slack))

    assert (found is None) == (worst <= slack)
    assert found is None or found.least - found.took == s(worst)


def send(name: str, *, due: float, sent: float, made: float | None = None, stored: float | None = None) -> Send:
    return Send(
        request_id=name,
        made_at=at(due if made is None else made),
        due_at=at(due),
        sent_at=at(sent),
        stored_at=at(sent if stored is None else stored),
    )


def pairs(*sends: Send) -> list[tuple[str, str]]:
    return [(first.request_id, second.request_id) for first, second in overtaken(sends, s(5))]


def test_messages_in_order_are_not_told() -> None:
    assert pairs(send("b", due=2, sent=20), send("a", due=1, sent=10)) == []


def test_one_that_went_first_although_it_was_due_later_is_reported() -> None:
    assert pairs(send("a", due=1, sent=20), send("b", due=2, sent=10), send("c", due=3, sent=30)) == [("a", "b")]


def test_it_is_not_told_if_only_one_clock_says_so() -> None:
    assert pairs(send("a", due=1, sent=20, stored=10), send("b", due=2, sent=10, stored=20)) == []
    assert pairs(send("a", due=1, sent=14, stored=20), send("b", due=2, sent=10, stored=10)) == []


def test_one_that_was_made_when_the_other_was_due_already_may_go_later() -> None:
    assert pairs(send("a", due=1, sent=20, made=3), send("b", due=2, sent=10)) == []


def test_of_two_that_were_due_at_one_time_either_may_go_first() -> None:
    assert pairs(send("a", due=1, sent=20), send("b", due=1, sent=10)) == []
