"""The HTTP API in `outbox dev`: an app without a Firestore SDK sends, and the provider is called."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from google.cloud.firestore import AsyncClient

from emulator.dev import PROJECT, DevSettings, DevStack
from tests.functions.firebase import unsigned_token

WITHIN_SECONDS = 60


async def test_a_message_posted_to_the_local_stack_reaches_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    free = DevSettings(firestore_port=0, tasks_port=0, functions_port=0, worker_port=0, provider_port=0)
    async with DevStack(free) as stack:
        monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", stack.firestore)
        client = AsyncClient(project=PROJECT)
        await client.document("accounts/shop").set({"provider": "simulated", "pace": {"perMinute": 0}})
        await client.document("accounts/shop/members/ann").set({"role": "agent"})
        text = {"type": "text", "text": "Hello!"}
        body = {"requestId": "request-1", "accountId": "shop", "to": "+491701", "parts": [text]}
        url = f"http://127.0.0.1:{stack.ports['functions']}"
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as http:
            for uid, status in (("stranger", 403), ("ann", 201), ("ann", 200)):
                headers = {"authorization": f"Bearer {unsigned_token(uid)}"}
                answer = await http.post("/v1/messages", json=body, headers=headers)
                assert answer.status_code == status, answer.text
            assert (await http.post("/sweep")).status_code == 401
        async with httpx.AsyncClient(base_url=stack.provider_url, trust_env=False) as http:
            async with asyncio.timeout(WITHIN_SECONDS):
                while not (calls := (await http.get("/_sim/calls")).json()):  # noqa: ASYNC110 - in another process
                    await asyncio.sleep(0.05)
        client.close()
    assert [call["requestId"] for call in calls] == ["request-1"]
