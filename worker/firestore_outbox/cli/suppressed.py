"""`outbox suppressed`: addresses that get nothing of an account's runs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from firestore_outbox.cli.ids import AccountId
from firestore_outbox.cli.output import Json, console, fail, show_json, show_table
from firestore_outbox.cli.system import existing_account, with_system

if TYPE_CHECKING:
    from firestore_outbox.consent.suppressions import Suppressed
    from firestore_outbox.wiring import System

Address = Annotated[str, typer.Argument(metavar="ADDRESS", help="The recipient, as targets have it.")]


def register(app: typer.Typer) -> None:
    suppressed = typer.Typer(
        name="suppressed",
        help="Addresses that get nothing of an account's runs: list, add, remove.",
        no_args_is_help=True,
    )
    suppressed.command("list")(list_)
    suppressed.command("add")(add)
    suppressed.command("remove")(remove)
    app.add_typer(suppressed)


def list_(
    account: AccountId,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most this many.")] = 1_000,
    after: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Go on behind this one.")] = None,
    as_json: Json = False,
) -> None:
    """List those who opted out, in the order of their addresses."""

    async def work(system: System) -> list[Suppressed]:
        await existing_account(system, account)
        return await system.suppressions.page(account, limit, after)

    found = with_system(work)
    if as_json:
        show_json([asdict(one) for one in found])
        return
    rows = [[one.address, one.because, one.at, one.by] for one in found]
    show_table(["address", "because", "since", "by"], rows, f"No recipient of {account} has opted out.")


def add(account: AccountId, address: Address, as_json: Json = False) -> None:
    """Keep an address out of all runs. Its queued targets are skipped at once."""

    async def work(system: System) -> int:
        from firestore_outbox.consent.suppressions import Source

        await existing_account(system, account)
        skipped = await system.suppressions.add(account, address, Source.OPERATOR)
        return skipped or 0

    skipped = with_system(work)
    if as_json:
        show_json({"accountId": account, "address": address, "skipped": skipped})
    else:
        console.print(f"runs of {account} no longer send to {address}; {skipped:,} queued messages were skipped")


def remove(account: AccountId, address: Address, as_json: Json = False) -> None:
    """Let runs send to an address again, because the person asked."""

    async def work(system: System) -> None:
        if not await system.suppressions.remove(account, address):
            fail(f"{address} is not on the list; see: outbox suppressed list {account}")

    with_system(work)
    if as_json:
        show_json({"accountId": account, "address": address, "removed": True})
    else:
        console.print(f"{address} gets messages of runs again")
