"""Ids as arguments of commands. An id that no document can have is a mistake in the command line (status 2)."""

from __future__ import annotations

from typing import Annotated

import typer

from firestore_outbox.messages.ids import is_document_id


def document_id(value: str | None) -> str | None:
    """The id itself. Raises `BadParameter` for one that Firestore does not allow; None was not given."""
    if value is None:
        return None
    if not value:
        raise typer.BadParameter("it is empty; is a shell variable not set?")
    if not is_document_id(value):
        raise typer.BadParameter(f"{value[:60]!r} cannot be an id: give the id alone, without the path of its document")
    return value


RequestId = Annotated[str, typer.Argument(metavar="ID", help="The requestId of a message.", callback=document_id)]
AccountId = Annotated[str, typer.Argument(metavar="ACCOUNT", help="The accountId.", callback=document_id)]
RunId = Annotated[str, typer.Argument(metavar="ID", help="The runId.", callback=document_id)]
ReminderId = Annotated[str, typer.Argument(metavar="ID", help="The reminderId.", callback=document_id)]
JobId = Annotated[
    str, typer.Argument(metavar="JOB", help="The id, as `outbox jobs list` shows it.", callback=document_id)
]


def no_message(request_id: str) -> str:
    return f"there is no message {request_id}; `outbox list --status queued` shows what waits"
