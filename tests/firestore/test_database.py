"""`OUTBOX_DATABASE`: everything that the outbox stores goes to the named database of the project."""

from __future__ import annotations

import asyncio

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import AsyncClient

from firestore_emulator.stack import EmulatorSettings, EmulatorStack
from firestore_outbox.settings import Settings
from firestore_outbox.web.serve import system_from_environment
from tests.patience import PATIENCE_SECONDS


async def test_documents_are_written_to_the_database_that_the_setting_names(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.from_environment({"OUTBOX_DATABASE": "chat", "OUTBOX_TASKS_EMULATOR_HOST": "127.0.0.1:1"})
    emulators = EmulatorSettings(firestore_port=0, tasks_port=0, databases=("chat",))
    async with asyncio.timeout(PATIENCE_SECONDS), EmulatorStack(emulators) as stack:
        monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", stack.firestore_address)
        async with system_from_environment(settings, {}) as system:
            await system.administration.note("shop", "look", by="test", detail={})
        for database, count in (("chat", 1), ("(default)", 0)):
            client = AsyncClient(project=settings.project, database=database, credentials=AnonymousCredentials())
            assert len(await client.collection("accounts/shop/actions").get()) == count
