"""The suite runs on one event loop, because the emulator's channel, which it shares with others, belongs to one."""

from __future__ import annotations

from pathlib import Path

import pytest
import pytest_asyncio
from pytest_asyncio import is_async_test

from tests.conformance.backends import Place
from tests.rules.guarded import RULES, GuardedProject, RulesEmulator

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


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def guarded(rules_emulator: RulesEmulator) -> GuardedProject:
    """A project with the rules that production gets."""
    project = GuardedProject(rules_emulator)
    await project.load(RULES.read_text(encoding="utf-8"))
    return project
