"""Changes of an account's settings: checked against the model, merged into the document."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from firestore_outbox.accounts.changes import CHANGED_ELSEWHERE, SETTABLE, Changed, Refused, change

NOW = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
STORED: dict[str, Any] = {
    "provider": "waha",
    "timezone": "UTC",
    "pace": {"perMinute": 40, "burst": 1},
    "window": {"startHour": 8, "endHour": 20},
    "ours": {"colour": "red"},
}


def changed(**changes: Any) -> Changed:
    result = change("shop", STORED, {name.replace("__", "."): value for name, value in changes.items()}, NOW)
    assert isinstance(result, Changed), result
    return result


def test_a_dotted_name_changes_one_field_of_a_map_and_leaves_the_others() -> None:
    result = changed(pace__perMinute=20)
    assert result.fields == {"pace": {"perMinute": 20, "burst": 1}}
    assert result.changes == {"pace.perMinute": (40, 20)}


def test_a_nested_map_means_the_same_as_dotted_names() -> None:
    assert changed(pace={"perMinute": 20}) == changed(pace__perMinute=20)


@pytest.mark.parametrize("name", ["pace.perMinit", "perminute", "Pace.PerMinute"])
def test_a_misspelt_setting_is_answered_with_the_closest_one(name: str) -> None:
    expected = Refused(f"there is no setting {name!r}; did you mean pace.perMinute?")
    assert change("shop", STORED, {name: 20}, NOW) == expected


def test_none_removes_a_setting_and_a_whole_map() -> None:
    assert changed(timezone=None).fields == {"timezone": None}
    assert changed(window=None).fields == {"window": None}


def test_what_is_as_asked_for_already_is_no_change() -> None:
    assert changed(pace__perMinute=40).changes == {}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("pace.perMinute", -1, "perMinute"),
        ("pace.perMinute", "fast", "perMinute"),
        ("concurrency", 0, "concurrency"),
        ("timezone", "Mars/Phobos", "timezone"),
        ("window.endHour", 8, "the same"),
        ("colour", "red", "no setting"),
        ("pace.colour", "red", "no setting"),
        ("pace", 3, "no setting"),
    ],
)
def test_a_wrong_name_or_value_is_refused_in_a_sentence(name: str, value: Any, words: str) -> None:
    result = change("shop", STORED, {name: value}, NOW)
    assert isinstance(result, Refused)
    assert words in result.sentence


@pytest.mark.parametrize("name", CHANGED_ELSEWHERE)
def test_what_another_command_changes_is_refused_with_its_name(name: str) -> None:
    result = change("shop", STORED, {name: "x"}, NOW)
    assert isinstance(result, Refused)
    assert CHANGED_ELSEWHERE[name] in result.sentence


def test_what_an_owner_decides_can_be_set() -> None:
    wanted = {
        "pace.perMinute",
        "pace.perRecipientSeconds",
        "concurrency",
        "window.startHour",
        "onUncertain",
        "timezone",
    }
    assert wanted <= set(SETTABLE)


def test_a_plan_that_an_operator_gives_has_no_end() -> None:
    """The account was in the grace period of a failed payment."""
    stored = {"provider": "simulated", "plan": "basic", "planUntil": "a time", "planAfter": "free"}
    changed = change("shop", stored, {"plan": "pro"}, NOW)
    assert isinstance(changed, Changed)
    assert changed.fields == {"plan": "pro", "planUntil": None, "planAfter": None}
    other = change("shop", stored, {"concurrency": 2}, NOW)
    assert isinstance(other, Changed)
    assert other.fields == {"concurrency": 2}


def test_a_warm_up_without_a_first_day_begins_today_on_the_clock_of_the_account() -> None:
    stored = {**STORED, "timezone": "Asia/Kolkata"}
    ramp = {"startPerDay": 50, "untilPerDay": 1000}
    result = change("shop", stored, {"warmUp": ramp}, NOW)
    assert isinstance(result, Changed)
    assert result.fields["warmUp"] == {**ramp, "since": "2026-03-02"}
    assert result.changes["warmUp.since"] == (None, "2026-03-02")


def test_a_warm_up_keeps_its_first_day_when_it_is_changed() -> None:
    stored = {**STORED, "warmUp": {"startPerDay": 50, "untilPerDay": 1000, "since": "2026-02-01"}}
    result = change("shop", stored, {"warmUp.untilPerDay": 2000}, NOW)
    assert isinstance(result, Changed)
    assert result.fields["warmUp"] == {"startPerDay": 50, "untilPerDay": 2000, "since": "2026-02-01"}


def test_a_first_day_that_is_no_date_is_refused() -> None:
    ramp = {"startPerDay": 50, "untilPerDay": 1000, "since": "2026-02-30"}
    assert isinstance(change("shop", STORED, {"warmUp": ramp}, NOW), Refused)
