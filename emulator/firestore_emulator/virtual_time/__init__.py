"""An asyncio event loop on virtual time: no wait takes real time, and a seed decides who goes first.

Theory of operation
-------------------
The loop runs what is ready. When nothing is ready the clock leaps to the next timer, so a day of sleeping
takes as long as the callbacks in it. When there is no timer either, nothing can ever happen again: that is
a `Deadlock`, and it is raised with the tasks that wait and where they wait, instead of hanging.

Production code runs unchanged: sleep, timeouts, TaskGroup, Event, Queue and all else in asyncio is built on
call_soon, call_at and time(). `run` also ties to the loop what libraries read behind asyncio's back:
`time.time`, `time.monotonic` (google.api_core and tenacity take their retry deadlines from it), the global
`random` (their jitter) and the garbage collector's moments (it closes abandoned async generators, which are
callbacks too). Not tied: `datetime.now()` (pass a `VirtualClock`), `os.urandom` and so `uuid4` and
`secrets` (pass them in), and the iteration order of a set of strings (set PYTHONHASHSEED) or of plain
objects. Tasks hash by their number, so sets of tasks, TaskGroup's own among them, iterate the same way in
every process.

The order of callbacks
----------------------
asyncio runs callbacks first in, first out, in rounds: what a round schedules runs in the next one. Here the
rounds stay, and each callback still runs once; within a round the seed picks the order, under what asyncio
code may rely on:

1. Callbacks that one running callback scheduled with call_soon keep their order: a future's done callbacks,
   or a transport's connection_made before its data_received.
2. Callbacks bound to one object keep their order, whichever task scheduled them.
3. A task does not overtake a callback that was scheduled before it by the same callback: a done callback
   has run when the task that awaits the same future wakes.

All else is free: tasks among each other, timers of one instant, callbacks from different sources. On a real
machine a packet's arrival decides those. `Order.FIFO` keeps asyncio's own order.

Time is exact: a timer fires when `time()` is its time, never before. Timers less than 10 ns apart are one
instant (the same sum reached by other additions differs that much) and fire at the last one's time.

Threads and sockets do not exist here. `run_in_executor` runs the function inline, in a callback of its own
(libraries send it trivial work); a function that blocks on the loop from there hangs, as it would with one
thread. Sockets, pipes, signals, subprocesses and other threads' `call_soon_threadsafe` raise
`NotSimulated`.

What is used of asyncio beyond its documentation, alike from Python 3.11 to 3.14
--------------------------------------------------------------------------------
`BaseEventLoop._run_once` is the step that `run_forever` repeats; it is what we replace. `_ready` (the deque
that call_soon fills), `_scheduled` (the heap that call_at fills), `_stopping` (stop() was called): its
inputs. `_timer_cancelled_count` and `TimerHandle._scheduled`: the count of cancelled timers still in the
heap, by which they are swept before they pile up. `Handle._run` calls the callback in its context, and
hands an exception to call_exception_handler; `Handle._callback` tells a task's step from another callback.
"""

from firestore_emulator.virtual_time.errors import (
    Deadlock,
    Livelock,
    NotSimulated,
    SimulationError,
    TimeLimitReached,
    UnhandledError,
)
from firestore_emulator.virtual_time.loop import Order, VirtualClock, VirtualTimeLoop
from firestore_emulator.virtual_time.running import run

__all__ = [
    "Deadlock",
    "Livelock",
    "NotSimulated",
    "Order",
    "SimulationError",
    "TimeLimitReached",
    "UnhandledError",
    "VirtualClock",
    "VirtualTimeLoop",
    "run",
]
