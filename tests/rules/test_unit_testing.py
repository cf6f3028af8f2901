"""`@firebase/rules-unit-testing` in Node, as users write it, on our emulator and on Google's."""

from __future__ import annotations

from pathlib import Path

import pytest
import pytest_asyncio

from tests.client import node
from tests.client.node import Results, names_in
from tests.conformance.backends import Place

pytestmark = node.FILE_TIMEOUT

FILE = Path(__file__).parent / "unit_testing.mjs"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def results(rules_place: Place) -> Results:
    return await node.run(FILE, {"host": rules_place.address, "isOfficial": rules_place.kind == "official"})


@pytest.mark.parametrize("name", names_in(FILE))
def test_case(results: Results, name: str) -> None:
    results.check(name)
