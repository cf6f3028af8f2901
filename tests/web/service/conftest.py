from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.web.service import support
from tests.web.service.support import Certificates, Service


@pytest.fixture
async def served() -> AsyncIterator[Certificates]:
    async with support.certificates() as served:
        yield served


@pytest.fixture
async def service(served: Certificates) -> AsyncIterator[Service]:
    async with support.service(served) as service:
        yield service
