"""What becomes of files that people sent, and are still at the provider: the decision for each try.

A document `accounts/{accountId}/fetches/{messageId}` stands for all files of one message. It is written in the commit
that stores the message, and goes when the files are in storage, or will never be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

MAX_TRIES = 6
PAUSES = tuple(timedelta(seconds=seconds) for seconds in (5, 30, 120, 600, 1800))
"""Between two tries. Providers keep files for days."""
MOST_FILES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingFile:
    media_id: str
    mime_type: str
    filename: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The files of one message."""

    message_id: str
    thread_id: str
    provider: str
    files: tuple[WaitingFile, ...]
    attempts: int
    not_before: datetime | None


@dataclass(frozen=True, slots=True)
class Stored:
    """All of them are in storage."""


@dataclass(frozen=True, slots=True)
class Missing:
    """At least one will never be: it is gone, too large, or not for us."""

    reason: str


@dataclass(frozen=True, slots=True)
class Again:
    """The provider, or storage, does not give it now."""

    reason: str


@dataclass(frozen=True, slots=True)
class TryAt:
    at: datetime
    attempts: int


def after(waiting: Waiting, found: Sequence[Stored | Missing | Again], now: datetime) -> Stored | Missing | TryAt:
    """What a try of all files of a message comes to."""
    again = next((one for one in found if isinstance(one, Again)), None)
    if again is not None and waiting.attempts + 1 < MAX_TRIES:
        return TryAt(now + PAUSES[min(waiting.attempts, len(PAUSES) - 1)], waiting.attempts + 1)
    missing = next((one for one in found if isinstance(one, Missing)), None)
    if missing is None and again is None:
        return Stored()
    return missing or Missing(again.reason if again is not None else "")


def fields_of(waiting: Waiting) -> dict[str, Any]:
    files = [_file(one) for one in waiting.files]
    return {"threadId": waiting.thread_id, "provider": waiting.provider, "files": files, "attempts": waiting.attempts}


def _file(file: WaitingFile) -> dict[str, Any]:
    return {"mediaId": file.media_id, "mimeType": file.mime_type, "filename": file.filename}


def waiting_in(message_id: str, data: Mapping[str, Any]) -> Waiting:
    """Only the webhook and the worker write it, so what is there is believed."""
    files = tuple(
        WaitingFile(media_id=one["mediaId"], mime_type=one["mimeType"], filename=one.get("filename"))
        for one in data["files"]
    )
    return Waiting(
        message_id=message_id,
        thread_id=data["threadId"],
        provider=data["provider"],
        files=files,
        attempts=data.get("attempts", 0),
        not_before=data.get("notBefore"),
    )
