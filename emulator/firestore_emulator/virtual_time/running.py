"""A run from its first callback to its last, with the process tied to its loop meanwhile."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar

from firestore_emulator.virtual_time.errors import SimulationError
from firestore_emulator.virtual_time.loop import Order, VirtualTimeLoop

T = TypeVar("T")


def run(
    main: Coroutine[Any, Any, T],
    *,
    seed: int,
    start: datetime,
    order: Order = Order.SEEDED,
    time_limit: timedelta | None = None,
    max_rounds_per_instant: int = 100_000,
) -> T:
    """Like asyncio.run, on virtual time: run `main`, cancel what it leaves behind, return its result.

    The same seed gives the same run. What asyncio would only have logged fails it as UnhandledError.
    """
    _refuse_inside_a_loop(main)
    loop = VirtualTimeLoop(
        seed=seed,
        start=start,
        order=order,
        time_limit=time_limit,
        max_rounds_per_instant=max_rounds_per_instant,
    )
    try:
        with _process_tied_to(loop, seed):
            return _run_to_the_end(loop, main)
    finally:
        loop.close()


def _refuse_inside_a_loop(main: Coroutine[Any, Any, Any]) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    main.close()
    raise RuntimeError("run() cannot be called from a running event loop")


def _run_to_the_end(loop: VirtualTimeLoop, main: Coroutine[Any, Any, T]) -> T:
    task: asyncio.Task[T] = loop.create_task(main)
    try:
        result = loop.run_until_complete(task)
    except BaseException as error:
        if task.done() and not task.cancelled() and task.exception() not in (None, error):
            error.add_note(f"the main task also failed: {task.exception()!r}")
        try:
            loop.shut_down()
        except SimulationError as at_the_end:
            error.add_note(f"and at the end of the run: {at_the_end}")
        raise
    loop.shut_down()
    return result


_one_run = threading.Lock()


@contextmanager
def _process_tied_to(loop: VirtualTimeLoop, seed: int) -> Iterator[None]:
    """Give this thread the loop's time, `random` the seed, and the garbage collector fixed moments."""
    if not _one_run.acquire(blocking=False):
        raise RuntimeError("another simulation runs in this process, and both would set its clock")
    thread = threading.get_ident()
    epoch = loop.start.timestamp()
    virtual: dict[str, Callable[[], float]] = {
        "monotonic": loop.time,
        "monotonic_ns": lambda: round(loop.time() * 1e9),
        "time": lambda: epoch + loop.time(),
        "time_ns": lambda: round((epoch + loop.time()) * 1e6) * 1_000,
    }
    real: dict[str, Callable[[], float]] = {name: getattr(time, name) for name in virtual}
    random_state = random.getstate()
    collects = gc.isenabled()
    freezes = gc.get_freeze_count() == 0
    try:
        for name in virtual:
            setattr(time, name, _of_thread(thread, virtual[name], real[name]))
        random.seed(seed)
        gc.disable()
        if freezes:
            gc.freeze()  # what was there before is no garbage of this run, and need not be searched
        loop.collect_garbage_at_fixed_moments()
        yield
    finally:
        if freezes:
            gc.unfreeze()
        if collects:
            gc.enable()
        random.setstate(random_state)
        for name in real:
            setattr(time, name, real[name])
        _one_run.release()


def _of_thread(thread: int, virtual: Callable[[], float], real: Callable[[], float]) -> Callable[[], float]:
    def clock() -> float:
        return virtual() if threading.get_ident() == thread else real()

    return clock
