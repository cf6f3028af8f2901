"""One stack on our own Firestore and one on Google's emulator, each with its wires tapped, for all tests here."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from pytest_asyncio import is_async_test

from firestore_emulator.official import EmulatorMissing
from firestore_outbox.local.chat_page import USER
from firestore_outbox.local.dev import PROJECT
from tests.client.node import require_node
from tests.system.browser.chromium import require_chromium
from tests.system.endtoend.senders import Letter, by_python
from tests.system.endtoend.stack import TappedStack, settings

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    one_loop = pytest.mark.asyncio(loop_scope="session")
    for item in items:
        if item.path.is_relative_to(HERE) and is_async_test(item):
            item.add_marker(one_loop, append=False)


@dataclass(frozen=True)
class World:
    stack: TappedStack
    db: firestore.AsyncClient
    listening: firestore.Client
    """Google's asynchronous client cannot listen."""

    async def letter(self, provider: str, to: str) -> Letter:
        """From a new account, without a pace, whose owner is the chat page's user."""
        account_id = f"acc-{secrets.token_hex(4)}"
        fields = {"provider": provider, "status": "active", "pace": {"perMinute": 0}}
        await self.db.document(f"accounts/{account_id}").set(fields)
        await self.db.document(f"accounts/{account_id}/members/{USER}").set({"role": "owner"})
        return Letter(provider=provider, account_id=account_id, to=to, uid=USER)


@asynccontextmanager
async def _world(*, official: bool, short_turns: bool) -> AsyncIterator[World]:
    async with TappedStack(settings(official=official, short_turns=short_turns)) as stack:
        with pytest.MonkeyPatch.context() as patch:  # read once, when a client is made
            patch.setitem(os.environ, "FIRESTORE_EMULATOR_HOST", stack.firestore)
            db = firestore.AsyncClient(project=PROJECT, credentials=AnonymousCredentials())
            listening = firestore.Client(project=PROJECT, credentials=AnonymousCredentials())
        world = World(stack, db, listening)
        try:
            await by_python(listening, await world.letter("simulated", "+49151"))  # a cold start is another measurement
            yield world
        finally:
            listening.close()
            db.close()


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def embedded() -> AsyncIterator[World]:
    """On our own Firestore. The worker sends every message."""
    async with _world(official=False, short_turns=False) as world:
        yield world


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def short() -> AsyncIterator[World]:
    """On our own Firestore, as it comes: the function sends a message that came alone."""
    async with _world(official=False, short_turns=True) as world:
        yield world


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def googles() -> AsyncIterator[World]:
    """On Google's emulator, with the security rules and the chat page. The worker sends every message."""
    require_node()
    try:
        async with _world(official=True, short_turns=False) as world:
            yield world
    except EmulatorMissing as error:
        pytest.skip(str(error).splitlines()[0])


@pytest.fixture(params=["the web SDK in Node", "the chat page in Chromium"])
def chromium(request: pytest.FixtureRequest) -> str | None:
    """The browser to use; None: the same client in Node."""
    if request.param == "the web SDK in Node":
        return None
    return require_chromium()
