"""Where the backend's cases run: on one event loop, because the servers and channels that they share belong to one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_asyncio import is_async_test

from tests.conformance.backends import Backend, Place

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    one_loop = pytest.mark.asyncio(loop_scope="session")
    for item in items:
        if item.path.is_relative_to(HERE) and is_async_test(item):
            item.add_marker(one_loop, append=False)


@pytest.fixture
def inprocess_backend(inprocess_place: Place) -> Backend:
    """The quickest one, for what never reaches it."""
    return Backend(inprocess_place)
