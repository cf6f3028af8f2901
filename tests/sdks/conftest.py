"""Where the SDKs run: `outbox emulator` as its users start it, in a process of its own, and Google's emulator."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from grpc import aio
from pytest_asyncio import is_async_test

from firestore_emulator.official import HOST_VARIABLE
from tests.conformance.backends import Backend, Place
from tests.emulator.process import emulator_process

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """On one event loop, because the channels that they share belong to one."""
    one_loop = pytest.mark.asyncio(loop_scope="session")
    for item in items:
        if item.path.is_relative_to(HERE) and is_async_test(item):
            item.add_marker(one_loop, append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def grpc_place() -> AsyncIterator[Place]:
    """Not in this process, so that a client that blocks does not block its server."""
    async with emulator_process() as emulator, aio.insecure_channel(emulator.firestore) as channel:
        yield Place("grpc", channel, emulator.firestore)


@pytest.fixture(scope="session", params=["grpc", "official"])
def socket_backend(request: pytest.FixtureRequest) -> Backend:
    """One for all cases of a suite in JavaScript, which run in one process."""
    return Backend(request.getfixturevalue(f"{request.param}_place"))


@pytest.fixture
def project(socket_backend: Backend, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty database, found as an application finds it: by the environment.

    For the whole test, as the asynchronous client makes itself a blocking one when it is to write in bulk.
    """
    monkeypatch.setenv(HOST_VARIABLE, str(socket_backend.address))
    return f"p-{secrets.token_hex(6)}"


@pytest.fixture
def db(project: str) -> Iterator[firestore.Client]:
    """The blocking client."""
    client = firestore.Client(project=project, credentials=AnonymousCredentials())
    yield client
    client._firestore_api.transport.close()  # which its own close() leaves open


@pytest_asyncio.fixture(loop_scope="session")
async def async_db(project: str) -> AsyncIterator[firestore.AsyncClient]:
    """The asynchronous one."""
    client = firestore.AsyncClient(project=project, credentials=AnonymousCredentials())
    yield client
    await client._firestore_api.transport.close()
