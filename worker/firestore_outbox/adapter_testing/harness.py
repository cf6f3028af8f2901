"""One adapter, its fake service and a network that can be cut, in virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

import httpx

from firestore_emulator import virtual_time
from firestore_outbox.adapter_testing.service import Service
from firestore_outbox.clock import Clock
from firestore_outbox.messages.ids import thread_id_of
from firestore_outbox.messages.model import OutboxMessage, TextPart
from firestore_outbox.providers.credentials import WEBHOOK_SECRET, Credentials, FixedCredentials
from firestore_outbox.providers.entry_points import ProviderTools
from firestore_outbox.providers.http import Http
from firestore_outbox.providers.outcome import Outcome
from firestore_outbox.providers.parts import PartJitter, PartSender
from firestore_outbox.providers.protocol import Checked, Provider
from firestore_outbox.providers.registry import Providers, Received, Refused, TryLater

ACCOUNT, REQUEST = "acme", "request-1"
WORDS = "Dear Anna, your code is 771-204."
"""The text of each message. No outcome and no log line may quote it."""
LIMIT = timedelta(seconds=20)
_NO_JITTER = PartJitter(shortest=timedelta(0), longest=timedelta(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterUnderTest:
    """What the contract needs to know."""

    provider: Callable[[ProviderTools], Provider]
    """The factory that the entry point names."""
    secrets: Mapping[str, str] = field(repr=False)
    """Credentials of an account that works, `webhookSecret` among them."""
    service: Callable[[Clock], Service]
    """Makes a new fake of the service, for each test."""
    to: str = "+491511234567"
    """A recipient, as the provider writes it."""


class Network(httpx.AsyncBaseTransport):
    """The service's own, which can be cut before a connection is made."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner
        self.is_cut = False
        self.calls = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.calls += 1
        if self.is_cut:
            raise httpx.ConnectError("refused", request=request)
        return await self._inner.handle_async_request(request)


class Harness:
    def __init__(self, adapter: AdapterUnderTest, secrets: Mapping[str, str]) -> None:
        self.clock = virtual_time.VirtualClock()
        self.service = adapter.service(self.clock)
        self.network = Network(self.service.transport)
        http = Http(self.network)
        parts = PartSender(jitter=_NO_JITTER, random=Random(1))
        self.provider = adapter.provider(ProviderTools(http=http, parts=parts, clock=self.clock))
        self.credentials = Credentials(secrets)
        self._to = adapter.to
        self._providers = Providers([self.provider], FixedCredentials({ACCOUNT: secrets}), http)

    async def send(self, *, parts: int = 1, limit: timedelta = LIMIT) -> Outcome:
        message = OutboxMessage(
            request_id=REQUEST,
            account_id=ACCOUNT,
            thread_id=thread_id_of(ACCOUNT, self._to),
            to=self._to,
            parts=(TextPart(type="text", text=WORDS),) * parts,
            created_at=self.clock(),
            next_attempt_at=self.clock(),
        )
        return await self._providers.send(self.provider.name, message, limit=limit)

    async def check(self) -> Checked:
        return await self._providers.check(self.provider.name, ACCOUNT, self.credentials, limit=LIMIT)

    async def receive(self, headers: Mapping[str, str], body: bytes) -> Received | Refused | TryLater:
        """As the function `provider_webhook` does: by the headers first, then by the body."""
        name, now = self.provider.name, self.clock()
        refused = await self._providers.admit(name, ACCOUNT, headers, now=now)
        return refused or await self._providers.receive(name, ACCOUNT, headers, body, now=now)

    @property
    def accepted(self) -> list[bool]:
        return [call.accepted for call in self.service.calls]

    async def close(self) -> None:
        await self._providers.close()
        await self.service.close()


def simulate(
    adapter: AdapterUnderTest,
    story: Callable[[Harness], Awaitable[None]],
    *,
    secrets: Mapping[str, str] | None = None,
) -> None:
    """Run a story in a world of its own. `secrets` replace those of the account."""

    async def main() -> None:
        harness = Harness(adapter, adapter.secrets if secrets is None else secrets)
        try:
            await story(harness)
        finally:
            await harness.close()

    # From today on: an adapter may sign with the time of this machine.
    virtual_time.run(main(), seed=1, start=datetime.now(UTC))


def hidden_in(adapter: AdapterUnderTest, provider: Provider) -> list[str]:
    """The secrets that nothing may quote: all but those that the profile shows while they are typed."""
    shown = {secret.name for secret in provider.profile.secrets if not secret.hidden} - {WEBHOOK_SECRET}
    return [value for name, value in adapter.secrets.items() if name not in shown]
