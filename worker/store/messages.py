"""Outbox documents and the messages people see: read, claimed, completed, settled by receipts.

The reads and writes of a message's way are counted here: it is read once, by the query that finds it; written once when
it is claimed; and its end is one commit of two writes with no read. Everything that costs more is a slow path.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from worker.domain.message import SHOWN_AS, MessageStatus, OutboxMessage, OutboxStatus, shown_text, thread_id_of
from worker.domain.outcome import DeliveryError, ErrorCode
from worker.domain.receipt import ShownMessage
from worker.domain.validation import InvalidMessage, parse_message
from worker.errors import Unwritable
from worker.store import paths
from worker.store.gateway import (
    DELETE,
    SERVER_TIME,
    Committed,
    Conflict,
    Find,
    Gateway,
    Snapshot,
    Version,
    WriteOp,
    update,
    upsert,
)

ReceiptKey = Literal["requestId", "providerMessageId"]

_STATUSES: dict[Any, MessageStatus] = {status.value: status for status in MessageStatus}
_CODES: dict[Any, ErrorCode] = {code.value: code for code in ErrorCode}

Parsed = OutboxMessage | InvalidMessage

IN_WAITING = (OutboxStatus.QUEUED.value, OutboxStatus.UNCERTAIN.value)
"""What a lane looks for: to be sent, or to be settled when its wait for a receipt ends."""


MOST_IN_A_QUERY = 30
"""Values that Firestore takes in one `in`."""
DUE_AT_COMMIT = {"nextAttemptAt": SERVER_TIME}
_QUEUED_AGAIN = {"status": MessageStatus.QUEUED.value, "error": DELETE, "failedAt": DELETE}
_EVER = datetime(1970, 1, 1, tzinfo=UTC)
"""Before any time that a document may have."""
LARGEST_BYTES = 1_040_000
"""Firestore takes 1,048,576; the rest is for what we write into the document on its way."""


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
    """Of a document that is too large to be written to: the fields that make it so."""

    @property
    def request_id(self) -> str:
        return self.message.request_id


@dataclass(frozen=True, slots=True)
class Page:
    documents: list[Stored]
    moment: datetime
    """Of which it is true, by the database."""


@dataclass(frozen=True, slots=True)
class NextDue:
    at: datetime
    run_id: str | None


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


class MessageStore:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    # --- what a lane reads

    async def due(self, account_id: str, now: datetime, limit: int, after: Stored | None = None) -> Page:
        """Queued or uncertain, due by now, in order; behind `after`, if given."""
        where = (("accountId", "==", account_id), ("status", "in", IN_WAITING), ("nextAttemptAt", "<=", now))
        cursor = None
        if after is not None and isinstance(after.message, OutboxMessage):
            cursor = (after.message.next_attempt_at, after.message.created_at, paths.outbox(after.request_id))
        query = Find(
            collection=paths.OUTBOX,
            where=where,
            order_by=("nextAttemptAt", "createdAt", "__name__"),
            limit=limit,
            start_after=cursor,
        )
        page = await self._gateway.find_at(query, None)
        return Page([_stored(snapshot) for snapshot in page.found], page.moment)

    async def next_due(self, account_id: str, after: datetime) -> NextDue | None:
        """The first document that comes due after that."""
        where = (("accountId", "==", account_id), ("status", "in", IN_WAITING), ("nextAttemptAt", ">", after))
        query = Find(
            collection=paths.OUTBOX,
            where=where,
            order_by=("nextAttemptAt", "createdAt"),  # not needed, but then one index serves both
            limit=1,
            select=("nextAttemptAt", "runId"),
        )
        found = await self._gateway.find(query)
        at = found[0].data.get("nextAttemptAt") if found else None
        return NextDue(at, found[0].data.get("runId")) if isinstance(at, datetime) else None

    async def abandoned(self, account_id: str, by: datetime, moment: datetime) -> list[Stored]:
        """In flight at that moment under a claim whose lease ended by then: what earlier holders of the lane left."""
        where = (
            ("accountId", "==", account_id),
            ("status", "==", OutboxStatus.SENDING.value),
            ("leaseUntil", "<=", by),
        )
        query = Find(collection=paths.OUTBOX, where=where, order_by=("leaseUntil",))
        return [_stored(snapshot) for snapshot in (await self._gateway.find_at(query, moment)).found]

    async def accounts_with_abandoned(self, by: datetime, limit: int = 100) -> set[str]:
        """Accounts whose claims outlived their lease by then."""
        where = (("status", "==", OutboxStatus.SENDING.value), ("leaseUntil", "<=", by))
        query = Find(collection=paths.OUTBOX, where=where, order_by=("leaseUntil",), limit=limit, select=("accountId",))
        found = [snapshot.data.get("accountId") for snapshot in await self._gateway.find(query)]
        return {account_id for account_id in found if isinstance(account_id, str)}

    async def cancel_requested(self, limit: int = 100) -> list[Stored]:
        """Queued, and its author wants it no more."""
        where = (("status", "==", OutboxStatus.QUEUED.value), ("cancelRequested", "==", True))
        return [
            _stored(snapshot)
            for snapshot in await self._gateway.find(Find(collection=paths.OUTBOX, where=where, limit=limit))
        ]

    async def next_account_due(self, by: datetime, after: str) -> str | None:
        """The first account, in order behind `after`, that has something waiting that came due by then."""
        where = (("status", "in", IN_WAITING), ("accountId", ">", after), ("nextAttemptAt", "<=", by))
        query = Find(
            collection=paths.OUTBOX,
            where=where,
            order_by=("accountId", "nextAttemptAt"),
            limit=1,
            select=("accountId",),
        )
        found = await self._gateway.find(query)
        return str(found[0].data["accountId"]) if found else None

    async def in_status(
        self, status: OutboxStatus, *, account_id: str | None = None, limit: int, after: str | None = None
    ) -> list[Stored]:
        """For people who look for them: documents of one status, of all accounts or of one, by name; behind that
        requestId, if given."""
        of_account = () if account_id is None else (("accountId", "==", account_id),)
        query = Find(
            collection=paths.OUTBOX,
            where=(*of_account, ("status", "==", status.value)),
            order_by=("__name__",),
            limit=limit,
            start_after=None if after is None else (paths.outbox(after),),
        )
        return [_stored(snapshot) for snapshot in await self._gateway.find(query)]

    async def get(self, request_ids: Sequence[str]) -> list[Stored]:
        """Those that exist."""
        found = await self._gateway.get_all([paths.outbox(request_id) for request_id in request_ids])
        return [_stored(snapshot) for snapshot in found.values()]

    # --- what a lane writes

    async def claim(self, claims: Sequence[tuple[Stored, OutboxMessage]]) -> list[Stored] | Conflict:
        """All of them or none: each document as it was read becomes the one beside it."""
        result = await self._gateway.commit(
            [
                update(paths.outbox(new.request_id), _changes(_valid(old), new), version=old.version)
                for old, new in claims
            ]
        )
        if isinstance(result, Conflict):
            return result
        return [
            replace(old, message=new, version=version)
            for (old, new), version in zip(claims, result.versions, strict=True)
        ]

    async def end(self, document: Stored, new: OutboxMessage) -> Committed | Conflict:
        """A document that ends, or goes back to the queue: with what people see of it, if that can be written."""
        writes = completion(document, new)
        try:
            return await self._gateway.commit(writes)
        except Unwritable:  # somebody filled the message document to the brim
            return await self._gateway.commit(writes[:1])

    async def write(self, writes: Sequence[WriteOp]) -> Committed | Conflict:
        return await self._gateway.commit(writes)

    async def put_back(self, ended: Stored, again: OutboxMessage) -> bool:
        """A person's way back: due when it is written, and people see it as queued once more. False: it was changed
        meanwhile, or people see nothing of it."""
        writes = [
            update(
                paths.outbox(again.request_id), _changes(_valid(ended), again) | DUE_AT_COMMIT, version=ended.version
            ),
            update(paths.message(again.thread_id, again.request_id), _QUEUED_AGAIN, version=None),
        ]
        return not isinstance(await self._gateway.commit(writes), Conflict)

    # --- what a run reads and writes

    async def of_run(self, run_id: str, status: OutboxStatus, limit: int, after: str | None = None) -> list[Stored]:
        """A run's documents of one status, by name; behind that requestId, if given."""
        query = Find(
            collection=paths.OUTBOX,
            where=(("runId", "==", run_id), ("status", "==", status.value)),
            order_by=("__name__",),
            limit=limit,
            start_after=None if after is None else (paths.outbox(after),),
        )
        return [_stored(snapshot) for snapshot in await self._gateway.find(query)]

    async def is_in_sight(self, run_id: str) -> bool:
        """Whether a lane may come to any of a run's documents: one look at all of them at one moment. Those that are
        parked, or wait for a person, have no time."""
        open_ones = (OutboxStatus.QUEUED.value, OutboxStatus.SENDING.value, OutboxStatus.UNCERTAIN.value)
        query = Find(
            collection=paths.OUTBOX,
            where=(("runId", "==", run_id), ("status", "in", open_ones), ("nextAttemptAt", ">", _EVER)),
            order_by=("nextAttemptAt",),
            limit=1,
            select=("status",),
        )
        return bool(await self._gateway.find(query))

    async def count_of_run(self, run_id: str, status: OutboxStatus) -> int:
        where = (("runId", "==", run_id), ("status", "==", status.value))
        return await self._gateway.count(Find(collection=paths.OUTBOX, where=where))

    async def count_shown_of_run(self, run_id: str, status: MessageStatus) -> int:
        where = (("runId", "==", run_id), ("status", "==", status.value))
        return await self._gateway.count(Find(collection=paths.MESSAGES, group=True, where=where))

    async def count_waiting(self, account_id: str) -> int:
        where = (("accountId", "==", account_id), ("status", "==", OutboxStatus.QUEUED.value))
        return await self._gateway.count(Find(collection=paths.OUTBOX, where=where))

    async def move(self, changes: Sequence[tuple[Stored, OutboxMessage]], at_commit: Collection[str] = ()) -> int:
        """Each document as it was read becomes the one beside it; those that somebody changed meanwhile are left.
        `at_commit` are those that come due when they are written. How many were written."""
        if not changes:
            return 0
        writes = [
            update(
                paths.outbox(new.request_id),
                _changes(_valid(old), new) | (DUE_AT_COMMIT if new.request_id in at_commit else {}),
                version=old.version,
            )
            for old, new in changes
        ]
        if not isinstance(await self._gateway.commit(writes), Conflict):
            return len(writes)
        results = [await self._gateway.commit([write]) for write in writes]
        return sum(not isinstance(result, Conflict) for result in results)

    # --- what receipts read and write

    async def shown(self, account_id: str, field: ReceiptKey, value: str) -> StoredMessage | None:
        """The message that a receipt tells of, by our id as it was echoed, or by the provider's own. One read."""
        where = (("accountId", "==", account_id), (field, "==", value))
        found = await self._gateway.find(Find(collection=paths.MESSAGES, group=True, where=where, limit=2))
        return next((_shown(snapshot) for snapshot in found if _is_ours(snapshot)), None)

    async def shown_all(self, account_id: str, field: ReceiptKey, values: Sequence[str]) -> dict[str, StoredMessage]:
        """The same for several, at most `MOST_IN_A_QUERY`: those that are known, by value."""
        where = (("accountId", "==", account_id), (field, "in", list(values)))
        found = await self._gateway.find(Find(collection=paths.MESSAGES, group=True, where=where))
        return {str(snapshot.data.get(field)): _shown(snapshot) for snapshot in found if _is_ours(snapshot)}

    async def advance(self, changes: Sequence[tuple[StoredMessage, ShownMessage]]) -> Committed | Conflict:
        """All of them or none: each as it was read becomes the one beside it."""
        return await self._gateway.commit(
            [
                update(before.path, _shown_changes(before.shown, after), version=before.version)
                for before, after in changes
            ]
        )

    async def settle(
        self, before: StoredMessage, after: ShownMessage, outbox: tuple[Stored, OutboxMessage] | None
    ) -> Committed | Conflict:
        changes = _shown_changes(before.shown, after)
        writes: list[WriteOp] = []
        if before.version is not None:
            writes.append(update(before.path, changes, version=before.version))
        else:
            assert outbox is not None, "a message that is not shown yet is known from its outbox document"
            if outbox[1].status is OutboxStatus.SENT:  # one that failed is not shown at all
                shown, thread = first_shown(outbox[1])
                writes = [replace(shown, fields={**shown.fields, **changes}, masked=False, exists=False), thread]
        if outbox is not None:
            old, new = outbox
            writes.append(update(paths.outbox(new.request_id), _changes(_valid(old), new), version=old.version))
        return await self._gateway.commit(writes)


