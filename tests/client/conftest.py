"""Where the clients' cases run: a database of their own on our emulator, and on Google's with the rules on."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_asyncio import is_async_test

from emulator.official import HOST_VARIABLE, OfficialEmulator
from tests.client import node
from tests.conformance.backends import Backend, Place

HERE = Path(__file__).parent
RULES = node.ROOT / "firestore.rules"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """On one event loop, because the servers and channels that they share belong to one."""
    one_loop = pytest.mark.asyncio(loop_scope="session")
    for item in items:
        if item.path.is_relative_to(HERE) and is_async_test(item):
            item.add_marker(one_loop, append=False)


@pytest.fixture(scope="session")
def ruled(official_place: Place) -> Backend:
    """A database on Google's emulator that keeps the rules."""
    backend = Backend(official_place)
    assert backend.address is not None
    with OfficialEmulator.start(environ={HOST_VARIABLE: backend.address}) as emulator:  # the one that runs
        emulator.load_rules(RULES.read_text(encoding="utf-8"), project=backend.project)
    return backend


@pytest.fixture
def inprocess_backend(inprocess_place: Place) -> Backend:
    """The quickest one, for what never reaches it."""
    return Backend(inprocess_place)
