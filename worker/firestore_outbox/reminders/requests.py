"""What a member asks of a run or a reminder: an immutable document, judged in the order of arrival.

`{action, createdBy, createdAt, askedAt}` below `runs/{runId}/requests` or `reminders/{reminderId}/requests`; an edit
also has `changes`. `createdAt` is the server's time, `askedAt` the device's. The lane of the run or the reminder
carries the request out and writes its `outcome`:

    applied    it is carried out, or will be
    ignored    it came too late: the device was offline, or a later request is carried out already
    refused    it makes no sense now; `outcomeReason` says why
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from firestore_outbox.messages.checked_fields import sentence_of

OLDEST = timedelta(minutes=10)
"""Between asking and arriving. A pause that was asked for yesterday is not what its author wants now."""


class Asked(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    RETRY_FAILED = "retryFailed"
    EDIT = "edit"
    REMOVE = "remove"


OF_RUNS = frozenset({Asked.PAUSE, Asked.RESUME, Asked.CANCEL, Asked.RETRY_FAILED})
OF_REMINDERS = frozenset({Asked.PAUSE, Asked.RESUME, Asked.EDIT, Asked.REMOVE})
_TAKEN_BACK = frozenset({Asked.PAUSE, Asked.RESUME})
"""Of two of these, the one that arrived later is what people want."""


class Outcome(StrEnum):
    APPLIED = "applied"
    IGNORED = "ignored"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    request_id: str
    action: Asked
    created_at: datetime
    asked_at: datetime
    changes: Mapping[str, Any]
    """Of an edit: the reminder's fields with their new values. Empty for the other actions."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A document that is no request."""

    request_id: str
    sentence: str


class _Document(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    action: str
    createdBy: str
    createdAt: AwareDatetime
    askedAt: AwareDatetime
    changes: dict[str, Any] = {}


def parse_request(request_id: str, data: Mapping[str, Any], known: frozenset[Asked]) -> Request | Unreadable:
    """`known` are the actions that its run or reminder takes."""
    try:
        document = _Document.model_validate(dict(data))
    except ValidationError as error:
        return Unreadable(request_id, sentence_of(error.errors(include_url=False)[0]))
    if document.action not in known:
        return Unreadable(request_id, f"action must be one of {', '.join(sorted(known))}")
    return Request(
        request_id=request_id,
        action=Asked(document.action),
        created_at=document.createdAt,
        asked_at=document.askedAt,
        changes=document.changes,
    )


def ignored_because(request: Request, others: Iterable[tuple[Asked, datetime]]) -> str | None:
    """Why the request is not looked at any more; None if it is. `others` are those that were applied, with the time at
    which each arrived: Firestore may show a commit later than one that arrived after it."""
    if request.created_at - request.asked_at > OLDEST:
        return f"it was asked for more than {OLDEST // timedelta(minutes=1)} minutes before it arrived"
    is_overtaken = request.action in _TAKEN_BACK and any(
        action in _TAKEN_BACK and at > request.created_at for action, at in others
    )
    return "a later request was carried out before it" if is_overtaken else None
