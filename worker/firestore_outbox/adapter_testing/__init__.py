"""The contract that every adapter keeps, as a pytest plugin for adapters of other packages (docs/providers.md).

    # conftest.py
    pytest_plugins = ["firestore_outbox.adapter_testing"]

    # test_acme.py
    @pytest.fixture
    def adapter():
        return AdapterUnderTest(provider=provider, secrets=SECRETS, service=AcmeService)

    class TestSending(SendingContract): ...
    class TestWebhooks(WebhookContract): ...

The adapter runs in virtual time, against a fake of its service: a `RecordedService` with the answers that the real
service gives. It needs `firestore-outbox[local]` and pytest.
"""

from __future__ import annotations

import pytest

from firestore_outbox.adapter_testing.contract import SendingContract, WebhookContract
from firestore_outbox.adapter_testing.harness import AdapterUnderTest
from firestore_outbox.adapter_testing.service import Behaviour, RecordedService, Service, ServiceCall, Webhook

__all__ = [
    "AdapterUnderTest",
    "Behaviour",
    "RecordedService",
    "SendingContract",
    "Service",
    "ServiceCall",
    "Webhook",
    "WebhookContract",
    "adapter",
]


@pytest.fixture
def adapter() -> AdapterUnderTest:
    """Which adapter the contract is about. Your own fixture of this name replaces it."""
    pytest.fail("write a fixture `adapter` that returns an AdapterUnderTest (docs/providers.md)", pytrace=False)
