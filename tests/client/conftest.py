"""Where the clients' cases run: a database of their own on our emulator and on Google's, with the rules on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import pytest_asyncio
from pytest_asyncio import is_async_test

from firestore_emulator.official import HOST_VARIABLE, OfficialEmulator
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


@pytest.fixture(scope="session", params=["grpc", "official"])
def ruled_place(request: pytest.FixtureRequest) -> Place:
    place: Place = request.getfixturevalue(f"{request.param}_place")
    return place


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def ruled(ruled_place: Place) -> Backend:
    """A database on either emulator that keeps the rules."""
    backend = Backend(ruled_place)
    assert backend.address is not None
    await asyncio.to_thread(_load_rules, backend.address, backend.project)  # our server may be in this very loop
    return backend


def _load_rules(address: str, project: str) -> None:
    with OfficialEmulator.start(environ={HOST_VARIABLE: address}) as emulator:  # the one that runs
        emulator.load_rules(RULES.read_text(encoding="utf-8"), project=project)
