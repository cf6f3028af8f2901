"""The SDK for browsers in Chromium, where it speaks WebChannel and REST.

On our emulator alone. What is right was found out with Google's in Node; in a browser Google's stands still now and
then (one run in four, in some case that listens).
"""

from __future__ import annotations

from pathlib import Path

import pytest
import pytest_asyncio

from tests.client import node
from tests.client.node import Results
from tests.conformance.backends import Backend, Place
from tests.sdks.test_node_web import CASES
from tests.system.browser.chromium import require_chromium

pytestmark = node.FILE_TIMEOUT

HERE = Path(__file__).parent


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def results(grpc_place: Place) -> Results:
    backend = Backend(grpc_place)
    world = {
        "chromium": require_chromium(),
        "host": backend.address,
        "projectId": backend.project,
        "isOfficial": False,
    }
    return await node.run(HERE / "web_in_browser.mjs", world)


@pytest.mark.parametrize("name", CASES)
def test_case(results: Results, name: str) -> None:
    results.check(name)