def completion(claim: Stored, new: OutboxMessage) -> list[WriteOp]:
    """The writes that end or put back an attempt: the document under its claim, and what people see of it."""
    old = _valid(claim)
    writes = [update(paths.outbox(new.request_id), _changes(old, new), version=claim.version)]
    if SHOWN_AS[new.status] is SHOWN_AS[old.status]:  # people see it already, or receipts told more
        if new.run_id is None and new.provider_message_id not in (None, old.provider_message_id):
            known = {"providerMessageId": new.provider_message_id}  # foretold: a receipt may look for it
            writes.append(upsert(paths.message(new.thread_id, new.request_id), known))
        return writes
    if new.run_id is None:
        writes.append(upsert(paths.message(new.thread_id, new.request_id), shown_fields(new)))
    elif new.status is OutboxStatus.SENT:
        writes += first_shown(new)
    return writes


def first_shown(message: OutboxMessage) -> list[WriteOp]:
    """A run's message appears in its thread when it is sent. What receipts may have told before stays."""
    parts = [part.model_dump(exclude_none=True) for part in message.parts]
    identity = {
        "requestId": message.request_id,
        "accountId": message.account_id,
        "threadId": message.thread_id,
        "to": message.to,
        "direction": "outbound",
        "parts": parts,
        "createdAt": message.created_at,
        "runId": message.run_id,
    }
    thread = {
        "accountId": message.account_id,
        "to": message.to,
        "lastMessageAt": message.sent_at,
        "lastMessageText": shown_text(parts),
    }
    return [
        upsert(paths.message(message.thread_id, message.request_id), identity | shown_fields(message)),
        upsert(paths.thread(message.thread_id), thread),
    ]


