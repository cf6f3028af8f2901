"""What people see of a message: its document in the thread, which a client creates and reads, and only we change.

It follows the outbox document (`shown_fields`), and receipts move it on from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Snapshot
from firestore_outbox.firestore.values import Version
from firestore_outbox.firestore.writes import DELETE, WriteOp, update, upsert
from firestore_outbox.messages.ids import thread_id_of
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.new_documents import identity_fields, message_fields, thread_fields
from firestore_outbox.messages.outbox_document import Stored
from firestore_outbox.messages.states import SHOWN_AS, MessageStatus, OutboxStatus
from firestore_outbox.providers.outcome import DeliveryError, stored_code
from firestore_outbox.receipts.rules import ShownMessage

_STATUSES: dict[Any, MessageStatus] = {status.value: status for status in MessageStatus}


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A thread's message document, as far as receipts can change it."""

    shown: ShownMessage
    path: str
    request_id: str
    version: Version | None
    """None: it is a run's, and does not exist yet."""

    @classmethod
    def unshown(cls, message: OutboxMessage) -> StoredMessage:
        path = paths.message(message.thread_id, message.request_id)
        return cls(ShownMessage(status=MessageStatus.QUEUED), path, message.request_id, None)


def read(snapshot: Snapshot) -> StoredMessage:
    data = snapshot.data
    error = data.get("error")
    shown = ShownMessage(
        status=_STATUSES.get(data.get("status"), MessageStatus.QUEUED),
        series=series if isinstance(series := data.get("series"), int) else 0,
        provider_message_id=data.get("providerMessageId"),
        sent_at=data.get("sentAt"),
        delivered_at=data.get("deliveredAt"),
        read_at=data.get("readAt"),
        failed_at=data.get("failedAt"),
        error=_shown_error(error, data.get("failedAt")) if isinstance(error, Mapping) else None,
    )
    return StoredMessage(shown, snapshot.path, snapshot.id, snapshot.version)


def is_ours(snapshot: Snapshot) -> bool:
    """What others sent has ids of the provider's too, and no receipts."""
    return snapshot.data.get("direction") != "inbound"


# --- after the outbox document


def followed(old: OutboxMessage, new: OutboxMessage) -> list[WriteOp]:
    """The writes that show what became of an attempt."""
    if SHOWN_AS[new.status] is SHOWN_AS[old.status]:  # people see it already, or receipts told more
        if new.run_id is None and new.provider_message_id not in (None, old.provider_message_id):
            known = {"providerMessageId": new.provider_message_id}  # foretold: a receipt may look for it
            return [upsert(paths.message(new.thread_id, new.request_id), known)]
        return []
    if new.run_id is None:
        return [upsert(paths.message(new.thread_id, new.request_id), shown_fields(new))]
    return first_shown(new) if new.status is OutboxStatus.SENT else []


def first_shown(message: OutboxMessage) -> list[WriteOp]:
    """A run's message appears in its thread when it is sent. What receipts may have told before stays."""
    parts = [part.model_dump(exclude_none=True) for part in message.parts]
    identity = identity_fields(request_id=message.request_id, account_id=message.account_id, to=message.to, parts=parts)
    first = {**message_fields(identity, server_time=message.created_at), "runId": message.run_id}
    thread = thread_fields(account_id=message.account_id, to=message.to, parts=parts, at=message.sent_at)
    return [
        upsert(paths.message(message.thread_id, message.request_id), first | shown_fields(message)),
        upsert(paths.thread(message.thread_id), thread),
    ]


def shown_fields(message: OutboxMessage) -> dict[str, Any]:
    """What the thread's message document gets when its outbox document has ended."""
    status = SHOWN_AS[message.status]
    fields: dict[str, Any] = {"status": status.value}
    if status is MessageStatus.SENT:
        fields |= {"sentAt": message.sent_at, "providerMessageId": message.provider_message_id}
        if message.instead is not None:
            fields["sentInstead"] = message.instead.model_dump(exclude_none=True)
        return {name: value for name, value in fields.items() if value is not None}
    if message.last_error is not None and status is not MessageStatus.CANCELLED:
        fields["error"] = {"code": message.last_error.code.value, "message": message.last_error.message}
        if status is MessageStatus.FAILED:
            fields["failedAt"] = message.last_error.at
    return fields


def shown_again(redriven: OutboxMessage) -> WriteOp:
    """Of a message that is back in the queue: nothing of its end, nor of a send that bounced."""
    fields: dict[str, Any] = {"status": MessageStatus.QUEUED.value, "series": redriven.series}
    gone = ["error", "failedAt", "sentAt"] + (["providerMessageId"] if redriven.provider_message_id is None else [])
    return update(
        paths.message(redriven.thread_id, redriven.request_id), fields | dict.fromkeys(gone, DELETE), version=None
    )


def shown_refusals(document: Stored, error: DeliveryError) -> list[WriteOp]:
    """What people see of a malformed document, if it is where one of these looks: in the thread that it names, but
    only in one of its own account, or in the one that its account and recipient make."""
    account_id = document.account_id
    if account_id is None:
        return []
    named, made = document.thread_id, document.to and thread_id_of(account_id, document.to)
    own = [one for one in (named, made) if one and one.startswith(thread_id_of(account_id, ""))]
    shown = {"code": error.code.value, "message": error.message}
    fields = {"status": MessageStatus.FAILED.value, "failedAt": error.at, "error": shown}
    return [update(paths.message(one, document.request_id), fields, version=None) for one in dict.fromkeys(own)]


# --- after receipts


def receipt_changes(old: ShownMessage, new: ShownMessage) -> dict[str, Any]:
    def fields(shown: ShownMessage) -> dict[str, Any]:
        error = None if shown.error is None else {"code": shown.error.code.value, "message": shown.error.message}
        return {
            "status": shown.status.value,
            "providerMessageId": shown.provider_message_id,
            "sentAt": shown.sent_at,
            "deliveredAt": shown.delivered_at,
            "readAt": shown.read_at,
            "failedAt": shown.failed_at,
            "error": error,
        }

    before, after = fields(old), fields(new)
    return {name: value for name, value in after.items() if value != before[name]}


def _shown_error(error: Mapping[str, Any], failed_at: Any) -> DeliveryError | None:
    code = error.get("code")
    if not isinstance(code, str) or not isinstance(failed_at, datetime):
        return None
    return DeliveryError(code=stored_code(code), message=str(error.get("message", "")), retryable=False, at=failed_at)
