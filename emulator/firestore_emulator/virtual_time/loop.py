"""The loop, and the wall clocks of the machines that are simulated on it."""

from __future__ import annotations

import asyncio
import gc
import heapq
import itertools
import math
import random
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, NoReturn, TypeVar, TypeVarTuple, Unpack

from firestore_emulator.virtual_time.errors import (
    Deadlock,
    Livelock,
    NotSimulated,
    TimeLimitReached,
    UnhandledError,
    describe_tasks,
)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_ONE_INSTANT_SECONDS = 1e-8
_LIVELOCK_PROGRESS_SECONDS = 1e-6
_CANCELLED_TIMERS_TO_SWEEP = 100
_CALLBACKS_BETWEEN_COLLECTIONS = 50_000
_MOST_CALLBACKS_BETWEEN_COLLECTIONS = 1_000_000
"""A long run collects more seldom: each collection searches all that the run holds, and a run may hold gigabytes."""
_SHUTDOWN_LIMIT_SECONDS = 3_600.0


class Order(Enum):
    """In which order the callbacks of one round run."""

    SEEDED = "seeded"
    FIFO = "fifo"


class _Task(asyncio.Task[Any]):
    """A task whose hash is its number on its loop, so that sets of tasks iterate alike in every process."""

    def __init__(self, coro: Any, *, serial: int, **kwargs: Any) -> None:
        self.serial = serial  # before the constructor: asyncio puts the task into a set there
        super().__init__(coro, **kwargs)

    def __hash__(self) -> int:
        return self.serial


def _not_simulated(name: str) -> Any:
    def refuse(*_args: Any, **_kwargs: Any) -> Any:
        raise NotSimulated(
            f"{name}() needs the real world, and a simulation has neither sockets, signals nor processes: "
            "give the code an in-process transport"
        )

    refuse.__name__ = name
    return refuse


