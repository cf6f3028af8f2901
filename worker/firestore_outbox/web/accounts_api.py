"""Accounts for their owners: `GET`, `PATCH` and `DELETE /v1/accounts/{accountId}`, `PUT` and `DELETE …/members/{uid}`,
`POST /v1/accounts/{accountId}:check`, `:connect` and `:disconnect`; `:checkout` and `:portal` are in billing_api.py.
`GET …/suppressed`, `PUT` and `DELETE …/suppressed/{address}`: who gets nothing of runs.

A `PATCH` has settings as in the document, nested or dotted: `{"pace": {"perMinute": 20}, "window": null}`. What it does
not name stays; null brings a default back. Every change is in the account's action log with the caller's uid.

    400  the body or a value is at fault; `error` says where    401  no Firebase ID token, or none that we believe
    403  not an owner of the account. No such account: the answer is the same
    409  the last owner cannot be removed; the account has no phone to link; messages wait, so it cannot be removed
    503  Firestore or Google's certificates: try again

The token is verified before the body is read (web/functions.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, assert_never

from firestore_outbox.accounts.administration import Administration, NoAccount, Removed
from firestore_outbox.accounts.administration import Shown as ShownAccount
from firestore_outbox.accounts.changes import BY_OPERATORS, Changed, Refused, flat
from firestore_outbox.accounts.roles import Action, Role
from firestore_outbox.billing.billing import Billing
from firestore_outbox.consent.suppressions import Source, Suppressions
from firestore_outbox.errors import Unavailable, Unwritable
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.messages.address import is_address
from firestore_outbox.messages.ids import is_account_id
from firestore_outbox.operations.connect import Connect
from firestore_outbox.providers.registry import Providers
from firestore_outbox.sessions.memory import Shown
from firestore_outbox.web.auth import User
from firestore_outbox.web.billing_api import CHECKOUT, PORTAL, billing_link
from firestore_outbox.web.http_api import Answer, BadBody, NotAllowed, allow, as_json, refusal

VERBS = ("check", "connect", "disconnect", CHECKOUT, PORTAL)
MOST_LISTED = 1_000
CHECK_LIMIT = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What the path and the method ask for."""

    account_id: str
    verb: str
    """GET, PATCH, PUT, DELETE; or the name behind a colon."""
    uid: str | None = None
    """The member; None: the account itself."""
    address: str | None = None
    """Of the list of those who opted out; empty: the list itself. None: the call is about something else."""


def call_in(path: str, method: str) -> Call | None:
    """None: no such path, or not with this method."""
    _, found, rest = path.rpartition("/v1/accounts/")
    name, _, below = rest.partition("/")
    account_id, _, verb = name.partition(":")
    if not found or not is_account_id(account_id):
        return None
    if verb:
        return Call(account_id=account_id, verb=verb) if method == "POST" and verb in VERBS and not below else None
    if not below:
        return Call(account_id=account_id, verb=method) if method in ("GET", "PATCH", "DELETE") else None
    kind, _, uid = below.partition("/")
    if kind == "suppressed":
        is_known = method == "GET" if not uid else method in ("PUT", "DELETE") and is_address(uid)
        return Call(account_id=account_id, verb=method, address=uid) if is_known else None
    is_member = kind == "members" and uid and "/" not in uid and method in ("PUT", "DELETE")
    return Call(account_id=account_id, verb=method, uid=uid) if is_member else None


