"""Commands about the keys of sealed accounts: create, rotate, list, delete."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from firestore_outbox.cli.ids import AccountId
from firestore_outbox.cli.output import Json, console, fail, show_json, show_table
from firestore_outbox.cli.system import existing_account, with_system

if TYPE_CHECKING:
    from firestore_outbox.sealing.keys import StoredKey
    from firestore_outbox.sealing.service import Sealing
    from firestore_outbox.wiring import System

T = TypeVar("T")

KmsKey = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The Cloud KMS key that wraps the private key; by default OUTBOX_KMS_KEY."),
]
COLUMNS = ["version", "state", "createdAt", "deletedAt", "kmsKey"]


def register(app: typer.Typer) -> None:
    keys = typer.Typer(name="keys", help="The keys of sealed accounts (docs/privacy.md).", no_args_is_help=True)
    keys.command()(create)
    keys.command()(rotate)
    keys.command("list")(list_)
    keys.command()(delete)
    app.add_typer(keys)


def create(account: AccountId, kms_key: KmsKey = None, as_json: Json = False) -> None:
    """Seal an account from now on.

    Clients seal what they send, and what arrives is sealed."""

    async def work(sealing: Sealing) -> StoredKey:
        return await sealing.keys.create(account, kms_key or sealing.kms_key)

    _show_new(_with_keys(account, work), as_json)


def rotate(account: AccountId, kms_key: KmsKey = None, as_json: Json = False) -> None:
    """Make a new key for what is sealed from now on. Older keys still open what they sealed."""

    async def work(sealing: Sealing) -> StoredKey:
        return await sealing.keys.rotate(account, kms_key or sealing.kms_key)

    _show_new(_with_keys(account, work), as_json)


def list_(account: AccountId, as_json: Json = False) -> None:
    """List the keys of an account, the oldest first."""

    async def work(sealing: Sealing) -> list[StoredKey]:
        return await sealing.keys.of_account(account)

    rows = [_row(key) for key in _with_keys(account, work)]
    if as_json:
        show_json(rows)
    else:
        nothing = f"{account} is not sealed; `outbox keys create {account}` begins it"
        show_table(COLUMNS, [[row[name] for name in COLUMNS] for row in rows], nothing)


def delete(
    account: AccountId,
    version: Annotated[int | None, typer.Option(min=1, help="The key to delete; not the one in use.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All keys of the account, which ends sealing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Erase what a key sealed, for good: no process can open it again."""
    if (version is None) == (not everything):
        raise typer.BadParameter("give either --version N or --all")
    what = "all keys" if everything else f"key {version}"
    if not yes and not typer.confirm(f"Delete {what} of {account}? What they sealed can never be read again."):
        fail("nothing was deleted")

    async def work(sealing: Sealing) -> list[int]:
        return await sealing.keys.delete(account, version)

    deleted = _with_keys(account, work)
    if as_json:
        show_json({"accountId": account, "deleted": deleted, "isSealed": not everything})
        return
    console.print(f"{account}  deleted: {', '.join(map(str, deleted)) or 'nothing'}")
    if everything:
        console.print(f"{account} is not sealed any more: what arrives from now on is stored as it is")


def _with_keys(account: str, work: Callable[[Sealing], Awaitable[T]]) -> T:
    async def do(system: System) -> T:
        await existing_account(system, account)
        if system.sealing is None:
            fail("no key service is configured: set OUTBOX_KMS_KEY to a Cloud KMS key (docs/privacy.md)")
        return await work(system.sealing)

    return with_system(do)


def _show_new(key: StoredKey, as_json: bool) -> None:
    if as_json:
        show_json({"accountId": key.account_id, "keyVersion": key.version, "publicKey": key.public_key})
    else:
        console.print(f"{key.account_id}  sealed with key {key.version}")


def _row(key: StoredKey) -> dict[str, Any]:
    state = "deleted" if key.wrapped_key is None else "current" if key.is_current else "opens older messages"
    return {
        "version": key.version,
        "state": state,
        "createdAt": key.created_at,
        "deletedAt": key.deleted_at,
        "kmsKey": key.kms_key,
    }