def refusal(document: Stored, error: DeliveryError, expire_at: datetime) -> WriteOp:
    """A malformed document can only be marked."""
    fields = dict.fromkeys(document.ballast, DELETE) | {
        "status": OutboxStatus.FAILED.value,
        "lastError": error_fields(error),
        "expireAt": expire_at,
    }
    return update(paths.outbox(document.request_id), fields, version=document.version)


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


def shown_fields(message: OutboxMessage) -> dict[str, Any]:
    """What the thread's message document is told when its outbox document has ended."""
    status = SHOWN_AS[message.status]
    fields: dict[str, Any] = {"status": status.value}
    if status is MessageStatus.SENT:
        fields |= {"sentAt": message.sent_at, "providerMessageId": message.provider_message_id}
        return {name: value for name, value in fields.items() if value is not None}
    if message.last_error is not None and status is not MessageStatus.CANCELLED:
        fields["error"] = {"code": message.last_error.code.value, "message": message.last_error.message}
        if status is MessageStatus.FAILED:
            fields["failedAt"] = message.last_error.at
    return fields


def _stored(snapshot: Snapshot) -> Stored:
    is_too_large = snapshot.size_bytes > LARGEST_BYTES
    return Stored(
        message=_too_large(snapshot) if is_too_large else parse_message(snapshot.id, snapshot.data),
        version=snapshot.version,
        thread_id=_id(snapshot.data.get("threadId")),
        account_id=_id(snapshot.data.get("accountId")),
        to=_id(snapshot.data.get("to")),
        status=_id(snapshot.data.get("status")),
        created=snapshot.created,
        ballast=tuple(name for name in snapshot.data if name not in _KEPT) if is_too_large else (),
    )


