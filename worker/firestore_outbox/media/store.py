"""Upload documents: read, and written by compare-and-set, as lanes are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Conflict, Gateway
from firestore_outbox.firestore.values import Version
from firestore_outbox.firestore.writes import DELETE, create, update
from firestore_outbox.media.upload import Upload
from firestore_outbox.messages.outbox_document import error_fields
from firestore_outbox.providers.outcome import DeliveryError, stored_code


@dataclass(frozen=True, slots=True)
class UploadRef:
    account_id: str
    media_id: str

    @property
    def path(self) -> str:
        return paths.upload(self.account_id, self.media_id)


@dataclass(frozen=True, slots=True)
class StoredUpload:
    upload: Upload | None
    version: Version | None
    """None: there is no document yet."""


class UploadStore:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def read(self, ref: UploadRef) -> StoredUpload:
        snapshot = await self._gateway.get(ref.path)
        return StoredUpload(None, None) if snapshot is None else StoredUpload(_upload(snapshot.data), snapshot.version)

    async def exists(self, ref: UploadRef) -> bool:
        return (await self.read(ref)).version is not None

    async def write(self, ref: UploadRef, new: Upload, old: StoredUpload) -> StoredUpload | Conflict:
        """Only if the document is as `old` has it. After a `Conflict` that may be our own doing, look."""
        fields = _fields(new)
        if old.version is None:
            op = create(ref.path, {name: value for name, value in fields.items() if value is not None})
        else:
            changes = {name: DELETE if value is None else value for name, value in fields.items()}
            op = update(ref.path, changes, version=old.version)
        result = await self._gateway.commit([op])
        return result if isinstance(result, Conflict) else StoredUpload(new, result.versions[0])


def _fields(upload: Upload) -> dict[str, Any]:
    return {
        "provider": upload.provider,
        "attempts": upload.attempts,
        "owner": upload.owner,
        "leaseUntil": upload.lease_until,
        "handle": upload.handle,
        "uploadedAt": upload.uploaded_at,
        "expiresAt": upload.expires_at,
        "replacedAt": upload.replaced_at,
        "notBefore": upload.not_before,
        "lastError": None if upload.error is None else error_fields(upload.error),
        "expireAt": upload.expire_at,
    }


def _upload(data: Mapping[str, Any]) -> Upload:
    """Only the worker writes uploads, so what is there is believed."""
    error = data.get("lastError")
    return Upload(
        provider=data.get("provider", ""),
        attempts=data.get("attempts", 0),
        owner=data.get("owner"),
        lease_until=data.get("leaseUntil"),
        handle=data.get("handle"),
        uploaded_at=data.get("uploadedAt"),
        expires_at=data.get("expiresAt"),
        replaced_at=data.get("replacedAt"),
        not_before=data.get("notBefore"),
        error=None if error is None else _error(error),
    )


def _error(fields: Mapping[str, Any]) -> DeliveryError:
    return DeliveryError(
        code=stored_code(fields["code"]),
        message=fields["message"],
        retryable=fields["retryable"],
        at=fields["at"],
    )
