"""WhatsApp's error codes: one table, for answers and for receipts alike.

The same code may come in the answer to a call, in a receipt of a message that was accepted, or in both; and the HTTP
status beside it is not to be relied on. So the code alone decides. Providers that stand between WhatsApp and us hand
these codes on, and use this table too.

    Kind             in an answer                                       in a receipt (the message has failed)
    AUTH             AuthFailed: the account is parked                  auth
    BLOCKED          AuthFailed: a person must settle it with Meta      auth
    SPAM             AuthFailed: every further message makes it worse   rate_limited
    THROTTLED_…      Throttled, with its scope                          rate_limited
    TOMORROW         Retryable, a day later                             rate_limited
    PASSING          Retryable                                          provider_unavailable
    RECIPIENT        Rejected                                           recipient_invalid
    WINDOW           Rejected                                           window_closed
    PAYLOAD          Rejected                                           invalid_message
    FILE             the file is uploaded again, once                   media_missing

The words are ours. What a provider writes beside a code may quote the message or the token.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

from firestore_outbox.providers.media import MediaRefused
from firestore_outbox.providers.outcome import (
    AuthFailed,
    DeliveryError,
    ErrorCode,
    Rejected,
    Retryable,
    Scope,
    Throttled,
)

A_DAY = timedelta(days=1)
LONGEST_PAIR_WAIT = timedelta(seconds=256)


class Kind(StrEnum):
    AUTH = "auth"
    BLOCKED = "blocked"
    SPAM = "spam"
    THROTTLED_NUMBER = "throttled_number"
    THROTTLED_PAIR = "throttled_pair"
    """This number to this recipient."""
    THROTTLED_BUSINESS = "throttled_business"
    """All numbers of one business account. Each of them will hear of it by itself."""
    THROTTLED_APP = "throttled_app"
    TOMORROW = "tomorrow"
    PASSING = "passing"
    RECIPIENT = "recipient"
    WINDOW = "window"
    PAYLOAD = "payload"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Meaning:
    kind: Kind
    words: str


_K = Kind

MEANINGS: Mapping[int, Meaning] = {
    # The account's credentials.
    0: Meaning(_K.AUTH, "the token cannot be checked: make a new one"),
    3: Meaning(_K.AUTH, "the app may not call this: check its permissions"),
    10: Meaning(_K.AUTH, "the token lacks a permission: it needs whatsapp_business_messaging"),
    190: Meaning(_K.AUTH, "the token has expired or was revoked: make a new one"),
    131005: Meaning(_K.AUTH, "the token may not send for this number: check its permissions"),
    # The account's standing.
    368: Meaning(_K.BLOCKED, "the account is blocked for a while for breaking a policy"),
    130497: Meaning(_K.BLOCKED, "the account may not send to this country"),
    131031: Meaning(_K.BLOCKED, "the account is locked, or its two-step PIN is wrong"),
    131037: Meaning(_K.BLOCKED, "the number's display name must be approved first"),
    131042: Meaning(_K.BLOCKED, "the account has a payment problem"),
    131045: Meaning(_K.BLOCKED, "the number is not registered, or its certificate is wrong"),
    131048: Meaning(_K.SPAM, "too many messages of this number were blocked or reported as spam"),
    131064: Meaning(_K.SPAM, "the number's quality is too low to send"),
    # Too much.
    4: Meaning(_K.THROTTLED_APP, "the app makes too many calls"),
    80007: Meaning(_K.THROTTLED_BUSINESS, "the business account makes too many calls"),
    130429: Meaning(_K.THROTTLED_NUMBER, "the number sends too many messages"),
    131056: Meaning(_K.THROTTLED_PAIR, "too many messages from this number to this recipient"),
    131049: Meaning(_K.TOMORROW, "the recipient got enough marketing for now; tried again a day later"),
    # Passing troubles.
    1: Meaning(_K.PASSING, "WhatsApp has a passing problem"),
    2: Meaning(_K.PASSING, "WhatsApp is not available for a moment"),
    131000: Meaning(_K.PASSING, "WhatsApp could not send it and does not know why"),
    131016: Meaning(_K.PASSING, "WhatsApp is overloaded"),
    131057: Meaning(_K.PASSING, "the account is in maintenance"),
    135000: Meaning(_K.PASSING, "WhatsApp could not send it and gives no reason"),
    # This recipient, for good.
    130472: Meaning(_K.RECIPIENT, "the recipient is part of an experiment of Meta's and gets no marketing"),
    131021: Meaning(_K.RECIPIENT, "sender and recipient are the same number"),
    131026: Meaning(_K.RECIPIENT, "the recipient cannot be reached on WhatsApp"),
    131030: Meaning(_K.RECIPIENT, "the recipient is not in the list of a test number"),
    131050: Meaning(_K.RECIPIENT, "the recipient wants no marketing from this account"),
    131062: Meaning(_K.RECIPIENT, "the recipient cannot get messages of this kind"),
    131047: Meaning(_K.WINDOW, "the recipient has not written for 24 hours: a template is needed"),
    # This message, for good.
    33: Meaning(_K.PAYLOAD, "something that the message names does not exist"),
    100: Meaning(_K.PAYLOAD, "a parameter is missing, misspelt or not allowed"),
    131008: Meaning(_K.PAYLOAD, "a required parameter is missing"),
    131009: Meaning(_K.PAYLOAD, "a parameter has a value that is not allowed"),
    131051: Meaning(_K.PAYLOAD, "WhatsApp does not know this type of message"),
    131052: Meaning(_K.PAYLOAD, "a file that a recipient sent cannot be fetched"),
    131053: Meaning(_K.FILE, "the file cannot be used: it expired, is broken, or is of a kind WhatsApp does not take"),
    131063: Meaning(_K.PAYLOAD, "the template cannot be sent this way"),
    132000: Meaning(_K.PAYLOAD, "the template has another number of placeholders"),
    132001: Meaning(_K.PAYLOAD, "there is no such template in this language, or it is not approved"),
    132005: Meaning(_K.PAYLOAD, "the template with its values is too long"),
    132007: Meaning(_K.PAYLOAD, "the template breaks a policy"),
    132008: Meaning(_K.PAYLOAD, "a value has not the form that the template wants"),
    132012: Meaning(_K.PAYLOAD, "a value has not the form that the template wants"),
    132015: Meaning(_K.PAYLOAD, "the template is paused for its quality"),
    132016: Meaning(_K.PAYLOAD, "the template was switched off for its quality"),
}
_PERMISSIONS = range(200, 300)
"""A whole range, in Meta's own table."""
_PERMISSION = Meaning(_K.AUTH, "the token lacks a permission")

