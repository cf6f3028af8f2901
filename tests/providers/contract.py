"""The built-in adapters for the contract suite, each with the provider simulator as its service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import Any

import httpx

from firestore_outbox.adapter_testing import AdapterUnderTest, Behaviour, Service, ServiceCall, Webhook
from firestore_outbox.clock import Clock
from firestore_outbox.local.simulators.app import FORMS
from firestore_outbox.local.simulators.faults import parse_faults
from firestore_outbox.local.simulators.own import OWN
from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET, ProviderSimulator
from firestore_outbox.providers.built_in import ProviderSettings, built_in
from firestore_outbox.providers.credentials import WEBHOOK_SECRET
from firestore_outbox.providers.entry_points import ProviderTools
from firestore_outbox.providers.protocol import Provider
from tests.providers.support import WEBHOOK, Inbox

ADAPTERS = ("interakt", "signed_webhook", "simulated", "waha", "whatsapp_cloud")
BASE = "http://provider.test"
SETTINGS = ProviderSettings(
    simulated_url=BASE,
    interakt_url=f"{BASE}/interakt/{{accountId}}",
    whatsapp_cloud_url=f"{BASE}/whatsapp_cloud/v23.0",
)
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
NAMES_NO_TIME = {"whatsapp_cloud"}
"""Meta's throttles have a code and no time to wait."""
FAULTS: Mapping[Behaviour, Mapping[str, Any]] = {
    Behaviour.ACCEPTS: {},
    Behaviour.THROTTLES: {"throttleRate": 1, "throttleScope": "account", "retryAfterSeconds": 7},
    Behaviour.REFUSES: {"errorRate": 1, "errorCode": "recipient_invalid"},
    Behaviour.LOSES_ANSWERS: {"lostResponseRate": 1},
    Behaviour.NEVER_ANSWERS: {"hangRate": 1},
}


def adapter_named(name: str) -> AdapterUnderTest:
    def provider(tools: ProviderTools) -> Provider:
        return next(one for one in built_in(SETTINGS, tools) if one.name == name)

    return AdapterUnderTest(
        provider=provider, secrets=SECRETS, service=lambda clock: Simulated(name, clock), to="+919999999999"
    )


class Simulated(Service):
    """The provider simulator, in process."""

    def __init__(self, name: str, clock: Clock) -> None:
        self._name = name
        self._clock = clock
        self._inbox = Inbox()
        self._simulator = ProviderSimulator(webhook=WEBHOOK, clock=clock, random=Random(1), send=self._inbox)
        self.throttled_for = None if name in NAMES_NO_TIME else timedelta(seconds=7)

    @property
    def transport(self) -> httpx.AsyncBaseTransport:
        return self._simulator.transport

    @property
    def calls(self) -> Sequence[ServiceCall]:
        return [
            ServiceCall(accepted=call.accepted, provider_message_id=call.provider_message_id)
            for call in self._simulator.core.record.calls()
        ]

    @property
    def parts(self) -> list[int]:
        """Which part each call sent."""
        return [call.part for call in self._simulator.core.record.calls()]

    async def behave(self, how: Behaviour) -> None:
        if how is Behaviour.REVOKED:
            async with httpx.AsyncClient(transport=self.transport, base_url=BASE) as control:
                await control.put("/_sim/accounts/acme", json={"credentials": "revoked"})
        else:
            self.order(**FAULTS[how])

    def order(self, **faults: Any) -> None:
        self._simulator.core.faults = parse_faults(faults)

    async def webhooks(self) -> Sequence[Webhook]:
        await self._simulator.webhooks.drained()
        return [Webhook(headers=dict(call.headers), body=call.body) for call in self._inbox.heard]

    def sign(self, body: bytes) -> Mapping[str, str]:
        return FORMS.get(self._name, OWN).headers(DEFAULT_SECRET, body, self._clock())

    async def close(self) -> None:
        await self._simulator.stop()
