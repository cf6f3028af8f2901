"""Calls for one key joined: while one is under way, all that come meanwhile become one more behind it.

A call that begins after a document was committed serves that document. So nothing is lost, no time is added, and a
burst of events costs a call or two.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

K = TypeVar("K")
W = TypeVar("W")


class Joined(Generic[K, W]):
    def __init__(self, work: Callable[[K, W], Awaitable[None]], together: Callable[[W, W], W]) -> None:
        """`together` makes one of what two callers want."""
        self._work = work
        self._together = together
        self._under_way: dict[K, asyncio.Task[None]] = {}
        self._waiting: dict[K, tuple[W, asyncio.Future[None]]] = {}

    async def __call__(self, key: K, wanted: W) -> None:
        """Returns when work that began after this call has ended. Raises what the work raises."""
        if key not in self._under_way:
            await asyncio.shield(self._start(key, wanted))
            return
        waiting = self._waiting.get(key)
        if waiting is None:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting[key] = (wanted, future)
        else:
            earlier, future = waiting
            self._waiting[key] = (self._together(earlier, wanted), future)
        await asyncio.shield(future)

    def is_under_way(self, key: K) -> bool:
        return key in self._under_way

    async def ended(self) -> None:
        """Wait until nothing is under way."""
        while self._under_way:
            await asyncio.wait(list(self._under_way.values()))

    def _start(self, key: K, wanted: W) -> asyncio.Task[None]:
        task = asyncio.create_task(self._now(key, wanted))
        self._under_way[key] = task
        task.add_done_callback(lambda done: self._next(key, done))
        return task

    async def _now(self, key: K, wanted: W) -> None:
        await self._work(key, wanted)

    def _next(self, key: K, done: asyncio.Task[None]) -> None:
        del self._under_way[key]
        if not done.cancelled():
            done.exception()  # looked at: the callers that wait hear of it, and all may have given up waiting
        waiting = self._waiting.pop(key, None)
        if waiting is None:
            return
        wanted, future = waiting
        self._start(key, wanted).add_done_callback(lambda task: _pass_on(task, future))


def _pass_on(task: asyncio.Task[None], future: asyncio.Future[None]) -> None:
    if future.done():
        return
    if task.cancelled():
        future.cancel()
    elif (error := task.exception()) is not None:
        future.set_exception(error)
    else:
        future.set_result(None)
