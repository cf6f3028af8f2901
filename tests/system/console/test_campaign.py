"""A campaign in headless Chromium, on the whole stack: the console's wizard, the run, and its notification."""

from __future__ import annotations

from pathlib import Path

import pytest
import pytest_asyncio

from firestore_outbox.local.dev import PROJECT
from tests.client import node
from tests.client.node import Results, names_in
from tests.patience import PATIENCE_SECONDS
from tests.system.browser.chromium import require_chromium
from tests.system.console.conftest import World

pytestmark = node.FILE_TIMEOUT

CASES = Path(__file__).parent / "campaign.mjs"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def results(world: World) -> Results:
    given = {
        "chromium": require_chromium(),
        "console": world.url,
        "firestore": world.stack.firestore,
        "provider": world.stack.provider_url,
        "projectId": PROJECT,
        "patienceMs": PATIENCE_SECONDS * 1000,
    }
    return await node.run(CASES, given)


@pytest.mark.parametrize("name", names_in(CASES))
def test_campaign(results: Results, name: str) -> None:
    results.check(name)
