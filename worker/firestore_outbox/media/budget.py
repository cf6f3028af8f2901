"""A semaphore counted in bytes: how much of files this process holds in memory at a time.

All work with files of a process shares one budget, whatever the account and the provider. Those that wait are served in
the order in which they came, so a large file is not passed over for small ones for ever.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class ByteBudget:
    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self._free = total_bytes
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def hold(self, size_bytes: int) -> AsyncIterator[None]:
        """Hold that many bytes, at most the whole budget, for the time of the block."""
        size = min(size_bytes, self.total_bytes)
        await self._acquire(size)
        try:
            yield
        finally:
            self._release(size)

    @property
    def held_bytes(self) -> int:
        return self.total_bytes - self._free

    async def _acquire(self, size: int) -> None:
        if not self._waiting and size <= self._free:
            self._free -= size
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (size, turn)
        self._waiting.append(entry)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it had its turn at the same moment
                self._release(size)
            else:
                self._waiting.remove(entry)
                self._serve()
            raise

    def _release(self, size: int) -> None:
        self._free += size
        self._serve()

    def _serve(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            size, turn = self._waiting.popleft()
            if not turn.done():
                self._free -= size
                turn.set_result(None)
