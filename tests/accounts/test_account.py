from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.accounts.account import (
    Account,
    AccountStatus,
    Closed,
    Hindrance,
    InvalidAccount,
    OnUncertain,
    Open,
    parse_account,
    sending,
)
from firestore_outbox.accounts.window import Window
from firestore_outbox.lane.pacing import Cap
from tests.builders import NOW, account, at, s


def test_an_account_that_says_little_gets_the_defaults_of_the_contract() -> None:
    assert parse_account("acme", {"provider": "simulated"}) == Account(
        account_id="acme",
        provider="simulated",
        status=AccountStatus.ACTIVE,
        cap=Cap.per_minute(40, burst=1),
        per_recipient=s(0),
        concurrency=3,
        on_uncertain=OnUncertain.HOLD,
        window=None,
        paused_until=None,
    )


def test_an_account_may_say_everything() -> None:
    parsed = parse_account(
        "acme",
        {
            "provider": "whatsapp_cloud",
            "timezone": "Asia/Kuala_Lumpur",
            "status": "paused",
            "pace": {"perMinute": 120, "burst": 5, "perRecipientSeconds": 6},
            "concurrency": 50,
            "onUncertain": "resend",
            "window": {"startHour": 22, "endHour": 6},
            "pausedUntil": at(60),
        },
    )
    assert parsed == Account(
        account_id="acme",
        provider="whatsapp_cloud",
        status=AccountStatus.PAUSED,
        cap=Cap.per_minute(120, burst=5),
        per_recipient=s(6),
        concurrency=50,
        on_uncertain=OnUncertain.RESEND,
        window=Window(start_hour=22, end_hour=6, zone=ZoneInfo("Asia/Kuala_Lumpur")),
        paused_until=at(60),
    )


def test_zero_a_minute_is_no_pace_and_settings_fill_in_what_is_missing() -> None:
    unpaced = parse_account("acme", {"provider": "p", "pace": {"perMinute": 0}}, per_minute=10, concurrency=8)
    assert isinstance(unpaced, Account)
    assert (unpaced.cap, unpaced.concurrency) == (None, 8)
    silent = parse_account("acme", {"provider": "p", "pace": {"burst": 2}}, per_minute=10)
    assert isinstance(silent, Account)
    assert silent.cap == Cap.per_minute(10, burst=2)


def test_an_empty_window_is_six_to_eighteen() -> None:
    parsed = parse_account("acme", {"provider": "p", "window": {}})
    assert isinstance(parsed, Account)
    assert parsed.window == Window(start_hour=6, end_hour=18, zone=ZoneInfo("UTC"))


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({}, "provider is missing."),
        ({"provider": "p", "timezone": "Mars/Olympus"}, "timezone must be a time zone"),
        ({"provider": "p", "timezone": "../etc/passwd"}, "timezone must be a time zone"),
        ({"provider": "p", "status": "asleep"}, "status must be 'active', 'paused' or 'parked'"),
        (
            {"provider": "p", "pace": {"perMinute": -1}},
            "pace.perMinute is -1: input should be greater",
        ),
        ({"provider": "p", "window": {"startHour": 6, "endHour": 6}}, "window: startHour and endHour are the same."),
        ({"provider": "p", "concurrency": 0}, "concurrency is 0: input should be greater than or equal to 1"),
    ],
)
def test_a_malformed_account_says_what_is_wrong(raw: Mapping[str, Any], sentence: str) -> None:
    parsed = parse_account("acme", raw)
    assert isinstance(parsed, InvalidAccount)
    assert parsed.sentence.startswith(sentence)


values = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dictionaries(st.text(), st.integers())
names = st.sampled_from(
    ["provider", "timezone", "status", "pace", "concurrency", "onUncertain", "window", "pausedUntil"]
)


@given(raw=st.dictionaries(names, values))
def test_no_account_document_whatever_raises(raw: dict[str, Any]) -> None:
    assert isinstance(parse_account("acme", raw), Account | InvalidAccount)


DAY = Window(start_hour=10, end_hour=18, zone=ZoneInfo("UTC"))  # NOW is nine


@pytest.mark.parametrize(
    ("of", "answer"),
    [
        (account(), Open()),
        (account(status=AccountStatus.PARKED, paused_until=at(5)), Closed(Hindrance.PARKED, None)),
        (account(status=AccountStatus.PAUSED), Closed(Hindrance.PAUSED, None)),
        (account(status=AccountStatus.PAUSED, paused_until=at(5)), Closed(Hindrance.PAUSED, at(5))),
        (account(status=AccountStatus.PAUSED, paused_until=NOW), Open()),
        (account(paused_until=at(5)), Closed(Hindrance.PAUSED, at(5))),
        (account(window=DAY), Closed(Hindrance.WINDOW, at(3600))),
    ],
)
def test_an_account_says_whether_it_may_send_and_when_it_may_again(of: Account, answer: Open | Closed) -> None:
    assert sending(of, NOW) == answer
