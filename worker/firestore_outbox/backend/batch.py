"""Sending from a backend: a message's three documents, written inside the caller's own batch or transaction.

    batch = db.batch()                                         # or a transaction; of a Client or an AsyncClient
    batch.update(order, {"confirmed": True})                   # the rest of the same action
    sent = send_message(batch, db, request_id=confirmation_id, account_id="shop",
                               to="+491511234567", text="Your order is confirmed.", uid="backend")
    batch.commit()

The message is sent if and only if the rest of the batch is written.

One action, one message. Make the id once with `new_request_id()`, and store it with the action: in the order, in the
body of the job. It must be random: all accounts share one collection, so another account could take an id that it can
guess. The documents are created, never overwritten: a repeated action gets `AlreadyExists` at commit, and nothing of
the second batch is written. If the answer to the first try was lost, `sent.is_stored()` is true. If it is false,
another message has the id, and the action needs a new one.

Security rules do not apply to a backend, so every field is checked here, and `InvalidMessage` says what is wrong.
This module imports Google's client and a few small modules of the standard library alone, and not the worker.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

from google.cloud import firestore

from firestore_outbox.backend.message import InvalidMessage, NewMessage, checked, require_request_id
from firestore_outbox.messages.ids import thread_id_of
from firestore_outbox.messages.new_documents import Fields

__all__ = [
    "InvalidMessage",
    "Message",
    "Written",
    "cancel_message",
    "new_request_id",
    "schedule_message",
    "send_message",
    "thread_id_of",
    "watch_message",
    "watch_thread",
]

Client: TypeAlias = firestore.Client | firestore.AsyncClient
Batch: TypeAlias = firestore.WriteBatch | firestore.AsyncWriteBatch | firestore.Transaction | firestore.AsyncTransaction
Parts = Sequence[Mapping[str, Any]]

LAST_MESSAGES = 100


def new_request_id() -> str:
    """Make the id of one action. Use the same id for each retry of the action."""
    return str(uuid.uuid4())


# --- writing


@dataclass(frozen=True, slots=True)
class Written:
    """What was added to the batch. It is stored when the caller commits the batch."""

    new: NewMessage
    """The checked message."""
    message: Any
    """Reference of the message document, which people see."""
    outbox: Any
    """Reference of the outbox document."""

    @property
    def request_id(self) -> str:
        return self.new.request_id

    @property
    def thread_id(self) -> str:
        return self.new.thread_id

    def is_stored(self) -> bool:
        """After `AlreadyExists`: whether this message is stored. False: another message has the id."""
        return self._is_in(self.message.get())

    async def is_stored_async(self) -> bool:
        """The same for an AsyncClient."""
        return self._is_in(await self.message.get())

    def _is_in(self, snapshot: Any) -> bool:
        return bool(snapshot.exists) and self.new.is_same(snapshot.to_dict())


def send_message(
    batch: Batch,
    db: Client,
    *,
    request_id: str,
    account_id: str,
    to: str,
    uid: str,
    text: str | None = None,
    parts: Parts | None = None,
    send_by: datetime | None = None,
    priority: str | None = None,
) -> Written:
    """Add a message that is sent as soon as its account's pace allows. Give either `text` or `parts`.

    `uid` is recorded as the author. After `send_by` the message is `skipped` instead of sent. `priority` is `urgent`,
    `normal` or `bulk`; None is normal. Raises `InvalidMessage`.
    """
    new = checked(
        request_id=request_id,
        account_id=account_id,
        to=to,
        text=text,
        parts=parts,
        uid=uid,
        at=None,
        send_by=send_by,
        priority=priority,
        now=datetime.now(UTC),
    )
    return _add(batch, db, new)


def schedule_message(
    batch: Batch,
    db: Client,
    *,
    at: datetime,
    request_id: str,
    account_id: str,
    to: str,
    uid: str,
    text: str | None = None,
    parts: Parts | None = None,
    send_by: datetime | None = None,
    priority: str | None = None,
) -> Written:
    """Add a message that is sent at a time, up to 365 days ahead; a past time means now. The rest is as in
    `send_message`. Raises `InvalidMessage`."""
    new = checked(
        request_id=request_id,
        account_id=account_id,
        to=to,
        text=text,
        parts=parts,
        uid=uid,
        at=at,
        send_by=send_by,
        priority=priority,
        now=datetime.now(UTC),
    )
    return _add(batch, db, new)


def cancel_message(batch: Batch, db: Client, request_id: str) -> None:
    """Cancel a message. If it is still queued, it becomes `cancelled` at once; otherwise nothing changes.

    The commit raises `NotFound` if there is no such message.
    """
    require_batch(batch)
    require_request_id(request_id)
    batch.update(db.document(f"outbox/{request_id}"), {"cancelRequested": True})
    batch.set(db.document(f"cancels/{request_id}"), {"createdAt": firestore.SERVER_TIMESTAMP})


def _add(batch: Batch, db: Client, new: NewMessage) -> Written:
    require_batch(batch)
    thread = db.collection("threads").document(new.thread_id)
    message = thread.collection("messages").document(new.request_id)
    outbox = db.collection("outbox").document(new.request_id)
    batch.set(thread, new.thread_fields, merge=True)
    batch.create(message, new.message_fields)
    batch.create(outbox, new.outbox_fields)
    return Written(new, message, outbox)


def require_batch(batch: object) -> None:
    if not isinstance(batch, Batch):
        name = type(batch).__name__
        raise TypeError(f"a WriteBatch or a Transaction is needed, not a {name}: the documents are written together")


# --- watching


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message as people see it, outbound or inbound."""

    id: str
    """The request_id of an outbound message."""
    thread_id: str
    direction: str
    parts: tuple[Fields, ...]
    status: str
    """queued, sent, delivered, read; or failed, skipped, cancelled. It only moves forward."""
    created_at: datetime
    sent_at: datetime | None
    delivered_at: datetime | None
    read_at: datetime | None
    failed_at: datetime | None
    error: Fields | None
    """`{code, message}`: why it failed or was skipped."""


