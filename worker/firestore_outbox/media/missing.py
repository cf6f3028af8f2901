"""Whether storage has the files that parts name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firestore_outbox.media.storage import FileRef, Storage


def named_files(parts: Sequence[Any]) -> list[str]:
    """Ids of the files in the parts. Malformed parts are left to the message's own check."""
    named = [part.get("mediaId") for part in parts if isinstance(part, dict) and part.get("type") == "media"]
    return [media_id for media_id in named if isinstance(media_id, str) and media_id and "/" not in media_id]


async def missing_file(storage: Storage, account_id: str, parts: Sequence[Any]) -> FileRef | None:
    """The first that storage does not have; None: all are there."""
    for media_id in named_files(parts):
        ref = FileRef(account_id, media_id)
        if await storage.find(ref) is None and await storage.find(ref.old) is None:
            return ref
    return None
