"""How many lanes are active at once in one worker, first come, first served.

A lane that waits for its pace gives up its place while it waits: it does nothing, and others can.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Slots:
    def __init__(self, most: int) -> None:
        self._free = most
        self._queue: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        await self._take()
        try:
            yield
        finally:
            self._give()

    @asynccontextmanager
    async def without(self) -> AsyncIterator[None]:
        """Gives up the place for a while, and queues for one again."""
        self._give()
        try:
            yield
        finally:
            await self._take()

    async def _take(self) -> None:
        if self._free > 0 and not self._queue:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give()
            else:
                self._queue.remove(turn)
            raise

    def _give(self) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
