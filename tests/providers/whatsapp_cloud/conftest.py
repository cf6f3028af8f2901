from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.providers.whatsapp_cloud.support import Office, office


@pytest.fixture
async def acme(tmp_path: Path) -> AsyncIterator[Office]:
    async with office(tmp_path) as it:
        yield it
