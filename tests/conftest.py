"""Which Firestore a test runs on, and the closing lines that say what ran where and what was left out.

A test that takes the `backend` fixture runs once on each of our server, our in-process engine and Google's emulator.
A machine without Google's emulator runs the other two thirds and says so; with OUTBOX_REQUIRE_ALL=1 leaving anything
out fails the run. A machine that has it fails the run when its third did not run.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio

from tests.conformance import backends
from tests.conformance.backends import PLACES, Backend, Place

# --- fixtures


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def grpc_place() -> AsyncIterator[Place]:
    async with backends.our_server() as place:
        yield place


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def inprocess_place() -> AsyncIterator[Place]:
    async with backends.our_engine() as place:
        yield place


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def official_place() -> AsyncIterator[Place]:
    async with backends.googles_emulator() as place:
        yield place


@pytest.fixture(params=list(PLACES))
def backend(request: pytest.FixtureRequest) -> Backend:
    """A fresh database on each of the three Firestores in turn."""
    return Backend(request.getfixturevalue(f"{request.param}_place"))


@pytest.fixture
def leave_out() -> Iterator[None]:
    yield


# --- the closing report
