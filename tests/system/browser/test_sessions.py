"""A phone connected in the chat page, its contacts, and pictures both ways: one path, end to end, in headless Chromium.

Browser, functions, Cloud Tasks, worker, Firestore, storage and WAHA's simulator are processes of their own.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import pytest_asyncio

from firestore_outbox.local.dev import DevStack
from tests.client import node
from tests.client.node import Results, names_in
from tests.system.browser.conftest import told

pytestmark = node.FILE_TIMEOUT

SESSIONS = Path(__file__).parent / "sessions.mjs"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sessions(stack: DevStack, browser: str) -> Results:
    return await node.run(SESSIONS, told(stack, browser))


@pytest.mark.parametrize("name", names_in(SESSIONS))
def test_sessions(sessions: Results, name: str) -> None:
    sessions.check(name)
