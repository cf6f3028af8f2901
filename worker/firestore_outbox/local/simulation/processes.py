"""Simulated processes. All run on the one loop; each can be paused, and can die, between any two of its steps.

A task belongs to the process in whose context it was made, and so do the tasks that it makes. Each step of such a task
passes a gate. While the process is paused nothing of it moves: answers wait, timeouts fire only when it goes on, as in
a machine that was suspended. A dead process is paused for ever: no `finally`, no `except`, no last write; which is what
`kill -9` leaves.

What serves a process (a database, a provider) must not pause with it: `outside` runs it outside of any process.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

_process: ContextVar[Process | None] = ContextVar("process", default=None)


class ProcessDied(Exception):
    """A caller that waits for its answer gets none."""


class Process:
    def __init__(self, name: str) -> None:
        self.name = name
        self.context = Context()
        self.context.run(_process.set, self)
        self.died = asyncio.Event()
        self._is_held = False
        self._at_the_gate: list[asyncio.Future[None]] = []
        self._steps = 0
        self._planned: dict[int, Callable[[], None]] = {}

    @property
    def is_alive(self) -> bool:
        return not self.died.is_set()

    def pause(self) -> None:
        self._is_held = True

    def after_steps(self, steps: int, then: Callable[[], None]) -> None:
        """Just before that step from now: where much happens, much is hit."""
        self._planned[self._steps + steps] = then

    def go_on(self) -> None:
        if self.is_alive:
            self._open()

    def die(self) -> None:
        self.died.set()
        self._is_held = True

    def bury(self) -> None:
        """Lets go of what a dead process holds. Only when the run has ended: its cleanup runs now."""
        self._open()

    async def serve(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs `work` as this process. Raises `ProcessDied` if it does not live to answer."""
        if not self.is_alive:
            work.close()
            raise ProcessDied(self.name)
        task = asyncio.get_running_loop().create_task(work, context=self.context.copy())
        task.add_done_callback(_seen)
        death = asyncio.ensure_future(self.died.wait())
        try:
            await asyncio.wait({task, death}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            death.cancel()
        if not task.done():
            raise ProcessDied(self.name)
        return task.result()

    def _open(self) -> None:
        self._is_held = False
        waiting, self._at_the_gate = self._at_the_gate, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    @types.coroutine
    def through_the_gate(self, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """Drives `work` step by step, each only while the process runs."""
        value: Any = None
        error: BaseException | None = None
        while True:
            self._steps += 1
            if self._planned and (planned := self._planned.pop(self._steps, None)):
                planned()
            while self._is_held:
                future = asyncio.get_running_loop().create_future()
                self._at_the_gate.append(future)
                try:
                    yield from future.__await__()
                except BaseException as thrown:  # noqa: BLE001 - a cancellation arrives when the process goes on
                    value, error = None, thrown
            try:
                waits_for = work.send(value) if error is None else work.throw(error)
            except StopIteration as end:
                result: T = end.value
                return result
            value, error = None, None
            try:
                value = yield waits_for
            except BaseException as thrown:  # noqa: BLE001 - whatever it is, it is for the work inside
                error = thrown


def gate_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """From now on, tasks of this loop belong to the process that made them."""
    make = loop.create_task

    def create_task(coro: Any, *, context: Context | None = None, **kwargs: Any) -> asyncio.Task[Any]:
        process = _process.get() if context is None else context.get(_process)
        if process is None:
            return make(coro, context=context, **kwargs)
        task = make(_gated(process, coro), context=context, **kwargs)
        task.add_done_callback(lambda _: coro.close())  # should it have been cancelled before its first step
        return task

    loop.create_task = create_task  # type: ignore[method-assign]  # of this one loop


async def _gated(process: Process, work: Coroutine[Any, Any, T]) -> T:
    return await process.through_the_gate(work)


async def outside(work: Coroutine[Any, Any, T]) -> T:
    """Runs `work` outside of any process: it goes on whatever becomes of the caller."""
    task = asyncio.get_running_loop().create_task(work, context=Context())
    task.add_done_callback(_seen)
    await asyncio.wait([task])
    return task.result()


def current() -> Process | None:
    return _process.get()


def _seen(task: asyncio.Future[Any]) -> None:
    """Ignore an error of a task without a waiter."""
    if not task.cancelled():
        task.exception()
