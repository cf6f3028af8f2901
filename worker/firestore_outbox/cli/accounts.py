"""Commands about accounts: add one and try its credentials, list them, try one again.

Secrets are typed without being shown, or come as JSON on standard input; never as words of the command, which every
user of the machine can read. Questions go to standard error, so that standard output is the result alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firestore_outbox.cli import account_connection, account_settings
from firestore_outbox.cli.account_answers import Answers, missing_in, secrets_from
from firestore_outbox.cli.ids import AccountId
from firestore_outbox.cli.output import Json, console, fail, show_fields, show_json, show_table
from firestore_outbox.cli.system import existing_account, with_system
from firestore_outbox.firestore import paths
from firestore_outbox.providers.credentials import (
    EVERYBODY,
    FILE_VARIABLE,
    SECRETS_VARIABLE,
    VARIABLE,
    Credentials,
    CredentialsUnavailable,
    credentials_from,
)
from firestore_outbox.shown_time import shown_time

if TYPE_CHECKING:
    from firestore_outbox.firestore.gateway import Snapshot
    from firestore_outbox.firestore.writes import WriteOp
    from firestore_outbox.providers.credentials import CredentialResolver
    from firestore_outbox.providers.protocol import Profile
    from firestore_outbox.providers.store_secrets import Kept, NotKept
    from firestore_outbox.wiring import System

CHECK_LIMIT = timedelta(seconds=10)
"""The longest that a provider may take to answer the test of credentials."""


def register(app: typer.Typer) -> None:
    accounts = typer.Typer(
        help="Accounts: add, connect, change, check, remove.", no_args_is_help=True, rich_markup_mode=None
    )
    accounts.command()(add)
    accounts.command("list")(list_)
    accounts.command()(check)
    account_settings.register(accounts)
    account_connection.register(accounts)
    app.add_typer(accounts, name="accounts")


@dataclass(frozen=True, slots=True, kw_only=True)
class New:
    """An account as it was asked for."""

    account_id: str
    provider: str
    fields: dict[str, Any]
    number: str | None
    """The number by which webhooks find the account; None if the provider's events name none."""
    secrets: dict[str, str] | None
    """The secrets to store; None: the account uses those of all accounts."""
    credentials: Credentials
    """What the account will use."""
    owner: str


# --- add


def add(
    account: Annotated[
        str | None, typer.Argument(metavar="ACCOUNT", help="The accountId. The command asks if it is missing.")
    ] = None,
    provider: Annotated[str | None, typer.Option(help="The provider. The command asks if it is missing.")] = None,
    timezone: Annotated[str | None, typer.Option(help="Such as Europe/Berlin.")] = None,
    per_minute: Annotated[float | None, typer.Option(min=0, help="Messages a minute; 0 means no limit.")] = None,
    burst: Annotated[int, typer.Option(min=1, help="Messages that may go at once.")] = 1,
    owner: Annotated[str | None, typer.Option(help="The uid of the user who owns it.")] = None,
    secrets: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A JSON file of credentials, or - for standard input. Turns questions off."),
    ] = None,
    no_secrets: Annotated[
        bool,
        typer.Option("--no-secrets", help="Store none: use those of all accounts, such as the dev stack's simulator."),
    ] = False,
    no_check: Annotated[bool, typer.Option("--no-check", help="Do not test the credentials.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Change an account that exists.")] = False,
    as_json: Json = False,
) -> None:
    """Add an account, after a test of its credentials.

    It asks for what is missing, tests the credentials without sending, and stores account and credentials."""
    if no_secrets and secrets is not None:
        raise typer.BadParameter("give either --secrets or --no-secrets")
    answers = Answers(asks=secrets is None and not no_secrets)

    async def work(system: System) -> dict[str, Any]:
        from firestore_outbox.accounts.account import InvalidAccount, parse_account

        account_id = answers.account_id(account)
        existing = await system.gateway.get(paths.account(account_id))
        if existing is not None and not replace:
            fail(f"the account {account_id} exists already; --replace changes it")
        name = answers.provider(provider, system.providers.names)
        fields = {
            "provider": name,
            "timezone": answers.text(timezone, "Time zone", default="UTC"),
            "pace": {"perMinute": answers.per_minute(per_minute), "burst": burst},
        }
        judged = parse_account(account_id, fields)
        if isinstance(judged, InvalidAccount):
            raise typer.BadParameter(judged.sentence)
        profile = system.providers[name].profile
        given = None if no_secrets else answers.secrets(profile) if secrets is None else secrets_from(secrets, profile)
        used = await _shared(account_id, profile) if given is None else Credentials(given)
        number = system.providers[name].number_of(account_id, used)
        new = New(
            account_id=account_id,
            provider=name,
            fields=fields,
            number=number,
            secrets=given,
            credentials=used,
            owner=answers.owner(owner),
        )
        return await store(system, new, existing, tried=not no_check)

    result = with_system(work)
    if as_json:
        show_json(result)
    else:
        show_fields({name: value for name, value in result.items() if value is not None})


