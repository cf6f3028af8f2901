"""The emulator behind the real client, over a socket and without one: a test that takes `api` runs on both."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

import pytest
from google.cloud.tasks_v2 import CloudTasksAsyncClient
from grpc import aio

from firestore_emulator.rpc.inprocess import InProcessChannel
from firestore_emulator.rpc.server import Server
from firestore_emulator.tasks.emulator import TasksEmulator
from tests.emulator.tasks.support import QUEUE, client_over


@dataclass
class Api:
    client: CloudTasksAsyncClient
    channel: aio.Channel
    emulator: TasksEmulator


@pytest.fixture(params=["grpc", "inprocess"])
async def api(request: pytest.FixtureRequest) -> AsyncIterator[Api]:
    emulator = TasksEmulator(queues=[QUEUE])
    await emulator.start()
    server = None
    channel: aio.Channel = InProcessChannel([emulator.service])
    if request.param == "grpc":
        server = await Server.start(emulator.service)
        channel = aio.insecure_channel(server.address)
    try:
        yield Api(client_over(channel), channel, emulator)
    finally:
        await channel.close()
        if server is not None:
            await server.stop(grace_seconds=0)
        await emulator.stop(timedelta(0))


@pytest.fixture
async def client(api: Api) -> CloudTasksAsyncClient:
    return api.client
