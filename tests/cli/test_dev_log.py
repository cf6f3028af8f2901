"""What `outbox dev` prints of the logs of its parts."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from firestore_outbox.local.dev_log import LogTail, shown

SENT = {"severity": "DEBUG", "message": "an attempt ended", "action": "attempt_ended", "accountId": "shop"}


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        (
            {**SENT, "requestId": "request-1", "outcome": "MarkSent", "status": "sent", "code": None, "againAt": None},
            "sent       request-1  account shop",
        ),
        (
            {
                **SENT,
                "requestId": "request-1",
                "outcome": "RetryAt",
                "status": "queued",
                "code": "provider_unavailable",
                "againAt": "2026-11-18T13:14:57.25+00:00",
            },
            "queued     request-1  account shop: provider_unavailable; again at 13:14:57",
        ),
        (
            {**SENT, "requestId": "request-1", "outcome": "MarkFailed", "status": "failed", "code": "max_attempts"},
            "failed     request-1  account shop: max_attempts",
        ),
        ({"severity": "DEBUG", "action": "lane_acquired", "message": "a lane was acquired"}, None),
        (
            {"severity": "ERROR", "action": "account_parked", "message": "an account was parked", "accountId": "shop"},
            '! worker: an account was parked (account_parked) {"accountId": "shop"}',
        ),
        ({"severity": "WARNING", "action": "sweep_found", "message": "the sweep woke what was dropped"}, None),
    ],
    ids=["an attempt", "one that is repeated", "one that failed", "a detail", "an error", "what means nothing here"],
)
def test_messages_and_errors_are_shown_and_details_are_not(line: dict[str, object], printed: str | None) -> None:
    assert shown("worker", json.dumps(line), UTC) == printed


def test_what_is_no_json_is_shown_as_it_is() -> None:
    assert shown("functions", "ImportError: no module named bot") == "functions: ImportError: no module named bot"
    assert shown("functions", "   at line 3") is None


def test_each_line_is_shown_once_and_whole(tmp_path: Path) -> None:
    log, told = tmp_path / "worker.log", list[str]()
    tail, now = LogTail({"worker": log, "page": tmp_path / "none.log"}), datetime(2026, 3, 1, 12, tzinfo=UTC)
    log.write_text("before\n")
    tail.skip()
    for text in ("one\ntw", "o\n", ""):
        with log.open("a") as file:
            file.write(text)
        tail.tell(told.append, now)
    assert told == ["12:00:00  worker: one", "12:00:00  worker: two"]
