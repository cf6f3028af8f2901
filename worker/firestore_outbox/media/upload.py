"""An upload: one file of one account at its provider, and who may bring it there.

Who is authoritative: the provider about what its handle is worth; the document about who uploads. An uploader has
claimed the document first, for as long as an upload of that size may take, and stops by itself a little before that
time has passed. All others wait. A claim is never renewed: it is as long as the file needs.

The states and events are a table (media/upload_states.py).

A handle that replaced a refused one, and is refused itself soon after, is not replaced again for a while: the file is
not what the provider wants, and each message would upload it once more.

What a crash leaves: a lease that ends, and at worst an unused file at the provider. An upload reaches no
recipient, so nothing about it can be in doubt; it is done again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from firestore_outbox.media.upload_states import UploadState
from firestore_outbox.providers.outcome import (
    AuthFailed,
    DeliveryError,
    ErrorCode,
    NotConnected,
    Postponed,
    Rejected,
    Retryable,
    Throttled,
    Unknown,
)

Failure = Throttled | Retryable | Postponed | Rejected | AuthFailed | NotConnected | Unknown

SHORTEST_UPLOAD = timedelta(seconds=20)
BYTES_A_SECOND = 1_000_000
"""Slower than this, an upload is given up."""
SKEW = timedelta(seconds=5)
"""For the difference between two workers' clocks."""
REFUSAL_LASTS = timedelta(minutes=10)
"""For this time no worker uploads again what was refused for good."""
PAUSE = timedelta(seconds=2)
"""After a trouble that passes, if the provider names no time."""
LONGEST_MARGIN = timedelta(hours=1)
_MARGIN_SHARE = 1 / 10
"""Of a handle's life, at its end: a message may be on its way for a while."""
KEEP_UNUSED = timedelta(days=7)
"""How long a document without a handle stays, for the TTL policy."""


