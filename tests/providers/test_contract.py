"""The contract of firestore_outbox.adapter_testing over all built-in adapters.

What a provider's own words mean is in the directory of each provider.
"""

from __future__ import annotations

from random import Random

import pytest

from firestore_outbox.adapter_testing import AdapterUnderTest, SendingContract, WebhookContract
from firestore_outbox.adapter_testing.harness import WORDS, Harness, hidden_in, simulate
from firestore_outbox.clock import system_clock
from firestore_outbox.providers.built_in import built_in
from firestore_outbox.providers.entry_points import ProviderTools
from firestore_outbox.providers.http import Http
from firestore_outbox.providers.outcome import Rejected
from firestore_outbox.providers.parts import PartJitter, PartSender
from tests.providers.contract import ADAPTERS, SETTINGS, Simulated, adapter_named


@pytest.fixture(params=ADAPTERS)
def adapter(request: pytest.FixtureRequest) -> AdapterUnderTest:
    return adapter_named(request.param)


class TestSending(SendingContract):
    def test_the_parts_are_sent_in_their_order(self, adapter: AdapterUnderTest) -> None:
        async def story(harness: Harness) -> None:
            await harness.send(parts=3)
            assert isinstance(harness.service, Simulated)
            assert harness.service.parts == [0, 1, 2]

        simulate(adapter, story)

    @pytest.mark.parametrize("code", ["rejected", "invalid_message"])
    def test_a_refusal_quotes_neither_a_secret_nor_the_message(self, adapter: AdapterUnderTest, code: str) -> None:
        async def story(harness: Harness) -> None:
            assert isinstance(harness.service, Simulated)
            harness.service.order(errorRate=1, errorCode=code)
            outcome = await harness.send()
            assert isinstance(outcome, Rejected)
            assert [one for one in (WORDS, *hidden_in(adapter, harness.provider)) if one in repr(outcome)] == []

        simulate(adapter, story)


class TestWebhooks(WebhookContract):
    pass


def test_every_built_in_adapter_is_here() -> None:
    tools = ProviderTools(http=Http(), parts=PartSender(jitter=PartJitter(), random=Random(1)), clock=system_clock)
    names = {one.name for one in built_in(SETTINGS, tools)}
    assert {name for name in names if not name.startswith("simulated-")} == set(ADAPTERS)
