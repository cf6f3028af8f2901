"""`outbox erase`: the documents of a removed account, or of one address, deleted for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from firestore_outbox.cli.ids import document_id
from firestore_outbox.cli.output import Json, Yes, confirm, fail, show_fields, show_json
from firestore_outbox.cli.system import with_system

if TYPE_CHECKING:
    from firestore_outbox.wiring import System


def register(app: typer.Typer) -> None:
    app.command()(erase)


def erase(
    account: Annotated[
        str,
        typer.Option(help="The account. It must be removed first, unless --address is given.", callback=document_id),
    ],
    address: Annotated[str | None, typer.Option(help="Only the conversation with this recipient.")] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Delete messages, threads, files and everything else of an account, or of one address, for good.

    Exit status 1 if messages are being sent at the moment: run it again."""
    what = f"all documents of {account}" if address is None else f"the conversation of {account} with {address}"
    confirm(f"This deletes {what}, and cannot be undone", yes=yes)

    async def work(system: System) -> dict[str, Any]:
        from firestore_outbox.accounts.changes import Refused
        from firestore_outbox.media.storage import StorageUnavailable
        from firestore_outbox.wiring import storage_from

        storage = storage_from(system.settings)
        try:
            erased = await (
                system.erase.account(account, storage)
                if address is None
                else system.erase.address(account, address, storage)
            )
        except StorageUnavailable as error:
            fail(f"{error}. Documents are deleted, files are not yet; run it again")
        if isinstance(erased, Refused):
            fail(erased.sentence)
        return {
            "accountId": account,
            "address": address,
            "deleted": dict(erased.documents),
            "inFlight": erased.in_flight,
            "files": erased.files,
        }

    done = with_system(work)
    if as_json:
        show_json(done)
    else:
        show_fields({name: value for name, value in done.items() if value is not None})
    if done["inFlight"]:
        raise typer.Exit(1)
