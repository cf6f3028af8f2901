"""Commands about files: add one for an account, and give accounts their files from the place they once shared."""

from __future__ import annotations

import mimetypes
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firestore_outbox.cli.output import Json, console, fail, run, show_json
from firestore_outbox.cli.system import settings_from, with_system
from firestore_outbox.media.storage import FileRef, Storage, media_id_of

if TYPE_CHECKING:
    from firestore_outbox.settings import Settings
    from firestore_outbox.wiring import System

MEGABYTE = 1_000_000


def register(app: typer.Typer) -> None:
    media = typer.Typer(help="Files that messages send: add, adopt.", no_args_is_help=True, rich_markup_mode=None)
    media.callback()(_files)
    media.command()(add)
    media.command()(adopt)
    app.add_typer(media, name="media")


def _files() -> None:
    """Files that messages send."""


def add(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="The file.")],
    account: Annotated[str, typer.Option(help="The account that sends it.")],
    mime_type: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="Such as image/png. Without it, the file's name decides."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Put a file where the worker finds it for this account, and print its mediaId. The same file twice is one file."""
    if not account or "/" in account:
        raise typer.BadParameter("an account's id is not empty and has no slash", param_hint="--account")
    kind = mime_type or mimetypes.guess_type(file.name)[0]
    if kind is None:
        raise typer.BadParameter(
            f"the type of {file.name} does not follow from its name; give it with --type", param_hint="FILE"
        )

    async def work() -> dict[str, Any]:
        settings = settings_from(os.environ)
        storage = _storage(settings)
        content = file.read_bytes()
        if not content:
            fail(f"{file} is empty")
        if len(content) > settings.media_max_mb * MEGABYTE:
            size, most = f"{len(content) / MEGABYTE:.1f} MB", f"{settings.media_max_mb:g} MB"
            fail(f"{file} has {size}; the limit is {most} (OUTBOX_MEDIA_MAX_MB)")
        ref = FileRef(account, media_id_of(content))
        try:
            await storage.add(ref, content, mime_type=kind, filename=file.name)
        finally:
            storage.close()
        return {
            "accountId": account,
            "mediaId": ref.media_id,
            "mimeType": kind,
            "bytes": len(content),
            "at": storage.where(ref),
        }

    added = run(work())
    if as_json:
        show_json(added)
    else:
        console.print(added["mediaId"])


def _storage(settings: Settings) -> Storage:
    from firestore_outbox.wiring import storage_from

    storage = storage_from(settings)
    if storage is None:
        fail("no storage for files is configured: set OUTBOX_MEDIA_BUCKET, or OUTBOX_MEDIA_DIR on one machine")
    return storage


def adopt(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the copies and write nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Copy files from the place that all accounts shared before version 0.2 to the accounts whose messages send them.

    It looks at messages that wait and at reminders that have not ended. It can run again at any time, and deletes
    nothing."""

    async def work(system: System) -> dict[str, Any]:
        from firestore_outbox.operations.adopt_media import adopt_files

        storage = _storage(system.settings)
        try:
            adopted = await adopt_files(system.gateway, storage, dry_run=dry_run)
        finally:
            storage.close()
        return {
            "dryRun": dry_run,
            "copied": [{"accountId": one.account_id, "mediaId": one.media_id} for one in adopted.copied],
            "unclear": [{"mediaId": one.media_id, "accountIds": list(one.account_ids)} for one in adopted.unclear],
        }

    done = with_system(work)
    if as_json:
        show_json(done)
        return
    for one in done["copied"]:
        console.print(f"{one['mediaId']}: {'would be' if dry_run else 'is'} copied to {one['accountId']}")
    for one in done["unclear"]:
        console.print(
            f"{one['mediaId']}: named by {', '.join(one['accountIds'])}, and it is unclear whose file it is; "
            "add it with outbox media add"
        )
    if not done["copied"] and not done["unclear"]:
        console.print("nothing to copy")
