"""An account at a WAHA simulator, over sockets or in virtual time, and a delivery with a few files."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from random import Random
from typing import Any

import httpx

from firestore_emulator import virtual_time
from firestore_outbox.local.simulators.faults import parse_faults
from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET, ProviderSimulator
from firestore_outbox.messages.model import MediaPart, OutboxMessage
from firestore_outbox.providers.built_in import ProviderSettings, providers
from firestore_outbox.providers.credentials import WEBHOOK_SECRET, Credentials, FixedCredentials
from firestore_outbox.providers.http import Http
from firestore_outbox.providers.media import MediaContent, MediaHandle, MediaLink, NotUploaded, ReadyMedia, Upload
from firestore_outbox.providers.outcome import ErrorCode, Outcome, Rejected
from firestore_outbox.providers.parts import PartSender
from firestore_outbox.providers.protocol import MediaMode, SessionState, WebhookEvent
from firestore_outbox.providers.registry import Providers, Received
from firestore_outbox.providers.waha.adapter import Waha
from tests.providers.support import LIMIT, NO_JITTER, WEBHOOK, Inbox, message, told

KEY = "k3y-of-the-gateway"
_KINDS = {"picture": "image/jpeg", "scan": "image/png", "sticker": "image/webp", "bill": "application/pdf"}
FILES: Mapping[str, MediaContent] = {
    name: MediaContent(media_id=name, mime_type=kind, filename=f"{name}.bin", content=bytes(range(256)) * 3)
    for name, kind in _KINDS.items()
}


def secrets(base_url: str, **changes: str) -> dict[str, str]:
    entry = {"baseUrl": base_url, "apiKey": KEY, "session": "{accountId}", WEBHOOK_SECRET: DEFAULT_SECRET}
    return {name: value for name, value in (entry | changes).items() if value}


def credentials(base_url: str = "http://provider.test/waha", **changes: str) -> Credentials:
    return Credentials(secrets(base_url, **changes))


def file(media_id: str = "picture", **fields: Any) -> MediaPart:
    mime_type = FILES[media_id].mime_type if media_id in FILES else "image/jpeg"
    return MediaPart.model_validate({"type": "media", "mediaId": media_id, "mimeType": mime_type, **fields})


class FileDelivery:
    """Hands out the files above, whole."""

    def __init__(self, files: Mapping[str, MediaContent | MediaLink] = FILES) -> None:
        self.files = files
        self.modes: list[MediaMode] = []

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
        assert mode in (MediaMode.INLINE, MediaMode.LINK_OR_INLINE)
        self.modes.append(mode)
        return self.files.get(part.mediaId) or Rejected(code=ErrorCode.MEDIA_MISSING, detail="no such file")

    async def forget(self, account_id: str, provider: str, part: MediaPart, handle: MediaHandle) -> None:
        raise AssertionError("there are no handles")


def adapter(transport: httpx.AsyncBaseTransport | None = None, delivery: FileDelivery | None = None) -> Waha:
    return Waha(Http(transport), PartSender(jitter=NO_JITTER, random=Random(1), media=delivery or FileDelivery()))


def providers_with(base_url: str, transport: httpx.AsyncBaseTransport | None = None) -> Providers:
    return providers(
        ProviderSettings(part_jitter=NO_JITTER),
        credentials=FixedCredentials({"*": secrets(base_url)}),
        media=FileDelivery(),
        transport=transport,
        random=Random(1),
    )


class Answering(httpx.AsyncBaseTransport):
    """A gateway that gives one answer to everything, and remembers what it was asked."""

    def __init__(self, status: int, body: Any = None, headers: Mapping[str, str] | None = None) -> None:
        self._status = status
        self._content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._headers = dict(headers or {})
        self.asked: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.asked.append(request)
        return httpx.Response(self._status, content=self._content, headers=self._headers)

    @property
    def sent(self) -> list[dict[str, Any]]:
        return [json.loads(request.content) for request in self.asked]


class World:
    """Simulator, adapter and webhook on one virtual loop, without a socket."""

    def __init__(self) -> None:
        self.clock = virtual_time.VirtualClock()
        self.inbox = Inbox()
        self.simulator = ProviderSimulator(webhook=WEBHOOK, clock=self.clock, random=Random(1), send=self.inbox)
        self.providers = providers_with("http://provider.test/waha", self.simulator.transport)
        self.control = httpx.AsyncClient(transport=self.simulator.transport, base_url="http://provider.test")

    def order(self, **faults: Any) -> None:
        self.simulator.core.faults = parse_faults(faults)

    async def order_session(self, name: str = "acme", **order: Any) -> None:
        answer = await self.control.put(f"/_sim/waha/sessions/{name}", json=order)
        assert answer.status_code == 200, answer.text

    async def send(self, it: OutboxMessage | None = None) -> Outcome:
        return await self.providers.send("waha", it or message(), limit=LIMIT)

    async def session(self, order: Any, account_id: str = "acme") -> SessionState | Outcome:
        return await self.providers.session("waha", account_id, order, limit=LIMIT)

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [call.shown() for call in self.simulator.core.record.calls()]

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(call.body) for call in self.inbox.heard]

    async def events(self) -> list[WebhookEvent]:
        await self.simulator.webhooks.drained()
        events: list[WebhookEvent] = []
        for call in self.inbox.heard:
            _, name, account_id = call.url.removeprefix("http://").split("/")
            received = await self.providers.receive(name, account_id, call.headers, call.body, now=self.clock())
            assert isinstance(received, Received)
            events += received.events
        return events

    async def close(self) -> None:
        await self.control.aclose()
        await self.providers.close()
        await self.simulator.stop()


def in_virtual_time(story: Callable[[World], Awaitable[None]]) -> Callable[[], None]:
    return told(World, story)
