"""How many lanes are active at once in one worker, first come, first served.

A lane that waits for its pace or for a provider gives up its slot, because other lanes can use it meanwhile. When it
comes back, it goes before lanes that have not begun: it holds a lease and mostly has only to end its turn, and behind
thousands of other lanes it would renew its lease and use up its quantum in the queue. Lanes that wait to begin are not
starved: a lane yields to them after its quantum (lane/state.py).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Slots:
    def __init__(self, most: int) -> None:
        self._free = most
        self._beginning: deque[asyncio.Future[None]] = deque()
        self._returning: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        return len(self._beginning) + len(self._returning)

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        await self._take(self._beginning)
        try:
            yield
        finally:
            self._give()

    @asynccontextmanager
    async def without(self) -> AsyncIterator[None]:
        """Give up the slot for the block, and take the next free one afterwards."""
        self._give()
        try:
            yield
        finally:
            await self._take(self._returning)

    async def _take(self, queue: deque[asyncio.Future[None]]) -> None:
        if self._free > 0:  # then no lane waits: a slot that is given up goes to one that does
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give()
            elif turn in queue:  # else `_give` has come by meanwhile, and taken it out
                queue.remove(turn)
            raise

    def _give(self) -> None:
        for queue in (self._returning, self._beginning):
            while queue:
                turn = queue.popleft()
                if not turn.done():
                    turn.set_result(None)
                    return
        self._free += 1
