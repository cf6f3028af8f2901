"""The limits of plans, and what a count allows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from firestore_outbox.plans.plan import FOR_EVER, Plan, Room, Undecided, Usage, UsedUp, allows, plan_of, plans
from firestore_outbox.settings import BadSettings, Settings

NOW = datetime(2026, 3, 17, 15, 30, tzinfo=UTC)
DAY, MONTH = datetime(2026, 3, 17, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)


def test_plans_are_read_from_one_setting() -> None:
    known = plans("free=total:3 basic=day:100,month:1000 pro=")
    assert known["free"] == Plan(name="free", total=3)
    assert known["basic"] == Plan(name="basic", per_day=100, per_month=1000)
    assert (plan_of(known, "pro"), plan_of(known, None), plan_of(known, "other")) == (None, None, None)
    assert plan_of(known, "free") == known["free"]


@pytest.mark.parametrize("text", ["free", "Free=total:3", "a=total:3 a=", "a=week:3", "a=total:x", "a=total:3,total:4"])
def test_a_mistake_in_the_setting_stops_the_process_with_a_sentence(text: str) -> None:
    with pytest.raises(BadSettings, match="PLANS"):
        Settings.from_environment({"OUTBOX_PLANS": text})


def test_days_and_months_begin_in_utc_and_the_first_of_a_month_has_the_smaller_limit() -> None:
    plan = Plan(name="x", total=9, per_day=2, per_month=5)
    assert plan.windows(NOW) == {FOR_EVER: 9, MONTH: 5, DAY: 2}
    assert plan.windows(MONTH) == {FOR_EVER: 9, MONTH: 2}


@pytest.mark.parametrize(
    ("sent", "open_", "expected"),
    [
        (0, 0, Room(3)),
        (1, 1, Room(1)),
        (2, 1, Undecided()),
        (0, 3, Undecided()),
        (3, 0, UsedUp(3)),
        (4, 2, UsedUp(3)),
    ],
)
def test_only_what_was_sent_uses_a_plan_up(sent: int, open_: int, expected: object) -> None:
    assert allows(Plan(name="free", total=3), Usage(sent={FOR_EVER: sent}, open=open_), NOW) == expected


def test_the_narrowest_limit_counts() -> None:
    plan = Plan(name="x", per_day=2, per_month=10)
    assert allows(plan, Usage(sent={DAY: 1, MONTH: 9}, open=0), NOW) == Room(1)
    assert allows(plan, Usage(sent={DAY: 0, MONTH: 10}, open=0), NOW) == UsedUp(10)
