"""An outbox document, from Firestore and back: what it says, and the writes that make it say something else.

Every write demands the version that was read, so that what another writer wrote meanwhile is never overwritten.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Snapshot
from firestore_outbox.firestore.values import Version
from firestore_outbox.firestore.writes import DELETE, SERVER_TIME, WriteOp, update
from firestore_outbox.messages.model import KEEP_ENDED, OutboxMessage
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.validation import InvalidMessage, parse_message
from firestore_outbox.providers.outcome import DeliveryError

Parsed = OutboxMessage | InvalidMessage

LARGEST_BYTES = 256 * 1024
"""A larger document fails as `invalid_message`, without being decoded. This bounds what one message costs a worker, and
is far below the 1 MiB at which Firestore refuses what a worker writes into the document."""
PAGE_BYTES = 4 * 1024 * 1024
"""A page of documents ends when this many bytes were read, so that a worker's memory does not depend on their sizes."""
_KEPT = frozenset({"requestId", "accountId", "threadId", "to", "createdAt", "createdBy", "nextAttemptAt", "runId"})
"""What stays of a document from which the ballast is removed."""
_LONGEST_KEPT = 2_048
"""Characters of a kept text; a longer one is ballast, too."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An outbox document with the version it was read or written at: the claim, after a claim."""

    message: Parsed
    version: Version
    thread_id: str | None
    """As the document says, also of a malformed one; None if it says nothing usable."""
    account_id: str | None
    """The same of the account."""
    to: str | None
    """The same of the recipient."""
    status: str | None
    """The same of the status."""
    created: datetime
    """When Firestore made the document, to the microsecond: it tells two messages of one millisecond apart."""
    ballast: tuple[str, ...] = ()
    """The fields that can be removed to make the document writable, if it ends."""
    is_too_large: bool = False
    """Above LARGEST_BYTES: the ballast is removed when it ends."""

    @property
    def request_id(self) -> str:
        return self.message.request_id

    @property
    def valid(self) -> OutboxMessage:
        if isinstance(self.message, InvalidMessage):
            raise TypeError("a malformed document is only ever refused")
        return self.message


def read(snapshot: Snapshot) -> Stored:
    """`snapshot` was read with `hollow_above=LARGEST_BYTES`."""
    return Stored(
        message=_too_large(snapshot) if snapshot.is_hollow else parse_message(snapshot.id, snapshot.data),
        version=snapshot.version,
        thread_id=_id(snapshot.data.get("threadId")),
        account_id=_id(snapshot.data.get("accountId")),
        to=_id(snapshot.data.get("to")),
        status=_id(snapshot.data.get("status")),
        created=snapshot.created,
        ballast=tuple(name for name, value in snapshot.data.items() if _is_ballast(name, value)),
        is_too_large=snapshot.is_hollow,
    )


def _is_ballast(name: str, value: Any) -> bool:
    return name not in _KEPT or (isinstance(value, str) and len(value) > _LONGEST_KEPT)


def rewritten(old: Stored, new: OutboxMessage, *, due_at_commit: bool = False) -> WriteOp:
    """The document as it was read becomes the other one; `due_at_commit`: with the time of the commit itself."""
    before, after = _fields(old.valid), _fields(new)
    fields = {name: DELETE if after[name] is None else after[name] for name in after if after[name] != before[name]}
    if due_at_commit:
        fields["nextAttemptAt"] = SERVER_TIME
    return update(paths.outbox(new.request_id), fields, version=old.version)


def refusal(document: Stored, error: DeliveryError, expire_at: datetime) -> WriteOp:
    """Mark a document as failed, whatever its other fields are."""
    fields = {"status": OutboxStatus.FAILED.value, "lastError": error_fields(error), "expireAt": expire_at}
    marked = update(paths.outbox(document.request_id), fields, version=document.version)
    return without_ballast(document, marked) if document.is_too_large else marked


def skipped_fields(error: DeliveryError) -> dict[str, Any]:
    """Of a target's document that is made only to say why nothing is sent to it."""
    return {
        "status": OutboxStatus.SKIPPED.value,
        "lastError": error_fields(error),
        "expireAt": error.at + KEEP_ENDED,
    }


def without_ballast(document: Stored, write: WriteOp) -> WriteOp:
    """The same write, which also removes what an ended document does not need: Firestore takes it."""
    return replace(write, fields={**dict.fromkeys(document.ballast, DELETE), **write.fields})


def error_fields(error: DeliveryError) -> dict[str, Any]:
    return {"code": error.code.value, "message": error.message, "retryable": error.retryable, "at": error.at}


def _fields(message: OutboxMessage) -> dict[str, Any]:
    """The fields that the worker writes."""
    return {
        "status": message.status.value,
        "nextAttemptAt": message.next_attempt_at,
        "sendBy": message.send_by,
        "attempts": message.attempts,
        "failures": message.failures,
        "partsSent": message.parts_sent,
        "series": message.series or None,
        "doubted": message.doubted or None,
        "sentInstead": None if message.instead is None else message.instead.model_dump(exclude_none=True),
        "claimedBy": message.claimed_by,
        "leaseUntil": message.lease_until,
        "providerMessageId": message.provider_message_id,
        "sentAt": message.sent_at,
        "lastError": None if message.last_error is None else error_fields(message.last_error),
        "expireAt": message.expire_at,
        "cancelRequested": message.cancel_requested or None,
    }


def _too_large(snapshot: Snapshot) -> InvalidMessage:
    sentence = f"The document has {snapshot.size_bytes:,} bytes; at most {LARGEST_BYTES:,} are allowed."
    return InvalidMessage(request_id=snapshot.id, sentence=sentence)


def _id(value: Any) -> str | None:
    return value if isinstance(value, str) and value and "/" not in value else None
