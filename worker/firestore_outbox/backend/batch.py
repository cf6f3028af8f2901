"""What a backend imports: the same three documents, written inside the caller's own batch or transaction.

    batch = db.batch()                                         # or a transaction; of a Client or an AsyncClient
    batch.update(order, {"confirmed": True})                   # whatever belongs to the same action
    sent = send_message(batch, db, request_id=confirmation_id, account_id="shop",
                               to="+491511234567", text="Your order is confirmed.", uid="backend")
    batch.commit()

The message is then sent if and only if the rest of the batch was written: that is what an outbox is for.

One action, one message. Make the id once with `new_request_id()`, and keep it with the action: a field of the order,
the body of the job. It must be random: all accounts share one collection, so an id that can be guessed can be taken by
another account first. The documents are created, never overwritten: a repeated action gets `AlreadyExists` at commit,
and nothing of the second batch is written. It may be the caller's own first try, whose answer was lost:
`sent.is_stored()` tells. If it returns False, the id is another message's, and the action needs a new one.

A backend passes the security rules by, so everything is checked here, with a sentence for what is wrong.
Nothing is imported but Google's client, and nothing of the worker.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

from google.cloud import firestore

from firestore_outbox.backend.message import (
    Fields,
    InvalidMessage,
    NewMessage,
    checked,
    require_request_id,
    thread_id_of,
)

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
    """For one action. Make it once, and use it again for each retry of the same action."""
    return str(uuid.uuid4())


# --- writing


@dataclass(frozen=True, slots=True)
class Written:
    """What was added to the batch. It is stored when the batch is."""

    new: NewMessage
    message: Any
    """The reference of the message that people see."""
    outbox: Any
    """The reference of its outbox document."""

    @property
    def request_id(self) -> str:
        return self.new.request_id

    @property
    def thread_id(self) -> str:
        return self.new.thread_id

    def is_stored(self) -> bool:
        """After `AlreadyExists`: whether what is there is this very message. Otherwise the id is another one's."""
        return self._is_in(self.message.get())

    async def is_stored_async(self) -> bool:
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
) -> Written:
    """Adds a message that is sent as soon as its account's pace allows. Either `text` or `parts`.

    uid: who sends it, for the record. send_by: later than this it is not sent any more, but `skipped`.
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
) -> Written:
    """The same at a time, up to 365 days ahead. It can be taken back until then. A time that has passed means now."""
    new = checked(
        request_id=request_id,
        account_id=account_id,
        to=to,
        text=text,
        parts=parts,
        uid=uid,
        at=at,
        send_by=send_by,
        now=datetime.now(UTC),
    )
    return _add(batch, db, new)


def cancel_message(batch: Batch, db: Client, request_id: str) -> None:
    """Adds the wish to take a message back: if it is still queued it becomes `cancelled`, otherwise nothing changes.

    At commit: `NotFound`, if there is no such message.
    """
    _require_batch(batch)
    require_request_id(request_id)
    batch.update(db.document(f"outbox/{request_id}"), {"cancelRequested": True})


def _add(batch: Batch, db: Client, new: NewMessage) -> Written:
    _require_batch(batch)
    thread = db.collection("threads").document(new.thread_id)
    message = thread.collection("messages").document(new.request_id)
    outbox = db.collection("outbox").document(new.request_id)
    batch.set(thread, new.thread_fields, merge=True)
    batch.create(message, new.message_fields)
    batch.create(outbox, new.outbox_fields)
    return Written(new, message, outbox)


def _require_batch(batch: object) -> None:
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
    """queued, sent, delivered, read; or failed, skipped, cancelled. Only ever moves forward."""
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
    """Follows one message, on a thread of Google's client; None while there is none. Call the result to stop.

    Google's asynchronous client cannot listen: this takes the other one.
    """

    def show(snapshots: Sequence[Any], changes: object, read_time: object) -> None:
        found = [snapshot for snapshot in snapshots if snapshot.exists]
        on_message(_message(found[0], thread_id) if found else None)

    reference = db.collection("threads").document(thread_id).collection("messages").document(request_id)
    return _stopping(reference.on_snapshot(show))


def watch_thread(
    db: firestore.Client, thread_id: str, on_messages: Callable[[list[Message]], None], *, last: int = LAST_MESSAGES
) -> Callable[[], None]:
    """Follows the last messages of a conversation, oldest first. Call the result to stop."""

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
