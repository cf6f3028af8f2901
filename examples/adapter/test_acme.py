"""The contract that every adapter keeps, and what is Acme's own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import httpx
import pytest

from acme_outbox import SIGNATURE, outcome_of, provider, signature_of
from firestore_outbox import AuthFailed, Outcome, Rejected, Sent, Throttled, Unknown
from firestore_outbox.adapter_testing import AdapterUnderTest, RecordedService, SendingContract, WebhookContract

SECRETS = {"apiKey": "key-0123456789", "webhookSecret": "secret-0123456789"}


class AcmeService(RecordedService):
    """Acme's answers, as they were recorded."""

    def accepted(self, request: httpx.Request, number: int) -> tuple[str, httpx.Response]:
        return f"acme-{number}", httpx.Response(200, json={"id": f"acme-{number}"})

    def throttled(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(429, headers={"Retry-After": "7"}, json={"error": "too many messages"})

    def refused(self, request: httpx.Request) -> httpx.Response:
        sent = json.loads(request.content)
        return httpx.Response(422, json={"error": f"no such recipient: {sent['to']}", "text": sent["text"]})

    def unauthorized(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(401, json={"error": f"unknown key {request.headers['authorization']}"})

    def is_send(self, request: httpx.Request) -> bool:
        return request.url.path == "/messages"

    def checked(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"name": "a shop"})

    def receipts(self, request: httpx.Request, provider_message_id: str) -> Sequence[bytes]:
        at, reference = self.clock().isoformat(), json.loads(request.content)["reference"]
        told = {"id": provider_message_id, "at": at, "reference": reference}
        return [json.dumps({**told, "status": status}).encode() for status in ("sent", "delivered", "read")]

    def sign(self, body: bytes) -> Mapping[str, str]:
        return {SIGNATURE: signature_of(body, SECRETS["webhookSecret"])}


@pytest.fixture
def adapter() -> AdapterUnderTest:
    return AdapterUnderTest(provider=provider, secrets=SECRETS, service=AcmeService)


class TestSending(SendingContract):
    pass


class TestWebhooks(WebhookContract):
    pass


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (httpx.Response(200, json={"id": "a"}), Sent),
        (httpx.Response(200, text="no JSON"), Unknown),
        (httpx.Response(429), Throttled),
        (httpx.Response(403), AuthFailed),
        (httpx.Response(400), Rejected),
        (httpx.Response(500), Unknown),
    ],
)
def test_each_answer_of_acme_has_its_outcome(answer: httpx.Response, outcome: type[Outcome]) -> None:
    assert isinstance(outcome_of(answer), outcome)
