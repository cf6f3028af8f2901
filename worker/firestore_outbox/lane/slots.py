"""How many lanes are active at once in one worker, first come, first served.

A lane that waits for its pace, or for a provider, gives up its place while it waits: it does nothing, and others can.
When it comes back it goes before those that have not begun. It holds a lease, and what it is back for is mostly the end
of its turn; behind thousands that wait to begin, its lease would be renewed and its quantum used up in the queue. Those
that wait to begin are not starved: a lane whose quantum is over yields to them (domain/lane.py).
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
        """Gives up the place for a while, and takes the next that is free."""
        self._give()
        try:
            yield
        finally:
            await self._take(self._returning)

    async def _take(self, queue: deque[asyncio.Future[None]]) -> None:
        if self._free > 0:  # then nobody waits: a place that is given up goes to whoever does
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
