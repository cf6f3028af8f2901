"""The client's batch, from here: thread, message and outbox document in one commit, once for one requestId.

A second call with the same requestId writes nothing. Whether it asks for the same follows from what never changes in
the stored document; the worker moves `nextAttemptAt`, so the time that the caller asked for is kept beside it, as
`sendAt`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from firestore_outbox.clock import Clock
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Conflict, Gateway
from firestore_outbox.firestore.writes import SERVER_TIME, ServerTime, WriteOp, create, upsert
from firestore_outbox.messages.ids import thread_id_of
from firestore_outbox.messages.new_documents import (
    Fields,
    identity_fields,
    is_same,
    message_fields,
    outbox_fields,
    thread_fields,
)
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.validation import InvalidMessage, parse_message


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    request_id: str
    account_id: str
    to: str
    parts: Sequence[Mapping[str, Any]]
    created_by: str
    send_at: datetime | None = None
    """As the caller asked. None, and a time that has passed: now."""
    send_by: datetime | None = None
    priority: str | None = None
    """None: the document does not name one, and is normal."""

    @property
    def thread_id(self) -> str:
        return thread_id_of(self.account_id, self.to)


@dataclass(frozen=True, slots=True)
class Enqueued:
    """Stored, or there already with the same content."""

    status: str
    is_new: bool
    send_at: datetime | None = None
    """As the first call asked for it, and so the next; callers to whom times matter compare them."""
    send_by: datetime | None = None
    priority: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    sentence: str


@dataclass(frozen=True, slots=True)
class Differs:
    """`request-id-taken`: the requestId belongs to another message, of this account or of another."""


class Enqueue:
    def __init__(self, gateway: Gateway, clock: Clock) -> None:
        self._gateway = gateway
        self._clock = clock

    async def __call__(self, new: NewMessage) -> Enqueued | Refused | Differs:
        wrong = self._fault(new)
        if wrong is not None:
            return Refused(wrong)
        result = await self._gateway.commit(_with_time_asked_for(new, batch(new, due_at(new.send_at, self._clock()))))
        if not isinstance(result, Conflict):
            return _answer(new, OutboxStatus.QUEUED.value, is_new=True)
        return await self._existing(new)

    async def _existing(self, new: NewMessage) -> Enqueued | Refused | Differs:
        found = await self._gateway.get(paths.outbox(new.request_id))
        if found is not None:
            if not _is_same(new, found.data):
                return Differs()
            at, by, priority = (found.data.get(name) for name in ("sendAt", "sendBy", "priority"))
            status = str(found.data.get("status"))
            return Enqueued(status, is_new=False, send_at=at, send_by=by, priority=priority)
        # A month after its end the outbox document expires; the message itself stays.
        message = await self._gateway.get(paths.message(new.thread_id, new.request_id))
        if message is None:
            return Refused("a message of this requestId was deleted a moment ago")
        if not _is_same(new, message.data):
            return Differs()
        return _answer(new, str(message.data.get("status")), is_new=False)

    def _fault(self, new: NewMessage) -> str | None:
        """As the worker will judge it."""
        now = self._clock()
        raw = _outbox(new, server_time=now, due=new.send_at or now)
        parsed = parse_message(new.request_id, raw)
        return parsed.sentence if isinstance(parsed, InvalidMessage) else None


def due_at(send_at: datetime | None, now: datetime) -> datetime | ServerTime:
    """When the message is due. A time that has passed means now, by the server's clock: a lane goes by this time, and
    one in the past would overtake what was written before, in its own thread as well."""
    return SERVER_TIME if send_at is None or send_at <= now else send_at


def batch(new: NewMessage, due: datetime | ServerTime | None = None) -> list[WriteOp]:
    """The three documents of the contract. `due` is when it may be sent; None: at `send_at`, whatever the time is."""
    identity = _identity(new)
    due = due or new.send_at or SERVER_TIME
    thread = thread_fields(account_id=new.account_id, to=new.to, parts=new.parts, at=SERVER_TIME)
    message = message_fields(identity, server_time=SERVER_TIME)
    outbox = _outbox(new, server_time=SERVER_TIME, due=due)
    return [
        upsert(paths.thread(new.thread_id), thread),
        create(paths.message(new.thread_id, new.request_id), message),
        create(paths.outbox(new.request_id), outbox),
    ]


def _outbox(new: NewMessage, *, server_time: Any, due: Any) -> Fields:
    return outbox_fields(
        _identity(new),
        server_time=server_time,
        due=due,
        send_by=new.send_by,
        createdBy=new.created_by,
        priority=new.priority,
    )


def _answer(new: NewMessage, status: str, *, is_new: bool) -> Enqueued:
    return Enqueued(status, is_new=is_new, send_at=new.send_at, send_by=new.send_by, priority=new.priority)


def _with_time_asked_for(new: NewMessage, writes: list[WriteOp]) -> list[WriteOp]:
    """`sendAt` is ours: clients do not write it, and without it a repeated call could not be told from another one."""
    if new.send_at is None:
        return writes
    *others, outbox = writes
    return [*others, replace(outbox, fields={**outbox.fields, "sendAt": new.send_at})]


def _identity(new: NewMessage) -> Fields:
    return identity_fields(request_id=new.request_id, account_id=new.account_id, to=new.to, parts=new.parts)


def _is_same(new: NewMessage, stored: Mapping[str, Any]) -> bool:
    """Whether what stands under the id is this message: of the same account, with the same content, and of no run."""
    return "runId" not in stored and is_same(_identity(new), stored)
