"""Commands about files: add one to where the worker finds it."""

from __future__ import annotations

import mimetypes
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from worker.cli.say import Json, console, fail, run, show_json
from worker.cli.system import settings_from
from worker.media.shelf import media_id_of
from worker.wiring import shelf_from

MEGABYTE = 1_000_000


def register(app: typer.Typer) -> None:
    media = typer.Typer(help="Files that messages send: add.", no_args_is_help=True, rich_markup_mode=None)
    media.callback()(_files)
    media.command()(add)
    app.add_typer(media, name="media")


def _files() -> None:
    """Files that messages send."""


def add(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="The file.")],
    mime_type: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Such as image/png; told by the name if not given.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Put a file where the worker finds it, and print its mediaId. The same file twice is one file."""
    kind = mime_type or mimetypes.guess_type(file.name)[0]
    if kind is None:
        raise typer.BadParameter(
            f"what {file.name} is cannot be told by its name; say so with --type", param_hint="FILE"
        )

    async def work() -> dict[str, Any]:
        settings = settings_from(os.environ)
        shelf = shelf_from(settings)
        if shelf is None:
            fail("there is no place for files: set OUTBOX_MEDIA_BUCKET, or OUTBOX_MEDIA_DIR on one machine")
        content = file.read_bytes()
        if not content:
            fail(f"{file} is empty")
        if len(content) > settings.media_max_mb * MEGABYTE:
            fail(f"{file} has {len(content) / MEGABYTE:.1f} MB; at most {settings.media_max_mb:g} MB are sent")
        media_id = media_id_of(content)
        try:
            await shelf.add(media_id, content, mime_type=kind, filename=file.name)
        finally:
            shelf.close()
        return {"mediaId": media_id, "mimeType": kind, "bytes": len(content), "at": shelf.where(media_id)}

    added = run(work())
    if as_json:
        show_json(added)
    else:
        console.print(added["mediaId"])