class VirtualTimeLoop(asyncio.BaseEventLoop):
    """See the module's text. `run` makes one, runs it and closes it."""

    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _stopping: bool
    _timer_cancelled_count: int

    def __init__(
        self,
        *,
        seed: int,
        start: datetime,
        order: Order = Order.SEEDED,
        time_limit: timedelta | None = None,
        max_rounds_per_instant: int = 100_000,
    ) -> None:
        super().__init__()
        if start.tzinfo is None:
            self.close()
            raise ValueError(f"start must be aware, got {start!r}")
        self.start = start.astimezone(UTC)
        self.callbacks_run = 0  # grows with each callback
        self._now = 0.0
        self._order = order
        self._random = random.Random(f"order of callbacks {seed}")  # apart from the global one
        self._limit_seconds = math.inf if time_limit is None else time_limit.total_seconds()
        self._max_rounds = max_rounds_per_instant
        self._rounds = 0  # at this instant; back to 0 when time moves
        self._instant = 0.0  # when `_rounds` began to count
        self._runs: list[tuple[int, int]] = []  # stretches of `_ready` from one source, if longer than 1
        self._attributed = 0  # how much of `_ready` had been looked at for `_runs`
        self._serials = itertools.count(1)
        self._unhandled: list[dict[str, Any]] = []
        self._gathers_unhandled = False  # true while shutting down: report at its end, not at once
        self._next_collection = math.inf  # in callbacks run; only `run` collects garbage
        self._thread = threading.get_ident()

    # Time

    def time(self) -> float:
        return self._now

    def now(self) -> datetime:
        """The true wall clock of the simulation, in UTC."""
        return self.start + timedelta(seconds=self._now)

    # One round

    def _run_once(self) -> None:
        """Most rounds are one callback and no timer: what they do not need is not called for."""
        self._rounds += 1
        if self._rounds > self._max_rounds:
            self._give_up()
        ready = self._ready
        scheduled_soon = len(ready)
        if scheduled_soon - self._attributed > 1:  # scheduled while no callback ran: from outside, one source
            self._runs.append((self._attributed, scheduled_soon))
        scheduled = self._scheduled
        if (
            not ready
            or (scheduled and scheduled[0].when() <= self._now)
            or self._timer_cancelled_count > _CANCELLED_TIMERS_TO_SWEEP
        ):
            self._release_due_timers()

        todo = list(ready)
        ready.clear()
        if len(todo) > 1:
            if self._order is Order.SEEDED:
                todo = self._shuffled(todo, scheduled_soon)
            todo.reverse()  # taken from the end, which frees each handle when it has run
        runs: list[tuple[int, int]] = []
        self._runs = runs
        self.callbacks_run += len(todo)
        seen = 0
        try:
            while todo:
                handle = todo.pop()
                if handle.cancelled():
                    continue
                handle._run()
                count = len(ready)
                if count != seen:
                    if count - seen > 1:
                        runs.append((seen, count))
                    seen = count
        except BaseException:  # KeyboardInterrupt or SystemExit: the others of the round still have to run
            ready.extendleft(todo)
            runs.clear()
            seen = len(ready)
            raise
        finally:
            self._attributed = seen
            handle = None  # type: ignore[assignment]  # else an exception's traceback keeps it alive
        if self.callbacks_run >= self._next_collection:
            self._collect_garbage()
        if self._unhandled and not self._gathers_unhandled:
            self._raise_unhandled()

    def _give_up(self) -> NoReturn:
        self._rounds = 0  # the cleanup after this error gets its own allowance
        spinning = [owner for h in self._ready if isinstance(owner := _owner(h), asyncio.Task)]
        raise Livelock(
            f"{self._max_rounds:,} rounds of callbacks at {self._moment()}, and time stands; ready now:"
            + describe_tasks(spinning)
        )

    def _release_due_timers(self) -> None:
        """Move the timers whose time has come to `_ready`; if that is empty, first leap to the next one."""
        self._sweep_cancelled_timers()
        scheduled = self._scheduled
        until = self._now
        if not self._ready and not self._stopping:
            if not scheduled:
                raise Deadlock(
                    f"at {self._moment()} no callback is ready and no timer is set: nothing can ever happen;"
                    " waiting:" + describe_tasks(self.pending_tasks())
                )
            next_timer = scheduled[0].when()
            if next_timer > self._limit_seconds:
                raise TimeLimitReached(
                    f"at {self._moment()} the next timer is at second {next_timer:g}, past the limit of"
                    f" {self._limit_seconds:g}; waiting:" + describe_tasks(self.pending_tasks())
                )
            until = max(until, next_timer) + _ONE_INSTANT_SECONDS
        while scheduled and scheduled[0].when() <= until:
            timer = heapq.heappop(scheduled)
            timer._scheduled = False  # type: ignore[attr-defined]
            if timer.cancelled():
                self._timer_cancelled_count -= 1
                continue
            self._now = max(self._now, timer.when())
            self._ready.append(timer)
        if self._now - self._instant >= _LIVELOCK_PROGRESS_SECONDS:
            self._instant = self._now
            self._rounds = 0

    def _sweep_cancelled_timers(self) -> None:
        scheduled = self._scheduled
        count = self._timer_cancelled_count
        if count > _CANCELLED_TIMERS_TO_SWEEP and count * 2 > len(scheduled):
            for timer in scheduled:
                if timer.cancelled():
                    timer._scheduled = False  # type: ignore[attr-defined]
            scheduled[:] = [timer for timer in scheduled if not timer.cancelled()]
            heapq.heapify(scheduled)
            self._timer_cancelled_count = 0
        while scheduled and scheduled[0].cancelled():
            self._timer_cancelled_count -= 1
            heapq.heappop(scheduled)._scheduled = False  # type: ignore[attr-defined]

    def _shuffled(self, handles: list[asyncio.Handle], scheduled_soon: int) -> list[asyncio.Handle]:
        """Sort by random keys; where an order is promised, a key is raised to that of what must go before.

        Equal keys keep their places, so every order that the promises allow can come up.
        """
        draw = self._random.random
        keys = [draw() for _ in handles]
        sources = iter(self._runs)
        begin, end = next(sources, (scheduled_soon, scheduled_soon))
        of_source = 0.0  # the highest key so far of this source's callbacks, tasks left out
        of_object: dict[int, float] = {}  # the highest key so far of the callbacks bound to it
        for place in range(scheduled_soon):
            if place >= end:
                begin, end = next(sources, (scheduled_soon, scheduled_soon))
                of_source = 0.0
            key = keys[place] if place < begin else max(keys[place], of_source)
            owner = _owner(handles[place])
            if not isinstance(owner, asyncio.Task):
                if owner is not None:
                    key = of_object[id(owner)] = max(key, of_object.get(id(owner), 0.0))
                if place >= begin:
                    of_source = key
            keys[place] = key
        return [handles[place] for place in sorted(range(len(handles)), key=keys.__getitem__)]

    # Tasks and their errors

    def create_task(
        self, coro: Any, *, name: object = None, context: Context | None = None, **kwargs: Any
    ) -> asyncio.Task[Any]:
        serial = next(self._serials)
        name = name or f"Task-{serial}"  # asyncio counts over the whole process, other in each run
        if self.get_task_factory() is not None:
            return super().create_task(coro, name=name, context=context, **kwargs)
        if self.is_closed():
            raise RuntimeError("Event loop is closed")
        return _Task(coro, serial=serial, loop=self, name=name, context=context, **kwargs)

    def pending_tasks(self) -> list[asyncio.Task[Any]]:
        """The tasks that are not done, oldest first."""
        return sorted(asyncio.all_tasks(self), key=lambda task: getattr(task, "serial", 0))

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Whatever handler is set, the run fails: an exception that arrives here has no other reader."""
        if self.is_closed():
            super().call_exception_handler(context)
        else:
            self._unhandled.append(context)

    def _raise_unhandled(self) -> None:
        contexts, self._unhandled = self._unhandled, []
        causes = (context["exception"] for context in contexts if context.get("exception"))
        raise UnhandledError(contexts) from next(causes, None)

    def shut_down(self) -> None:
        """What asyncio.run does at its end: cancel what is left and wait for it, close async generators.

        A task that will not end is an error here, not a hang. Errors met on the way are raised at the end.
        """
        self._gathers_unhandled = True
        self._limit_seconds = self._now + _SHUTDOWN_LIMIT_SECONDS
        self._cancel_pending_tasks()
        self._collect_garbage()  # dropped tasks report their errors, dropped generators schedule their end
        self.run_until_complete(asyncio.sleep(0))
        if closing := self.pending_tasks():
            self.run_until_complete(asyncio.gather(*closing, return_exceptions=True))
        self.run_until_complete(self.shutdown_asyncgens())
        if self._unhandled:
            self._raise_unhandled()

    def _cancel_pending_tasks(self) -> None:
        while tasks := self.pending_tasks():
            for task in tasks:
                task.cancel()
            self.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            for task in tasks:
                if not task.cancelled() and (error := task.exception()):
                    message = "raised while it was cancelled at the end of the run"
                    self.call_exception_handler({"message": message, "exception": error, "task": task})

    def collect_garbage_at_fixed_moments(self) -> None:
        """From now on, since no other code collects any."""
        self._next_collection = _CALLBACKS_BETWEEN_COLLECTIONS

    def _collect_garbage(self) -> None:
        if self._next_collection < math.inf:
            callbacks = min(self.callbacks_run // 8, _MOST_CALLBACKS_BETWEEN_COLLECTIONS)
            self._next_collection = self.callbacks_run + max(callbacks, _CALLBACKS_BETWEEN_COLLECTIONS)
            gc.collect()

    def _moment(self) -> str:
        return f"{self.now().isoformat()} (second {self._now:g})"

    # One thread, no selector

    def run_in_executor(  # type: ignore[override]  # the standard library declares a coroutine; it returns a future
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Run the function in this thread, in a callback of its own; the executor is not used."""
        future: asyncio.Future[T] = self.create_future()
        self.call_soon(_run_inline, future, func, args)
        return future

    def call_soon_threadsafe(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        if threading.get_ident() != self._thread:
            raise NotSimulated("another thread called into a simulation, which no seed can replay")
        return self.call_soon(callback, *args, context=context)

    add_reader = _not_simulated("add_reader")
    remove_reader = _not_simulated("remove_reader")
    add_writer = _not_simulated("add_writer")
    remove_writer = _not_simulated("remove_writer")
    sock_recv = _not_simulated("sock_recv")
    sock_recv_into = _not_simulated("sock_recv_into")
    sock_recvfrom = _not_simulated("sock_recvfrom")
    sock_recvfrom_into = _not_simulated("sock_recvfrom_into")
    sock_sendall = _not_simulated("sock_sendall")
    sock_sendto = _not_simulated("sock_sendto")
    sock_connect = _not_simulated("sock_connect")
    sock_accept = _not_simulated("sock_accept")
    sock_sendfile = _not_simulated("sock_sendfile")
    getaddrinfo = _not_simulated("getaddrinfo")
    getnameinfo = _not_simulated("getnameinfo")
    create_connection = _not_simulated("create_connection")
    create_server = _not_simulated("create_server")
    create_datagram_endpoint = _not_simulated("create_datagram_endpoint")
    create_unix_connection = _not_simulated("create_unix_connection")
    create_unix_server = _not_simulated("create_unix_server")
    connect_accepted_socket = _not_simulated("connect_accepted_socket")
    connect_read_pipe = _not_simulated("connect_read_pipe")
    connect_write_pipe = _not_simulated("connect_write_pipe")
    sendfile = _not_simulated("sendfile")
    start_tls = _not_simulated("start_tls")
    subprocess_shell = _not_simulated("subprocess_shell")
    subprocess_exec = _not_simulated("subprocess_exec")
    add_signal_handler = _not_simulated("add_signal_handler")
    remove_signal_handler = _not_simulated("remove_signal_handler")


def _run_inline(future: asyncio.Future[T], func: Callable[..., T], args: tuple[Any, ...]) -> None:
    if future.cancelled():
        return
    try:
        result = func(*args)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001  # an executor hands every exception to the future
        future.set_exception(error)
    else:
        future.set_result(result)


def _owner(handle: asyncio.Handle) -> object | None:
    """The object that the callback is bound to: a task, for its steps."""
    return getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]


class VirtualClock:
    """The wall clock of one simulated machine; call it for the time. Its skew may be changed any time."""

    def __init__(self, loop: VirtualTimeLoop | None = None, *, skew: timedelta = timedelta()) -> None:
        if loop is None:
            running = asyncio.get_running_loop()
            if not isinstance(running, VirtualTimeLoop):
                raise TypeError(f"a VirtualClock needs a VirtualTimeLoop, and {running!r} runs")
            loop = running
        self._loop = loop
        self.skew = skew

    def __call__(self) -> datetime:
        return self._loop.now() + self.skew
