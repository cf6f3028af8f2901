"""An account's phone linked and unlinked by a person: noted in the action log, asked of the hot set, done by the
session's own lane. What comes of it is in `accounts/{accountId}/session/current`, and the code in `…/session/qr`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from firestore_outbox.accounts.administration import Administration, NoAccount
from firestore_outbox.accounts.changes import Refused
from firestore_outbox.accounts.store import AccountStore
from firestore_outbox.errors import StoreUnavailable
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.firestore.queries import Find
from firestore_outbox.providers.registry import Providers
from firestore_outbox.sessions.hotset import HotSet
from firestore_outbox.sessions.memory import Shown
from firestore_outbox.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """What the two documents say."""

    state: Shown | None = None
    updated_at: datetime | None = None
    code: str | None = None
    expires_at: datetime | None = None


class Connect:
    def __init__(
        self,
        gateway: Gateway,
        accounts: AccountStore,
        administration: Administration,
        providers: Providers,
        hot: HotSet,
        settings: Settings,
    ) -> None:
        self._gateway = gateway
        self._accounts = accounts
        self._administration = administration
        self._providers = providers
        self._hot = hot
        self._settings = settings

    async def __call__(
        self, account_id: str, verb: Literal["connect", "disconnect"], *, by: str
    ) -> Shown | Refused | NoAccount:
        """The state that members see from now on. The session's lane does the rest."""
        route = await self._accounts.route(account_id)
        if route is None:
            return NoAccount(account_id)
        if self._providers[route.provider].pairing is None:
            return Refused(f"accounts of the provider {route.provider} have no phone to link")
        if not self._settings.webhook_url:
            return Refused(
                "set OUTBOX_WEBHOOK_URL to the address of the function provider_webhook, here and for the worker"
            )
        await self._administration.note(account_id, verb, by=by, detail={})
        ask = self._hot.connect if verb == "connect" else self._hot.disconnect
        shown = await ask(account_id, route.provider)
        if shown is None:
            raise StoreUnavailable("other workers changed the set of sessions each time; try again")
        return shown

    async def watch(self, account_id: str) -> AsyncIterator[Connection]:
        """The account's connection now, and after each change."""
        documents: dict[str, dict[str, object]] = {}
        async for changed in self._gateway.watch(Find(collection=f"accounts/{account_id}/session")):
            documents |= {one.id: one.data for one in changed}
            yield _connection(documents.get("current", {}), documents.get("qr", {}))


def _connection(current: dict[str, object], qr: dict[str, object]) -> Connection:
    state, at = current.get("state"), current.get("updatedAt")
    code, expires_at = qr.get("code"), qr.get("expiresAt")
    shown = Shown(state) if isinstance(state, str) and state in list(Shown) else None
    return Connection(
        state=shown,
        updated_at=at if isinstance(at, datetime) else None,
        code=code if isinstance(code, str) and shown is Shown.SCAN else None,
        expires_at=expires_at if isinstance(expires_at, datetime) else None,
    )
