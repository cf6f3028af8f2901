"""WAHA's answer to a call, as an outcome."""

from __future__ import annotations

from datetime import timedelta
from typing import assert_never

import httpx

from firestore_outbox.providers.answers import json_object
from firestore_outbox.providers.http import retry_after
from firestore_outbox.providers.outcome import (
    AuthFailed,
    ErrorCode,
    NotConnected,
    Outcome,
    Rejected,
    Scope,
    Sent,
    Throttled,
    Unknown,
)
from firestore_outbox.providers.waha.codes import Trouble, trouble_in
from firestore_outbox.providers.waha.ids import message_id_in

PAIRING_PAUSE = timedelta(minutes=5)
"""Between two attempts while a person has to pair the phone first."""


def outcome_of(response: httpx.Response) -> Outcome:
    if response.is_success:
        return _accepted(response)
    trouble = trouble_in(response.status_code, json_object(response))
    detail = f"{response.status_code}: {trouble.value}"
    match trouble:
        case Trouble.SESSION_DOWN:
            return NotConnected(detail=detail)
        case Trouble.NEEDS_PAIRING:
            return NotConnected(detail=detail, retry_after=PAIRING_PAUSE)
        case Trouble.AUTH | Trouble.WRONG_ADDRESS:
            return AuthFailed(detail=detail)
        case Trouble.INVALID:
            return Rejected(code=ErrorCode.INVALID_MESSAGE, detail=detail)
        case Trouble.TOO_LARGE | Trouble.NOT_OFFERED | Trouble.REACH_OUT_LOCK:
            return Rejected(code=ErrorCode.REJECTED, detail=detail)
        case Trouble.THROTTLED:
            return Throttled(scope=Scope.ACCOUNT, detail=detail, retry_after=retry_after(response.headers))
        case Trouble.UNKNOWN:
            return Unknown(detail=detail)
        case _:
            assert_never(trouble)


def _accepted(response: httpx.Response) -> Sent | Unknown:
    """Most engines answer with the id as a text; some with their own object around it."""
    answer = json_object(response)
    given = answer.get("id")
    if isinstance(given, dict):
        given = given.get("id")
    if given is None and isinstance(key := answer.get("key"), dict):
        given = key.get("id")
    identity = message_id_in(given) if isinstance(given, str) else None
    if identity is None:
        return Unknown(detail=f"{response.status_code} with an answer that names no message")
    return Sent(provider_message_id=identity)
