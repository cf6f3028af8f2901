from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.inbound.webhooks import support
from tests.inbound.webhooks.support import Hooks


@pytest.fixture
async def hooks(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Hooks]:
    async with support.hooks(monkeypatch) as hooks:
        yield hooks
