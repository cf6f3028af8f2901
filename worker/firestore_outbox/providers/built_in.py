"""The adapters of this package, and the registry of all adapters, built from settings."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random

import httpx

from firestore_outbox.clock import Clock, system_clock
from firestore_outbox.providers.credentials import CredentialResolver
from firestore_outbox.providers.entry_points import ProviderTools, installed
from firestore_outbox.providers.http import Http
from firestore_outbox.providers.interakt.adapter import DEFAULT_URL as INTERAKT_URL
from firestore_outbox.providers.interakt.adapter import Interakt
from firestore_outbox.providers.media import MediaDelivery, NoMedia
from firestore_outbox.providers.opening import Opener
from firestore_outbox.providers.parts import PartJitter, PartSender, Sleep
from firestore_outbox.providers.protocol import Provider
from firestore_outbox.providers.registry import Providers
from firestore_outbox.providers.signed_webhook.adapter import SignedWebhook
from firestore_outbox.providers.simulated.adapter import CAPABILITIES, Simulated
from firestore_outbox.providers.waha.adapter import Waha
from firestore_outbox.providers.whatsapp_cloud.adapter import URL as WHATSAPP_CLOUD_URL
from firestore_outbox.providers.whatsapp_cloud.adapter import WhatsAppCloud


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    simulated_url: str = "http://127.0.0.1:8083"
    interakt_url: str = INTERAKT_URL
    whatsapp_cloud_url: str = WHATSAPP_CLOUD_URL
    part_jitter: PartJitter = field(default_factory=PartJitter)


def providers(
    settings: ProviderSettings,
    *,
    credentials: CredentialResolver,
    media: MediaDelivery | None = None,
    opener: Opener | None = None,
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
    return Providers([*own, *third_party], credentials, http, opener)


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