_KEPT = frozenset({"requestId", "accountId", "threadId", "to", "createdAt", "createdBy", "nextAttemptAt", "runId"})
"""What stays of a document that was too large."""


def _too_large(snapshot: Snapshot) -> InvalidMessage:
    sentence = f"The document has {snapshot.size_bytes:,} bytes; at most {LARGEST_BYTES:,} are allowed."
    return InvalidMessage(request_id=snapshot.id, sentence=sentence)


def _id(value: Any) -> str | None:
    return value if isinstance(value, str) and value and "/" not in value else None


def _valid(stored: Stored) -> OutboxMessage:
    if isinstance(stored.message, InvalidMessage):
        raise TypeError("a malformed document is only ever refused")
    return stored.message


def _changes(old: OutboxMessage, new: OutboxMessage) -> dict[str, Any]:
    before, after = _fields(old), _fields(new)
    return {name: DELETE if after[name] is None else after[name] for name in after if after[name] != before[name]}


def _fields(message: OutboxMessage) -> dict[str, Any]:
    """The fields that the worker writes."""
    return {
        "status": message.status.value,
        "nextAttemptAt": message.next_attempt_at,
        "sendBy": message.send_by,
        "attempts": message.attempts,
        "failures": message.failures,
        "partsSent": message.parts_sent,
        "doubted": message.doubted or None,
        "claimedBy": message.claimed_by,
        "leaseUntil": message.lease_until,
        "providerMessageId": message.provider_message_id,
        "sentAt": message.sent_at,
        "lastError": None if message.last_error is None else error_fields(message.last_error),
        "expireAt": message.expire_at,
        "cancelRequested": message.cancel_requested or None,
    }


