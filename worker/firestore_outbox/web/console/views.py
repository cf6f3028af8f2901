"""What pages show, read once for all viewers.

A view is named by a key: the page, whose accounts it shows, and its options. While a page with live updates is open,
one task for each key reads again every few seconds and hands the result to all viewers. Without a viewer nothing is
read. A page that is only loaded shares what was read a moment ago.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from firestore_outbox.clock import Clock

Load = Callable[[], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Read:
    """What a view showed, and when it was read."""

    data: Any
    at: datetime


@dataclass(slots=True)
class _View:
    load: Load
    every: timedelta
    viewers: int = 0
    last: Read | None = None
    task: asyncio.Task[None] | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and replaced, with each read."""
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_stale: bool = False
    """An action may have changed what it shows."""
    wanted: asyncio.Event = field(default_factory=asyncio.Event)
    """Set to read at once."""


class Views:
    def __init__(self, clock: Clock, *, most: int = 500) -> None:
        """`most` views are remembered; the oldest without a viewer is forgotten first."""
        self._clock = clock
        self._most = most
        self._views: dict[Hashable, _View] = {}
        self.reads = 0
        """Times that a view was read, since the start."""

    @property
    def viewers(self) -> int:
        return sum(view.viewers for view in self._views.values())

    async def once(self, key: Hashable, load: Load, every: timedelta) -> Read:
        """What the view shows now: shared, if it was read within `every`."""
        view = self._of(key, load, every)
        async with view.reading:
            if view.last is None or view.is_stale or self._clock() - view.last.at >= every:
                await self._read(view)
            assert view.last is not None, "it was read"
            return view.last

    async def follow(self, key: Hashable, load: Load, every: timedelta) -> AsyncGenerator[Read]:
        """Now, and after each new read, until the caller stops. Raises what a read raises the first time; later
        failures are left out, and the next read tries again."""
        view = self._of(key, load, every)
        view.viewers += 1
        try:
            shown = await self.once(key, load, every)
            yield shown
            if view.task is None or view.task.done():
                view.task = asyncio.create_task(self._again_and_again(view))
            while True:
                if view.last is shown:
                    await view.changed.wait()
                assert view.last is not None, "it was read before"
                shown = view.last
                yield shown
        finally:
            view.viewers -= 1
            if view.viewers == 0 and view.task is not None:
                view.task.cancel()
                view.task = None

    def forget(self) -> None:
        """After an action: every page is read anew, at once where it is open."""
        self._views = {key: view for key, view in self._views.items() if view.viewers}
        for view in self._views.values():
            view.is_stale = True
            view.wanted.set()

    async def close(self) -> None:
        tasks = [view.task for view in self._views.values() if view.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _of(self, key: Hashable, load: Load, every: timedelta) -> _View:
        view = self._views.get(key)
        if view is None:
            idle = [name for name, one in self._views.items() if one.viewers == 0]
            for name in idle[: max(0, len(self._views) + 1 - self._most)]:
                del self._views[name]
            view = self._views[key] = _View(load, every)
        view.load = load
        return view

    async def _again_and_again(self, view: _View) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(view.every.total_seconds()):
                    await view.wanted.wait()
            view.wanted.clear()
            with contextlib.suppress(Exception):  # the viewers keep what they have, and the next read tries again
                async with view.reading:
                    await self._read(view)

    async def _read(self, view: _View) -> None:
        self.reads += 1
        view.is_stale = False
        data = await view.load()
        view.last = Read(data, self._clock())
        changed, view.changed = view.changed, asyncio.Event()
        changed.set()
