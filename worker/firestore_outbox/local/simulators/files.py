"""Files that were uploaded to the provider: the truth about each upload, and which handles are still known.

A handle belongs to the account that uploaded the file. It ends when its time has passed, or when it is lost by order;
using it then is refused. Files live in memory, as a sum and a size: a provider that starts again knows none of them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One upload, taken or refused."""

    account_id: str
    at: datetime
    size_bytes: int
    sha256: str
    mime_type: str
    handle: str | None = None
    """None: it was refused."""
    expires_at: datetime | None = None

    @classmethod
    def of(cls, content: bytes, *, account_id: str, mime_type: str, at: datetime) -> File:
        sha256 = hashlib.sha256(content).hexdigest()
        return cls(account_id=account_id, at=at, size_bytes=len(content), sha256=sha256, mime_type=mime_type)

    def taken(self, handle: str, *, lasts_seconds: int | None) -> File:
        expires_at = None if lasts_seconds is None else self.at + timedelta(seconds=lasts_seconds)
        return replace(self, handle=handle, expires_at=expires_at)

    def shown(self) -> dict[str, Any]:
        return {
            "accountId": self.account_id,
            "at": self.at.isoformat(),
            "bytes": self.size_bytes,
            "sha256": self.sha256,
            "mimeType": self.mime_type,
            "accepted": self.handle is not None,
            "handle": self.handle,
            "expiresAt": None if self.expires_at is None else self.expires_at.isoformat(),
        }


class Files:
    def __init__(self) -> None:
        self._uploads: list[File] = []
        self._known: dict[tuple[str, str], File] = {}

    def add(self, file: File) -> None:
        self._uploads.append(file)
        if file.handle is not None:
            self._known[file.account_id, file.handle] = file

    def uploads(self, account_id: str | None = None) -> list[File]:
        """All that were seen, oldest first."""
        return [file for file in self._uploads if account_id in (None, file.account_id)]

    def knows(self, account_id: str, handle: str, now: datetime) -> bool:
        file = self._known.get((account_id, handle))
        return file is not None and (file.expires_at is None or now < file.expires_at)

    def lose(self, account_id: str, handle: str) -> None:
        self._known.pop((account_id, handle), None)

    def clear(self) -> None:
        """The record; what is known stays known."""
        self._uploads = []
