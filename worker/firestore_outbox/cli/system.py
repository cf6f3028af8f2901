"""The `System` for one command: the same wiring as the worker's, found by the same environment."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from firestore_outbox.cli.output import run
from firestore_outbox.settings import CLOUD_RUN_VARIABLE, Settings
from firestore_outbox.web.serve import system_from_environment
from firestore_outbox.wiring import System

T = TypeVar("T")


LOCAL_TASKS = "127.0.0.1:8123"
"""Where `outbox dev` has Cloud Tasks, unless told otherwise."""


def settings_from(environment: Mapping[str, str]) -> Settings:
    """With a Firestore emulator, Cloud Tasks is emulated too. On Cloud Run both are refused, by the names as given."""
    given = dict(environment)
    if given.get("FIRESTORE_EMULATOR_HOST") and not given.get(CLOUD_RUN_VARIABLE):
        given.setdefault("OUTBOX_TASKS_EMULATOR_HOST", given.get("CLOUD_TASKS_EMULATOR_HOST") or LOCAL_TASKS)
    return Settings.from_environment(given)


def with_system(work: Callable[[System], Awaitable[T]]) -> T:
    """An emulator if the environment names one (FIRESTORE_EMULATOR_HOST); otherwise Google Cloud."""

    async def do() -> T:
        async with system_from_environment(settings_from(os.environ)) as system:
            return await work(system)

    return run(do())
