"""examples/bot on the real stack: a person writes, and the bot answers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

from firestore_outbox.local.dev import PROJECT, DevSettings, DevStack
from tests.patience import PATIENCE_SECONDS

BOT = Path(__file__).parents[2] / "examples" / "bot"
ACCOUNT = {"provider": "simulated", "timezone": "UTC", "status": "active", "pace": {"perMinute": 0}}


@pytest_asyncio.fixture
async def stack() -> AsyncIterator[DevStack]:
    environment = {"PYTHONPATH": str(BOT), "OUTBOX_HANDLERS": "bot", "OUTBOX_LOG_LEVEL": "WARNING"}
    settings = DevSettings(
        firestore_port=0, tasks_port=0, functions_port=0, worker_port=0, provider_port=0, environment=environment
    )
    async with DevStack(settings) as running:
        yield running


@pytest.fixture
def db(stack: DevStack, monkeypatch: pytest.MonkeyPatch) -> firestore.AsyncClient:
    monkeypatch.setitem(os.environ, "FIRESTORE_EMULATOR_HOST", stack.firestore)
    return firestore.AsyncClient(project=PROJECT, credentials=AnonymousCredentials())


async def test_the_bot_answers_a_burst_once(stack: DevStack, db: firestore.AsyncClient) -> None:
    await db.document("accounts/shop").set(ACCOUNT)
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
        for text in ("Hello?", "hours"):
            reply = {"accountId": "shop", "from": "+4915550000001", "text": text}
            (await http.post(f"{stack.provider_url}/_sim/inbound", json=reply)).raise_for_status()
    answers = await until_answered(db)
    assert answers == ["We are open from 9:00 to 17:00."]


async def until_answered(db: firestore.AsyncClient) -> list[str]:
    found: list[str] = []
    async with asyncio.timeout(2 * PATIENCE_SECONDS):
        while not found:
            documents = [one.to_dict() or {} async for one in db.collection("outbox").stream()]
            found = [one["parts"][0]["text"] for one in documents if one["status"] == "sent"]
            await asyncio.sleep(0.1)
    return found
