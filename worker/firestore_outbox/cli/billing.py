"""Commands about what accounts pay: a link to pay, a link to manage it, and how it stands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from firestore_outbox.cli.ids import AccountId
from firestore_outbox.cli.output import Json, console, fail, show_json
from firestore_outbox.cli.system import existing_account, with_system

if TYPE_CHECKING:
    from firestore_outbox.billing.billing import Billing, Link, NotSold
    from firestore_outbox.wiring import System

T = TypeVar("T")


def register(app: typer.Typer) -> None:
    billing = typer.Typer(name="billing", help="What accounts pay for (docs/billing.md).", no_args_is_help=True)
    billing.command()(checkout)
    billing.command()(portal)
    billing.command()(show)
    app.add_typer(billing)


def checkout(
    account: AccountId,
    plan: Annotated[str, typer.Option(metavar="NAME", help="The plan to buy.")],
    as_json: Json = False,
) -> None:
    """Print the address where the owner buys a plan."""

    async def work(billing: Billing) -> Link | NotSold:
        return await billing.checkout(account, plan)

    _show_link(account, _with_billing(account, work), as_json)


def portal(account: AccountId, as_json: Json = False) -> None:
    """Print the address where the owner changes or ends it."""

    async def work(billing: Billing) -> Link | NotSold:
        return await billing.portal(account)

    _show_link(account, _with_billing(account, work), as_json)


def show(account: AccountId, as_json: Json = False) -> None:
    """Show what is paid for an account."""

    async def work(billing: Billing) -> dict[str, object]:
        return await billing.show(account)

    shown = _with_billing(account, work)
    if as_json:
        show_json(shown)
        return
    console.print(f"{account}  {shown['plan'] or 'nothing was bought yet'}")
    if shown["until"] is not None:
        console.print(f"a payment failed: {shown['plan']} until {shown['until']}, then {shown['after']}")


def _with_billing(account: str, work: Callable[[Billing], Awaitable[T]]) -> T:
    async def do(system: System) -> T:
        await existing_account(system, account)
        if system.billing is None:
            fail("nothing is sold here: set OUTBOX_BILLING_PRICES (docs/billing.md)")
        return await work(system.billing)

    return with_system(do)


def _show_link(account: str, link: Link | NotSold, as_json: bool) -> None:
    from firestore_outbox.billing.billing import NotSold

    if isinstance(link, NotSold):
        fail(link.sentence)
    if as_json:
        show_json({"accountId": account, "url": link.url})
    else:
        console.print(link.url)
