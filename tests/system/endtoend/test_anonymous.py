"""Callers without a credential, at the real functions and the real worker over sockets: each is answered before its
body is read, made-up account names cost few questions to Secret Manager, and genuine webhooks go on meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx
import pytest
import pytest_asyncio

from firestore_outbox.local import dev
from firestore_outbox.local.dev import DevSettings, DevStack
from firestore_outbox.local.simulators.own import SIGNATURE_HEADER, signed
from firestore_outbox.providers.lookups import LOOKUPS_PER_SECOND, MOST_LOOKUPS
from firestore_outbox.providers.registry import MAX_WEBHOOK_BYTES
from tests.patience import PATIENCE_SECONDS
from tests.providers.secret_manager import PROJECT, SecretManager, secret_manager
from tests.web.functions.firebase import unsigned_token
from tests.web.service.sockets import Connection

HOST = "127.0.0.1"
SECRET = "a webhook secret"
NAMES = 1_000
AT_ONCE = 20


def now() -> datetime:
    return datetime.now(UTC)


def forged() -> dict[str, str]:
    """Of the right form, and of a stranger's secret."""
    return {SIGNATURE_HEADER: signed("a stranger's secret", b"{}", now())}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@dataclass
class World:
    stack: DevStack
    google: SecretManager

    def connect(self, process: str = "functions") -> Connection:
        return Connection(HOST, self.stack.ports[process])

    @property
    def functions(self) -> str:
        return f"http://{HOST}:{self.stack.ports['functions']}"

    async def webhook(self, client: httpx.AsyncClient, account_id: str, secret: str) -> int:
        body = json.dumps({"events": []}).encode()
        headers = {SIGNATURE_HEADER: signed(secret, body, now())}
        return (
            await client.post(f"{self.functions}/simulated/{account_id}", content=body, headers=headers)
        ).status_code


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world() -> AsyncIterator[World]:
    async with secret_manager() as google:
        google.put("shop", json.dumps({"webhookSecret": SECRET, "token": "t"}))
        settings = DevSettings(
            firestore_port=0,
            tasks_port=0,
            functions_port=0,
            worker_port=0,
            provider_port=0,
            environment={
                "OUTBOX_CREDENTIALS": "",
                "OUTBOX_CREDENTIALS_SECRETS": PROJECT,
                "OUTBOX_SECRETS_EMULATOR_HOST": google.address,
            },
        )
        async with DevStack(settings) as stack:
            await add_account(stack.firestore, "shop")
            yield World(stack, google)


async def add_account(firestore: str, account_id: str) -> None:
    values = {"provider": "simulated", "timezone": "UTC", "status": "active"}
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as client:
        added = await client.patch(
            f"http://{firestore}/v1/projects/{dev.PROJECT}/databases/(default)/documents/accounts/{account_id}",
            json={"fields": {name: {"stringValue": value} for name, value in values.items()}},
            headers={"Authorization": "Bearer owner"},
        )
    added.raise_for_status()


@dataclass(frozen=True)
class Call:
    status: int
    path: str
    headers: Callable[[], Mapping[str, str]] = dict
    process: str = "functions"
    length: int = 50_000


