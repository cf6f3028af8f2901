"""A file of this machine put into an account's storage, for the commands that send one or add one."""

from __future__ import annotations

import asyncio
import mimetypes
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from firestore_outbox.cli.output import fail
from firestore_outbox.media.storage import FileRef, Storage, media_id_of

if TYPE_CHECKING:
    from firestore_outbox.settings import Settings

MEGABYTE = 1_000_000


def type_of(file: Path, option: str) -> str:
    """By the file's name."""
    kind = mimetypes.guess_type(file.name)[0]
    if kind is None:
        raise typer.BadParameter(
            f"the type of {file.name} does not follow from its name; give it with `outbox media add --type`",
            param_hint=option,
        )
    return kind


async def stored(settings: Settings, account: str, file: Path, mime_type: str) -> dict[str, Any]:
    """Put the file into the account's storage; the same file twice is one file."""
    storage = storage_of(settings)
    content = await asyncio.to_thread(file.read_bytes)
    if not content:
        fail(f"{file} is empty")
    if len(content) > settings.media_max_mb * MEGABYTE:
        size, most = f"{len(content) / MEGABYTE:.1f} MB", f"{settings.media_max_mb:g} MB"
        fail(f"{file} has {size}; the limit is {most} (OUTBOX_MEDIA_MAX_MB)")
    ref = FileRef(account, media_id_of(content))
    try:
        await storage.add(ref, content, mime_type=mime_type, filename=file.name)
    finally:
        storage.close()
    return {
        "accountId": account,
        "mediaId": ref.media_id,
        "mimeType": mime_type,
        "bytes": len(content),
        "at": storage.where(ref),
    }


def storage_of(settings: Settings) -> Storage:
    from firestore_outbox.wiring import storage_from

    storage = storage_from(settings)
    if storage is None:
        fail("no storage for files is configured: set OUTBOX_MEDIA_BUCKET, or OUTBOX_MEDIA_DIR on one machine")
    return storage
