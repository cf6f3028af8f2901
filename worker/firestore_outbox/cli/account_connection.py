"""`outbox accounts connect` and `disconnect`: an account's phone, linked with a QR code in the terminal."""

from __future__ import annotations

import asyncio
import io
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firestore_outbox.cli.account_settings import no_account
from firestore_outbox.cli.ids import AccountId
from firestore_outbox.cli.output import Json, console, fail, show_fields, show_json
from firestore_outbox.cli.system import with_system

if TYPE_CHECKING:
    from firestore_outbox.operations.connect import Connection
    from firestore_outbox.sessions.memory import Shown
    from firestore_outbox.wiring import System


def register(accounts: typer.Typer) -> None:
    accounts.command()(connect)
    accounts.command()(disconnect)


def connect(
    account: AccountId,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Ask for it, and do not wait for the phone.")] = False,
    as_json: Json = False,
) -> None:
    """Link an account's phone: show the code to scan.

    It makes the session at the gateway, and shows the code until the phone is connected.

    With --json, one line for each change. Exit status 1 if no phone was linked within five minutes."""

    async def work(system: System) -> Shown:
        from firestore_outbox.sessions.memory import Shown

        shown = await _asked(system, account, "connect")
        if no_wait or shown is Shown.CONNECTED:
            _tell({"accountId": account, "state": shown.value}, as_json)
            return shown
        return await _followed(system, account, as_json=as_json)

    if with_system(work).value in ("disconnected", "failed"):
        raise typer.Exit(1)


def disconnect(account: AccountId, as_json: Json = False) -> None:
    """Unlink an account's phone. Its messages wait until it is connected again."""

    async def work(system: System) -> dict[str, Any]:
        return {"accountId": account, "state": (await _asked(system, account, "disconnect")).value}

    _tell(with_system(work), as_json)


async def _asked(system: System, account: str, verb: Any) -> Shown:
    from firestore_outbox.accounts.administration import COMMAND_LINE, NoAccount
    from firestore_outbox.accounts.changes import Refused

    shown = await system.connect(account, verb, by=COMMAND_LINE)
    if isinstance(shown, NoAccount):
        no_account(account)
    if isinstance(shown, Refused):
        fail(shown.sentence)
    return shown


async def _followed(system: System, account: str, *, as_json: bool) -> Shown:
    """Until a phone is linked, or the time for it has passed."""
    from firestore_outbox.sessions.hotset import PAIRING
    from firestore_outbox.sessions.memory import Shown

    before: Connection | None = None
    try:
        async with asyncio.timeout(PAIRING.total_seconds() + 60):
            async for now in system.connect.watch(account):
                if before is None or (before.state, before.code) != (now.state, now.code):
                    _shown(account, now, as_json=as_json)
                before = now
                if now.state in (Shown.CONNECTED, Shown.DISCONNECTED, Shown.FAILED):
                    return now.state
    except TimeoutError:
        pass
    return fail(f"nothing was heard of the session of {account}; does the worker run? See: outbox doctor")


def _shown(account: str, now: Connection, *, as_json: bool) -> None:
    state = None if now.state is None else now.state.value
    if as_json:
        line = {"accountId": account, "state": state, "code": now.code, "expiresAt": now.expires_at}
        show_json(line)
        sys.stdout.flush()
        return
    console.print(f"{account}  {state}")
    if now.code is not None:
        console.print(terminal_code(now.code), soft_wrap=True)
        console.print("Scan it: WhatsApp on the phone, Linked devices, Link a device. It changes every 20 seconds.")


def terminal_code(text: str) -> str:
    """A QR code of half blocks, dark on light whatever the terminal's colours are."""
    import segno

    drawn = io.StringIO()
    segno.make(text, error="l").terminal(out=drawn, compact=True)
    return drawn.getvalue()


def _tell(fields: dict[str, Any], as_json: bool) -> None:
    if as_json:
        show_json(fields)
    else:
        show_fields(fields)