ANONYMOUS: dict[str, Call] = {
    "no such path": Call(404, "/nowhere"),
    "a webhook without a signature": Call(401, "/simulated/shop"),
    "a webhook with a signature of no form": Call(401, "/simulated/shop", lambda: {SIGNATURE_HEADER: "v1=0"}),
    "a webhook with an old signature": Call(
        401, "/simulated/shop", lambda: {SIGNATURE_HEADER: signed(SECRET, b"{}", now() - timedelta(hours=1))}
    ),
    "a webhook of an unknown provider": Call(401, "/carrier-pigeon/shop", forged),
    "a webhook of an unknown account": Call(401, "/simulated/unknown", forged),
    "a webhook of an impossible account": Call(401, "/simulated/a__b", forged),
    "whatsapp's without a signature": Call(401, "/whatsapp_cloud/shop"),
    "whatsapp's with one that is too short": Call(
        401, "/whatsapp_cloud/shop", lambda: {"X-Hub-Signature-256": "sha256=" + "0" * 63}
    ),
    "waha's without a signature": Call(401, "/waha/shop"),
    "interakt's without a signature": Call(401, "/interakt/shop"),
    "a signed webhook's without a signature": Call(401, "/signed_webhook/shop"),
    "a webhook that is too large": Call(413, "/simulated/shop", forged, length=MAX_WEBHOOK_BYTES + 1),
    "a message without a token": Call(401, "/v1/messages"),
    "a message with a token of no form": Call(401, "/v1/messages", lambda: bearer("garbage")),
    "a message with a token of another project": Call(
        401, "/v1/messages", lambda: bearer(unsigned_token("ann", aud="other"))
    ),
    "a message that is too large": Call(413, "/v1/messages", lambda: bearer(unsigned_token("ann")), length=10**6),
    "a reminder without a token": Call(401, "/v1/reminders"),
    "a reminder that is too large": Call(413, "/v1/reminders", lambda: bearer(unsigned_token("ann")), length=10**8),
    "a command without a token": Call(401, "/v1/runs/run-1:pause"),
    "a sweep without a token": Call(401, "/sweep"),
    **{
        f"the worker's {name} {what}": Call(401, f"/tasks/{name}", headers, "worker")
        for name in ("lane", "window-end", "receipt", "sweep")
        for what, headers in (
            ("without a token", dict),
            ("with a token of no form", lambda: bearer("garbage")),
            ("with an unsigned token", lambda: bearer(unsigned_token("ann", kid="x"))),
        )
    },
}


@pytest.mark.parametrize("case", ANONYMOUS)
async def test_a_call_without_a_credential_is_answered_before_its_body_is_read(world: World, case: str) -> None:
    call = ANONYMOUS[case]
    async with world.connect(call.process) as caller:
        await caller.start(call.path, length=call.length, headers=call.headers())
        status, _ = await caller.answer()
        assert (status, caller.is_closing) == (call.status, True), "not a byte of its body was sent"
        assert await caller.is_closed()


@pytest.mark.parametrize("case", [case for case, call in ANONYMOUS.items() if call.status == 401])
async def test_an_endless_body_without_a_credential_is_answered_at_its_beginning(world: World, case: str) -> None:
    call = ANONYMOUS[case]
    async with world.connect(call.process) as caller:
        await caller.start(call.path, headers=call.headers())
        await caller.send(b"3\r\n{  \r\n")
        assert (await caller.answer())[0] == call.status
        assert await caller.is_closed()


async def test_a_chunked_body_with_a_forged_signature_is_read_up_to_the_limit(world: World) -> None:
    async with world.connect() as caller:
        await caller.start("/simulated/shop", headers=forged())
        chunk = b"x" * 50_000
        assert await caller.send_chunks(chunk, most=1_000) < 1_000
        with contextlib.suppress(ConnectionError):  # the answer may be lost with the bytes that were on their way
            assert (await caller.answer())[0] == 413


async def test_a_handshake_of_no_form_asks_for_no_secret(world: World) -> None:
    before = len(world.google.asked)
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as client:
        for path in ("simulated/unknown-1", "whatsapp_cloud/unknown-2", "waha/unknown-3"):
            answer = await client.get(f"{world.functions}/{path}", params={"hub.mode": "subscribe"})
            assert answer.status_code == 403
    assert len(world.google.asked) == before


async def test_a_thousand_made_up_accounts_cost_few_questions_and_a_genuine_webhook_none(world: World) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as client:
        assert await world.webhook(client, "shop", SECRET) == 200
        before, started = list(world.google.asked), time.monotonic()
        slots = asyncio.Semaphore(AT_ONCE)

        async def made_up(number: int) -> int:
            async with slots:
                return await world.webhook(client, f"made-up-{number}", "a stranger's secret")

        answers = await asyncio.gather(*(made_up(number) for number in range(NAMES)))
        seconds = time.monotonic() - started
        asked = world.google.asked[len(before) :]
        assert set(answers) <= {401, 503}
        assert len(asked) <= MOST_LOOKUPS + LOOKUPS_PER_SECOND * (seconds + 1)
        assert await world.webhook(client, "shop", SECRET) == 200
        assert "access outbox-account-shop" not in world.google.asked[len(before) :], "its copy is still there"
