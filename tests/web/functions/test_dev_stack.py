"""The HTTP API in `outbox dev`: an app without a Firestore SDK sends, and the provider is called."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace

import httpx
import pytest
from google.cloud.firestore import AsyncClient

from firestore_emulator.stack import CannotStart
from firestore_outbox.local.dev import PROJECT, DevSettings, DevStack
from tests.patience import PATIENCE_SECONDS
from tests.web.functions.firebase import unsigned_token

FREE = DevSettings(firestore_port=0, tasks_port=0, functions_port=0, worker_port=0, provider_port=0)


async def test_a_message_posted_to_the_local_stack_reaches_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DevStack(FREE) as stack:
        monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", stack.firestore)
        client = AsyncClient(project=PROJECT)
        await client.document("accounts/shop").set({"provider": "simulated", "pace": {"perMinute": 0}})
        await client.document("accounts/shop/members/ann").set({"role": "agent"})
        text = {"type": "text", "text": "Hello!"}
        body = {"requestId": "request-1", "accountId": "shop", "to": "+491701", "parts": [text]}
        url = f"http://127.0.0.1:{stack.ports['functions']}"
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=PATIENCE_SECONDS) as http:
            for uid, status in (("stranger", 403), ("ann", 201), ("ann", 200)):
                headers = {"authorization": f"Bearer {unsigned_token(uid)}"}
                answer = await http.post("/v1/messages", json=body, headers=headers)
                assert answer.status_code == status, answer.text
            assert (await http.post("/sweep")).status_code == 401
        async with httpx.AsyncClient(base_url=stack.provider_url, trust_env=False, timeout=PATIENCE_SECONDS) as http:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not (calls := (await http.get("/_sim/calls")).json()):  # noqa: ASYNC110 - in another process
                    await asyncio.sleep(0.05)
        client.close()
    assert [call["requestId"] for call in calls] == ["request-1"]


async def test_a_free_port_that_another_process_takes_before_its_process_does_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen: list[int] = []
    choose = DevStack._choose_ports
    with socket.socket() as other:

        def choose_and_lose_one(stack: DevStack) -> None:
            choose(stack)
            chosen.append(stack.ports["tasks"])
            if len(chosen) == 1:
                other.bind(("127.0.0.1", chosen[0]))
                other.listen()

        monkeypatch.setattr(DevStack, "_choose_ports", choose_and_lose_one)
        async with DevStack(FREE) as stack:
            assert len(chosen) == 2
            assert stack.tasks == f"127.0.0.1:{chosen[1]}"
            assert all(process.is_running for process in stack.processes.values())


async def test_a_port_that_was_asked_for_and_is_taken_is_an_error_that_names_its_option() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(CannotStart, match=f"port {port} on 127.0.0.1 is taken; choose another with --worker-port"):
            async with DevStack(replace(FREE, worker_port=port)):
                pytest.fail("it started on a port that is taken")
