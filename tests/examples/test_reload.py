"""`outbox dev` with a handler whose file changes: the next message gets the new answer."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import httpx
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

from firestore_outbox.local.dev import PROJECT, DevSettings, DevStack
from tests.patience import PATIENCE_SECONDS

HANDLER = """
from firestore_outbox import conversation

@conversation(quiet=0, at_most=0)
async def answer(context):
    await context.reply("{words}")
"""
ACCOUNT = {"provider": "simulated", "timezone": "UTC", "status": "active", "pace": {"perMinute": 0}}


async def test_a_changed_handler_answers_the_next_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handler, told = tmp_path / "parrot.py", list[str]()
    handler.write_text(HANDLER.format(words="before"))
    environment = {"PYTHONPATH": str(tmp_path), "OUTBOX_HANDLERS": "parrot", "OUTBOX_LOG_LEVEL": "WARNING"}
    settings = DevSettings(
        firestore_port=0, tasks_port=0, functions_port=0, worker_port=0, provider_port=0, environment=environment
    )
    async with DevStack(settings, told.append) as stack, asyncio.timeout(4 * PATIENCE_SECONDS):
        monkeypatch.setitem(os.environ, "FIRESTORE_EMULATOR_HOST", stack.firestore)
        db = firestore.AsyncClient(project=PROJECT, credentials=AnonymousCredentials())
        await db.document("accounts/shop").set(ACCOUNT)
        keeping = asyncio.create_task(stack.keep_running())
        await writes(stack, "1")
        assert await answers(db, 1) == {"before"}
        before = {name: stack.processes[name].pid for name in ("worker", "functions")}
        handler.write_text(HANDLER.format(words="after"))
        while any(  # noqa: ASYNC110 - processes have no event
            stack.processes[name].pid == pid or not stack.processes[name].is_running for name, pid in before.items()
        ):
            await asyncio.sleep(0.1)
        await writes(stack, "2")
        assert await answers(db, 2) == {"before", "after"}
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
    assert "parrot.py changed: loading your handlers anew" in told


async def writes(stack: DevStack, text: str) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
        message = {"accountId": "shop", "from": f"+491555000000{text}", "text": text}
        (await http.post(f"{stack.provider_url}/_sim/inbound", json=message)).raise_for_status()


async def answers(db: firestore.AsyncClient, count: int) -> set[str]:
    found: set[str] = set()
    while len(found) < count:
        documents = [one.to_dict() or {} async for one in db.collection("outbox").stream()]
        found = {one["parts"][0]["text"] for one in documents if one["status"] == "sent"}
        await asyncio.sleep(0.1)
    return found