@dataclass(frozen=True, slots=True)
class AccountsApi:
    gateway: Gateway
    administration: Administration
    providers: Providers
    connection: Connect
    suppressions: Suppressions
    billing: Billing | None

    async def __call__(self, user: User, call: Call, body: bytes) -> Answer:
        try:
            await allow(self.gateway, user, call.account_id, Action.ADMINISTER)
            if call.address is not None:
                return await self._suppressed(user, call, call.address)
            if call.uid is not None:
                return await self._member(user, call, call.uid, body)
            match call.verb:
                case "PATCH":
                    return await self._set(user, call.account_id, _object(body))
                case "DELETE":
                    return await self._remove(user, call.account_id)
                case "check":
                    return await self._check(call.account_id)
                case "checkout" | "portal":
                    return await billing_link(self.billing, call.account_id, call.verb, body)
                case "connect" | "disconnect":
                    return _connected(await self.connection(call.account_id, call.verb, by=user.uid), call)
                case _:
                    return await self._show(call.account_id)
        except BadBody as error:
            return refusal(400, str(error))
        except NotAllowed as error:
            return refusal(403, str(error))
        except Unwritable:
            return refusal(400, "the account would be too large to be stored")
        except Unavailable:
            return refusal(503, "the account could not be reached at the moment; try again")

    async def _show(self, account_id: str) -> Answer:
        shown = await self.administration.show(account_id)
        match shown:
            case NoAccount():
                return _no_account()
            case ShownAccount():
                body = {
                    "accountId": account_id,
                    "settings": dict(shown.settings),
                    "members": dict(shown.members),
                    "actions": [dict(action) for action in shown.actions],
                }
                return Answer(200, as_json(body))
            case _:
                assert_never(shown)

    async def _set(self, user: User, account_id: str, changes: Mapping[str, Any]) -> Answer:
        if refused_names := BY_OPERATORS & flat(changes).keys():
            return refusal(403, f"{', '.join(sorted(refused_names))} cannot be changed by an owner")
        changed = await self.administration.set(account_id, changes, by=user.uid)
        match changed:
            case NoAccount():
                return _no_account()
            case Refused(sentence=sentence):
                return refusal(400, sentence)
            case Changed():
                told = {name: after for name, (_, after) in changed.changes.items()}
                return Answer(200, as_json({"accountId": account_id, "changed": told}))
            case _:
                assert_never(changed)

    async def _remove(self, user: User, account_id: str) -> Answer:
        """Its credentials stay: the functions may read secrets and not delete them."""
        removed = await self.administration.remove(account_id)
        match removed:
            case NoAccount():
                return _no_account()
            case Refused(sentence=sentence):
                return refusal(409, sentence)
            case Removed(members=members):
                detail = {"accountId": account_id, "members": members}
                await self.administration.note(None, "remove", by=user.uid, detail=detail)
                to_do = (
                    f"an operator deletes its credentials, and its messages with outbox erase --account {account_id}"
                )
                return Answer(200, {"accountId": account_id, "members": members, "toDo": to_do})
            case _:
                assert_never(removed)

    async def _member(self, user: User, call: Call, uid: str, body: bytes) -> Answer:
        role = None if call.verb == "DELETE" else _role(_object(body))
        before = await self.administration.set_member(call.account_id, uid, role, by=user.uid)
        match before:
            case NoAccount():
                return _no_account()
            case Refused(sentence=sentence):
                return refusal(409, sentence)
            case _:
                return Answer(200, {"accountId": call.account_id, "uid": uid, "role": role, "before": before})

    async def _suppressed(self, user: User, call: Call, address: str) -> Answer:
        if not address:
            found = await self.suppressions.page(call.account_id, MOST_LISTED)
            return Answer(200, as_json({"suppressed": [asdict(one) for one in found]}))
        about = {"accountId": call.account_id, "address": address}
        if call.verb == "DELETE":
            return Answer(200, {**about, "removed": await self.suppressions.remove(call.account_id, address)})
        skipped = await self.suppressions.add(call.account_id, address, Source.API, by=user.uid)
        return _no_account() if skipped is None else Answer(200, {**about, "skipped": skipped})

    async def _check(self, account_id: str) -> Answer:
        shown = await self.administration.show(account_id)
        if isinstance(shown, NoAccount):
            return _no_account()
        provider = str(shown.settings.get("provider"))
        checked = await self.providers.check_stored(provider, account_id, limit=CHECK_LIMIT)
        return Answer(200, {"accountId": account_id, "works": checked.works, "detail": checked.detail})


def _connected(shown: Shown | Refused | NoAccount, call: Call) -> Answer:
    """202: the session's lane does it. Listen to the document for what comes of it."""
    match shown:
        case NoAccount():
            return _no_account()
        case Refused(sentence=sentence):
            return refusal(409, sentence)
        case Shown():
            document = f"accounts/{call.account_id}/session/current"
            return Answer(202, {"accountId": call.account_id, "state": shown.value, "session": document})
        case _:
            assert_never(shown)


def _object(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
        json.dumps(fields, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise BadBody("the body is not JSON in UTF-8") from None
    if not isinstance(fields, dict):
        raise BadBody("the body must be a JSON object")
    return fields


def _role(fields: Mapping[str, Any]) -> Role:
    try:
        return Role(str(fields.get("role")))
    except ValueError:
        raise BadBody(f"role must be one of {', '.join(Role)}") from None


def _no_account() -> Answer:
    return refusal(403, "you are not a member of this account")
