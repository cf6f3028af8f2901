from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

from firestore_emulator.virtual_time import run

T = TypeVar("T")

START = datetime(2024, 3, 10, 6, 0, tzinfo=UTC)
SEEDS = range(100)


def simulate(main: Coroutine[Any, Any, T], seed: int = 0, **options: Any) -> T:
    return run(main, seed=seed, start=START, **options)


def now() -> float:
    return asyncio.get_running_loop().time()


def raises() -> None:
    raise ValueError("in a callback")
