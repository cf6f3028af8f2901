"""A busy stack of real processes, with faults at the provider and at the end no Firestore: nothing that any of them
prints, on standard output or standard error, holds a text, a phone number, a credential or a provider's URL."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from google.cloud.firestore import SERVER_TIMESTAMP, AsyncClient

from firestore_outbox.local.dev import PROJECT, DevSettings, DevStack
from firestore_outbox.local.simulators.app import FORMS
from firestore_outbox.local.simulators.own import OWN
from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET
from tests.patience import PATIENCE_SECONDS
from tests.web.functions.firebase import unsigned_token

PROVIDERS = ("simulated", "whatsapp_cloud", "interakt", "signed_webhook", "waha")
EACH = 4
"""Messages for each account."""
WORD = "zebrafinch"
"""In every text of every message, and nowhere else."""
PASSWORD = "planted-pa55word-in-an-address"
SECRETS = {
    "token": "planted-token-0001",
    "apiKey": "planted-api-key-0002",
    "verifyToken": "planted-verify-token-0003",
    "signingSecret": DEFAULT_SECRET,
    "webhookSecret": DEFAULT_SECRET,
}
PRIVATE = (WORD, PASSWORD, *SECRETS.values())


def phone(number: int) -> str:
    return f"+4915155{number:05d}"


@dataclass
class Planted:
    stack: DevStack
    firestore: AsyncClient
    functions: httpx.AsyncClient
    provider: httpx.AsyncClient
    numbers: list[str]

    def new_number(self) -> str:
        self.numbers.append(phone(len(self.numbers)))
        return self.numbers[-1]

    async def faults(self, **rates: Any) -> None:
        (await self.provider.put("/_sim/faults", json=rates)).raise_for_status()

    async def send(self, account_id: str, number: int) -> None:
        text = {"type": "text", "text": f"the {WORD} of {account_id}"}
        to = self.new_number()
        body = {"requestId": f"request-{account_id}-{number}", "accountId": account_id, "to": to, "parts": [text]}
        headers = {"authorization": f"Bearer {unsigned_token('ann')}"}
        answer = await self.functions.post("/v1/messages", json=body, headers=headers)
        assert answer.status_code == 201, answer.text

    async def malformed(self, request_id: str, **changes: Any) -> None:
        to = self.new_number()
        fields = {
            "requestId": request_id,
            "accountId": "simulated",
            "threadId": f"simulated__{to}",
            "to": to,
            "parts": [{"type": "text", "text": f"the {WORD}"}],
            "status": "queued",
            "createdAt": SERVER_TIMESTAMP,
            "createdBy": "ann",
            "nextAttemptAt": SERVER_TIMESTAMP,
            "attempts": 0,
            **changes,
        }
        await self.firestore.document(f"outbox/{request_id}").set(fields)

    async def inbound(self, account_id: str) -> None:
        event = {"provider": account_id, "accountId": account_id, "from": self.new_number().removeprefix("+")}
        answer = await self.provider.post("/_sim/inbound", json={**event, "text": f"a {WORD} comes in"})
        assert answer.status_code < 300, answer.text

    async def webhook(self, provider: str, body: bytes, *, secret: str = DEFAULT_SECRET, path: str = "") -> int:
        headers = FORMS.get(provider, OWN).headers(secret, body, datetime.now(UTC))
        return (await self.functions.post(path or f"/{provider}/{provider}", content=body, headers=headers)).status_code

    def written(self, name: str) -> str:
        return "".join(file.read_text(errors="replace") for file in self.stack._logs.glob(f"{name}*.log"))

    def lines(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.written(name).splitlines() if line.startswith("{")]

    async def until_logged(self, name: str, action: str) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while action not in {line.get("action") for line in self.lines(name)}:  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.1)

    async def until_ended(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                statuses = [one.get("status") async for one in self.firestore.collection("outbox").stream()]
                if sum(status not in ("queued", "sending") for status in statuses) >= count:
                    return
                await asyncio.sleep(0.1)


@asynccontextmanager
async def planted(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Planted]:
    class Stack(DevStack):
        @property
        def _credentials(self) -> dict[str, str]:
            address = self.provider_url.replace("http://", f"http://user:{PASSWORD}@")
            url = f"{address}/signed_webhook?token={PASSWORD}"
            return {**super()._credentials, **SECRETS, "url": url}

    settings = DevSettings(
        firestore_port=0,
        tasks_port=0,
        functions_port=0,
        worker_port=0,
        provider_port=0,
        environment={"OUTBOX_LOG_LEVEL": "DEBUG", "OUTBOX_RECEIPT_RETRY_SECONDS": "1", "OUTBOX_DEBOUNCE_SECONDS": "0"},
    )
    async with Stack(settings) as stack:
        monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", stack.firestore)
        firestore = AsyncClient(project=PROJECT)
        functions = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{stack.ports['functions']}", trust_env=False, timeout=PATIENCE_SECONDS
        )
        provider = httpx.AsyncClient(base_url=stack.provider_url, trust_env=False, timeout=PATIENCE_SECONDS)
        async with functions, provider:
            yield Planted(stack, firestore, functions, provider, [])
        firestore.close()


async def busy(planted: Planted) -> None:
    """Messages, receipts and inbound messages of every provider; then refusals, bad input and bad tasks."""
    for account_id in PROVIDERS:
        account: Mapping[str, Any] = {"provider": account_id, "status": "active", "pace": {"perMinute": 0}}
        await planted.firestore.document(f"accounts/{account_id}").set(account)
        await planted.firestore.document(f"accounts/{account_id}/members/ann").set({"role": "agent"})
    await planted.faults(errorRate=0.3, throttleRate=0.1, lostResponseRate=0.1, receiptDuplicateRate=0.3)
    for account_id in PROVIDERS:
        for number in range(EACH):
            await planted.send(account_id, number)
        await planted.inbound(account_id)
    await planted.malformed("malformed-text", parts=f"the {WORD}")
    await planted.malformed("malformed-thread", threadId=f"other__{planted.new_number()}")
    await planted.malformed("malformed-number", to=int(planted.new_number().removeprefix("+")))
    await planted.until_ended(3)
    await planted.faults()
    unknown = {"type": "receipt", "providerMessageId": f"true_{planted.new_number()[1:]}@c.us_AB", "status": "read"}
    unknown["at"] = datetime.now(UTC).isoformat()
    assert await planted.webhook("simulated", json.dumps({"events": [unknown, {"type": WORD}]}).encode()) == 200
    assert await planted.webhook("simulated", f'{{"events": "{WORD}"}}'.encode()) == 200
    assert await planted.webhook("waha", f'{{"payload": "{WORD}"}}'.encode()) == 200
    assert await planted.webhook("simulated", b'{"events": []}', secret=PASSWORD) == 401
    challenge = {"hub.mode": "subscribe", "hub.challenge": "1", "hub.verify_token": SECRETS["verifyToken"]}
    assert (await planted.functions.get("/whatsapp_cloud/whatsapp_cloud", params=challenge)).status_code == 200
    await planted.until_logged("functions", "webhook_event_unusable")
    await planted.until_logged("functions", "receipt_unmatched")
    await planted.until_logged("worker", "receipt_dropped")
    await planted.until_logged("worker", "attempt_ended")


async def without_firestore(planted: Planted) -> None:
    """Firestore and Cloud Tasks are gone while webhooks come in: errors of every layer are logged."""
    await planted.stack.processes["google"].kill()
    for account_id in PROVIDERS:
        form, to = FORMS.get(account_id, OWN), planted.new_number()
        event = {"type": "inbound", "providerMessageId": f"last-{account_id}", "from": to.removeprefix("+"), "to": to}
        parts = [{"type": "text", "text": f"the last {WORD}"}]
        body = form.body(account_id, {**event, "at": datetime.now(UTC).isoformat(), "parts": parts})
        assert await planted.webhook(account_id, body) == 503
    await planted.until_logged("functions", "webhook_put_off")
    for name in ("functions", "worker", "provider"):
        await planted.stack.processes[name].stop()


async def test_no_process_prints_a_text_a_number_a_credential_or_a_url_whatever_happens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with planted(monkeypatch) as stack:
        await busy(stack)
        await without_firestore(stack)
        printed = {name: stack.written(name) for name in ("functions", "worker", "provider", "google")}
        lines = [*stack.lines("functions"), *stack.lines("worker")]
        numbers = [number.removeprefix("+") for number in stack.numbers]
        addresses = [stack.stack.provider_url, stack.stack.provider_url.removeprefix("http://")]
    found = {
        f"{name}: {private}": [line[:300] for line in text.splitlines() if private in line][:2]
        for name, text in printed.items()
        for private in (*PRIVATE, *numbers, *(addresses if name in ("functions", "worker") else ()))
        if private in text
    }
    assert found == {}
    assert len(numbers) > len(PROVIDERS) * EACH
    assert all("action" in line and "accountId" in line for line in lines)
    seen = {line["action"] for line in lines}
    assert {"message_refused", "webhook_event_unusable", "receipt_dropped", "webhook_put_off", "lane_released"} <= seen
    without = {line["action"] for line in lines if line["accountId"] is None}
    assert without <= {"sweep_found", "library"}
