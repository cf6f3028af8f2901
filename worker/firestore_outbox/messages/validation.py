"""From a raw Firestore dictionary to a valid message, or to a sentence that says what is wrong with it.

Anybody with write access can create an outbox document, and rules can be misconfigured, so nothing is believed:
types, sizes, that the thread belongs to the account. `parse_message` never raises: a malformed document must end
as `failed` with a readable reason, and must not stop the lane that meets it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from firestore_outbox.accounts.window import Window
from firestore_outbox.messages import faults
from firestore_outbox.messages.checked_fields import AccountId, Address, RequestId, TimeZone, sentence_of, shown
from firestore_outbox.messages.ids import thread_id_of
from firestore_outbox.messages.limits import LONGEST_AHEAD
from firestore_outbox.messages.model import OutboxMessage, Parts, TemplatePart
from firestore_outbox.messages.priority import priority_of
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode, stored_code

CLOCK_SLACK = timedelta(days=1)
"""A client works out the time to send at on its own clock, which may be wrong; the 365 days are not that exact."""

_Opaque = Annotated[str, StringConstraints(min_length=1, max_length=512)]
_Count = Annotated[int, Field(ge=0)]


class _Error(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    code: str
    message: str
    retryable: bool
    at: AwareDatetime


class _Window(BaseModel):
    """The hours of a run that goes on the next day. The worker wrote it."""

    model_config = ConfigDict(strict=True, extra="ignore")
    startHour: int
    endHour: int
    timezone: TimeZone

    @model_validator(mode="after")
    def _is_a_window(self) -> _Window:
        self.read()
        return self

    def read(self) -> Window:
        return Window(start_hour=self.startHour, end_hour=self.endHour, zone=ZoneInfo(self.timezone))


class _Hours(BaseModel):
    """The recipient's hours, in each of its possible zones. The worker wrote it."""

    model_config = ConfigDict(strict=True, extra="ignore")
    startHour: int
    endHour: int
    timezones: Annotated[list[TimeZone], Field(min_length=1, max_length=60)]

    @model_validator(mode="after")
    def _are_windows(self) -> _Hours:
        self.read()
        return self

    def read(self) -> tuple[Window, ...]:
        return tuple(
            Window(start_hour=self.startHour, end_hour=self.endHour, zone=ZoneInfo(zone)) for zone in self.timezones
        )


class _Document(BaseModel):
    """The outbox document as Firestore has it. Unknown fields are left alone."""

    model_config = ConfigDict(strict=True, extra="ignore")
    requestId: RequestId
    accountId: AccountId
    to: Address
    threadId: str
    parts: Parts
    status: Annotated[OutboxStatus, Field(strict=False)]
    createdAt: AwareDatetime
    nextAttemptAt: AwareDatetime | None = None
    createdBy: _Opaque | None = None
    sendBy: AwareDatetime | None = None
    window: _Window | None = None
    recipientHours: _Hours | None = None
    sentInstead: TemplatePart | None = None
    runId: _Opaque | None = None
    targetId: _Opaque | None = None
    priority: Any = None
    cancelRequested: bool = False
    attempts: _Count = 0
    failures: _Count = 0
    partsSent: _Count = 0
    series: _Count = 0
    doubted: bool = False
    claimedBy: str | None = None
    leaseUntil: AwareDatetime | None = None
    providerMessageId: str | None = None
    sentAt: AwareDatetime | None = None
    lastError: _Error | None = None
    expireAt: AwareDatetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidMessage:
    """A document that can never be sent."""

    request_id: str
    """The document's own id, which is known even if the field of that name is not."""
    sentence: str
    """What is wrong, for a person to read."""

    def error(self, at: datetime) -> DeliveryError:
        return DeliveryError(code=ErrorCode.INVALID_MESSAGE, message=self.sentence, retryable=False, at=at)


def parse_message(document_id: str, raw: Mapping[str, Any]) -> OutboxMessage | InvalidMessage:
    try:
        document = _Document.model_validate(raw if isinstance(raw, dict) else dict(raw))
    except ValidationError as error:
        return InvalidMessage(request_id=document_id, sentence=_sentence(error))
    except (TypeError, ValueError, RecursionError):  # no mapping at all, or one that lies about being one
        return InvalidMessage(request_id=document_id, sentence="The document is not a set of fields.")
    wrong = _disagreement(document_id, document)
    if wrong:
        return InvalidMessage(request_id=document_id, sentence=wrong)
    return _message(document)


def _disagreement(document_id: str, document: _Document) -> str | None:
    """What no single field shows."""
    if document.requestId != document_id:
        return f"requestId is {shown(document.requestId)}, but the document is outbox/{document_id}."
    expected = thread_id_of(document.accountId, document.to)
    if document.threadId != expected:
        return f"threadId is {shown(document.threadId)}; for this account and recipient it must be {expected!r}."
    if document.status is OutboxStatus.QUEUED and document.nextAttemptAt is None and document.runId is None:
        return f"nextAttemptAt {faults.MISSING}."  # only a paused run's document has none
    if document.nextAttemptAt and _far_ahead(document.createdAt, document.nextAttemptAt):
        return f"nextAttemptAt {faults.TOO_FAR_AHEAD}."
    if document.partsSent > len(document.parts):
        return f"partsSent is {document.partsSent}, but there are {len(document.parts)} parts."
    return None


def _far_ahead(created_at: datetime, at: datetime) -> bool:
    return at - created_at > LONGEST_AHEAD + CLOCK_SLACK


def _message(document: _Document) -> OutboxMessage:
    error = document.lastError
    return OutboxMessage(
        request_id=document.requestId,
        account_id=document.accountId,
        thread_id=document.threadId,
        to=document.to,
        parts=tuple(document.parts),
        created_at=document.createdAt,
        created_by=document.createdBy,
        send_by=document.sendBy,
        window=None if document.window is None else document.window.read(),
        hours=() if document.recipientHours is None else document.recipientHours.read(),
        run_id=document.runId,
        target_id=document.targetId,
        priority=priority_of(document.priority, is_of_run=document.runId is not None),
        status=document.status,
        next_attempt_at=document.nextAttemptAt,
        cancel_requested=document.cancelRequested,
        attempts=document.attempts,
        failures=document.failures,
        parts_sent=document.partsSent,
        series=document.series,
        instead=document.sentInstead,
        doubted=document.doubted,
        claimed_by=document.claimedBy,
        lease_until=document.leaseUntil,
        provider_message_id=document.providerMessageId,
        sent_at=document.sentAt,
        last_error=None if error is None else _error(error),
        expire_at=document.expireAt,
    )


def _error(error: _Error) -> DeliveryError:
    return DeliveryError(code=stored_code(error.code), message=error.message, retryable=error.retryable, at=error.at)


def _sentence(error: ValidationError) -> str:
    """The first fault in words, and how many more there are."""
    found = error.errors(include_url=False)
    more = f" ({len(found) - 1} more fault{'s' if len(found) > 2 else ''})" if len(found) > 1 else ""
    return f"{sentence_of(found[0])}{more}."
