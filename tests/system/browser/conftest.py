"""Chromium, and the whole stack with the chat page, on our Firestore emulator and on Google's: one for all cases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from firestore_emulator.official import EmulatorMissing
from firestore_outbox.local import chat_page
from firestore_outbox.local.dev import PROJECT, DevSettings, DevStack
from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET
from tests.system.browser.chromium import require_chromium

SETTINGS = DevSettings(
    firestore_port=0,
    tasks_port=0,
    functions_port=0,
    worker_port=0,
    provider_port=0,
    page_port=0,
    sweep_seconds=1,
    environment={"OUTBOX_LOG_LEVEL": "WARNING"},
)


def told(stack: DevStack, browser: str) -> dict[str, str | bool]:
    """What the cases in JavaScript need to know."""
    assert stack.page_url is not None
    return {
        "chromium": browser,
        "page": stack.page_url,
        "firestore": stack.firestore,
        "provider": stack.provider_url,
        "functions": f"http://127.0.0.1:{stack.ports['functions']}",
        "projectId": PROJECT,
        "uid": chat_page.USER,
        "webhookSecret": DEFAULT_SECRET,
        "isOfficial": stack.settings.official,
    }


@pytest.fixture(scope="session")
def browser() -> str:
    return require_chromium()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stack(browser: str) -> AsyncIterator[DevStack]:
    async with DevStack(SETTINGS) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def official_stack(browser: str) -> AsyncIterator[DevStack]:
    """On Google's emulator."""
    try:
        async with DevStack(replace(SETTINGS, official=True)) as running:
            yield running
    except EmulatorMissing as error:
        pytest.skip(str(error).splitlines()[0])


@pytest.fixture(scope="session", params=["stack", "official_stack"], ids=["grpc", "official"])
def any_stack(request: pytest.FixtureRequest) -> DevStack:
    """Our emulator and Google's in turn."""
    stack: DevStack = request.getfixturevalue(request.param)
    return stack
