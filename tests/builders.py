"""Values for the tests: valid ones, each with the fields that a test cares about replaced."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from firestore_outbox.accounts.account import Account
from firestore_outbox.lane.pacing import Cap
from firestore_outbox.messages.ids import thread_id_of
from firestore_outbox.messages.model import OutboxMessage, TextPart
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.providers.outcome import Capability

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

RESEND_SAFE = Capability(resend_safe=True, echoes_request_id=False)
ECHOES = Capability(resend_safe=False, echoes_request_id=True)
BLIND = Capability(resend_safe=False, echoes_request_id=False)


def s(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def at(seconds: float) -> datetime:
    return NOW + s(seconds)


def message(request_id: str = "request-1", *, to: str = "491701234567", due: float = 0, **fields: Any) -> OutboxMessage:
    """A message that came due `due` seconds after NOW."""
    return OutboxMessage(
        **{
            "request_id": request_id,
            "account_id": "acme",
            "thread_id": thread_id_of("acme", to),
            "to": to,
            "parts": (TextPart(type="text", text="hello"),),
            "created_at": at(due),
            "next_attempt_at": at(due),
            **fields,
        }
    )


def sending(request_id: str = "request-1", *, attempts: int = 1, **fields: Any) -> OutboxMessage:
    """A message that a worker claimed at NOW."""
    claim = {"status": OutboxStatus.SENDING, "claimed_by": "w1#1", "lease_until": at(60)}
    return message(request_id, **{"attempts": attempts, **claim, **fields})


def account(**fields: Any) -> Account:
    return Account(
        **{"account_id": "acme", "provider": "simulated", "cap": Cap.per_minute(40), **fields},
    )


def raw(**fields: Any) -> dict[str, Any]:
    """A document as a client writes it."""
    return {
        "requestId": "request-1",
        "accountId": "acme",
        "threadId": "acme__491701234567",
        "to": "491701234567",
        "parts": [{"type": "text", "text": "hello"}],
        "status": "queued",
        "createdAt": NOW,
        "nextAttemptAt": NOW,
        "createdBy": "uid-1",
        "attempts": 0,
        **fields,
    }
