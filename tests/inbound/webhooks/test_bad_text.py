"""Texts that no document stores, and an adapter that fails: the event is cleaned or dropped, and the others count."""

from __future__ import annotations

import json
from typing import Any

import pytest

from firestore_outbox.local.simulators.app import FORMS
from firestore_outbox.local.simulators.own import OWN
from firestore_outbox.providers.protocol import WebhookEvent
from firestore_outbox.providers.registry import Providers
from firestore_outbox.providers.simulated.adapter import Simulated
from tests.inbound.webhooks import support
from tests.inbound.webhooks.support import ACCOUNT, NAMES, Hooks, counted, inbound

NUMBER = "4915112345"


@pytest.mark.parametrize("name", [name for name in NAMES if name in FORMS or name == "simulated"])
async def test_half_of_a_surrogate_pair_is_stored_as_a_question_mark(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    event = {**inbound(text="half \ud83d of a crab"), "to": NUMBER}
    async with support.hooks(monkeypatch, provider=name) as hooks:
        assert await hooks.post(name, FORMS.get(name, OWN).body(ACCOUNT, event)) == 200
        (message,) = await hooks.inbound()
        assert message.data["parts"] == [{"type": "text", "text": "half ? of a crab"}]


class Failing(Simulated):
    """An adapter with an error in it."""

    def __init__(self, of: Simulated) -> None:
        self.__dict__.update(of.__dict__)

    def parse(self, raw_body: bytes) -> tuple[WebhookEvent, ...]:
        raise KeyError(raw_body.decode())


class FailingAtVerification(Failing):
    def verify(self, *args: Any, **named: Any) -> bool:
        raise KeyError("signature")


def replaced(registry: Providers, kind: type[Failing]) -> None:
    adapter = registry["simulated"]
    assert isinstance(adapter, Simulated)
    registry._adapters["simulated"] = kind(adapter)


async def test_a_body_at_which_the_adapter_fails_is_taken_counted_and_dropped_with_a_line_that_quotes_nothing(
    hooks: Hooks, caplog: pytest.LogCaptureFixture
) -> None:
    replaced(hooks.system.providers, Failing)
    before = counted("outbox_webhook_events", "unrecognised")
    with caplog.at_level("WARNING", "outbox"):
        assert await hooks.tell(inbound(text="a private word")) == 200
    assert counted("outbox_webhook_events", "unrecognised") == before + 1
    (line,) = [record.__dict__["fields"] for record in caplog.records if record.name == "outbox"]
    assert (line["action"], line["accountId"]) == ("webhook_event_unusable", ACCOUNT)
    assert "KeyError at test_bad_text.py" in line["reason"]
    assert "private" not in json.dumps(line)
    assert await hooks.inbound() == []


async def test_a_webhook_at_which_the_verification_fails_is_refused(hooks: Hooks) -> None:
    replaced(hooks.system.providers, FailingAtVerification)
    assert await hooks.tell(inbound()) == 401
    assert (hooks.wire.writes, await hooks.inbound()) == (0, [])
