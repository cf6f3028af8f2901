"""What lanes store of a day: blocks that holders reserve, spend and give back."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

import pytest

from firestore_outbox.health.caps import DayCaps, WarmUp
from firestore_outbox.health.day_use import (
    DayNow,
    DayUse,
    begun,
    day_now,
    day_of_text,
    day_text,
    postponed_to,
    reserved,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TODAY = date(2026, 3, 1)


def caps(daily: int | None = 100, new_contacts: int | None = None) -> DayCaps:
    return DayCaps(zone=ZoneInfo("UTC"), daily=daily, new_contacts=new_contacts)


def test_a_block_is_a_tenth_of_the_day() -> None:
    assert reserved(None, None, caps(100), NOW) == DayUse(day=TODAY, sends=10)
    assert reserved(None, None, caps(3), NOW).sends == 1
    assert reserved(None, None, caps(100_000), NOW).sends == 200


def test_a_block_is_filled_up_behind_what_was_spent() -> None:
    first = reserved(None, None, caps(100), NOW)
    assert reserved(first, DayUse(day=TODAY, sends=4), caps(100), NOW).sends == 14
    assert reserved(first, DayUse(day=TODAY, sends=0), caps(100), NOW).sends == 10


def test_a_takeover_begins_behind_the_block_of_the_dead_holder() -> None:
    assert reserved(DayUse(day=TODAY, sends=10), None, caps(100), NOW).sends == 20


def test_no_block_reaches_beyond_the_cap() -> None:
    assert reserved(DayUse(day=TODAY, sends=97), None, caps(100), NOW).sends == 100
    assert reserved(DayUse(day=TODAY, sends=100), None, caps(40), NOW).sends == 100  # the cap was lowered


def test_a_new_day_begins_with_nothing_used() -> None:
    yesterday = DayUse(day=TODAY - timedelta(days=1), sends=100, contacts=9)
    assert begun(yesterday, caps(), NOW) == DayUse(day=TODAY)


def test_a_clock_that_is_behind_spends_from_the_day_that_was_begun() -> None:
    tomorrow = DayUse(day=TODAY + timedelta(days=1), sends=10)
    assert reserved(tomorrow, None, caps(100), NOW) == DayUse(day=tomorrow.day, sends=20)


def test_postponed_contacts_fill_the_days_that_come() -> None:
    use, limit = DayUse(day=TODAY, contacts=5), caps(None, 5)
    days = [postponed_to(use, limit, others).day - TODAY.day for others in range(12)]
    assert days == [1] * 5 + [2] * 5 + [3] * 2


def test_postponed_contacts_whose_day_came_make_room() -> None:
    use = DayUse(day=TODAY - timedelta(days=2), postponed=12)
    assert begun(use, caps(None, 5), NOW).postponed == 2


@pytest.mark.parametrize("use", [DayUse(day=TODAY, sends=3, contacts=2, postponed=1), None])
def test_the_text_of_the_document_is_read_back(use: DayUse | None) -> None:
    assert day_of_text(day_text(use)) == use


@pytest.mark.parametrize("seed", range(20))
def test_holders_that_die_at_any_time_never_exceed_the_cap(seed: int) -> None:
    """Each holder reserves, spends some of it, and ends cleanly or not."""
    random, limit = Random(seed), caps(Random(seed).randint(1, 60))
    stored: DayUse | None = None
    sent = 0
    for _ in range(60):
        mine = begun(stored, limit, NOW)
        stored = reserved(stored, None, limit, NOW)
        for _ in range(random.randint(0, 12)):
            if mine.sends == stored.sends:
                stored = reserved(stored, mine, limit, NOW)
            if mine.sends < stored.sends:
                mine, sent = DayUse(day=mine.day, sends=mine.sends + 1), sent + 1
        if random.random() < 0.7:
            stored = mine
    assert sent <= (limit.daily or 0)
    assert sent > 0


def test_what_a_person_sees_of_a_new_day_begins_at_nothing_and_names_its_limits() -> None:
    yesterday = DayUse(day=date(2026, 2, 28), sends=40, contacts=3)
    limits = DayCaps(zone=ZoneInfo("UTC"), daily=50, new_contacts=5, warm_up=WarmUp(start=20, factor=2, until=100))
    shown = day_now(yesterday, limits, NOW)
    assert shown == DayNow(sends=0, most_sends=20, is_warming_up=True, contacts=0, most_contacts=5)
