from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.support import FREE_PORTS, Stack, dev


@pytest.fixture(scope="module")
def running() -> Iterator[Stack]:
    """One `outbox dev` for a module; each test has accounts of its own."""
    with dev(*FREE_PORTS) as stack:
        yield stack


@pytest.fixture
def stack(running: Stack) -> Iterator[Stack]:
    yield running
    running.faults()
