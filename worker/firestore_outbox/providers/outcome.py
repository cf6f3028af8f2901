"""What a provider answered, as closed data. An adapter translates its provider's answers into these, once.

The line that matters runs between *provably not processed* and *unknown*. A refused connection or a throttle is the
former and may be retried. A read timeout or a dropped response is the latter: `Unknown`.

    Outcome
      Sent           accepted; receipts report the rest
      Throttled      not processed: the scope named must wait
      Retryable      not processed, for a temporary reason
      Postponed      not tried, or not completed, for a reason that is not the message's
      Rejected       not processed, and never will be
      AuthFailed     not processed: the account's credentials or standing are refused
      NotConnected   not processed: the account has no live session
      Unknown        perhaps processed
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class ErrorCode(StrEnum):
    """`lastError.code` of an outbox document and `error.code` of a message. A frontend may match on them."""

    PROVIDER_TIMEOUT = "provider_timeout"
    PROVIDER_UNAVAILABLE = "provider_unavailable"
    RATE_LIMITED = "rate_limited"
    RECIPIENT_INVALID = "recipient_invalid"
    REJECTED = "rejected"
    AUTH = "auth"
    NOT_CONNECTED = "not_connected"
    WINDOW_CLOSED = "window_closed"
    DEADLINE_PASSED = "deadline_passed"
    MAX_ATTEMPTS = "max_attempts"
    INVALID_MESSAGE = "invalid_message"
    MEDIA_MISSING = "media_missing"
    OUTCOME_UNKNOWN = "outcome_unknown"
    OPTED_OUT = "opted_out"
    FREQUENCY_CAPPED = "frequency_capped"
    NEW_CONTACT_CAPPED = "new_contact_capped"
    OUTSIDE_HOURS = "outside_hours"
    CANNOT_OPEN = "cannot_open"
    QUOTA_EXCEEDED = "quota_exceeded"


class Scope(StrEnum):
    """What a throttle or a cap applies to, from the narrowest to the widest."""

    RECIPIENT = "recipient"
    ACCOUNT = "account"
    APP = "app"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryError:
    """`lastError` of an outbox document: why the last attempt did not end in `sent`."""

    code: ErrorCode
    message: str
    retryable: bool
    """Whether sending the same message again could succeed. Not whether the worker will."""
    at: datetime


def stored_code(text: str) -> ErrorCode:
    """The code of a stored error.

    A later version may have written one that this version does not know. It keeps its text and equals none of ours, so
    that the document stays valid here and is written back as it was."""
    if text in set(ErrorCode):
        return ErrorCode(text)
    unknown = str.__new__(ErrorCode, text)
    unknown._name_ = unknown._value_ = text
    return unknown


def in_doubt_after(error: DeliveryError) -> DeliveryError:
    """The same end for a message that an earlier attempt may have delivered: the outcome stays unknown."""
    if error.code is ErrorCode.OUTCOME_UNKNOWN:
        return error
    sentence = f"an earlier attempt may have reached the recipient; then: {error.message}"
    return DeliveryError(code=ErrorCode.OUTCOME_UNKNOWN, message=sentence, retryable=error.retryable, at=error.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """Every part was accepted."""

    provider_message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttled:
    """Not processed: the scope must wait."""

    scope: Scope
    detail: str
    retry_after: timedelta | None = None
    """As the provider said; None: it did not say."""
    parts_sent: int = 0
    """Parts that the provider accepted in this attempt before this answer. `PartSender` sets it, in all outcomes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retryable:
    """Not processed, for a temporary reason. Counts as a failure of the message; retried after a backoff."""

    code: ErrorCode
    detail: str
    retry_after: timedelta | None = None
    parts_sent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Postponed:
    """No time was left, or its file is being uploaded. Goes back to the queue; no failure is counted."""

    code: ErrorCode
    detail: str
    retry_after: timedelta
    parts_sent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """Refused for good: the message fails."""

    code: ErrorCode
    detail: str
    parts_sent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthFailed:
    """The provider refuses the account: it is parked, and its messages stay queued."""

    detail: str
    parts_sent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NotConnected:
    """Not processed: the account has no live session. The lane pauses."""

    detail: str
    retry_after: timedelta | None = None
    parts_sent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Perhaps processed. The account's policy and receipts decide what follows."""

    detail: str
    parts_sent: int = 0
    """Parts that were certainly accepted; the next one is in doubt."""


Outcome = Sent | Throttled | Retryable | Postponed | Rejected | AuthFailed | NotConnected | Unknown
"""The result of an attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """What a provider promises; it decides what follows an unknown outcome."""

    resend_safe: bool
    """The provider promises to deliver the same key once, however often it is sent."""
    echoes_request_id: bool
    """Receipts carry the mark of the part, so a receipt can settle an unanswered call."""
