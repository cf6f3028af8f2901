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
    from firestore_outbox.media.missing import missing_file, named_files
    from firestore_outbox.wiring import storage_from

    wanted = named_files(parts)
    if not wanted:
        return
    storage = storage_from(system.settings)
    if storage is None:
        what = f"whether the file {wanted[0]} exists was not checked"
        print(f"outbox: {what}: set OUTBOX_MEDIA_BUCKET or OUTBOX_MEDIA_DIR as the worker has it", file=sys.stderr)
        return
    try:
        missing = await missing_file(storage, account_id, parts)
        if missing is not None:
            fail(
                f"there is no file {missing.media_id} at {storage.where(missing)}; add it with: "
                f"outbox media add FILE --account {account_id}"
            )
    finally:
        storage.close()
