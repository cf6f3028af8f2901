"""All providers by name, with the credentials of the accounts: what the rest of the program talks to.

A name that nobody knows is a provider too, one that refuses everything: a mistyped account is parked like one with a
wrong password, its messages stay queued, and no caller needs a branch.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

import httpx

from worker.domain.message import OutboxMessage
from worker.domain.outcome import AuthFailed, Capability, NotConnected, Outcome
from worker.providers.credentials import (
    WEBHOOK_SECRET,
    CredentialResolver,
    Credentials,
    CredentialsUnavailable,
)
from worker.providers.http import Http
from worker.providers.parts import PartJitter, PartSender, Sleep
from worker.providers.protocol import Profile, Provider, Unrecognised, WebhookEvent
from worker.providers.simulated import CAPABILITIES, Simulated

log = logging.getLogger(__name__)

MAX_WEBHOOK_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    simulated_url: str = "http://127.0.0.1:8083"
    part_jitter: PartJitter = field(default_factory=PartJitter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A genuine webhook and everything in it."""

    events: tuple[WebhookEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Not signed, not lately, or not by this provider: nothing of it was read, and nothing may be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TryLater:
    """It cannot be told whether it is genuine, because the secrets are out of reach. The provider sends it again."""


class Providers:
    def __init__(self, adapters: Iterable[Provider], credentials: CredentialResolver, http: Http) -> None:
        self._adapters = {adapter.name: adapter for adapter in adapters}
        self._credentials = credentials
        self._http = http

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._adapters))

    def __getitem__(self, name: str) -> Provider:
        return self._adapters.get(name) or Unconfigured(name)

    async def send(self, name: str, message: OutboxMessage, *, limit: timedelta) -> Outcome:
        """Never raises for a provider's or a secret's sake, and never takes longer than `limit`."""
        clock = asyncio.get_running_loop().time
        ends = clock() + limit.total_seconds()
        try:
            async with asyncio.timeout(limit.total_seconds() / 4):
                credentials = await self._credentials.resolve(message.account_id)
        except (CredentialsUnavailable, TimeoutError) as error:
            log_credentials_unavailable(message.account_id, error)
            return NotConnected(detail="the account's credentials cannot be read at the moment")
        return await self[name].send(message, credentials, limit=timedelta(seconds=ends - clock()))

    async def receive(
        self, name: str, account_id: str, headers: Mapping[str, str], raw_body: bytes, *, now: datetime
    ) -> Received | Refused | TryLater:
        """Verify, then parse. The account is the one of the webhook's path, and its secret must have signed."""
        if len(raw_body) > MAX_WEBHOOK_BYTES:
            return Refused()
        try:
            credentials = await self._credentials.resolve(account_id)
        except CredentialsUnavailable as error:
            log_credentials_unavailable(account_id, error)
            return TryLater()
        provider, secret = self[name], credentials.get(WEBHOOK_SECRET)
        if not secret or not provider.verify(headers, raw_body, secret, now=now):
            return Refused()
        return Received(events=provider.parse(raw_body))

    async def close(self) -> None:
        await self._http.close()


class Unconfigured:
    """Stands for a provider that this installation does not have."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    @property
    def profile(self) -> Profile:
        return _NO_PROMISES

    async def send(self, message: OutboxMessage, credentials: Credentials, *, limit: timedelta) -> Outcome:
        return AuthFailed(detail=f"the account names the provider {self._name[:60]!r}, which is not configured here")

    def verify(self, headers: Mapping[str, str], raw_body: bytes, secret: str, *, now: datetime) -> bool:
        return False

    def parse(self, raw_body: bytes) -> tuple[WebhookEvent, ...]:
        return (Unrecognised(detail="no such provider"),)


_NO_PROMISES = Profile(
    capability=Capability(resend_safe=False, echoes_request_id=False),
    part_types=frozenset(),
    media=None,
    needs_session=False,
    throttle_scopes=frozenset(),
)


def log_credentials_unavailable(account_id: str, error: Exception) -> None:
    log.error(
        "the credentials of an account cannot be read: %s",
        error,
        extra={"action": "credentials_unavailable", "account_id": account_id},
    )


def providers(
    settings: ProviderSettings,
    *,
    credentials: CredentialResolver,
    transport: httpx.AsyncBaseTransport | None = None,
    random: Random | None = None,
    sleep: Sleep = asyncio.sleep,
) -> Providers:
    """`transport` is the network, `random` and `sleep` the pauses between parts; all for simulations."""
    http = Http(transport)
    parts = PartSender(jitter=settings.part_jitter, random=random or Random(), sleep=sleep)
    adapters = [Simulated(name, settings.simulated_url, http, parts) for name in CAPABILITIES]
    return Providers(adapters, credentials, http)
