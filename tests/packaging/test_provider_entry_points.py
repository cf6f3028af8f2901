"""A provider from an installed package: `[project.entry-points."firestore_outbox.providers"]`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from importlib.metadata import EntryPoint
from pathlib import Path
from random import Random

import pytest

from firestore_outbox import (
    Capability,
    Checked,
    Credentials,
    OutboxMessage,
    Outcome,
    Profile,
    Provider,
    ProviderTools,
    Sent,
    WebhookEvent,
)
from firestore_outbox.clock import system_clock
from firestore_outbox.providers.built_in import ProviderSettings, providers
from firestore_outbox.providers.credentials import FixedCredentials
from firestore_outbox.providers.entry_points import GROUP, BadAdapter, adapters
from firestore_outbox.providers.http import Http
from firestore_outbox.providers.parts import PartJitter, PartSender
from firestore_outbox.providers.unconfigured import Unconfigured


class Pigeon(Provider):
    @property
    def name(self) -> str:
        return "pigeon"

    @property
    def profile(self) -> Profile:
        return Profile(
            capability=Capability(resend_safe=False, echoes_request_id=False),
            part_types=frozenset({"text"}),
            media=None,
            throttle_scopes=frozenset(),
        )

    async def send(self, message: OutboxMessage, credentials: Credentials, *, limit: timedelta) -> Outcome:
        return Sent(provider_message_id="feather-1")

    async def check(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> Checked:
        return Checked(works=True, detail="it coos")

    def verify(self, headers: Mapping[str, str], raw_body: bytes, secret: str, *, now: datetime) -> bool:
        return False

    def parse(self, raw_body: bytes) -> tuple[WebhookEvent, ...]:
        return ()


def pigeon(tools: ProviderTools) -> Provider:
    return Pigeon()


def nothing(tools: ProviderTools) -> object:
    return "a pigeon"


def broken(tools: ProviderTools) -> Provider:
    raise RuntimeError("no feathers")


def tools() -> ProviderTools:
    return ProviderTools(http=Http(), parts=PartSender(jitter=PartJitter(), random=Random(1)), clock=system_clock)


def point(name: str, factory: str) -> EntryPoint:
    return EntryPoint(name=name, value=f"{__name__}:{factory}", group=GROUP)


def test_an_installed_package_adds_a_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As pip leaves it: a module, and metadata beside it that names the entry point."""
    (tmp_path / "acme_pigeon.py").write_text(f"from {__name__} import pigeon\n")
    metadata = tmp_path / "acme_pigeon-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-pigeon\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\npigeon = acme_pigeon:pigeon\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    registry = providers(ProviderSettings(), credentials=FixedCredentials({}))

    assert "pigeon" in registry.names
    assert isinstance(registry["pigeon"], Pigeon)
    assert isinstance(registry["seagull"], Unconfigured)


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ([point("waha", "pigeon")], "has the name of another provider"),
        ([point("pigeon", "pigeon"), point("pigeon", "pigeon")], "has the name of another provider"),
        ([point("dove", "pigeon")], "returned a provider named 'pigeon'; the two names must agree"),
        ([point("pigeon", "nothing")], "returned a str; it must return a firestore_outbox.Provider with its Profile"),
        ([point("pigeon", "broken")], "failed: RuntimeError: no feathers"),
        ([point("pigeon", "missing")], "failed: AttributeError"),
    ],
    ids=["a built-in's name", "a name twice", "two names", "no provider", "an error", "no factory"],
)
def test_an_adapter_that_cannot_be_used_is_named_with_its_fault(points: list[EntryPoint], said: str) -> None:
    with pytest.raises(BadAdapter, match=r"the entry point '\w+' \(") as refused:
        list(adapters(points, tools(), built_in={"waha"}))
    assert said in str(refused.value)
