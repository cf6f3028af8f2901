"""A run's target as one row: whom it went to, what became of it, when, how fast, and why not.

Fields are cells of a file that people open with a spreadsheet. What a recipient or a provider wrote must not become a
formula there.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from datetime import datetime
from io import StringIO
from typing import Any

from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.states import OutboxStatus

COLUMNS = (
    "targetId",
    "to",
    "status",
    "queuedAt",
    "sentAt",
    "deliveredAt",
    "readAt",
    "failedAt",
    "secondsToSend",
    "secondsToDeliver",
    "attempts",
    "errorCode",
    "error",
    "requestId",
)
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def target_row(message: OutboxMessage, shown: Mapping[str, Any] | None) -> dict[str, Any]:
    """`shown` is the message in its thread, which has what receipts said; None: there is none. What is not known is
    absent. The status is the further one of the two: `delivered` and `read` follow `sent`."""
    seen = shown or {}
    delivered, error = _time(seen.get("deliveredAt")), message.last_error
    status = seen.get("status") if message.status is OutboxStatus.SENT and seen.get("status") else message.status.value
    has_failed = message.status in (OutboxStatus.FAILED, OutboxStatus.SKIPPED, OutboxStatus.UNCERTAIN)
    row = {
        "targetId": message.target_id,
        "to": message.to,
        "status": status,
        "queuedAt": message.created_at,
        "sentAt": message.sent_at,
        "deliveredAt": delivered,
        "readAt": _time(seen.get("readAt")),
        "failedAt": _time(seen.get("failedAt")) or (error.at if error is not None and has_failed else None),
        "secondsToSend": _seconds(message.created_at, message.sent_at),
        "secondsToDeliver": _seconds(message.sent_at, delivered),
        "attempts": message.attempts,
        "errorCode": error.code.value if error is not None and has_failed else None,
        "error": error.message if error is not None and has_failed else None,
        "requestId": message.request_id,
    }
    return {name: value for name, value in row.items() if value is not None}


def csv_lines(rows: Iterable[Mapping[str, Any]], *, with_header: bool) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    if with_header:
        writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([harmless(_cell(row.get(name))) for name in COLUMNS])
    return text.getvalue()


def harmless(value: str) -> str:
    """A cell that a spreadsheet does not take for a formula. Phone numbers keep their plus."""
    digits = value.removeprefix("+")
    is_number = digits.isascii() and digits.isdigit()
    return f"'{value}" if value.startswith(_FORMULAS) and not is_number else value


def _cell(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return "" if value is None else str(value)


def _time(value: Any) -> datetime | None:
    return value if isinstance(value, datetime) else None


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else round((end - start).total_seconds(), 3)
