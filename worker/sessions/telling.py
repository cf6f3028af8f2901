"""One named function for each event of the hot set that is worth a line."""

from __future__ import annotations

import logging
from datetime import datetime

_log = logging.getLogger("outbox")


def session_seen(account_id: str, state: str, seen: str) -> None:
    _line(
        logging.INFO,
        "session_seen",
        "a session was looked at, or ordered up or down",
        account_id,
        state=state,
        seen=seen,
    )


def session_troubled(account_id: str, trouble: str, retry_at: datetime | None) -> None:
    _line(logging.WARNING, "session_troubled", "a session is not up", account_id, trouble=trouble, retry_at=retry_at)


def session_not_stopped(account_id: str) -> None:
    _line(
        logging.ERROR, "session_not_stopped", "a session could not be stopped in time, and may still be up", account_id
    )


def set_contended(account_id: str) -> None:
    _line(logging.WARNING, "hot_set_contended", "the hot set is written by too many at once", account_id)


def _line(level: int, action: str, message: str, account_id: str, **fields: object) -> None:
    if _log.isEnabledFor(level):
        _log.log(level, message, extra={"fields": {"action": action, "account_id": account_id, **fields}})
