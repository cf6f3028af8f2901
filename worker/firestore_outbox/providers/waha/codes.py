"""What WAHA answers when it does not do what it was asked: status and body into one closed kind.

Three tables, read in this order, because WAHA gives the same HTTP status to different troubles:

    the session's status, in the body     a 422 names it when the session is not up, after waiting for it for seconds
    WhatsApp's own error, in the body     a 500 wraps it: "server returned error 463"
    the HTTP status                       for everything else

A 500 also quotes the whole request, so nothing of its text is ever passed on, and the number is looked for in the
exception alone: a person's message may well contain "error 463".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from firestore_outbox.providers.protocol import SessionState


class Trouble(StrEnum):
    SESSION_DOWN = "the session is not up"
    NEEDS_PAIRING = "the session must be paired with the phone"
    AUTH = "the API key is refused"
    WRONG_ADDRESS = "there is no WAHA at the account's baseUrl"
    INVALID = "the message is refused as malformed"
    TOO_LARGE = "the file is larger than the gateway takes"
    NOT_OFFERED = "the gateway's edition or engine does not do this"
    REACH_OUT_LOCK = "WhatsApp does not let the account write to this recipient (463)"
    THROTTLED = "the gateway asks to slow down"
    UNKNOWN = "the gateway failed"


SESSION_STATES: Mapping[str, SessionState] = {
    "STOPPED": SessionState.DOWN,
    "STARTING": SessionState.STARTING,
    "SCAN_QR_CODE": SessionState.NEEDS_PAIRING,
    "PASSKEY_REQUIRED": SessionState.NEEDS_PAIRING,
    "PASSKEY_CONFIRMATION_REQUIRED": SessionState.NEEDS_PAIRING,
    "WORKING": SessionState.UP,
    "FAILED": SessionState.BROKEN,
}

WHATSAPP_ERRORS: Mapping[int, Trouble] = {
    463: Trouble.REACH_OUT_LOCK,
}
"""What WhatsApp itself answered to the gateway. Any other leaves it open whether the message went out."""

STATUSES: Mapping[int, Trouble] = {
    400: Trouble.INVALID,
    401: Trouble.AUTH,
    403: Trouble.AUTH,
    404: Trouble.WRONG_ADDRESS,
    405: Trouble.WRONG_ADDRESS,
    413: Trouble.TOO_LARGE,
    422: Trouble.NOT_OFFERED,
    429: Trouble.THROTTLED,
    501: Trouble.NOT_OFFERED,
}

_WHATSAPP_ERROR = re.compile(r"server returned error ([0-9]{3})\b", re.ASCII)
_OLD_SESSION_WORDS = re.compile(r"session under (?:FAILED|STOPPED|STARTING|SCAN_QR_CODE) status")


def trouble_in(status: int, body: Mapping[str, Any]) -> Trouble:
    """`body` is the answer's JSON object, or an empty one."""
    if (found := _session_trouble(status, body)) is not None:
        return found
    if status == 500 and (error := _whatsapp_error(body)) in WHATSAPP_ERRORS:
        return WHATSAPP_ERRORS[error]
    return STATUSES.get(status, Trouble.UNKNOWN)


def _session_trouble(status: int, body: Mapping[str, Any]) -> Trouble | None:
    if status == 422:
        named = body.get("status")
        if isinstance(named, str) and named in SESSION_STATES:
            pairing = SESSION_STATES[named] is SessionState.NEEDS_PAIRING
            return Trouble.NEEDS_PAIRING if pairing else Trouble.SESSION_DOWN
        if _OLD_SESSION_WORDS.search(_text(body, "message")):
            return Trouble.SESSION_DOWN
    if status == 404 and is_of_a_session(body):
        return Trouble.SESSION_DOWN
    return None


def is_of_a_session(body: Mapping[str, Any]) -> bool:
    """Whether a 404 tells of a session. One that is stopped is not found; nor is an address with no WAHA behind it, but
    that answers in other words."""
    return "session" in _text(body, "message").lower()


def _whatsapp_error(body: Mapping[str, Any]) -> int:
    exception = body.get("exception")
    if not isinstance(exception, dict):
        return 0
    found = _WHATSAPP_ERROR.search(_text(exception, "details")) or _WHATSAPP_ERROR.search(_text(exception, "message"))
    return 0 if found is None else int(found[1])


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""
