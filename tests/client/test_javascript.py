"""client/outbox.js with the real Firebase SDK in Node.

Every case runs on Google's emulator with our rules on. Ours has no rules: there run those in which no rule decides
anything, `test` and not `testOfRules` in the files.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import pytest_asyncio

from tests.client import node
from tests.client.node import HERE, Results, names_in, names_without_rules
from tests.conformance.backends import Backend, Place

pytestmark = node.FILE_TIMEOUT

SENDING = HERE / "sending.mjs"
WATCHING = HERE / "watching.mjs"


async def run(file: Path, backend: Backend, cases: list[str]) -> Results:
    world = {"host": backend.address, "projectId": backend.project, "isOfficial": backend.is_official}
    return await node.run(file, world, cases)


# --- on Google's emulator, with the rules


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sending(ruled: Backend) -> Results:
    return await run(SENDING, ruled, names_in(SENDING))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def watching(ruled: Backend) -> Results:
    return await run(WATCHING, ruled, names_in(WATCHING))


@pytest.mark.parametrize("name", names_in(SENDING))
def test_sending(sending: Results, name: str) -> None:
    sending.check(name)


@pytest.mark.parametrize("name", names_in(WATCHING))
def test_watching(watching: Results, name: str) -> None:
    watching.check(name)


# --- on ours, without


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sending_without_rules(grpc_place: Place) -> Results:
    return await run(SENDING, Backend(grpc_place), names_without_rules(SENDING))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def watching_without_rules(grpc_place: Place) -> Results:
    return await run(WATCHING, Backend(grpc_place), names_without_rules(WATCHING))


@pytest.mark.parametrize("name", names_without_rules(SENDING))
def test_sending_without_rules(sending_without_rules: Results, name: str) -> None:
    sending_without_rules.check(name)


@pytest.mark.parametrize("name", names_without_rules(WATCHING))
def test_watching_without_rules(watching_without_rules: Results, name: str) -> None:
    watching_without_rules.check(name)
