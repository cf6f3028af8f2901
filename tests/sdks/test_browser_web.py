"""The SDK for browsers in Chromium, where it speaks WebChannel and REST."""

from __future__ import annotations

from pathlib import Path

import pytest
import pytest_asyncio

from tests.browser.chromium import require_chromium
from tests.client import node
from tests.client.node import Results
from tests.conformance.backends import Backend
from tests.sdks.test_node_web import CASES

pytestmark = node.FILE_TIMEOUT

HERE = Path(__file__).parent


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def results(socket_backend: Backend) -> Results:
    world = {
        "chromium": require_chromium(),
        "host": socket_backend.address,
        "projectId": socket_backend.project,
        "isOfficial": socket_backend.is_official,
    }
    return await node.run(HERE / "web_in_browser.mjs", world)


@pytest.mark.parametrize("name", CASES)
def test_case(results: Results, name: str) -> None:
    results.check(name)
