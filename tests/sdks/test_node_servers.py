"""Google's SDKs for servers in Node: `@google-cloud/firestore`, and `firebase-admin` with the older one it brings."""

from __future__ import annotations

from pathlib import Path

import pytest
import pytest_asyncio

from tests.client import node
from tests.client.node import Results, names_in
from tests.conformance.backends import Backend

pytestmark = node.FILE_TIMEOUT

HERE = Path(__file__).parent
SDKS = ["@google-cloud/firestore", "firebase-admin"]
CASES = [name for file in sorted((HERE / "server").glob("*.mjs")) for name in names_in(file)]


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=SDKS)
async def results(request: pytest.FixtureRequest, socket_backend: Backend) -> Results:
    world = {
        "sdk": request.param,
        "host": socket_backend.address,
        "projectId": socket_backend.project,
        "isOfficial": socket_backend.is_official,
    }
    return await node.run(HERE / "server.mjs", world)


@pytest.mark.parametrize("name", CASES)
def test_case(results: Results, name: str) -> None:
    results.check(name)
