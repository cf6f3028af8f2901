"""One event loop for the suite: it shares its channel with other suites, and a channel belongs to one loop."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from pytest_asyncio import is_async_test

from firestore_emulator.emulator import FirestoreEmulator
from tests.conformance.backends import Place
from tests.patience import PATIENCE_SECONDS
from tests.rules.differential import Side
from tests.rules.guarded import RULES, GuardedProject, RulesEmulator
from tests.rules.rest_project import Project

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    one_loop = pytest.mark.asyncio(loop_scope="session")
    for item in items:
        if item.path.is_relative_to(HERE) and is_async_test(item):
            item.add_marker(one_loop, append=False)


@pytest.fixture(scope="session")
def rules_emulator(official_place: Place) -> RulesEmulator:
    """Skips, with the reason, where Google's emulator is not installed."""
    return RulesEmulator(official_place)


@pytest.fixture(scope="session", params=["grpc", "official"])
def rules_place(request: pytest.FixtureRequest) -> Place:
    """Our emulator, and Google's where this machine has it."""
    place: Place = request.getfixturevalue(f"{request.param}_place")
    return place


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def guarded(rules_place: Place) -> GuardedProject:
    """A project with the rules that production gets."""
    project = GuardedProject(RulesEmulator(rules_place))
    await project.load(RULES.read_text(encoding="utf-8"))
    return project


@pytest_asyncio.fixture(loop_scope="session")
async def project(rules_place: Place) -> AsyncIterator[Project]:
    """A project without rules, asked over REST."""
    async with httpx.AsyncClient(
        base_url=f"http://{rules_place.address}", trust_env=False, timeout=PATIENCE_SECONDS
    ) as http:
        yield Project(http, f"e-{secrets.token_hex(5)}")


# --- both emulators side by side


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def ours() -> AsyncIterator[Side]:
    emulator = FirestoreEmulator()
    await emulator.start()
    transport = httpx.ASGITransport(app=emulator.http_app)
    async with httpx.AsyncClient(transport=transport, base_url="http://ours", timeout=PATIENCE_SECONDS) as client:
        yield Side(client)
    await emulator.stop()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def theirs(official_place: Place) -> AsyncIterator[Side]:
    async with httpx.AsyncClient(
        base_url=f"http://{official_place.address}", trust_env=False, timeout=PATIENCE_SECONDS
    ) as client:
        yield Side(client)
