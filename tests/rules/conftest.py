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


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def guarded(official_place: Place) -> GuardedProject:
    """With the rules that production gets. Skips, with the reason, where there is no emulator of Google's."""
    project = GuardedProject(RulesEmulator(official_place))
    await project.load(RULES.read_text(encoding="utf-8"))
    return project
