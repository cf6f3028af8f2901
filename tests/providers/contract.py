"""One world for every adapter: the provider simulator in process, in virtual time, with credentials for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import httpx

from firestore_emulator import virtual_time
from firestore_emulator.outgoing import HttpCall
from firestore_outbox.local.simulators.faults import parse_faults
from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET, ProviderSimulator
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.providers.credentials import WEBHOOK_SECRET, FixedCredentials
from firestore_outbox.providers.outcome import Outcome
from firestore_outbox.providers.registry import Providers, ProviderSettings, Received, Refused, TryLater, providers
from tests.providers.support import LIMIT, NO_JITTER, WEBHOOK, Inbox, message, text

ADAPTERS = ("interakt", "signed_webhook", "simulated", "waha", "whatsapp_cloud")
BASE = "http://provider.test"
TO = "+919999999999"
WORDS = "Dear Anna, your code is 771-204."
SECRETS = {
    "token": "t0ken-0123456789abcdefghij",
    "apiKey": "k3y-0123456789abcdefghij",
    "url": "https://provider.test/signed_webhook",
    "signingSecret": DEFAULT_SECRET,
    "baseUrl": f"{BASE}/waha",
    "session": "{accountId}",
    "phoneNumberId": "{accountId}",
    "verifyToken": "ch0sen-word-0123456789",
    WEBHOOK_SECRET: DEFAULT_SECRET,
}
HIDDEN = (SECRETS["token"], SECRETS["apiKey"], SECRETS["verifyToken"], DEFAULT_SECRET)


class Network(httpx.AsyncBaseTransport):
    """The simulator's, which can be cut before a connection is made."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner
        self.is_cut = False
        self.calls = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.is_cut:
            raise httpx.ConnectError("refused", request=request)
        self.calls += 1
        return await self._inner.handle_async_request(request)


class World:
    def __init__(self, name: str, secrets: dict[str, str]) -> None:
        self.name = name
        self.clock = virtual_time.VirtualClock()
        self.inbox = Inbox()
        self.simulator = ProviderSimulator(webhook=WEBHOOK, clock=self.clock, random=Random(1), send=self.inbox)
        self.network = Network(self.simulator.transport)
        self.providers: Providers = providers(
            ProviderSettings(
                simulated_url=BASE,
                interakt_url=f"{BASE}/interakt/{{accountId}}",
                whatsapp_cloud_url=f"{BASE}/whatsapp_cloud/v23.0",
                part_jitter=NO_JITTER,
            ),
            credentials=FixedCredentials({"*": secrets}),
            transport=self.network,
            random=Random(1),
        )
        self.control = httpx.AsyncClient(transport=self.simulator.transport, base_url=BASE)

    def order(self, **faults: Any) -> None:
        self.simulator.core.faults = parse_faults(faults)

    async def revoke(self) -> None:
        await self.control.put("/_sim/accounts/acme", json={"credentials": "revoked"})

    async def send(self, *, parts: int = 1, limit: timedelta = LIMIT) -> Outcome:
        several: tuple[Any, ...] = (text(WORDS),) * parts
        it: OutboxMessage = message(to=TO, parts=several)
        return await self.providers.send(self.name, it, limit=limit)

    @property
    def accepted(self) -> list[bool]:
        return [call.accepted for call in self.simulator.core.record.calls()]

    async def webhooks(self) -> list[HttpCall]:
        await self.simulator.webhooks.drained()
        return self.inbox.heard

    async def receive(self, headers: dict[str, str], body: bytes) -> Received | Refused | TryLater:
        return await self.providers.receive(self.name, "acme", headers, body, now=self.clock())

    async def close(self) -> None:
        await self.control.aclose()
        await self.providers.close()
        await self.simulator.stop()


def simulate(name: str, story: Callable[[World], Awaitable[None]], **changes: str | None) -> None:
    """`changes` replace secrets; None takes one away."""

    async def main() -> None:
        secrets = {key: value for key, value in {**SECRETS, **changes}.items() if value is not None}
        world = World(name, secrets)
        try:
            await story(world)
            await asyncio.sleep(0)
        finally:
            await world.close()

    # From today on: an adapter signs with the time of this machine.
    virtual_time.run(main(), seed=1, start=datetime.now(UTC))