async def _shared(account_id: str, profile: Profile) -> Credentials:
    """The credentials that an account without its own gets. The command fails if they do not suffice."""
    resolver = credentials_from(os.environ)
    try:
        found = await resolver.resolve(account_id)
    finally:
        await resolver.close()
    if missing := missing_in(profile, found):
        fail(f"the credentials of all accounts (the entry {EVERYBODY}) lack {', '.join(missing)}{no_export()}")
    return found


def no_export() -> str:
    """What to do if the stack's credentials are not known in this terminal; empty otherwise."""
    known = (FILE_VARIABLE, VARIABLE, SECRETS_VARIABLE)
    if not os.environ.get("FIRESTORE_EMULATOR_HOST") or any(os.environ.get(name) for name in known):
        return ""
    return f"; run the export line that `outbox dev` prints, which sets {FILE_VARIABLE}"


async def store(system: System, new: New, existing: Snapshot | None, *, tried: bool) -> dict[str, Any]:
    """Test the credentials, then store them, then the account: a worker never meets an account without credentials."""
    from firestore_outbox.providers.store_secrets import Kept, keeper_from

    found = "not tried"
    if tried:
        checked = await system.providers.check(new.provider, new.account_id, new.credentials, limit=CHECK_LIMIT)
        if not checked.works:
            fail(f"the credentials do not work, and nothing was stored: {checked.detail}")
        found = checked.detail
    if new.secrets is None:
        kept: Kept | NotKept = Kept("those of all accounts")
    else:
        kept = await keeper_from(os.environ).keep(new.account_id, new.secrets)
    await _write(system, new, existing)
    return {
        "accountId": new.account_id,
        "provider": new.provider,
        "providerNumber": new.number,
        "status": "active" if existing is None else existing.data.get("status", "active"),
        "check": found,
        "credentials": kept.where if isinstance(kept, Kept) else None,
        "toDo": _to_do(new, existing, kept, await _others_with_number(system, new)),
        "owner": new.owner or None,
        "webhook": f"/{new.provider}/{new.account_id}",
    }


async def _write(system: System, new: New, existing: Snapshot | None) -> None:
    from firestore_outbox.accounts.members import member_fields, member_path
    from firestore_outbox.firestore.gateway import Conflict
    from firestore_outbox.firestore.writes import DELETE, create, update, upsert

    path = paths.account(new.account_id)
    writes: list[WriteOp] = []
    if existing is None:
        number = {} if new.number is None else {"providerNumber": new.number}
        writes.append(create(path, {**new.fields, **number, "status": "active"}))
    else:
        fields = {**new.fields, "providerNumber": DELETE if new.number is None else new.number}
        writes.append(update(path, fields, version=existing.version))
    if new.owner:
        writes.append(upsert(member_path(new.account_id, new.owner), member_fields(new.owner, "owner")))
    if isinstance(await system.gateway.commit(writes), Conflict):
        fail(f"another process changed the account {new.account_id} at the same time; check it and try again")


