"""The judge itself: good evidence passes, and each thing that can be wrong is noticed and named."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.system.chaos.clients import Account, Written
from tests.system.chaos.judge import Evidence, breaches

SAFE = Account(account_id="safe", provider="simulated-idempotent")
ECHO = Account(account_id="echo", provider="simulated")
MUTE = Account(account_id="mute", provider="simulated-mute")
Facts = dict[str, Any]


def written(request_id: str, account: Account, *, acknowledged: bool = True) -> Written:
    at = 1.0 if acknowledged else None
    return Written(request_id=request_id, account_id=account.account_id, to="+49", tries=1, acknowledged_at=at)


def stored(account: Account, status: str = "sent", **more: Any) -> Facts:
    return {"accountId": account.account_id, "status": status, "attempts": 1, **more}


def called(request_id: str, *, accepted: bool = True, delivered: int = 1) -> Facts:
    return {"requestId": request_id, "accepted": accepted, "delivered": delivered}


def good() -> Facts:
    """Of each account two messages of one conversation; and what may be different without being wrong."""
    outbox = {
        "safe-1": stored(SAFE, attempts=2),
        "safe-2": stored(SAFE),
        "echo-1": stored(ECHO),
        "echo-2": stored(ECHO),
        "echo-3": stored(ECHO, "uncertain", nextAttemptAt=None),
        "echo-4": stored(ECHO, "failed", lastError={"code": "max_attempts"}),
        "echo-5": stored(ECHO, "failed", lastError={"code": "outcome_unknown"}),
        "mute-1": stored(MUTE, "uncertain", nextAttemptAt=None),
        "mute-2": stored(MUTE),
        "mute-3": stored(MUTE, doubted=True),
        "mute-4": stored(MUTE),
    }
    accounts = {account.account_id: account for account in (SAFE, ECHO, MUTE)}
    names = [*outbox, "echo-gone"]
    return {
        "accounts": accounts,
        "written": [
            written(name, accounts[name.partition("-")[0]], acknowledged=name != "echo-gone") for name in names
        ],
        "outbox": outbox,
        "shown": {name: {"status": "read"} for name in outbox},
        "calls": [
            called("safe-1"),
            called("safe-1", delivered=0),
            called("safe-2"),
            called("echo-1"),
            called("echo-2"),
            called("echo-4", accepted=False, delivered=0),
            called("echo-5"),
            called("mute-2"),
            called("mute-1"),
            called("mute-4"),
            called("mute-3"),
        ],
        "audited": [],
    }


def test_what_may_happen_is_no_breach() -> None:
    assert breaches(Evidence(**good())) == []


def _without(facts: Facts, name: str) -> None:
    del facts["outbox"][name], facts["shown"][name]


WRONG: dict[str, tuple[Callable[[Facts], object], str]] = {
    "acknowledged, and gone": (lambda f: _without(f, "echo-3"), "lost: echo-3"),
    "queued for ever": (lambda f: f["outbox"]["echo-4"].update(status="queued"), "lost: echo-4"),
    "claimed for ever": (lambda f: f["outbox"]["echo-4"].update(status="sending"), "lost: echo-4"),
    "a doubt that never ends": (
        lambda f: f["outbox"]["echo-3"].update(nextAttemptAt=datetime(2026, 1, 1, tzinfo=UTC)),
        "lost: echo-3",
    ),
    "delivered twice by two calls": (
        lambda f: (f["calls"].append(called("echo-2")), f["outbox"]["echo-2"].update(attempts=2)),
        "twice: echo-2",
    ),
    "accepted twice where that is not safe": (
        lambda f: (f["calls"].append(called("echo-2", delivered=0)), f["outbox"]["echo-2"].update(attempts=2)),
        "twice: echo-2",
    ),
    "delivered twice in spite of its key": (lambda f: f["calls"][1].update(delivered=1), "twice: safe-1"),
    "in doubt in spite of its receipt": (lambda f: f["calls"].append(called("echo-3")), "doubt: echo-3"),
    "sent, and never called": (lambda f: f["calls"].remove(called("mute-2")), "untrue: mute-2"),
    "accepted, and told to have failed": (lambda f: f["calls"].append(called("echo-4")), "untrue: echo-4"),
    "accepted, and not stored": (
        lambda f: (f["written"].pop(), f["calls"].append(called("echo-gone"))),
        "untrue: echo-gone",
    ),
    "called twice under one claim": (lambda f: f["outbox"]["safe-1"].update(attempts=1), "calls: safe-1"),
    "out of order": (lambda f: f["calls"].insert(0, f["calls"].pop(4)), "order: echo-2"),
    "out of order without a doubt": (lambda f: f["outbox"]["mute-3"].pop("doubted"), "order: mute-4"),
    "out of order after a doubt that a receipt could end": (
        lambda f: (f["calls"].insert(0, f["calls"].pop(4)), f["outbox"]["echo-1"].update(doubted=True)),
        "order: echo-2",
    ),
    "stored, and not written by a client": (lambda f: f["written"].pop(0), "counts: safe-1"),
    "stored, and not shown": (lambda f: f["shown"].pop("echo-1"), "counts: echo-1"),
    "what the auditor found": (lambda f: f["audited"].append("lease: lanes/x"), "stored: lease: lanes/x"),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_what_is_wrong_is_noticed_and_named(name: str) -> None:
    spoil, begins = WRONG[name]
    facts = deepcopy(good())
    spoil(facts)
    found = breaches(Evidence(**facts))
    assert [breach for breach in found if breach.startswith(begins)], found
