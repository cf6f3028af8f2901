"""Two ways to do a thing once for many: callers that ask while it is done share it, and so do those that ask soon
after."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from datetime import timedelta
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

AT_MOST = 10_000
"""Entries that are remembered; the oldest are dropped."""


class Shared(Generic[K, V]):
    """One piece of work for a key at a time. It goes on when those who asked for it are gone."""

    def __init__(self) -> None:
        self._running: dict[K, asyncio.Task[V]] = {}

    def start(self, key: K, work: Callable[[], Awaitable[V]]) -> asyncio.Task[V]:
        """The work that is under way, or else this."""
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.get_running_loop().create_task(_done(work))
            task.add_done_callback(lambda done: self._ended(key, done))
        return task

    async def get(self, key: K, work: Callable[[], Awaitable[V]]) -> V:
        return await asyncio.shield(self.start(key, work))

    def _ended(self, key: K, task: asyncio.Task[V]) -> None:
        del self._running[key]
        if not task.cancelled():
            task.exception()  # raised to those that still wait; the others do not need it

    async def stop(self) -> None:
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _done(work: Callable[[], Awaitable[V]]) -> V:
    return await work()


class Remembered(Generic[K, V]):
    """Answers that hold for a while, by the clock that only counts."""

    def __init__(self) -> None:
        self._answers: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K) -> V | None:
        answer = self._answers.get(key)
        if answer is None:
            return None
        until, value = answer
        if _loop_time() < until:
            return value
        del self._answers[key]
        return None

    def keep(self, key: K, value: V, lasts: timedelta) -> None:
        self._answers[key] = (_loop_time() + lasts.total_seconds(), value)
        self._answers.move_to_end(key)
        while len(self._answers) > AT_MOST:
            self._answers.popitem(last=False)

    def drop(self, key: K) -> None:
        self._answers.pop(key, None)


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
