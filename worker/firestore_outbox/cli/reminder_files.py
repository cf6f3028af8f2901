"""A reminder whose files are missing is refused when it is added, not when it fires."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from firestore_outbox.cli.output import fail

if TYPE_CHECKING:
    from firestore_outbox.wiring import System


async def check_files(system: System, account_id: str, parts: Sequence[Any]) -> None:
    """Fail if a part names a file that storage does not have. Malformed parts are left to the reminder's own check."""
    from firestore_outbox.media.storage import FileRef
    from firestore_outbox.wiring import storage_from

    named = [part.get("mediaId") for part in parts if isinstance(part, dict) and part.get("type") == "media"]
    wanted = [media_id for media_id in named if isinstance(media_id, str) and media_id and "/" not in media_id]
    if not wanted:
        return
    storage = storage_from(system.settings)
    if storage is None:
        what = f"whether the file {wanted[0]} exists was not checked"
        print(f"outbox: {what}: set OUTBOX_MEDIA_BUCKET or OUTBOX_MEDIA_DIR as the worker has it", file=sys.stderr)
        return
    try:
        for media_id in wanted:
            ref = FileRef(account_id, media_id)
            if await storage.find(ref) is None and await storage.find(ref.old) is None:
                fail(
                    f"there is no file {media_id} at {storage.where(ref)}; add it with: "
                    f"outbox media add FILE --account {account_id}"
                )
    finally:
        storage.close()
