"""Many things at once, but those that concern one thing one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")

AT_ONCE = 16
"""Enough to hide the way to Firestore and back; few enough that one webhook does not starve another."""


async def by_group(
    items: Iterable[T], key: Callable[[T], Hashable], work: Callable[[T], Awaitable[object]], *, at_once: int = AT_ONCE
) -> None:
    """Items of one key keep their order; of different keys, a bounded number are under way at a time. When it is
    cancelled, nothing of it is left running."""
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    waiting = iter(groups.values())

    async def take() -> None:
        for group in waiting:
            for item in group:
                await work(item)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(min(at_once, len(groups))):
            tasks.create_task(take())
