"""Commands about accounts: add one and try its credentials, list them, try one again.

Secrets are typed without being shown, or come as JSON on standard input; never as words of the command, which anybody
on the machine can read. Questions go to standard error, so that standard output is the result alone.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from firestore_outbox.accounts.account import DEFAULT_PER_MINUTE, InvalidAccount, parse_account
from firestore_outbox.cli.output import Json, console, fail, show_fields, show_json, show_table
from firestore_outbox.cli.system import with_system
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Conflict, Snapshot
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import DELETE, WriteOp, create, update, upsert
from firestore_outbox.messages import faults
from firestore_outbox.messages.ids import is_account_id
from firestore_outbox.providers.credentials import Credentials, CredentialsUnavailable, credentials_from, is_usable
from firestore_outbox.providers.protocol import Profile, Secret
from firestore_outbox.providers.store_secrets import Kept, NotKept, keeper_from
from firestore_outbox.wiring import System

CHECK_LIMIT = timedelta(seconds=10)
STDIN = "-"


AccountId = Annotated[str, typer.Argument(metavar="ACCOUNT", help="The accountId.")]


def register(app: typer.Typer) -> None:
    accounts = typer.Typer(help="Accounts: add, list, check.", no_args_is_help=True, rich_markup_mode=None)
    accounts.command()(add)
    accounts.command("list")(list_)
    accounts.command()(check)
    app.add_typer(accounts, name="accounts")


@dataclass(frozen=True, slots=True, kw_only=True)
class New:
    """An account as it was asked for."""

    account_id: str
    provider: str
    fields: dict[str, Any]
    number: str | None
    """By which webhooks find it; None where the provider's events name none."""
    secrets: dict[str, str]
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
    no_check: Annotated[bool, typer.Option("--no-check", help="Do not test the credentials.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Change an account that exists.")] = False,
    as_json: Json = False,
) -> None:
    """Add an account: ask for what is missing, test the credentials without sending, and store both."""
    answers = Answers(asks=secrets is None)

    async def work(system: System) -> dict[str, Any]:
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
        given = answers.secrets(profile) if secrets is None else secrets_from(secrets, profile)
        number = system.providers[name].number_of(account_id, Credentials(given))
        new = New(
            account_id=account_id,
            provider=name,
            fields=fields,
            number=number,
            secrets=given,
            owner=answers.owner(owner),
        )
        return await store(system, new, existing, tried=not no_check)

    result = with_system(work)
    if as_json:
        show_json(result)
    else:
        show_fields({name: value for name, value in result.items() if value is not None})


async def store(system: System, new: New, existing: Snapshot | None, *, tried: bool) -> dict[str, Any]:
    """Tried first, then the credentials, then the account: a worker never meets an account that has none."""
    found = "not tried"
    if tried:
        checked = await system.providers.check(
            new.provider, new.account_id, Credentials(new.secrets), limit=CHECK_LIMIT
        )
        if not checked.works:
            fail(f"the credentials do not work, and nothing was stored: {checked.detail}")
        found = checked.detail
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
    path = paths.account(new.account_id)
    writes: list[WriteOp] = []
    if existing is None:
        number = {} if new.number is None else {"providerNumber": new.number}
        writes.append(create(path, {**new.fields, **number, "status": "active"}))
    else:
        fields = {**new.fields, "providerNumber": DELETE if new.number is None else new.number}
        writes.append(update(path, fields, version=existing.version))
    if new.owner:
        writes.append(upsert(f"{path}/members/{new.owner}", {"role": "owner"}))
    if isinstance(await system.gateway.commit(writes), Conflict):
        fail(f"another process changed the account {new.account_id} at the same time; check it and try again")


async def _others_with_number(system: System, new: New) -> list[str]:
    if new.number is None:
        return []
    found = await system.accounts.routes_of_numbers([new.number])
    return [one.account_id for one in found if one.provider == new.provider and one.account_id != new.account_id]


def _to_do(new: New, existing: Snapshot | None, kept: Kept | NotKept, others: list[str]) -> str | None:
    steps = [kept.to_do] if isinstance(kept, NotKept) else []
    if others:
        steps.append(
            f"{', '.join(others)} has the providerNumber {new.number}, too: unless their webhook secrets differ, "
            "events reach each of them at its own address only"
        )
    if existing is not None and existing.data.get("status") != "active":
        steps.append(f"it is {existing.data.get('status')}: outbox resume {new.account_id}")
    return "; ".join(steps) or None


def secrets_from(source: str, profile: Profile) -> dict[str, str]:
    try:
        text = sys.stdin.read() if source == STDIN else Path(source).read_text(encoding="utf-8")
        given: Any = json.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"the file cannot be read ({type(error).__name__})", param_hint="--secrets") from None
    except (ValueError, RecursionError):  # the parser's own words would quote it
        raise typer.BadParameter("the content is not JSON", param_hint="--secrets") from None
    if not isinstance(given, dict) or not all(is_usable(value) for value in given.values()):
        raise typer.BadParameter("the content must be a JSON object of printable ASCII strings", param_hint="--secrets")
    known = {secret.name for secret in profile.secrets}
    if unknown := sorted(set(given) - known):
        hint = f"it has {', '.join(unknown)}; this provider knows {', '.join(sorted(known)) or 'none'}"
        raise typer.BadParameter(hint, param_hint="--secrets")
    if missing := missing_in(profile, Credentials(given)):
        raise typer.BadParameter(f"it lacks {', '.join(missing)}", param_hint="--secrets")
    return {name: value for name, value in given.items() if value}


