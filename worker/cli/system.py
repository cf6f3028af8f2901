"""The `System` for one command: the same wiring as the worker's, found by the same environment."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

from worker.cli.say import run
from worker.serve import system_from_environment
from worker.settings import Settings
from worker.wiring import System

T = TypeVar("T")


def with_system(work: Callable[[System], Awaitable[T]]) -> T:
    """An emulator if the environment names one (FIRESTORE_EMULATOR_HOST); otherwise Google Cloud."""

    async def do() -> T:
        async with system_from_environment(Settings.from_environment(os.environ)) as system:
            return await work(system)

    return run(do())
