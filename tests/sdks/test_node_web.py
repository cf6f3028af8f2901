"""The SDK for browsers, `firebase`, in Node: it reads and writes by the Listen and Write streams, and keeps a cache."""

from __future__ import annotations

from pathlib import Path

import pytest
import pytest_asyncio

from tests.client import node
from tests.client.node import Results, names_in
from tests.conformance.backends import Backend

pytestmark = node.FILE_TIMEOUT

HERE = Path(__file__).parent
CASES = [name for file in sorted((HERE / "web").glob("*.mjs")) for name in names_in(file)]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def results(socket_backend: Backend) -> Results:
    world = {
        "host": socket_backend.address,
        "projectId": socket_backend.project,
        "isOfficial": socket_backend.is_official,
    }
    return await node.run(HERE / "web.mjs", world)


@pytest.mark.parametrize("name", CASES)
def test_case(results: Results, name: str) -> None:
    results.check(name)