def missing_in(profile: Profile, credentials: Credentials) -> list[str]:
    return [secret.name for secret in profile.secrets if secret.required and not credentials.get(secret.name)]


class Answers:
    """From the command's options, and for what is missing, from questions to the user."""

    def __init__(self, *, asks: bool) -> None:
        self._asks = asks

    def account_id(self, given: str | None) -> str:
        while True:
            answer = given if given is not None else self._asked("Account id", None, "ACCOUNT")
            if is_account_id(answer):
                return answer
            if given is not None:
                raise typer.BadParameter(f"accountId {faults.ACCOUNT_ID}", param_hint="ACCOUNT")
            typer.echo(f"accountId {faults.ACCOUNT_ID}.", err=True)

    def provider(self, given: str | None, names: tuple[str, ...]) -> str:
        while True:
            answer = given if given is not None else self._asked(f"Provider ({', '.join(names)})", None, "--provider")
            if answer in names:
                return answer
            sentence = f"it must be one of {', '.join(names)}"
            if given is not None:
                raise typer.BadParameter(sentence, param_hint="--provider")
            typer.echo(f"There is no provider {answer!r}: {sentence}.", err=True)

    def per_minute(self, given: float | None) -> float:
        if given is not None or not self._asks:
            return DEFAULT_PER_MINUTE if given is None else given
        answer: float = typer.prompt(
            "Messages a minute (0 for no pace)", default=DEFAULT_PER_MINUTE, type=float, err=True
        )
        return answer

    def text(self, given: str | None, question: str, *, default: str) -> str:
        if given is not None or not self._asks:
            return default if given is None else given
        return self._asked(question, default, "")

    def owner(self, given: str | None) -> str:
        answer = self.text(given, "The owner's uid (empty for none)", default="")
        if len(answer) > 128 or "/" in answer:
            raise typer.BadParameter("a uid has at most 128 characters, and no '/'", param_hint="--owner")
        return answer

    def secrets(self, profile: Profile) -> dict[str, str]:
        answers = {secret.name: self._secret(secret) for secret in profile.secrets}
        return {name: answer for name, answer in answers.items() if answer}

    def _secret(self, secret: Secret) -> str:
        while True:
            answer: str = typer.prompt(
                f"{secret.name}: {secret.what}",
                default="" if not secret.required else None,
                show_default=False,
                hide_input=secret.hidden,
                err=True,
            )
            if is_usable(answer.strip()):
                return answer.strip()
            typer.echo("It has characters that an HTTP header cannot carry; copy it again.", err=True)

    def _asked(self, question: str, default: str | None, option: str) -> str:
        if not self._asks:
            raise typer.BadParameter("required, because --secrets turns questions off", param_hint=option)
        answer: str = typer.prompt(question, default=default, show_default=bool(default), err=True)
        return answer.strip()


# --- list and check


def list_(as_json: Json = False) -> None:
    """List all accounts, and whether their credentials are stored."""

    async def work(system: System) -> list[dict[str, Any]]:
        resolver = credentials_from(os.environ)
        try:
            found = await system.gateway.find(Find(collection="accounts", limit=1000))
            return [await _shown(system, snapshot, resolver.resolve) for snapshot in found]
        finally:
            await resolver.close()

    found = with_system(work)
    if as_json:
        show_json(found)
        return
    columns = ["accountId", "provider", "status", "timezone", "perMinute", "credentials"]
    empty = "there are no accounts; add one with: outbox accounts add"
    show_table(columns, [[row[name] for name in columns] for row in found], empty)


async def _shown(system: System, snapshot: Snapshot, resolve: Any) -> dict[str, Any]:
    data = snapshot.data
    provider, pace = str(data.get("provider")), data.get("pace")
    try:
        missing = missing_in(system.providers[provider].profile, await resolve(snapshot.id))
        credentials = f"missing {', '.join(missing)}" if missing else "there"
    except CredentialsUnavailable as error:
        credentials = f"unknown: {error}"
    judged = parse_account(snapshot.id, data)
    return {
        "accountId": snapshot.id,
        "provider": provider if provider in system.providers.names else f"{provider} (not known here)",
        "status": judged.sentence if isinstance(judged, InvalidAccount) else judged.status.value,
        "providerNumber": data.get("providerNumber"),
        "timezone": data.get("timezone", "UTC"),
        "perMinute": pace.get("perMinute") if isinstance(pace, Mapping) else None,
        "credentials": credentials,
    }


def check(account: AccountId, as_json: Json = False) -> None:
    """Test an account's credentials with a call that sends nothing. Exit status 1 if they do not work."""

    async def work(system: System) -> dict[str, Any]:
        snapshot = await system.gateway.get(paths.account(account)) if "/" not in account else None
        if snapshot is None:
            fail(f"there is no account {account}; add it with: outbox accounts add {account}")
        provider = str(snapshot.data.get("provider"))
        resolver = credentials_from(os.environ)
        try:
            credentials = await resolver.resolve(account)
        finally:
            await resolver.close()
        missing = missing_in(system.providers[provider].profile, credentials)
        if missing:
            fail(
                f"the credentials of {account} lack {', '.join(missing)}; see: outbox accounts add {account} --replace"
            )
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
