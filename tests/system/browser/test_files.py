"""Files in the chat page, in headless Chromium on a whole stack."""

from __future__ import annotations

from pathlib import Path

import pytest
import pytest_asyncio

from firestore_outbox.local.dev import DevStack
from tests.client import node
from tests.client.node import Results, names_in
from tests.system.browser.conftest import told

pytestmark = node.FILE_TIMEOUT

FILES = Path(__file__).parent / "files.mjs"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def files(stack: DevStack, browser: str) -> Results:
    return await node.run(FILES, told(stack, browser))


@pytest.mark.parametrize("name", names_in(FILES))
def test_files(files: Results, name: str) -> None:
    files.check(name)
