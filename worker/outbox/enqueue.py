"""The client's batch, from here: thread, message and outbox document in one commit, once for one requestId."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from worker.clock import Clock
from worker.domain.message import OutboxStatus, thread_id_of
from worker.domain.validation import InvalidMessage, parse_message
from worker.store import paths
from worker.store.gateway import SERVER_TIME, Conflict, Gateway, WriteOp, create, upsert

SHOWN_TEXT = 200
"""How much of a message the thread's own document shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    request_id: str
    account_id: str
    to: str
    parts: Sequence[Mapping[str, Any]]
    created_by: str
    send_at: datetime | None = None
    """None: now."""
    send_by: datetime | None = None

    @property
    def thread_id(self) -> str:
        return thread_id_of(self.account_id, self.to)


@dataclass(frozen=True, slots=True)
class Enqueued:
    """Stored, or there already with the same content."""

    status: str
    is_new: bool


@dataclass(frozen=True, slots=True)
class Refused:
    sentence: str


@dataclass(frozen=True, slots=True)
class Differs:
    """The requestId belongs to another message."""


class Enqueue:
    def __init__(self, gateway: Gateway, clock: Clock) -> None:
        self._gateway = gateway
        self._clock = clock

    async def __call__(self, new: NewMessage) -> Enqueued | Refused | Differs:
        wrong = self._fault(new)
        if wrong is not None:
            return Refused(wrong)
        result = await self._gateway.commit(batch(new))
        if not isinstance(result, Conflict):
            return Enqueued(OutboxStatus.QUEUED.value, is_new=True)
        existing = await self._gateway.get(paths.outbox(new.request_id))
        if existing is None:
            return Refused("a message of this requestId exists without its outbox document")
        wanted = _identity(new)
        if any(existing.data.get(name) != value for name, value in wanted.items()):
            return Differs()
        return Enqueued(str(existing.data.get("status")), is_new=False)

    def _fault(self, new: NewMessage) -> str | None:
        """As the worker will judge it."""
        now = self._clock()
        at = new.send_at or now
        raw = {**_identity(new), "status": "queued", "createdAt": now, "nextAttemptAt": at, "attempts": 0}
        parsed = parse_message(new.request_id, raw)
        return parsed.sentence if isinstance(parsed, InvalidMessage) else None


def batch(new: NewMessage) -> list[WriteOp]:
    """The three documents of the contract."""
    identity = _identity(new)
    outbox: dict[str, Any] = {
        **identity,
        "status": OutboxStatus.QUEUED.value,
        "createdAt": SERVER_TIME,
        "createdBy": new.created_by,
        "nextAttemptAt": new.send_at or SERVER_TIME,
        "attempts": 0,
    }
    if new.send_by is not None:
        outbox["sendBy"] = new.send_by
    message = {**identity, "direction": "outbound", "status": OutboxStatus.QUEUED.value, "createdAt": SERVER_TIME}
    thread = {
        "accountId": new.account_id,
        "to": new.to,
        "lastMessageAt": SERVER_TIME,
        "lastMessageText": shown_text(new.parts),
    }
    return [
        upsert(paths.thread(new.thread_id), thread),
        create(paths.message(new.thread_id, new.request_id), message),
        create(paths.outbox(new.request_id), outbox),
    ]


def _identity(new: NewMessage) -> dict[str, Any]:
    return {
        "requestId": new.request_id,
        "accountId": new.account_id,
        "threadId": new.thread_id,
        "to": new.to,
        "parts": [dict(part) for part in new.parts],
    }


def shown_text(parts: Sequence[Mapping[str, Any]]) -> str:
    for part in parts:
        text = part.get("text") or part.get("caption")
        if isinstance(text, str):
            return text[:SHOWN_TEXT]
    return ""
