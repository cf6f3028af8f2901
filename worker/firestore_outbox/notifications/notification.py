"""A notification about a run: what it says, and when it is tried again.

It is a document, written in the commit of what it tells of. So it exists if and only if that happened, however often a
worker dies. The account's `notify` lane posts it until the account's webhook accepts it (progress.py), and sends it to
the devices of the account's members. A receiver that gets it twice sees the same id.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any

ID_HEADER = "Outbox-Notification-Id"
SIGNATURE_HEADER = "Outbox-Signature"
WAITING, DELIVERED, FAILED = "waiting", "delivered", "failed"
"""Values of `state`."""
FIRST_WAIT = timedelta(seconds=10)
LONGEST_WAIT = timedelta(hours=1)
MOST_ATTEMPTS = 30
"""About a day of them."""
KEEP = timedelta(days=30)
LONGEST_BODY = 1000
"""Characters of a text on a device; Firebase Cloud Messaging takes messages of 4,096 bytes in all."""
_POSTED = ("kind", "runId", "reminderId", "status", "title", "text", "sent", "total")


class Kind(StrEnum):
    RUN_ENDED = "run.ended"
    RUN_PAUSED = "run.paused"
    """The run paused itself, and waits for a person."""
    WINDOW_CLOSED = "run.windowClosed"
    """The run goes on at the next opening."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfRun:
    kind: Kind
    account_id: str
    run_id: str
    reminder_id: str | None
    status: str
    text: str | None
    """For a person: what happened. None: all of it went well."""
    sent: int
    total: int
    occasion: str = ""
    """Tells two notifications of one kind about one run apart."""

    @property
    def notification_id(self) -> str:
        """The same for the same occasion, and in no two accounts."""
        return sha256(json.dumps([self.account_id, self.run_id, self.kind, self.occasion]).encode()).hexdigest()[:32]

    def fields(self, now: datetime) -> dict[str, Any]:
        title = f"{self.sent} of {self.total} delivered"
        named = {} if self.reminder_id is None else {"reminderId": self.reminder_id}
        return {
            "kind": self.kind.value,
            "runId": self.run_id,
            **named,
            "status": self.status,
            "title": title,
            "text": self.text or f"{title}.",
            "sent": self.sent,
            "total": self.total,
            "createdAt": now,
            "state": WAITING,
            "attempts": 0,
            "expireAt": now + KEEP,
        }


def posted(account_id: str, notification_id: str, data: Mapping[str, Any]) -> bytes:
    """The body that a webhook gets: the same bytes at every attempt."""
    created = data.get("createdAt")
    body = {
        "id": notification_id,
        "accountId": account_id,
        **{name: data[name] for name in _POSTED if name in data},
        **({"createdAt": created.isoformat().replace("+00:00", "Z")} if isinstance(created, datetime) else {}),
    }
    return json.dumps(body, ensure_ascii=False).encode()


def fcm_message(account_id: str, notification_id: str, token: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """What a device gets: the same at every attempt. On each platform a repeat takes the place of the first one."""
    named = {"notificationId": notification_id, "accountId": account_id}
    told = {name: str(data[name]) for name in ("kind", "runId", "reminderId", "status") if name in data}
    return {
        "token": token,
        "notification": {"title": str(data.get("title", "")), "body": str(data.get("text", ""))[:LONGEST_BODY]},
        "data": named | told,
        "android": {"notification": {"tag": notification_id}},
        "apns": {"headers": {"apns-collapse-id": notification_id}},
        "webpush": {"notification": {"tag": notification_id}},
    }


def next_attempt(attempts: int, now: datetime) -> datetime | None:
    """After that many attempts that were not accepted; None: it is given up."""
    if attempts >= MOST_ATTEMPTS:
        return None
    return now + min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(attempts - 1, 20))
