from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.web.functions import firebase
from tests.web.functions.firebase import Google
from tests.web.service import support
from tests.web.service.support import Certificates, Service


@pytest.fixture
async def google(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Google]:
    """firebase-admin verifies tokens as in production, with certificates from this machine."""
    async with firebase.google(tmp_path) as served:
        monkeypatch.delenv("FIREBASE_AUTH_EMULATOR_HOST", raising=False)
        for name, value in served.environment.items():
            monkeypatch.setenv(name, value)
        yield served


@pytest.fixture
async def served() -> AsyncIterator[Certificates]:
    async with support.certificates() as served:
        yield served


@pytest.fixture
async def service(served: Certificates) -> AsyncIterator[Service]:
    async with support.service(served) as service:
        yield service