def time_for(size_bytes: int) -> timedelta:
    """How long an upload may take."""
    return SHORTEST_UPLOAD + timedelta(seconds=size_bytes / BYTES_A_SECOND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """`accounts/{accountId}/uploads/{mediaId}`."""

    provider: str
    """Set on claim. A handle of the provider that the account had before is worth nothing."""
    attempts: int = 0
    """Grows by one with each claim and never shrinks: it tells two claims of one owner apart."""
    owner: str | None = None
    """Set on claim, cleared when the upload has ended. The same for `lease_until`."""
    lease_until: datetime | None = None
    handle: str | None = None
    """Set when an upload is done, cleared on claim. The same for the two times below."""
    uploaded_at: datetime | None = None
    expires_at: datetime | None = None
    """As the provider said; None if it forgets nothing."""
    replaced_at: datetime | None = None
    """When a handle that the provider had refused was last given up for a new upload."""
    not_before: datetime | None = None
    """Set when an upload has failed, cleared on claim. The same for `error`."""
    error: DeliveryError | None = None

    @property
    def good_until(self) -> datetime | None:
        """Until when the handle is used; None: for good."""
        if self.expires_at is None or self.uploaded_at is None:
            return None
        return self.expires_at - min(LONGEST_MARGIN, (self.expires_at - self.uploaded_at) * _MARGIN_SHARE)

    @property
    def expire_at(self) -> datetime | None:
        """When the document may be deleted; None: never."""
        if self.handle is not None:
            return self.expires_at
        since = max((at for at in (self.lease_until, self.not_before) if at is not None), default=None)
        return None if since is None else since + KEEP_UNUSED

    def is_claim_of(self, owner: str, attempts: int) -> bool:
        return (self.owner, self.attempts) == (owner, attempts)

    # --- the transitions

    def done(self, handle: str, *, expires_at: datetime | None, now: datetime) -> Upload:
        return replace(
            self, owner=None, lease_until=None, handle=handle, uploaded_at=now, expires_at=expires_at, error=None
        )

    def failed(self, failure: Failure, *, now: datetime) -> Upload:
        not_before, error = _consequence(failure, now)
        return replace(self, owner=None, lease_until=None, not_before=not_before, error=error)


def claimed(
    upload: Upload | None, *, provider: str, refused: str | None, owner: str, now: datetime, size_bytes: int
) -> Upload:
    """For a worker that has found it free. `refused` is the handle that the provider would not take, if there was."""
    before = upload if upload is not None and upload.provider == provider else None
    is_replacement = before is not None and before.handle is not None and before.handle == refused
    return Upload(
        provider=provider,
        attempts=1 if upload is None else upload.attempts + 1,
        owner=owner,
        lease_until=now + time_for(size_bytes) + SKEW,
        replaced_at=now if is_replacement else None if before is None else before.replaced_at,
    )


# --- what a worker that needs the file finds -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ready:
    handle: str
    until: datetime | None
    """None: for good."""


@dataclass(frozen=True, slots=True)
class Busy:
    """Another worker uploads it, or has to wait. Look again, at the latest then."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Refused:
    """For good, as far as anybody will ask before then."""

    because: Rejected
    until: datetime


@dataclass(frozen=True, slots=True)
class Free:
    """Claim it, and upload."""


def look(upload: Upload | None, *, provider: str, refused: str | None, now: datetime) -> Ready | Busy | Refused | Free:
    """`refused` is the last handle that the provider would not take, as far as this worker knows."""
    if upload is None or upload.provider != provider:
        return Free()
    if upload.lease_until is not None and now < upload.lease_until:
        return Busy(upload.lease_until)
    if upload.handle is not None and (upload.good_until is None or now < upload.good_until):
        if upload.handle != refused:
            return Ready(upload.handle, upload.good_until)
        return _refused_twice(upload, now) or Free()
    if upload.not_before is not None and now < upload.not_before:
        if upload.error is not None and not upload.error.retryable:
            return Refused(Rejected(code=upload.error.code, detail=upload.error.message), upload.not_before)
        return Busy(upload.not_before)
    return Free()


def state_of(upload: Upload | None, *, provider: str, refused: str | None, now: datetime) -> UploadState:
    """The state that the document means at `now`, to a worker that knows the handle `refused` as worthless."""
    match look(upload, provider=provider, refused=refused, now=now):
        case Ready():
            return UploadState.READY
        case Refused():
            return UploadState.REFUSED
        case Free():
            return UploadState.FREE
        case Busy(until=until):
            is_leased = upload is not None and upload.lease_until == until
            return UploadState.UPLOADING if is_leased else UploadState.WAITING


def _refused_twice(upload: Upload, now: datetime) -> Refused | None:
    if upload.replaced_at is None or now >= upload.replaced_at + REFUSAL_LASTS:
        return None
    detail = "the provider took the file twice, and both times refused to send it"
    return Refused(Rejected(code=ErrorCode.MEDIA_MISSING, detail=detail), upload.replaced_at + REFUSAL_LASTS)


def _consequence(failure: Failure, now: datetime) -> tuple[datetime | None, DeliveryError | None]:
    """Until when no worker uploads again, and why."""

    def error(code: ErrorCode, *, retryable: bool = True) -> DeliveryError:
        return DeliveryError(code=code, message=failure.detail, retryable=retryable, at=now)

    match failure:
        case Rejected():
            return now + REFUSAL_LASTS, error(failure.code, retryable=False)
        case Throttled():
            return _after(failure.retry_after, now), error(ErrorCode.RATE_LIMITED)
        case NotConnected():
            return _after(failure.retry_after, now), error(ErrorCode.NOT_CONNECTED)
        case Retryable() | Postponed():
            return _after(failure.retry_after, now), error(failure.code)
        case Unknown():
            return now + PAUSE, error(ErrorCode.PROVIDER_TIMEOUT)
        case AuthFailed():
            return None, error(ErrorCode.AUTH)  # a person corrects it, and should not have to wait then
        case _:
            assert_never(failure)


def _after(retry_after: timedelta | None, now: datetime) -> datetime:
    return now + min(PAUSE if retry_after is None else retry_after, REFUSAL_LASTS)
