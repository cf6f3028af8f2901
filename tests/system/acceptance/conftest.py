"""Every test here runs twice over real processes: on our own Firestore, and on Google's emulator.

One stack a backend serves all tests; an account of its own keeps each test apart. The worker stands behind a balancer,
as on Cloud Run, so that tests can have several, or none for a moment.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from pytest_asyncio import is_async_test

from firestore_emulator.official import EmulatorMissing
from firestore_outbox.local.dev import PROJECT, DevSettings, DevStack
from tests.system.acceptance.balancer import Balancer
from tests.system.acceptance.world import World

HERE = Path(__file__).parent
SETTINGS = {
    "OUTBOX_LEASE_SECONDS": "5",
    "OUTBOX_SEND_TIMEOUT_SECONDS": "2",
    "OUTBOX_UNCERTAIN_SECONDS": "4",
    "OUTBOX_DEBOUNCE_SECONDS": "0.2",
    "OUTBOX_DEBOUNCE_MAX_SECONDS": "1",
    "OUTBOX_LOG_LEVEL": "WARNING",
}
"""Everything that is waited for in production is short here."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    one_loop = pytest.mark.asyncio(loop_scope="session")
    for item in items:
        if item.path.is_relative_to(HERE) and is_async_test(item):
            item.add_marker(one_loop, append=False)


@pytest.fixture(scope="package", params=["grpc", "official"])
def backend(request: pytest.FixtureRequest) -> str:
    """Whose Firestore: ours, served over a socket, or Google's emulator."""
    return str(request.param)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def stack(backend: str) -> AsyncIterator[World]:
    async with AsyncExitStack() as open_:
        balancer = await open_.enter_async_context(Balancer())
        settings = DevSettings(
            firestore_port=0,
            tasks_port=0,
            functions_port=0,
            worker_port=0,
            provider_port=0,
            official=backend == "official",
            sweep_seconds=2,
            environment={**SETTINGS, "OUTBOX_WORKER_URL": balancer.url},
        )
        try:
            dev = await open_.enter_async_context(DevStack(settings))
        except EmulatorMissing as error:
            pytest.skip(str(error).splitlines()[0])
        balancer.backends = [dev.ports["worker"]]
        with pytest.MonkeyPatch.context() as patch:  # read once, when a client is made
            patch.setitem(os.environ, "FIRESTORE_EMULATOR_HOST", dev.firestore)
            client = firestore.AsyncClient(project=PROJECT, credentials=AnonymousCredentials())
            listening = firestore.Client(project=PROJECT, credentials=AnonymousCredentials())
        world = await open_.enter_async_context(World(dev, balancer, client, listening))
        yield world


@pytest_asyncio.fixture(loop_scope="session")
async def world(stack: World) -> AsyncIterator[World]:
    """The stack, with a provider that behaves until the test says otherwise."""
    await stack.faults({})
    yield stack
    await stack.faults({})
