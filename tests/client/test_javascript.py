"""client/outbox.js with the real Firebase SDK in Node: each case on our emulator and on Google's, with the rules on."""

from __future__ import annotations

from pathlib import Path

import pytest
import pytest_asyncio

from tests.client import node
from tests.client.node import HERE, Results, names_in
from tests.conformance.backends import Backend

pytestmark = node.FILE_TIMEOUT

SENDING = HERE / "sending.mjs"
WATCHING = HERE / "watching.mjs"
CAMPAIGNS = HERE / "campaigns.mjs"
NOTIFICATIONS = HERE / "notifications.mjs"


async def run(file: Path, backend: Backend, cases: list[str]) -> Results:
    world = {"host": backend.address, "projectId": backend.project, "isOfficial": backend.is_official}
    return await node.run(file, world, cases)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sending(ruled: Backend) -> Results:
    return await run(SENDING, ruled, names_in(SENDING))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def watching(ruled: Backend) -> Results:
    return await run(WATCHING, ruled, names_in(WATCHING))


@pytest.mark.parametrize("name", names_in(SENDING))
def test_sending(sending: Results, name: str) -> None:
    sending.check(name)


@pytest.mark.parametrize("name", names_in(WATCHING))
def test_watching(watching: Results, name: str) -> None:
    watching.check(name)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def campaigns(ruled: Backend) -> Results:
    return await run(CAMPAIGNS, ruled, names_in(CAMPAIGNS))


@pytest.mark.parametrize("name", names_in(CAMPAIGNS))
def test_campaigns(campaigns: Results, name: str) -> None:
    campaigns.check(name)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def notifications(ruled: Backend) -> Results:
    return await run(NOTIFICATIONS, ruled, names_in(NOTIFICATIONS))


@pytest.mark.parametrize("name", names_in(NOTIFICATIONS))
def test_notifications(notifications: Results, name: str) -> None:
    notifications.check(name)
