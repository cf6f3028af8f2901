"""Adapters and simulator over real sockets, with only the base URL replaced; webhooks are kept, to be looked at."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import httpx

from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET, ProviderSimulator
from firestore_outbox.messages.model import MediaPart, OutboxMessage
from firestore_outbox.providers.built_in import ProviderSettings, providers
from firestore_outbox.providers.credentials import WEBHOOK_SECRET, Credentials, FixedCredentials
from firestore_outbox.providers.media import MediaHandle, MediaLink, NotUploaded, ReadyMedia, Upload
from firestore_outbox.providers.outcome import Outcome
from firestore_outbox.providers.protocol import Checked, MediaMode, WebhookEvent
from firestore_outbox.providers.registry import Providers, Received
from tests.providers.support import LIMIT, NO_JITTER, WEBHOOK, Inbox


class Links:
    """A delivery that has an address for each file."""

    async def ready(
        self,
        account_id: str,
        provider: str,
        part: MediaPart,
        mode: MediaMode,
        upload: Upload | None,
        *,
        limit: timedelta,
    ) -> ReadyMedia | NotUploaded:
        assert mode is MediaMode.LINK
        return MediaLink(url=f"https://files.example/{part.mediaId}?signature=s3cret")

    async def forget(self, account_id: str, provider: str, part: MediaPart, handle: MediaHandle) -> None:
        raise AssertionError("a link is not uploaded, so there is nothing to forget")


@dataclass
class Link:
    name: str
    """The provider's."""
    simulator: ProviderSimulator
    providers: Providers
    control: httpx.AsyncClient
    """For orders to the simulator, which need no socket."""
    inbox: Inbox

    async def order(self, **faults: Any) -> None:
        answer = await self.control.put("/_sim/faults", json=faults)
        assert answer.status_code == 200, answer.text

    async def send(self, message: OutboxMessage) -> Outcome:
        return await self.providers.send(self.name, message, limit=LIMIT)

    async def check(self, **secrets: str) -> Checked:
        return await self.providers.check(self.name, "acme", Credentials(secrets), limit=LIMIT)

    async def calls(self) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = (await self.control.get("/_sim/calls")).json()
        return calls

    async def revoke(self, account_id: str = "acme") -> None:
        await self.control.put(f"/_sim/accounts/{account_id}", json={"credentials": "revoked"})

    async def events(self) -> list[WebhookEvent]:
        """Everything that the webhook heard, through verification and parsing."""
        await self.simulator.webhooks.drained()
        events: list[WebhookEvent] = []
        for call in self.inbox.heard:
            _, name, account_id = call.url.removeprefix("http://").split("/")
            received = await self.providers.receive(name, account_id, call.headers, call.body, now=datetime.now(UTC))
            assert isinstance(received, Received)
            events += received.events
        return events


@asynccontextmanager
async def linked(
    name: str, *, url: str | None = None, receiver: str | None = None, **secrets: str
) -> AsyncIterator[Link]:
    """`url` is another server to send to, and the simulator does not listen then; `receiver` and `secrets` replace
    those of the accounts."""
    inbox = Inbox()
    async with ProviderSimulator(webhook=WEBHOOK, random=Random(1), send=inbox) as simulator:
        if url is None:
            await simulator.start()
        base = url or simulator.url
        credentials = {
            "apiKey": "k3y-as-given",
            "url": f"{base}/signed_webhook" if receiver is None else receiver,
            "signingSecret": DEFAULT_SECRET,
            WEBHOOK_SECRET: DEFAULT_SECRET,
            **secrets,
        }
        adapters = providers(
            ProviderSettings(interakt_url=f"{base}/interakt/{{accountId}}", part_jitter=NO_JITTER),
            credentials=FixedCredentials({"*": credentials}),
            media=Links(),
            random=Random(1),
        )
        async with httpx.AsyncClient(transport=simulator.transport, base_url="http://simulator") as control:
            yield Link(name, simulator, adapters, control, inbox)
        await adapters.close()