async def _others_with_number(system: System, new: New) -> list[str]:
    if new.number is None:
        return []
    found = await system.accounts.routes_of_numbers([new.number])
    return [one.account_id for one in found if one.provider == new.provider and one.account_id != new.account_id]


def _to_do(new: New, existing: Snapshot | None, kept: Kept | NotKept, others: list[str]) -> str | None:
    from firestore_outbox.providers.store_secrets import NotKept

    steps = [kept.to_do] if isinstance(kept, NotKept) else []
    if others:
        steps.append(
            f"{', '.join(others)} has the providerNumber {new.number}, too: unless their webhook secrets differ, "
            "events reach each of them at its own address only"
        )
    if existing is not None and existing.data.get("status") != "active":
        steps.append(f"it is {existing.data.get('status')}: outbox resume {new.account_id}")
    return "; ".join(steps) or None


# --- list and check


def list_(as_json: Json = False) -> None:
    """List all accounts, and whether their credentials are stored."""

    async def work(system: System) -> list[dict[str, Any]]:
        from firestore_outbox.firestore.queries import Find

        resolver = credentials_from(os.environ)
        try:
            found = await system.gateway.find(Find(collection="accounts", limit=1000))
            return [await _shown(system, snapshot, resolver) for snapshot in found]
        finally:
            await resolver.close()

    found = with_system(work)
    if as_json:
        show_json(found)
        return
    columns = ["accountId", "provider", "status", "timezone", "perMinute", "credentials"]
    empty = "there are no accounts; add one with: outbox accounts add"
    show_table(columns, [[row[name] for name in columns] for row in found], empty)


async def _shown(system: System, snapshot: Snapshot, resolver: CredentialResolver) -> dict[str, Any]:
    data = snapshot.data
    provider, pace = str(data.get("provider")), data.get("pace")
    try:
        missing = missing_in(system.providers[provider].profile, await resolver.resolve(snapshot.id))
        credentials = f"missing {', '.join(missing)}{no_export()}" if missing else "there"
    except CredentialsUnavailable as error:
        credentials = f"unknown: {error}"
    return {
        "accountId": snapshot.id,
        "provider": provider if provider in system.providers.names else f"{provider} (not known here)",
        "status": _status(system, snapshot),
        "providerNumber": data.get("providerNumber"),
        "timezone": data.get("timezone", "UTC"),
        "perMinute": pace.get("perMinute") if isinstance(pace, Mapping) else None,
        "credentials": credentials,
    }


def _status(system: System, snapshot: Snapshot) -> str:
    """The status as it is now: a pause that has ended is none."""
    from firestore_outbox.accounts.account import AccountStatus, InvalidAccount, parse_account

    account = parse_account(snapshot.id, snapshot.data)
    if isinstance(account, InvalidAccount):
        return account.sentence
    if account.status is AccountStatus.PARKED or account.paused_until is None:
        return account.status.value
    is_paused = account.paused_until > system.clock()
    return f"paused until {shown_time(account.paused_until)}" if is_paused else AccountStatus.ACTIVE.value


def check(account: AccountId, as_json: Json = False) -> None:
    """Test an account's credentials with a call that sends nothing. Exit status 1 if they do not work."""

    async def work(system: System) -> dict[str, Any]:
        snapshot = await existing_account(system, account)
        provider = str(snapshot.data.get("provider"))
        resolver = credentials_from(os.environ)
        try:
            credentials = await resolver.resolve(account)
        finally:
            await resolver.close()
        missing = missing_in(system.providers[provider].profile, credentials)
        if missing:
            fix = no_export() or f"; see: outbox accounts add {account} --replace"
            fail(f"the credentials of {account} lack {', '.join(missing)}{fix}")
        checked = await system.providers.check(provider, account, credentials, limit=CHECK_LIMIT)
        return {"accountId": account, "provider": provider, "works": checked.works, "detail": checked.detail}

    result = with_system(work)
    if as_json:
        show_json(result)
    else:
        console.print(
            f"{account}  {'works' if result['works'] else 'does not work'}: {result['detail']}", soft_wrap=True
        )
    if not result["works"]:
        raise typer.Exit(1)
