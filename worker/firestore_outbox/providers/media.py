"""Media on its way to a provider: what a sender asks for, and what an adapter is handed.

A part of a message names a file by its mediaId. Before the part is sent, `MediaDelivery` turns the file into what the
provider takes (`MediaMode`): the provider's own id after one upload, a URL that it can fetch, or the bytes. Where files
are stored and how workers share an upload is decided in media/.

A provider may refuse a handle that it gave us: it expired early, or the file was lost on its side. Such a refusal is
proof that nothing was sent, so the file is uploaded again and the part is sent once more, once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from firestore_outbox.messages.model import MediaPart
from firestore_outbox.providers.http import Streamed
from firestore_outbox.providers.outcome import (
    AuthFailed,
    ErrorCode,
    NotConnected,
    Outcome,
    Postponed,
    Rejected,
    Retryable,
    Throttled,
    Unknown,
)
from firestore_outbox.providers.protocol import MediaMode


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaContent:
    """A file, whole."""

    media_id: str
    mime_type: str
    filename: str
    content: bytes
    done: Callable[[], None] = field(default=lambda: None, compare=False, repr=False)
    """To be called when the content is not needed any more: others may wait for its memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaStream:
    """A file in pieces, for an upload."""

    media_id: str
    mime_type: str
    filename: str
    body: Streamed


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaHandle:
    """The provider's own id of a file that was uploaded to it."""

    handle: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaLink:
    """An address from which the provider can fetch the file, for as long as it needs to."""

    url: str
    mime_type: str | None = None
    """As storage has it. None: the message's."""
    filename: str | None = None
    """As storage has it. None: the message's."""


ReadyMedia = MediaContent | MediaHandle | MediaLink


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploaded:
    handle: str
    expires_at: datetime | None
    """When the provider forgets it; None if it never does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaRefused:
    """Instead of an outcome: the provider does not know the handle any more. Nothing was sent."""

    detail: str


NotUploaded = Throttled | Retryable | Postponed | Rejected | AuthFailed | NotConnected | Unknown
"""Whatever kept a file from the provider. An upload that is in doubt has sent nothing to anybody."""

Upload = Callable[[MediaStream, timedelta], Awaitable[Uploaded | NotUploaded]]
"""An adapter's call, within the time given."""


class MediaDelivery(Protocol):
    async def ready(
        self,
        account_id: str,
        provider: str,
        part: MediaPart,
        mode: MediaMode,
        upload: Upload | None,
        *,
        limit: timedelta,
    ) -> ReadyMedia | NotUploaded:
        """What the provider takes in place of the file; `upload` is given where the mode is UPLOAD."""
        ...

    async def forget(self, account_id: str, provider: str, part: MediaPart, handle: MediaHandle) -> None:
        """The provider refused this handle: the next `ready` uploads again, unless another worker has done so
        already."""
        ...


class NoMedia:
    """For an installation without storage for files: every media part is rejected."""

    async def ready(
        self,
        account_id: str,
        provider: str,
        part: MediaPart,
        mode: MediaMode,
        upload: Upload | None,
        *,
        limit: timedelta,
    ) -> ReadyMedia | NotUploaded:
        return Rejected(
            code=ErrorCode.MEDIA_MISSING,
            detail="no storage for files is configured: set OUTBOX_MEDIA_BUCKET, or OUTBOX_MEDIA_DIR on one machine",
        )

    async def forget(self, account_id: str, provider: str, part: MediaPart, handle: MediaHandle) -> None:
        return None


def as_not_sent(outcome: NotUploaded) -> Outcome:
    """What an upload that failed means for the message: nothing of it was sent, so nothing is in doubt."""
    if isinstance(outcome, Unknown):
        return Retryable(code=ErrorCode.PROVIDER_TIMEOUT, detail=f"the file was not uploaded: {outcome.detail}")
    return outcome
