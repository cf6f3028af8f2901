"""client/outbox.js with the real Firebase SDK in Node, on Google's emulator with the rules on.

Our emulator cannot judge here: it has no rules, and no Write stream, by which this SDK writes.
"""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.client import node
from tests.client.node import HERE, Results, names_in
from tests.conformance.backends import Backend

pytestmark = node.FILE_TIMEOUT

SENDING = HERE / "sending.mjs"
WATCHING = HERE / "watching.mjs"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sending(ruled: Backend) -> Results:
    return await node.run(SENDING, {"host": ruled.address, "projectId": ruled.project})


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def watching(ruled: Backend) -> Results:
    return await node.run(WATCHING, {"host": ruled.address, "projectId": ruled.project})


@pytest.mark.parametrize("name", names_in(SENDING))
def test_sending(sending: Results, name: str) -> None:
    sending.check(name)


@pytest.mark.parametrize("name", names_in(WATCHING))
def test_watching(watching: Results, name: str) -> None:
    watching.check(name)
