"""The fields of the documents that a new message begins with: outbox, message and thread.

Each writer (a backend in its own batch, the HTTP API, a run) builds them here. The caller passes the value that
its Firestore client replaces by the time of the commit, and writes the fields with that client.

This module uses the standard library alone: backends import it without the worker and its libraries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from firestore_outbox.messages.ids import thread_id_of
from firestore_outbox.messages.limits import SHOWN_TEXT

Fields = dict[str, Any]

QUEUED = "queued"
SEALED = "sealed"


def identity_fields(*, request_id: str, account_id: str, to: str, parts: Sequence[Mapping[str, Any]]) -> Fields:
    """What the outbox document and the message agree on, and what makes two messages the same one."""
    return {
        "requestId": request_id,
        "accountId": account_id,
        "threadId": thread_id_of(account_id, to),
        "to": to,
        "parts": [dict(part) for part in parts],
    }


def is_same(identity: Fields, stored: Mapping[str, Any]) -> bool:
    """Whether a stored message has this identity. Sealing the same text twice gives two ciphertexts, so a sealed part
    counts as the same as any sealed part in its place."""
    return all(_comparable(name, stored.get(name)) == _comparable(name, value) for name, value in identity.items())


def _comparable(name: str, value: Any) -> Any:
    if name != "parts" or not isinstance(value, list):
        return value
    return [SEALED if isinstance(part, Mapping) and part.get("type") == SEALED else part for part in value]


def outbox_fields(identity: Fields, *, server_time: Any, due: Any, send_by: Any = None, **others: Any) -> Fields:
    """`outbox/{requestId}`. `due`: when the message may be sent, None while its run is paused. `send_by`: None for no
    deadline. `others` are `createdBy` and `priority` of a person's message, or the fields of a run's; None leaves one
    out."""
    fields = {
        **identity,
        "status": QUEUED,
        "createdAt": server_time,
        "nextAttemptAt": due,
        "attempts": 0,
        "sendBy": send_by,
        **others,
    }
    return {name: value for name, value in fields.items() if value is not None}


def message_fields(identity: Fields, *, server_time: Any) -> Fields:
    """`threads/{threadId}/messages/{requestId}`."""
    return {**identity, "direction": "outbound", "status": QUEUED, "createdAt": server_time}


def thread_fields(*, account_id: str, to: str, parts: Sequence[Mapping[str, Any]], at: Any) -> Fields:
    """`threads/{threadId}`, after its newest message, of either direction; `at` is the time of that message."""
    return {"accountId": account_id, "to": to, "lastMessageAt": at, "lastMessageText": shown_text(parts)}


def shown_text(parts: Sequence[Mapping[str, Any]]) -> str:
    """What the list of conversations shows of a message: its first words, cut."""
    texts = (part.get("text") or part.get("caption") for part in parts)
    return next((text[:SHOWN_TEXT] for text in texts if isinstance(text, str) and text), "")
