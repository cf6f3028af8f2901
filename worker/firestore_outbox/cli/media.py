"""Commands about files: add one for an account, and give accounts their files from the place they once shared."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firestore_outbox.cli.output import Json, console, run, show_json
from firestore_outbox.cli.stored_file import storage_of, stored, type_of
from firestore_outbox.cli.system import settings_from, with_system

if TYPE_CHECKING:
    from firestore_outbox.wiring import System


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
    """Store a file for an account, and print its mediaId.

    The same file twice is one file."""
    if not account or "/" in account:
        raise typer.BadParameter("an account's id is not empty and has no slash", param_hint="--account")
    kind = mime_type or type_of(file, "FILE")

    async def work() -> dict[str, Any]:
        return await stored(settings_from(os.environ), account, file, kind)

    added = run(work())
    if as_json:
        show_json(added)
    else:
        console.print(added["mediaId"])


def adopt(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the copies and write nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Copy shared files of version 0.1 to their accounts.

    Before 0.2 all accounts shared one place for files. This looks at messages that wait and at reminders that have
    not ended. It can run again at any time, and deletes nothing."""

    async def work(system: System) -> dict[str, Any]:
        from firestore_outbox.operations.adopt_media import adopt_files

        storage = storage_of(system.settings)
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
