"""A message to send, a simulator to send it to, and a webhook that listens."""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Protocol, TypeVar

import httpx

from firestore_emulator import virtual_time
from firestore_emulator.outgoing import Answered, HttpCall
from firestore_outbox.local.simulators.faults import parse_faults
from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET, ProviderSimulator
from firestore_outbox.messages.model import OutboxMessage, Part, TextPart
from firestore_outbox.providers.built_in import ProviderSettings, providers
from firestore_outbox.providers.credentials import (
    WEBHOOK_SECRET,
    CredentialResolver,
    Credentials,
    CredentialsUnavailable,
    FixedCredentials,
)
from firestore_outbox.providers.outcome import Outcome
from firestore_outbox.providers.parts import PartJitter
from firestore_outbox.providers.protocol import WebhookEvent
from firestore_outbox.providers.registry import Providers, Received

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LIMIT = timedelta(seconds=20)
WEBHOOK = "http://functions.test/{provider}/{accountId}"
CREDENTIALS = FixedCredentials({"*": {"token": "t0ken", WEBHOOK_SECRET: DEFAULT_SECRET}})
NO_JITTER = PartJitter(shortest=timedelta(0), longest=timedelta(0))


def text(body: str = "hello") -> TextPart:
    return TextPart(type="text", text=body)


def message(
    request_id: str = "request-1",
    *,
    account_id: str = "acme",
    to: str = "4915112345",
    parts: tuple[Part, ...] | None = None,
    parts_sent: int = 0,
) -> OutboxMessage:
    return OutboxMessage(
        request_id=request_id,
        account_id=account_id,
        thread_id=f"{account_id}__{to}",
        to=to,
        parts=(text(),) if parts is None else parts,
        created_at=START,
        next_attempt_at=START,
        parts_sent=parts_sent,
    )


def providers_at(url: str, transport: httpx.AsyncBaseTransport | None = None) -> Providers:
    settings = ProviderSettings(simulated_url=url, part_jitter=NO_JITTER)
    return providers(settings, credentials=CREDENTIALS, transport=transport, random=Random(1))


class OutOfReach(CredentialResolver):
    async def resolve(self, account_id: str) -> Credentials:
        raise CredentialsUnavailable("the secret store does not answer")


@dataclass
class Inbox:
    """The webhook's receiver, in process: hears each call, and answers as told (200 when nothing is left to tell)."""

    answers: list[int | Exception] = field(default_factory=list)
    heard: list[HttpCall] = field(default_factory=list)

    async def __call__(self, call: HttpCall) -> Answered:
        self.heard.append(call)
        answer = self.answers.pop(0) if self.answers else 200
        if isinstance(answer, Exception):
            raise answer
        return Answered(answer)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [event for call in self.heard for event in json.loads(call.body)["events"]]

    @property
    def statuses(self) -> list[str]:
        return [body["status"] for body in self.bodies]


class World:
    """Simulator, adapters and webhook on one virtual loop, without a socket."""

    def __init__(self, *, seed: int = 1, webhook: str | None = WEBHOOK) -> None:
        self.clock = virtual_time.VirtualClock()
        self.inbox = Inbox()
        self.simulator = ProviderSimulator(webhook=webhook, clock=self.clock, random=Random(seed), send=self.inbox)
        self.providers = providers_at("http://provider.test", self.simulator.transport)
        self.http = httpx.AsyncClient(transport=self.simulator.transport, base_url="http://provider.test")

    def order(self, **faults: Any) -> None:
        self.simulator.core.faults = parse_faults(faults)

    async def send(self, message: OutboxMessage | None = None, name: str = "simulated") -> Outcome:
        return await self.providers.send(name, message or MESSAGE, limit=LIMIT)

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [call.shown() for call in self.simulator.core.record.calls()]

    async def events(self) -> list[WebhookEvent]:
        """Everything that the webhook heard, through verification and parsing."""
        await self.simulator.webhooks.drained()
        events: list[WebhookEvent] = []
        for call in self.inbox.heard:
            _, name, account_id = call.url.removeprefix("http://").split("/")
            received = await self.providers.receive(name, account_id, call.headers, call.body, now=self.clock())
            assert isinstance(received, Received)
            events += received.events
        return events

    def seconds(self) -> float:
        return round((self.clock() - START).total_seconds(), 6)

    async def close(self) -> None:
        await self.http.aclose()
        await self.providers.close()
        await self.simulator.stop()


MESSAGE = message()
Story = Callable[[World], Awaitable[None]]


def in_virtual_time(**options: Any) -> Callable[[Story], Callable[[], None]]:
    return lambda story: told(lambda: World(**options), story)


class Closed(Protocol):
    async def close(self) -> None: ...


W = TypeVar("W", bound=Closed)


def told(make: Callable[[], W], story: Callable[[W], Awaitable[None]]) -> Callable[[], None]:
    """The test that tells a story in a world of its own, on virtual time."""

    async def main() -> None:
        world = make()
        try:
            await story(world)
        finally:
            await world.close()

    def test() -> None:
        virtual_time.run(main(), seed=1, start=START)

    functools.update_wrapper(test, story)
    del test.__wrapped__  # type: ignore[attr-defined]  # pytest would ask for a fixture called "world"
    return test