def watch_message(
    db: firestore.Client, thread_id: str, request_id: str, on_message: Callable[[Message | None], None]
) -> Callable[[], None]:
    """Follow one message. `on_message` gets None while there is none. Call the result to stop.

    The callback runs in a thread of Google's client. The asynchronous client cannot listen, so this needs a `Client`.
    """

    def show(snapshots: Sequence[Any], changes: object, read_time: object) -> None:
        found = [snapshot for snapshot in snapshots if snapshot.exists]
        on_message(_message(found[0], thread_id) if found else None)

    reference = db.collection("threads").document(thread_id).collection("messages").document(request_id)
    return _stopping(reference.on_snapshot(show))


def watch_thread(
    db: firestore.Client, thread_id: str, on_messages: Callable[[list[Message]], None], *, last: int = LAST_MESSAGES
) -> Callable[[], None]:
    """Follow the last messages of a conversation, oldest first. Call the result to stop."""

    def show(snapshots: Sequence[Any], changes: object, read_time: object) -> None:
        # In an order of our own: Google's client tells the documents of a descending query in ascending order.
        messages = [_message(snapshot, thread_id) for snapshot in snapshots]
        on_messages(sorted(messages, key=lambda message: (message.created_at, message.id)))

    stored = db.collection("threads").document(thread_id).collection("messages")
    latest = stored.order_by("createdAt", direction=firestore.Query.DESCENDING).limit(last)
    return _stopping(latest.on_snapshot(show))


def _stopping(watch: Any) -> Callable[[], None]:
    def stop() -> None:
        watch.unsubscribe()

    return stop


def _message(snapshot: Any, thread_id: str) -> Message:
    data = snapshot.to_dict()
    return Message(
        id=snapshot.id,
        thread_id=thread_id,
        direction=data.get("direction", ""),
        parts=tuple(data.get("parts", ())),
        status=data.get("status", ""),
        created_at=data.get("createdAt") or snapshot.create_time,
        sent_at=data.get("sentAt"),
        delivered_at=data.get("deliveredAt"),
        read_at=data.get("readAt"),
        failed_at=data.get("failedAt"),
        error=data.get("error"),
    )