def error_fields(error: DeliveryError) -> dict[str, Any]:
    return {"code": error.code.value, "message": error.message, "retryable": error.retryable, "at": error.at}


def _is_ours(snapshot: Snapshot) -> bool:
    """What others sent has ids of the provider's too, and no receipts."""
    return snapshot.data.get("direction") != "inbound"


def _shown(snapshot: Snapshot) -> StoredMessage:
    data = snapshot.data
    error = data.get("error")
    shown = ShownMessage(
        status=_STATUSES.get(data.get("status"), MessageStatus.QUEUED),
        provider_message_id=data.get("providerMessageId"),
        sent_at=data.get("sentAt"),
        delivered_at=data.get("deliveredAt"),
        read_at=data.get("readAt"),
        failed_at=data.get("failedAt"),
        error=_shown_error(error, data.get("failedAt")) if isinstance(error, Mapping) else None,
    )
    return StoredMessage(shown, snapshot.path, snapshot.id, snapshot.version)


def _shown_error(error: Mapping[str, Any], failed_at: Any) -> DeliveryError | None:
    code = _CODES.get(error.get("code"))
    if code is None or not isinstance(failed_at, datetime):
        return None
    return DeliveryError(code=code, message=str(error.get("message", "")), retryable=False, at=failed_at)


def _shown_changes(old: ShownMessage, new: ShownMessage) -> dict[str, Any]:
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
