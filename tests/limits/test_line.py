"""The pure decisions about a shared limit."""

from __future__ import annotations

from datetime import timedelta

import pytest

from firestore_outbox.lane.pacing import Block
from firestore_outbox.limits.line import (
    LONGEST_QUEUE,
    Line,
    NotYet,
    Rate,
    Slowed,
    factor_at,
    is_limit_name,
    rates,
    taken,
    throttled,
)
from tests.builders import NOW, at

(NOTION,) = Rate(per_second=3, burst=3).lines


@pytest.mark.parametrize(
    ("per_second", "burst", "lines"), [(3, 3, 1), (100, 10, 5), (100, 1, 1), (100, 100, 8), (0.1, 1, 1), (25, 50, 3)]
)
def test_the_lines_of_a_limit_add_up_to_its_rate_and_burst(per_second: float, burst: int, lines: int) -> None:
    caps = Rate(per_second=per_second, burst=burst).lines
    assert len(caps) == lines
    assert sum(cap.burst for cap in caps) == burst
    assert sum(timedelta(seconds=1) / cap.interval for cap in caps) == pytest.approx(per_second, rel=1e-4)


def test_an_idle_line_is_taken_from_now_on() -> None:
    block = taken(NOTION, Line(tat=at(-5)), now=NOW, calls=2, is_queued=True)
    assert isinstance(block, Block)
    assert (block.tat, block.until) == (NOW, NOW + 2 * NOTION.interval)


def test_an_instance_waits_in_one_queue_at_a_time() -> None:
    line = Line(tat=at(2))
    assert isinstance(taken(NOTION, line, now=NOW, calls=1, is_queued=False), Block)
    assert taken(NOTION, line, now=NOW, calls=1, is_queued=True) == NotYet(at(2) - NOTION.tolerance)


def test_nothing_is_reserved_far_ahead() -> None:
    tat = NOW + LONGEST_QUEUE + NOTION.tolerance + timedelta(seconds=7)
    assert taken(NOTION, Line(tat=tat), now=NOW, calls=1, is_queued=False) == NotYet(at(7))


def test_a_429_pauses_the_line_and_halves_its_rate() -> None:
    line = throttled(NOTION, Line(tat=NOW), now=NOW, pause=timedelta(seconds=30))
    assert line.tat == at(30) + NOTION.tolerance
    assert line.slowed == Slowed(factor=0.5, since=at(30))


def test_429_answers_of_calls_that_were_under_way_together_halve_it_once() -> None:
    once = throttled(NOTION, Line(), now=NOW, pause=timedelta(seconds=1))
    twice = throttled(NOTION, once, now=at(0.2), pause=timedelta(seconds=1))
    assert twice.slowed is not None
    assert twice.slowed.factor == 0.5
    later = throttled(NOTION, twice, now=at(10), pause=timedelta(seconds=1))
    assert later.slowed is not None
    assert later.slowed.factor < 0.5


def test_the_rate_recovers_step_by_step_to_the_whole() -> None:
    slowed = Slowed(factor=0.5, since=NOW)
    factors = [factor_at(slowed, at(seconds)) for seconds in (0, 3.9, 4, 8, 32, 1000)]
    assert factors == [0.5, 0.5, 0.5625, 0.625, 1.0, 1.0]
    assert factor_at(None, NOW) == 1.0


def test_the_setting_names_limits_with_rate_and_burst() -> None:
    assert rates(" notion=3/3, stripe=25 ,slow=0.5") == {
        "notion": Rate(per_second=3, burst=3),
        "stripe": Rate(per_second=25, burst=25),
        "slow": Rate(per_second=0.5, burst=1),
    }


@pytest.mark.parametrize("text", ["notion", "notion=", "notion=x", "notion=0", "notion=3/0", "=3", "global=3", "a b=3"])
def test_a_setting_that_cannot_be_used_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="must be NAME=PER_SECOND"):
        rates(text)


def test_names_that_the_outbox_uses_itself_are_not_for_limits() -> None:
    names = ("notion", "my-api_2", "global", "app-interakt", "a/b", "")
    assert [is_limit_name(name) for name in names] == [True, True, False, False, False, False]
