"""What a provider answered, as closed data. An adapter translates its provider's answers into these, once.

The line that matters runs between *provably not processed* and *nobody knows*. A refused connection or a throttle is
the former and may be tried again at once. A read timeout or a dropped response is the latter: `Unknown`.

    Outcome
      Sent           accepted; a receipt will tell the rest
      Throttled      not processed: the scope named must wait
      Retryable      not processed, for a reason that passes
      Postponed      not tried, or not to its end, through no fault of the message
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
    """`lastError.code` and the message's `error.code`. The contract lists them; a frontend may match on them."""

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


class Scope(StrEnum):
    """Whom a throttle or a cap concerns, from the narrowest to the widest."""

    RECIPIENT = "recipient"
    ACCOUNT = "account"
    APP = "app"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryError:
    """`lastError` of an outbox document: why the last attempt did not end in `sent`."""

    code: ErrorCode
    message: str
    retryable: bool
    """Whether sending it again, as it is, could succeed. Not whether we will."""
    at: datetime


def in_doubt_after(error: DeliveryError) -> DeliveryError:
    """The same end for a message that an earlier attempt may have delivered: nobody can say that it was not sent."""
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
    scope: Scope
    detail: str
    retry_after: timedelta | None = None
    """As the provider said; None if it did not."""
    parts_sent: int = 0
    """How many parts this attempt got accepted before this answer came. The same in each outcome below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retryable:
    code: ErrorCode
    detail: str
    retry_after: timedelta | None = None
    parts_sent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Postponed:
    """There was no time left for it, or its file is on its way. Back to the queue, and no failure is counted."""

    code: ErrorCode
    detail: str
    retry_after: timedelta
    parts_sent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    code: ErrorCode
    detail: str
    parts_sent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthFailed:
    detail: str
    parts_sent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NotConnected:
    detail: str
    retry_after: timedelta | None = None
    parts_sent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    detail: str
    parts_sent: int = 0
    """Parts that were certainly accepted; the one after them is in doubt."""


Outcome = Sent | Throttled | Retryable | Postponed | Rejected | AuthFailed | NotConnected | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """What a provider declares about itself; it decides what an unknown outcome means."""

    resend_safe: bool
    """The same key sent twice is delivered once, by the provider's own promise."""
    echoes_request_id: bool
    """Receipts carry our requestId, so a receipt can settle a call that was never answered."""