NO_SUCH_OBJECT = Meaning(_K.AUTH, "there is no such phone number id, or the token may not use it: check both")
"""Code 100 with this subcode is about the address called, hence about the account, and not about the message."""
_NO_SUCH_OBJECT = (100, 33)


def meaning(code: int, subcode: int | None = None) -> Meaning | None:
    """None for a code that the table does not have."""
    if (code, subcode) == _NO_SUCH_OBJECT:
        return NO_SUCH_OBJECT
    return MEANINGS.get(code) or (_PERMISSION if code in _PERMISSIONS else None)


def outcome(kind: Kind, detail: str, *, attempt: int) -> Throttled | Retryable | Rejected | AuthFailed | MediaRefused:
    """What an answer with a code of this kind means. `attempt` counts the claims of the message, from 1."""
    match kind:
        case Kind.AUTH | Kind.BLOCKED | Kind.SPAM:
            return AuthFailed(detail=detail)
        case Kind.THROTTLED_NUMBER | Kind.THROTTLED_BUSINESS:
            return Throttled(scope=Scope.ACCOUNT, detail=detail)
        case Kind.THROTTLED_PAIR:
            return Throttled(scope=Scope.RECIPIENT, detail=detail, retry_after=pair_wait(attempt))
        case Kind.THROTTLED_APP:
            return Throttled(scope=Scope.APP, detail=detail)
        case Kind.TOMORROW:
            return Retryable(code=ErrorCode.RATE_LIMITED, detail=detail, retry_after=A_DAY)
        case Kind.PASSING:
            return Retryable(code=ErrorCode.PROVIDER_UNAVAILABLE, detail=detail)
        case Kind.RECIPIENT | Kind.WINDOW | Kind.PAYLOAD:
            return Rejected(code=error_code(kind), detail=detail)
        case Kind.FILE:
            return MediaRefused(detail=detail)
        case _:
            assert_never(kind)


def pair_wait(attempt: int) -> timedelta:
    """4, 16, 64, 256 s, and so on with the last: one message in 6 s is allowed, and a burst is paid back later."""
    return min(timedelta(seconds=4 ** min(max(attempt, 1), 4)), LONGEST_PAIR_WAIT)


def failure(code: int | None, fallback: str, at: datetime) -> DeliveryError:
    """What a receipt means that says `failed`. `fallback` are the words for a code that the table does not have."""
    known = None if code is None else meaning(code)
    if known is None:
        words = f"{code}: {fallback}" if code is not None else fallback
        return DeliveryError(code=ErrorCode.REJECTED, message=words, retryable=False, at=at)
    return DeliveryError(
        code=error_code(known.kind), message=f"{code}: {known.words}", retryable=passes(known.kind), at=at
    )


def error_code(kind: Kind) -> ErrorCode:
    match kind:
        case Kind.AUTH | Kind.BLOCKED:
            return ErrorCode.AUTH
        case (
            Kind.SPAM
            | Kind.THROTTLED_NUMBER
            | Kind.THROTTLED_PAIR
            | Kind.THROTTLED_BUSINESS
            | Kind.THROTTLED_APP
            | Kind.TOMORROW
        ):
            return ErrorCode.RATE_LIMITED
        case Kind.PASSING:
            return ErrorCode.PROVIDER_UNAVAILABLE
        case Kind.RECIPIENT:
            return ErrorCode.RECIPIENT_INVALID
        case Kind.WINDOW:
            return ErrorCode.WINDOW_CLOSED
        case Kind.PAYLOAD:
            return ErrorCode.INVALID_MESSAGE
        case Kind.FILE:
            return ErrorCode.MEDIA_MISSING
        case _:
            assert_never(kind)


def passes(kind: Kind) -> bool:
    """Whether the same message could succeed at another time."""
    return kind not in (Kind.RECIPIENT, Kind.WINDOW, Kind.PAYLOAD)
