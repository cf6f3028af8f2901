"""All providers by name, with the credentials of the accounts: what the rest of the program talks to.

A name that nobody knows is a provider too, one that refuses everything: a mistyped account is parked like one with a
wrong password, its messages stay queued, and no caller needs a branch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Literal, assert_never

import httpx

from firestore_outbox import log
from firestore_outbox.clock import Clock, system_clock
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.providers.credentials import (
    WEBHOOK_SECRET,
    CredentialResolver,
    Credentials,
    CredentialsUnavailable,
    LookupsExhausted,
)
from firestore_outbox.providers.entry_points import ProviderTools, installed
from firestore_outbox.providers.http import Http
from firestore_outbox.providers.interakt.adapter import DEFAULT_URL as INTERAKT_URL
from firestore_outbox.providers.interakt.adapter import Interakt
from firestore_outbox.providers.json_depth import is_too_deep
from firestore_outbox.providers.media import MediaDelivery, NoMedia
from firestore_outbox.providers.outcome import AuthFailed, Capability, NotConnected, Outcome, Unknown
from firestore_outbox.providers.parts import PartJitter, PartSender, Sleep
from firestore_outbox.providers.protocol import Checked, Profile, Provider, SessionState, Unrecognised, WebhookEvent
from firestore_outbox.providers.reading import fault_in
from firestore_outbox.providers.signed_webhook.adapter import SignedWebhook
from firestore_outbox.providers.simulated.adapter import CAPABILITIES, Simulated
from firestore_outbox.providers.waha.adapter import Waha
from firestore_outbox.providers.whatsapp_cloud.adapter import URL as WHATSAPP_CLOUD_URL
from firestore_outbox.providers.whatsapp_cloud.adapter import WhatsAppCloud

MAX_WEBHOOK_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    simulated_url: str = "http://127.0.0.1:8083"
    interakt_url: str = INTERAKT_URL
    whatsapp_cloud_url: str = WHATSAPP_CLOUD_URL
    part_jitter: PartJitter = field(default_factory=PartJitter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A genuine webhook and everything in it."""

    events: tuple[WebhookEvent, ...]
    number: str | None = None
    """The number of the account in the webhook's path, by its credentials; None where the provider names none."""


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
            log.credentials_unavailable(message.account_id, error)
            return NotConnected(detail="the account's credentials cannot be read at the moment")
        outcome = await self[name].send(message, credentials, limit=timedelta(seconds=ends - clock()))
        if isinstance(outcome, AuthFailed):
            self._credentials.refused(message.account_id)
        return outcome

    async def admit(
        self, name: str, account_id: str, headers: Mapping[str, str], *, now: datetime
    ) -> Refused | TryLater | None:
        """Whether a webhook's body is worth reading: a provider of ours, a signature of its form, and an account with
        a secret to check it by. None admits it; what it holds is proven by `receive`."""
        if name not in self._adapters or not _looks_signed(self[name], headers, now=now):
            return Refused()
        credentials = await self._of_caller(account_id)
        if isinstance(credentials, TryLater):
            return credentials
        return None if credentials.get(WEBHOOK_SECRET) else Refused()

    async def _of_caller(self, account_id: str) -> Credentials | TryLater:
        """For a name that a caller chose who has proven nothing yet."""
        try:
            return await self._credentials.resolve_unproven(account_id)
        except LookupsExhausted:  # the resolver logs it once a minute: a flood of calls must not be a flood of lines
            return TryLater()
        except CredentialsUnavailable as error:
            log.credentials_unavailable(account_id, error)
            return TryLater()

    async def receive(
        self, name: str, account_id: str, headers: Mapping[str, str], raw_body: bytes, *, now: datetime
    ) -> Received | Refused | TryLater:
        """Verify, then parse. The account is the one of the webhook's path, and its secret must have signed."""
        signed = await self.signed_by(name, account_id, headers, raw_body, now=now)
        if not isinstance(signed, Credentials):
            return signed
        if is_too_deep(raw_body):
            return Received(events=(Unrecognised(detail="the body is nested too deeply, or not JSON"),))
        provider = self[name]
        return Received(events=_parsed(provider, raw_body), number=provider.number_of(account_id, signed))

    async def signed_by(
        self, name: str, account_id: str, headers: Mapping[str, str], raw_body: bytes, *, now: datetime
    ) -> Credentials | Refused | TryLater:
        """The account's credentials, if its own secret signed this body."""
        if len(raw_body) > MAX_WEBHOOK_BYTES or name not in self._adapters:
            return Refused()
        credentials = await self._of_caller(account_id)
        if isinstance(credentials, TryLater):
            return credentials
        secret = credentials.get(WEBHOOK_SECRET)
        return credentials if secret and _is_genuine(self[name], headers, raw_body, secret, now=now) else Refused()

    async def handshake(self, name: str, account_id: str, query: Mapping[str, str]) -> str | Refused | TryLater:
        if name not in self._adapters or not self[name].asks_handshake(query):
            return Refused()
        credentials = await self._of_caller(account_id)
        if isinstance(credentials, TryLater):
            return credentials
        challenge = self[name].handshake(query, credentials)
        return Refused() if challenge is None else challenge

    async def session(
        self, name: str, account_id: str, order: Literal["state", "start", "stop"], *, limit: timedelta
    ) -> SessionState | Outcome:
        """Asks for the account's session, or orders it up or down. Never raises, and keeps to `limit`."""
        sessions = self[name].sessions
        if sessions is None:
            return AuthFailed(detail=f"the provider {name[:60]!r} has no sessions to look after")
        try:
            async with asyncio.timeout(limit.total_seconds()):
                credentials = await self._credentials.resolve(account_id)
                match order:
                    case "state":
                        return await sessions.state(account_id, credentials, limit=limit)
                    case "start":
                        return await sessions.start(account_id, credentials, limit=limit)
                    case "stop":
                        return await sessions.stop(account_id, credentials, limit=limit)
                    case _:
                        assert_never(order)
        except TimeoutError:
            return Unknown(detail="the provider did not answer in time")
        except CredentialsUnavailable as error:
            log.credentials_unavailable(account_id, error)
            return NotConnected(detail="the account's credentials cannot be read at the moment")

    async def check(self, name: str, account_id: str, credentials: Credentials, *, limit: timedelta) -> Checked:
        return await self[name].check(account_id, credentials, limit=limit)

    async def close(self) -> None:
        await self._http.close()
        await self._credentials.close()


