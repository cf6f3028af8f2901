"""The same path on the embedded stack, for each provider, with the Python client in place of the browser."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import grpc
import pytest
from google.cloud import tasks_v2
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcAsyncIOTransport

from firestore_emulator.tasks.oidc import TokenIssuer
from firestore_outbox.local.dev import QUEUE
from tests.patience import PATIENCE_SECONDS
from tests.system.endtoend.conftest import World
from tests.system.endtoend.evidence import (
    LOOK_SECONDS,
    WITH_SESSIONS,
    Traces,
    check,
    check_short,
    claims_counted,
    collect,
)
from tests.system.endtoend.senders import Story, by_python
from tests.system.endtoend.stack import TappedStack

RECIPIENTS = {
    "simulated": "+491511234567",
    "whatsapp_cloud": "491511234567",
    "interakt": "+919876543210",
    "waha": "491511234567@c.us",
    "signed_webhook": "anybody",
}
"""As each provider writes them."""


async def travel(world: World, provider: str, *, by_worker: bool = True) -> tuple[Story, Traces]:
    letter = await world.letter(provider, RECIPIENTS[provider])
    claims_before = await claims_counted(world.stack)
    story = await by_python(world.listening, letter)
    return story, await collect(world.stack, world.db, story, claims_before=claims_before, by_worker=by_worker)


@pytest.mark.parametrize("provider", RECIPIENTS)
async def test_a_message_in_a_backends_batch_takes_the_whole_way_until_it_is_read(
    embedded: World, provider: str, capsys: pytest.CaptureFixture[str]
) -> None:
    times = check(*await travel(embedded, provider))
    with capsys.disabled():
        print(f"\n{provider}, Python client, embedded stack: {times}")


@pytest.mark.parametrize("provider", sorted(RECIPIENTS.keys() - WITH_SESSIONS))
async def test_a_message_that_comes_alone_is_sent_by_the_function_without_a_task(short: World, provider: str) -> None:
    check_short(*await travel(short, provider, by_worker=False))


async def test_while_its_queue_is_paused_a_message_waits_in_cloud_tasks_and_nowhere_else(embedded: World) -> None:
    stack = embedded.stack
    letter = await embedded.letter("simulated", RECIPIENTS["simulated"])
    claims_before = await claims_counted(stack)
    lane = {"kind": "outbox", "key": letter.account_id}
    async with paused(stack) as waiting_for:
        sending = asyncio.create_task(by_python(embedded.listening, letter))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (waiting := await waiting_for(lane)):  # noqa: ASYNC110 - in another process
                await asyncio.sleep(LOOK_SECONDS)
        (task,) = waiting
        assert task.http_request.url == f"{stack.worker_url}/tasks/lane"
        assert task.http_request.oidc_token.audience == stack.worker_url
        assert await claims_counted(stack) == claims_before
        assert not sending.done()
    story = await sending
    check(story, await collect(stack, embedded.db, story, claims_before=claims_before))


@asynccontextmanager
async def paused(stack: TappedStack) -> AsyncIterator[Callable[[dict[str, str]], Awaitable[list[tasks_v2.Task]]]]:
    """Cloud Tasks takes tasks and dispatches none; what it holds for a lane can be asked for."""
    async with grpc.aio.insecure_channel(stack.tasks) as channel:
        client = tasks_v2.CloudTasksAsyncClient(transport=CloudTasksGrpcAsyncIOTransport(channel=channel))
        request = tasks_v2.ListTasksRequest(parent=QUEUE, response_view=tasks_v2.Task.View.FULL)

        async def waiting_for(lane: dict[str, str]) -> list[tasks_v2.Task]:
            held = await client.list_tasks(request)
            return [task async for task in held if json.loads(task.http_request.body) == lane]

        await client.pause_queue(name=QUEUE)
        try:
            yield waiting_for
        finally:
            await client.resume_queue(name=QUEUE)


async def test_the_way_is_not_believed_where_any_of_its_traces_is_missing(embedded: World) -> None:
    story, traces = await travel(embedded, "simulated")
    check(story, traces)
    gaps = {
        "no event": replace(traces, events=[]),
        "no task": replace(traces, tasks=[]),
        "a task that Cloud Tasks did not sign": replace(traces, certificates=_of_another_key(traces.certificates)),
        "a task for another worker": replace(traces, audience="http://127.0.0.1:1"),
        "no lane": replace(traces, lane={"fence": 0}),
        "no claim": replace(traces, claims=0),
        "no call": replace(traces, calls=[]),
        "a call before the task": replace(traces, calls=[replace(traces.calls[0], asked_at=story.asked_at)]),
        "a call that the provider does not know": replace(traces, recorded=[]),
        "a webhook too few": replace(traces, webhooks=traces.webhooks[1:]),
        "webhooks without a signature": replace(traces, webhooks=[replace(w, headers={}) for w in traces.webhooks]),
        "a message that was not read": replace(traces, message={**traces.message, "status": "delivered"}),
        "a client that was not shown it read": None,
    }
    believed = []
    for name, left in gaps.items():
        try:
            check(story if left else replace(story, shown=story.shown[:-1]), left or traces)
        except AssertionError:
            continue
        believed.append(name)
    assert believed == []


def _of_another_key(certificates: dict[str, Any]) -> dict[str, Any]:
    """Under the same name."""
    other = TokenIssuer(lambda: datetime.now(UTC)).jwks()["keys"][0]
    return {"keys": [{**other, "kid": key["kid"]} for key in certificates["keys"]]}
