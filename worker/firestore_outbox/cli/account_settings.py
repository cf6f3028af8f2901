"""Commands that change an account: its settings, its members, its webhook secret, its end.

The HTTP API offers an owner the same (web/accounts_api.py); both call accounts/administration.py.
"""

from __future__ import annotations

import json
import os
import secrets as randomness
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from firestore_outbox.accounts.roles import Role
from firestore_outbox.cli.account_answers import STDIN
from firestore_outbox.cli.ids import AccountId
from firestore_outbox.cli.output import Json, Yes, confirm, console, fail, show_fields, show_json, show_table
from firestore_outbox.cli.system import with_system
from firestore_outbox.providers.credentials import (
    NOTIFY_SECRET,
    WEBHOOK_SECRET,
    WEBHOOK_SECRET_BEFORE,
    credentials_from,
    is_usable,
)

if TYPE_CHECKING:
    from firestore_outbox.wiring import System

NONE = "none"
"""As a value: remove the setting, which brings its default back."""


def register(accounts: typer.Typer) -> None:
    accounts.command("set")(set_)
    accounts.command()(show)
    accounts.command()(members)
    accounts.command()(rotate)
    accounts.command()(remove)


def set_(
    account: AccountId,
    changes: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=VALUE...", help=f"Such as pace.perMinute=20; {NONE} brings the default back."),
    ] = None,
    retention_days: Annotated[
        str | None,
        typer.Option(metavar="N", help=f"Delete messages after N days, 1 to 3650; {NONE} keeps them for ever."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Change settings of an account (docs/accounts.md). A wrong name or value changes nothing."""
    given = [*(changes or ()), *([] if retention_days is None else [f"retentionDays={retention_days}"])]
    if not given:
        raise typer.BadParameter("name a setting and its value, such as pace.perMinute=20", param_hint="NAME=VALUE")
    asked = dict(_pair(text) for text in given)

    async def work(system: System) -> dict[str, Any]:
        from firestore_outbox.accounts.administration import COMMAND_LINE, NoAccount
        from firestore_outbox.accounts.changes import Refused

        changed = await system.administration.set(account, asked, by=COMMAND_LINE)
        if isinstance(changed, NoAccount):
            no_account(account)
        if isinstance(changed, Refused):
            raise typer.BadParameter(changed.sentence, param_hint="NAME=VALUE")
        return {name: {"before": before, "after": after} for name, (before, after) in changed.changes.items()}

    changed = with_system(work)
    if as_json:
        show_json({"accountId": account, "changed": changed})
    elif changed:
        rows = [[name, one["before"], one["after"]] for name, one in changed.items()]
        show_table(["setting", "before", "after"], rows, "")
    else:
        console.print("everything is as asked for already")


def _pair(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="NAME=VALUE")
    if value == NONE:
        return name, None
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def show(account: AccountId, as_json: Json = False) -> None:
    """Show an account: settings, members, and what was done with it."""

    async def work(system: System) -> dict[str, Any]:
        from firestore_outbox.accounts.administration import NoAccount

        shown = await system.administration.show(account)
        if isinstance(shown, NoAccount):
            no_account(account)
        return {
            "accountId": account,
            "settings": dict(shown.settings),
            "members": dict(shown.members),
            "actions": [dict(action) for action in shown.actions],
        }

    found = with_system(work)
    if as_json:
        show_json(found)
        return
    show_fields({"accountId": account, **found["settings"]})
    console.print()
    show_table(["uid", "role"], sorted(found["members"].items()), "no members; add one with: outbox accounts members")
    console.print()
    columns = ["at", "by", "action", "detail"]
    rows = [[action.get(name) for name in columns] for action in found["actions"]]
    show_table(columns, rows, "nothing was changed yet")


def members(
    account: AccountId,
    uid: Annotated[str | None, typer.Argument(metavar="UID", help="The person. Without it, list all.")] = None,
    role: Annotated[Role | None, typer.Option(help="The role to give.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the membership away.")] = False,
    as_json: Json = False,
) -> None:
    """List members, give a person a role, or remove one.

    The last owner cannot be removed."""
    if (uid is None) != (role is None and not remove) or (role is not None and remove):
        raise typer.BadParameter("give UID with --role ROLE or with --remove; or neither, to list the members")

    async def work(system: System) -> dict[str, str]:
        from firestore_outbox.accounts.administration import COMMAND_LINE, NoAccount
        from firestore_outbox.accounts.changes import Refused

        if uid is not None:
            done = await system.administration.set_member(account, uid, role, by=COMMAND_LINE)
            if isinstance(done, Refused):
                fail(done.sentence)
        shown = await system.administration.show(account)
        if isinstance(shown, NoAccount):
            no_account(account)
        return dict(shown.members)

    found = with_system(work)
    if as_json:
        show_json({"accountId": account, "members": found})
    else:
        show_table(["uid", "role"], sorted(found.items()), "no members; add one with: --role owner")


def rotate(
    account: AccountId,
    secret: Annotated[
        str | None, typer.Option(metavar="-", help="Read the new secret from standard input; otherwise one is made.")
    ] = None,
    finish: Annotated[bool, typer.Option("--finish", help="Forget the secret before it.")] = False,
    notify: Annotated[
        bool, typer.Option("--notify", help="The secret that signs notifications (docs/notifications.md).")
    ] = False,
    as_json: Json = False,
) -> None:
    """Replace the webhook secret. Webhooks signed with the old one are accepted until --finish.

    Prints the new secret if the command made it: enter it at the provider."""
    if secret not in (None, STDIN):
        raise typer.BadParameter("a secret is never a word of the command; give - and type it", param_hint="--secret")
    given = typer.get_text_stream("stdin").readline().strip() if secret == STDIN and not finish else None
    if given is not None and not (given and is_usable(given)):
        raise typer.BadParameter("the secret must be printable ASCII characters", param_hint="--secret")
    if notify and finish:
        raise typer.BadParameter("the secret of notifications has none before it", param_hint="--finish")

    async def work(system: System) -> dict[str, Any]:
        from firestore_outbox.accounts.administration import COMMAND_LINE, NoAccount
        from firestore_outbox.providers.store_secrets import Kept, keeper_from

        if isinstance(await system.administration.show(account), NoAccount):
            no_account(account)
        resolver = credentials_from(os.environ)
        try:
            credentials = await resolver.resolve(account)
        finally:
            await resolver.close()
        before = credentials.get(WEBHOOK_SECRET)
        forgotten = () if notify else (WEBHOOK_SECRET_BEFORE,)
        kept_as = {name: credentials.get(name) or "" for name in credentials.names if name not in forgotten}
        made = None if finish else given or randomness.token_hex(32)
        if made is not None and notify:
            kept_as |= {NOTIFY_SECRET: made}
        elif made is not None:
            kept_as |= {WEBHOOK_SECRET: made} | ({} if before is None else {WEBHOOK_SECRET_BEFORE: before})
        kept = await keeper_from(os.environ).keep(account, kept_as)
        detail = {"finished": finish}
        await system.administration.note(account, "rotate", by=COMMAND_LINE, detail=detail)
        shown = None if given is not None or finish else made
        return {
            "accountId": account,
            "finished": finish,
            NOTIFY_SECRET if notify else WEBHOOK_SECRET: shown,
            "credentials": kept.where if isinstance(kept, Kept) else None,
            "toDo": None if isinstance(kept, Kept) else kept.to_do,
        }

    done = with_system(work)
    if as_json:
        show_json(done)
    else:
        show_fields({name: value for name, value in done.items() if value is not None and name != "finished"})
        console.print(_after_rotation(account, finish=finish, notify=notify))


def _after_rotation(account: str, *, finish: bool, notify: bool) -> str:
    """What to do next."""
    if finish:
        return "The secret before it is forgotten."
    if notify:
        return "Give it to the server that receives the notifications; from now on they are signed with it."
    return f"Enter it at the provider. The secret before it is valid until: outbox accounts rotate {account} --finish"


def remove(account: AccountId, yes: Yes = False, as_json: Json = False) -> None:
    """Delete an account and its members. Its messages stay: `outbox erase` deletes them."""
    confirm(f"The account {account} and its members will be deleted", yes=yes)

    async def work(system: System) -> dict[str, Any]:
        from firestore_outbox.accounts.administration import NoAccount
        from firestore_outbox.accounts.changes import Refused
        from firestore_outbox.providers.store_secrets import keeper_from

        removed = await system.administration.remove(account)
        if isinstance(removed, NoAccount):
            no_account(account)
        if isinstance(removed, Refused):
            fail(removed.sentence)
        to_do = await keeper_from(os.environ).forget(account)
        return {"accountId": account, "members": removed.members, "toDo": to_do}

    done = with_system(work)
    if as_json:
        show_json(done)
    else:
        show_fields({name: value for name, value in done.items() if value is not None})


def no_account(account: str) -> NoReturn:
    fail(f"there is no account {account}: `outbox accounts list` shows them, `outbox accounts add` adds one")