def _looks_signed(provider: Provider, headers: Mapping[str, str], *, now: datetime) -> bool:
    try:
        return provider.looks_signed(headers, now=now)
    except Exception:  # noqa: BLE001 - the border, as below
        return False


def _is_genuine(provider: Provider, headers: Mapping[str, str], raw_body: bytes, secret: str, *, now: datetime) -> bool:
    """A verifier that fails has not verified anything."""
    try:
        return provider.verify(headers, raw_body, secret, now=now)
    except Exception:  # noqa: BLE001 - the border: a webhook that makes an adapter fail is refused, not repeated
        return False


def _parsed(provider: Provider, raw_body: bytes) -> tuple[WebhookEvent, ...]:
    """A parser that fails has understood nothing: the body is logged, counted and dropped like an unknown one."""
    try:
        return provider.parse(raw_body)
    except Exception as error:  # noqa: BLE001 - the border: an error would make the provider send the body for ever
        return (Unrecognised(detail=fault_in(error)),)


class Unconfigured(Provider):
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

    async def check(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> Checked:
        return Checked(works=False, detail=f"there is no provider {self._name[:60]!r} here")

    def verify(self, headers: Mapping[str, str], raw_body: bytes, secret: str, *, now: datetime) -> bool:
        return False

    def parse(self, raw_body: bytes) -> tuple[WebhookEvent, ...]:
        return (Unrecognised(detail="no such provider"),)


_NO_PROMISES = Profile(
    capability=Capability(resend_safe=False, echoes_request_id=False),
    part_types=frozenset(),
    media=None,
    throttle_scopes=frozenset(),
)


def providers(
    settings: ProviderSettings,
    *,
    credentials: CredentialResolver,
    media: MediaDelivery | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
    random: Random | None = None,
    sleep: Sleep = asyncio.sleep,
    clock: Clock = system_clock,
) -> Providers:
    """`transport` is the network, `random` and `sleep` the pauses between parts; all for simulations."""
    http = Http(transport)
    parts = PartSender(jitter=settings.part_jitter, random=random or Random(), sleep=sleep, media=media or NoMedia())
    tools = ProviderTools(http=http, parts=parts, clock=clock)
    own = built_in(settings, tools)
    third_party = installed(tools, built_in={adapter.name for adapter in own})
    return Providers([*own, *third_party], credentials, http)


def built_in(settings: ProviderSettings, tools: ProviderTools) -> list[Provider]:
    """The adapters of this package."""
    http, parts = tools.http, tools.parts
    return [
        *(Simulated(name, settings.simulated_url, http, parts) for name in CAPABILITIES),
        Interakt(settings.interakt_url, http, parts),
        SignedWebhook(http, parts, tools.clock),
        Waha(http, parts),
        WhatsAppCloud(settings.whatsapp_cloud_url, http, parts, clock=tools.clock),
    ]
