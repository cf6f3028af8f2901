"""The loop on virtual time: what it promises to the code that runs on it, and to whoever replays a seed."""

import asyncio
import functools
import gc
import itertools
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, TypeVar

import pytest
from google.api_core import exceptions as google_errors
from google.api_core import retry_async

from emulator.virtual_time import (
    Deadlock,
    Livelock,
    NotSimulated,
    Order,
    TimeLimitReached,
    UnhandledError,
    VirtualClock,
    VirtualTimeLoop,
    run,
)

T = TypeVar("T")

START = datetime(2024, 3, 10, 6, 0, tzinfo=UTC)
SEEDS = range(100)
ROOT = Path(__file__).parents[2]


def simulate(main: Coroutine[Any, Any, T], seed: int = 0, **options: Any) -> T:
    return run(main, seed=seed, start=START, **options)


def now() -> float:
    return asyncio.get_running_loop().time()


async def busy_day() -> list[str]:
    """Tasks that meet in a queue, a lock and a cancelled TaskGroup, and write down who came when."""
    trace: list[str] = []
    queue: asyncio.Queue[int] = asyncio.Queue(maxsize=2)
    lock = asyncio.Lock()

    async def produce(who: int) -> None:
        for item in range(4):
            await queue.put(who * 10 + item)
            trace.append(f"{now():g} put {who * 10 + item}")
            await asyncio.sleep(0.5)

    async def consume(who: int) -> None:
        while True:
            item = await queue.get()
            async with lock:
                await asyncio.sleep(random.choice([0, 0.25, 0.5]))
                trace.append(f"{now():g} {who} got {item}")

    async def linger(who: int) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            trace.append(f"{now():g} cancelled {who}")

    async def fail() -> None:
        await asyncio.sleep(7)
        raise ValueError("enough")

    consumers = [asyncio.create_task(consume(who)) for who in range(3)]
    async with asyncio.TaskGroup() as group:
        for who in range(3):
            group.create_task(produce(who))
    try:
        async with asyncio.TaskGroup() as group:
            for who in range(8):
                group.create_task(linger(who))
            group.create_task(fail())
    except* ValueError:
        trace.append(f"{now():g} group failed")
    for task in consumers:
        task.cancel()
    return trace


# The seed


def test_the_same_seed_gives_the_same_trace() -> None:
    assert simulate(busy_day(), seed=7) == simulate(busy_day(), seed=7)


def test_different_seeds_give_different_interleavings() -> None:
    assert len({tuple(simulate(busy_day(), seed=seed)) for seed in range(20)}) == 20


def test_the_same_seed_gives_the_same_trace_in_another_process() -> None:
    """Addresses and string hashes differ between processes; sets of tasks must not show it."""
    code = (
        "import sys; junk = [object() for _ in range(int(sys.argv[1]))]\n"
        "from tests.emulator.test_virtual_time import *\n"
        "print(simulate(busy_day(), seed=3))"
    )

    def trace_of(hash_seed: str) -> str:
        environ = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", code, hash_seed * 3]
        return subprocess.run(command, env=environ, cwd=ROOT, check=True, capture_output=True, text=True).stdout

    assert trace_of("1") == trace_of("22") == f"{simulate(busy_day(), seed=3)}\n"


async def order_of_three() -> str:
    seen: list[str] = []

    async def note(name: str) -> None:
        seen.append(name)

    async with asyncio.TaskGroup() as group:
        for name in "abc":
            group.create_task(note(name))
    return "".join(seen)


def test_every_order_of_tasks_comes_up_for_some_seed() -> None:
    orders = {simulate(order_of_three(), seed=seed) for seed in SEEDS}
    assert orders == {"".join(order) for order in itertools.permutations("abc")}


def test_timers_of_one_instant_fire_in_either_order() -> None:
    async def main() -> str:
        seen: list[str] = []
        asyncio.get_running_loop().call_later(0.3, seen.append, "a")
        asyncio.get_running_loop().call_later(0.1 + 0.2, seen.append, "b")
        await asyncio.sleep(1)
        return "".join(seen)

    assert {simulate(main(), seed=seed) for seed in SEEDS} == {"ab", "ba"}


def test_fifo_runs_callbacks_in_the_order_of_asyncio() -> None:
    async def main() -> list[str]:
        random.seed(1)
        seen: list[str] = []

        async def worker(name: str, queue: asyncio.Queue[str]) -> None:
            for step in range(5):
                seen.append(f"{name}{step}")
                if step % 2:
                    queue.put_nowait(name)
                    await queue.get()
                await asyncio.sleep(0)

        queue: asyncio.Queue[str] = asyncio.Queue()
        async with asyncio.TaskGroup() as group:
            for name in "abcd":
                group.create_task(worker(name, queue))
        return seen

    assert simulate(main(), order=Order.FIFO) == asyncio.run(main())


# What asyncio code may rely on, whatever the seed


def test_callbacks_scheduled_by_one_callback_keep_their_order() -> None:
    async def main() -> list[int]:
        seen: list[int] = []
        loop = asyncio.get_running_loop()

        async def disturb() -> None:
            loop.call_soon(lambda: None)
            loop.call_soon(lambda: None)

        async with asyncio.TaskGroup() as group:
            group.create_task(disturb())
            for number in range(5):
                loop.call_soon(functools.partial(seen.append, number))
            group.create_task(disturb())
        return seen

    assert {tuple(simulate(main(), seed=seed)) for seed in SEEDS} == {(0, 1, 2, 3, 4)}


def test_callbacks_scheduled_before_the_loop_runs_keep_their_order() -> None:
    def order(seed: int) -> tuple[int, ...]:
        loop = VirtualTimeLoop(seed=seed, start=START)
        seen: list[int] = []
        for number in range(5):
            loop.call_soon(functools.partial(seen.append, number))
        loop.call_soon(loop.stop)
        loop.run_forever()
        loop.close()
        return tuple(seen)

    assert {order(seed) for seed in SEEDS} == {(0, 1, 2, 3, 4)}


def test_callbacks_bound_to_one_object_keep_their_order_whoever_scheduled_them() -> None:
    async def main() -> bool:
        written: list[int] = []
        received: list[int] = []
        loop = asyncio.get_running_loop()

        async def write(number: int) -> None:
            loop.call_soon(lambda: None)
            written.append(number)
            loop.call_soon(received.append, number)

        async with asyncio.TaskGroup() as group:
            for number in range(6):
                group.create_task(write(number))
        await asyncio.sleep(1)
        return received == written

    assert all(simulate(main(), seed=seed) for seed in SEEDS)


def test_a_done_callback_has_run_when_the_task_that_awaits_the_future_wakes() -> None:
    async def main() -> list[str]:
        seen: list[str] = []
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda _: seen.append("callback"))

        async def waits() -> None:
            await future
            seen.append("task")

        async with asyncio.TaskGroup() as group:
            group.create_task(waits())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            future.set_result(None)
        return seen

    assert {tuple(simulate(main(), seed=seed)) for seed in SEEDS} == {("callback", "task")}


def test_a_callback_runs_in_a_later_round_than_the_one_that_scheduled_it() -> None:
    async def main() -> list[str]:
        seen: list[str] = []
        loop = asyncio.get_running_loop()

        def first() -> None:
            loop.call_soon(seen.append, "second round")
            seen.append("first round")

        async def same_round() -> None:
            seen.append("first round")

        loop.call_soon(first)
        task = loop.create_task(same_round())
        await asyncio.sleep(1)
        await task
        return seen

    expected = ("first round", "first round", "second round")
    assert {tuple(simulate(main(), seed=seed)) for seed in SEEDS} == {expected}


# Time


def test_a_year_of_sleeping_passes_without_waiting() -> None:
    async def main() -> float:
        for _ in range(365):
            await asyncio.sleep(86_400)
        return now()

    assert simulate(main()) == 365 * 86_400


def test_timeouts_fire_at_their_exact_time() -> None:
    async def main() -> list[float]:
        at: list[float] = []
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):
                await asyncio.Event().wait()
        at.append(now())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(10), timeout=0.25)
        at.append(now())
        asyncio.get_running_loop().call_at(12.125, lambda: at.append(now()))
        await asyncio.sleep(60)
        at.append(now())
        return at

    assert simulate(main()) == [1.5, 1.75, 12.125, 61.75]


def test_work_that_ends_before_its_timeout_is_not_cut() -> None:
    async def main() -> tuple[str, float]:
        async with asyncio.timeout(10):
            await asyncio.sleep(9.999)
        return "done", now()

    assert simulate(main()) == ("done", 9.999)


def test_no_timer_fires_before_its_time() -> None:
    """So code that sleeps until a deadline, and looks again, ends."""

    async def main() -> list[tuple[float, float]]:
        arrivals: list[tuple[float, float]] = []

        async def sleep_until(deadline: float) -> None:
            while (left := deadline - now()) > 0:  # noqa: ASYNC110  # the pattern under test
                await asyncio.sleep(left)
            arrivals.append((deadline, now()))

        async with asyncio.TaskGroup() as group:
            for _ in range(500):
                group.create_task(sleep_until(random.uniform(0, 1e-5)))
                group.create_task(sleep_until(random.uniform(0, 1e8)))
        return arrivals

    arrivals = simulate(main())
    assert len(arrivals) == 1_000
    assert all(0 <= arrived - deadline <= 1e-7 for deadline, arrived in arrivals)


def test_a_cancelled_timer_does_not_move_the_clock() -> None:
    async def main() -> float:
        asyncio.get_running_loop().call_later(50, lambda: None).cancel()
        await asyncio.sleep(1)
        asyncio.get_running_loop().call_later(0, lambda: None)
        await asyncio.sleep(0)
        return now()

    assert simulate(main()) == 1


def test_cancelled_timers_do_not_pile_up() -> None:
    async def main() -> int:
        most = 0
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.call_later(1, lambda: None)  # stays at the head of the heap, before the cancelled ones
        for _ in range(5_000):
            async with asyncio.timeout(3_600):
                await asyncio.sleep(0)
            most = max(most, len(loop._scheduled))
        return most

    assert simulate(main()) < 300


def test_every_timer_fires_once_among_many_that_are_cancelled() -> None:
    async def main() -> tuple[list[int], list[int]]:
        fired: list[int] = []
        kept: list[int] = []
        loop = asyncio.get_running_loop()
        timers = [loop.call_later(random.uniform(0, 100), fired.append, number) for number in range(2_000)]
        for number, timer in enumerate(timers):
            if random.random() < 0.8:
                timer.cancel()
            else:
                kept.append(number)
        await asyncio.sleep(101)
        return sorted(fired), kept

    fired, kept = simulate(main())
    assert fired == kept


def test_a_time_limit_ends_the_run_before_the_first_timer_past_it() -> None:
    times: list[float] = []

    async def main() -> None:
        while True:
            await asyncio.sleep(1)
            times.append(now())

    with pytest.raises(TimeLimitReached, match="past the limit of 3"):
        simulate(main(), time_limit=timedelta(seconds=3))
    assert times == [1, 2, 3]


# Wall clocks


def test_the_wall_clock_is_the_start_plus_virtual_time() -> None:
    async def main() -> list[datetime]:
        clock = VirtualClock()
        first = clock()
        await asyncio.sleep(90.000001)
        return [first, clock()]

    assert simulate(main()) == [START, START + timedelta(seconds=90, microseconds=1)]


def test_a_machine_with_skew_reads_another_time_and_its_skew_may_change() -> None:
    async def main() -> list[timedelta]:
        true, fast = VirtualClock(), VirtualClock(skew=timedelta(seconds=2))
        differences = [fast() - true()]
        await asyncio.sleep(5)
        fast.skew = timedelta(seconds=-1)
        return [*differences, fast() - true()]

    assert simulate(main()) == [timedelta(seconds=2), timedelta(seconds=-1)]


def test_the_wall_clock_is_in_utc_whatever_zone_the_start_was_given_in() -> None:
    async def main() -> datetime:
        await asyncio.sleep(1)
        return VirtualClock()()

    start = datetime(2024, 3, 10, 1, 0, tzinfo=timezone(timedelta(hours=-5)))
    moment = run(main(), seed=0, start=start)
    assert (moment, moment.tzinfo) == (START + timedelta(seconds=1), UTC)


def test_a_start_without_a_zone_is_refused() -> None:
    main = asyncio.sleep(0)
    with pytest.raises(ValueError, match="aware"):
        run(main, seed=0, start=datetime(2024, 1, 1))  # noqa: DTZ001
    main.close()


def test_a_wall_clock_outside_a_simulation_is_refused() -> None:
    async def main() -> None:
        VirtualClock()

    with pytest.raises(TypeError, match="VirtualTimeLoop"):
        asyncio.run(main())


def test_the_time_module_is_virtual_in_a_run_and_real_after_it() -> None:
    real = (time.time, time.monotonic, time.time_ns, time.monotonic_ns)

    async def main() -> tuple[float, float, int, int]:
        await asyncio.sleep(10)
        return time.time(), time.monotonic(), time.time_ns(), time.monotonic_ns()

    epoch = int(START.timestamp()) + 10
    assert simulate(main()) == (epoch, 10.0, epoch * 10**9, 10 * 10**9)
    assert (time.time, time.monotonic, time.time_ns, time.monotonic_ns) == real


def test_another_thread_reads_the_real_time_during_a_run() -> None:
    async def main() -> float:
        read: list[float] = []
        thread = threading.Thread(target=lambda: read.append(time.time()))
        thread.start()
        thread.join()
        return read[0]

    assert simulate(main()) > START.timestamp() + 86_400


def test_the_global_random_follows_the_seed_in_a_run_and_is_untouched_after_it() -> None:
    async def main() -> float:
        return random.random()

    state = random.getstate()
    assert simulate(main(), seed=1) == simulate(main(), seed=1) != simulate(main(), seed=2)
    assert random.getstate() == state


def test_the_retry_of_google_clients_backs_off_and_gives_up_in_virtual_time() -> None:
    async def main() -> tuple[list[float], float]:
        calls: list[float] = []

        async def unavailable() -> None:
            calls.append(now())
            raise google_errors.ServiceUnavailable("try again")

        retry = retry_async.AsyncRetry(initial=1, maximum=10, multiplier=2, timeout=60)
        with pytest.raises(google_errors.RetryError):
            await retry(unavailable)()
        return calls, now()

    calls, end = simulate(main(), seed=5)
    assert len(calls) > 5
    assert 45 < end <= 60
    assert simulate(main(), seed=5) == (calls, end)


# Deadlock and livelock


def test_a_deadlock_names_the_tasks_that_wait_and_where() -> None:
    async def waits_for_nobody() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        await asyncio.sleep(5)
        async with asyncio.TaskGroup() as group:
            group.create_task(waits_for_nobody(), name="lane 17")

    with pytest.raises(Deadlock) as caught:
        simulate(main())
    message = str(caught.value)
    assert "2024-03-10T06:00:05+00:00 (second 5)" in message
    assert "lane 17: " in message
    assert "waits_for_nobody" in message
    assert "Task-1: " in message


def test_locks_taken_in_opposite_orders_deadlock_for_some_seeds_only() -> None:
    """The interleaving is the seed's: this is how a simulation finds a race."""

    async def main() -> str:
        locks = asyncio.Lock(), asyncio.Lock()

        async def take(first: asyncio.Lock, second: asyncio.Lock, pause: int) -> None:
            for _ in range(pause):
                await asyncio.sleep(0)
            async with first:
                await asyncio.sleep(0)
                async with second:
                    pass

        async with asyncio.TaskGroup() as group:
            group.create_task(take(locks[0], locks[1], random.randrange(4)))
            group.create_task(take(locks[1], locks[0], random.randrange(4)))
        return "done"

    def outcome(seed: int) -> str:
        try:
            return simulate(main(), seed=seed)
        except Deadlock:
            return "deadlock"

    outcomes = [outcome(seed) for seed in SEEDS]
    assert set(outcomes) == {"done", "deadlock"}
    assert [outcome(seed) for seed in SEEDS] == outcomes


@pytest.mark.parametrize("pause", [0, 1e-15], ids=["yields", "sleeps for less than a clock can tell"])
def test_a_task_that_spins_is_a_livelock_that_names_it(pause: float) -> None:
    async def spin() -> None:
        await asyncio.sleep(3)
        while True:  # noqa: ASYNC110  # the mistake under test
            await asyncio.sleep(pause)

    async def main() -> None:
        await asyncio.create_task(spin(), name="spinner")

    with pytest.raises(Livelock, match=r"second 3\)") as caught:
        simulate(main(), max_rounds_per_instant=1_000)
    if pause == 0:
        assert "spinner: " in str(caught.value)
        assert "Task-1" not in str(caught.value)


def test_any_number_of_rounds_is_fine_while_time_moves() -> None:
    async def main() -> float:
        for _ in range(100):
            for _ in range(90):
                await asyncio.sleep(0)
            await asyncio.sleep(0.001)
        return now()

    assert simulate(main(), max_rounds_per_instant=100) == pytest.approx(0.1)


# Errors are never lost


def raises() -> None:
    raise ValueError("in a callback")


@pytest.mark.parametrize(
    "schedule",
    [
        lambda loop: loop.call_soon(raises),
        lambda loop: loop.call_later(1, raises),
        lambda loop: loop.create_future().get_loop().call_soon_threadsafe(raises),
    ],
    ids=["call_soon", "call_later", "call_soon_threadsafe"],
)
def test_an_exception_in_a_callback_fails_the_run(
    schedule: Callable[[asyncio.AbstractEventLoop], object],
) -> None:
    async def main() -> None:
        schedule(asyncio.get_running_loop())
        await asyncio.sleep(60)

    with pytest.raises(UnhandledError, match="in a callback") as caught:
        simulate(main())
    assert isinstance(caught.value.__cause__, ValueError)


def test_an_exception_in_a_callback_ends_the_run_at_its_time() -> None:
    times: list[float] = []

    async def main() -> None:
        asyncio.get_running_loop().call_later(2.5, raises)
        for _ in range(5):
            await asyncio.sleep(1)
            times.append(now())

    with pytest.raises(UnhandledError, match="in a callback"):
        simulate(main())
    assert times == [1, 2]


def test_an_exception_in_a_callback_of_the_last_round_fails_the_run() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_soon(raises)

    with pytest.raises(UnhandledError, match="in a callback"):
        simulate(main())


def test_an_exception_handler_of_the_program_does_not_hide_an_exception() -> None:
    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
        asyncio.get_running_loop().call_soon(raises)

    with pytest.raises(UnhandledError, match="in a callback"):
        simulate(main())


@pytest.mark.parametrize("in_a_cycle", [False, True], ids=["freed at once", "in a reference cycle"])
def test_the_exception_of_a_dropped_task_fails_the_run(in_a_cycle: bool) -> None:
    async def fail(box: list[object]) -> None:
        if in_a_cycle:
            box.append(asyncio.current_task())
        raise ValueError("nobody asked")

    async def main() -> None:
        box: list[object] = []
        box.append(asyncio.create_task(fail(box)))
        await asyncio.sleep(1)
        if not in_a_cycle:
            box.clear()
        await asyncio.sleep(1)

    with pytest.raises(UnhandledError, match="nobody asked"):
        simulate(main())


def test_the_exception_of_main_is_raised_as_it_is() -> None:
    async def main() -> None:
        await asyncio.sleep(1)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        simulate(main())


def test_errors_at_the_end_of_a_failed_run_are_noted_on_its_exception() -> None:
    async def fail_when_cancelled() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise ValueError("in the cleanup")

    async def main() -> None:
        task = asyncio.create_task(fail_when_cancelled())
        await asyncio.sleep(1)
        raise KeyError(task.get_name())

    with pytest.raises(KeyError) as caught:
        simulate(main())
    assert "in the cleanup" in "".join(caught.value.__notes__)


def test_a_task_that_raises_while_the_end_of_the_run_cancels_it_fails_the_run() -> None:
    async def fail_when_cancelled() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise ValueError("in the cleanup")

    async def main() -> asyncio.Task[None]:
        task = asyncio.create_task(fail_when_cancelled())
        await asyncio.sleep(1)
        return task

    with pytest.raises(UnhandledError, match="in the cleanup"):
        simulate(main())


# Cancellation and the end of a run


def test_a_run_returns_the_result_of_main() -> None:
    async def main() -> str:
        return "result"

    assert simulate(main()) == "result"


def test_the_end_of_a_run_cancels_what_is_left_and_lets_it_clean_up() -> None:
    ended: list[float] = []

    async def left_behind() -> None:
        try:
            await asyncio.sleep(1_000)
        finally:
            await asyncio.sleep(5)
            ended.append(now())

    async def main() -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(left_behind()) for _ in range(3)]
        await asyncio.sleep(1)
        return tasks

    simulate(main(), time_limit=timedelta(seconds=2))
    assert ended == [6, 6, 6]


def test_a_task_started_by_a_cleanup_is_cancelled_too() -> None:
    cancelled: list[str] = []

    async def wait_and_note(name: str) -> None:
        try:
            await asyncio.sleep(1_000)
        except asyncio.CancelledError:
            cancelled.append(name)
            if name == "parent":
                tasks.append(asyncio.create_task(wait_and_note("child")))
                await asyncio.sleep(0)

    tasks: list[asyncio.Task[None]] = []

    async def main() -> None:
        tasks.append(asyncio.create_task(wait_and_note("parent")))
        await asyncio.sleep(1)

    simulate(main())
    assert cancelled == ["parent", "child"]


def test_a_task_that_will_not_be_cancelled_is_an_error_that_names_it() -> None:
    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                continue

    async def main() -> asyncio.Task[None]:
        task = asyncio.create_task(stubborn(), name="stubborn one")
        await asyncio.sleep(1)
        return task

    with pytest.raises(TimeLimitReached, match="stubborn one"):
        simulate(main())


def test_open_async_generators_are_closed_at_the_end() -> None:
    closed: list[float] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            await asyncio.sleep(2)
            closed.append(now())

    async def main() -> AsyncIterator[int]:
        generator = numbers()
        await anext(generator)
        return generator

    simulate(main())
    assert closed == [2]


def test_a_generator_abandoned_in_a_reference_cycle_is_closed_by_the_end() -> None:
    closed: list[float] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(2)
            closed.append(now())

    async def main() -> None:
        generator = numbers()
        await anext(generator)
        cycle: list[object] = [generator]
        cycle.append(cycle)

    simulate(main())
    assert closed == [2]


def test_the_garbage_collector_does_not_decide_when_an_abandoned_generator_closes() -> None:
    async def main() -> list[int]:
        trace: list[int] = []

        async def numbers() -> AsyncIterator[int]:
            try:
                yield 1
            finally:
                trace.append(step)

        for step in range(300):  # noqa: B007  # the generator's end writes down the step it came in
            generator = numbers()
            await anext(generator)
            cycle: list[object] = [generator]
            cycle.append(cycle)
            del generator, cycle
            await asyncio.sleep(0)
        return trace

    usual = simulate(main())
    thresholds = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        assert simulate(main()) == usual
    finally:
        gc.set_threshold(*thresholds)
    assert gc.isenabled()


def test_cancelling_a_task_runs_its_cleanup_at_once() -> None:
    async def main() -> list[object]:
        seen: list[object] = []

        async def sleeper() -> None:
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                seen.append(now())
                raise

        task = asyncio.create_task(sleeper())
        await asyncio.sleep(2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return [*seen, task.cancelled(), now()]

    assert simulate(main()) == [2, True, 2]


def test_a_task_group_cancels_the_siblings_of_a_failure_at_its_time() -> None:
    async def main() -> list[float]:
        cancelled_at: list[float] = []

        async def sibling() -> None:
            try:
                await asyncio.sleep(100)
            finally:
                cancelled_at.append(now())

        async def fail() -> None:
            await asyncio.sleep(4)
            raise ValueError

        with suppress(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                group.create_task(sibling())
                group.create_task(sibling())
                group.create_task(fail())
        return cancelled_at

    assert simulate(main()) == [4, 4]


def test_an_interrupt_in_a_callback_leaves_the_others_of_its_round_to_the_cleanup() -> None:
    cleaned: list[int] = []

    def interrupt() -> None:
        raise KeyboardInterrupt

    async def worker(number: int) -> None:
        try:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        finally:
            cleaned.append(number)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(10):
                group.create_task(worker(number))
            await asyncio.sleep(0)
            asyncio.get_running_loop().call_soon(interrupt)

    with pytest.raises(KeyboardInterrupt):
        simulate(main())
    assert sorted(cleaned) == list(range(10))


def test_tasks_are_numbered_from_one_in_each_run() -> None:
    async def main() -> list[str]:
        return [task.get_name() for task in (asyncio.current_task(), asyncio.create_task(asyncio.sleep(0))) if task]

    assert simulate(main()) == simulate(main()) == ["Task-1", "Task-2"]


def test_a_run_inside_a_running_loop_is_refused() -> None:
    async def main() -> None:
        simulate(asyncio.sleep(0))

    with pytest.raises(RuntimeError, match="running event loop"):
        asyncio.run(main())


# Threads and the real world


def test_work_for_an_executor_runs_in_this_thread_in_a_callback_of_its_own() -> None:
    async def main() -> tuple[int, bool]:
        ran: list[int] = []
        future = asyncio.get_running_loop().run_in_executor(None, ran.append, 1)
        before = list(ran)
        await future
        return await asyncio.to_thread(threading.get_ident), before == [] and ran == [1]

    assert simulate(main()) == (threading.get_ident(), True)


def test_an_exception_of_work_for_an_executor_reaches_who_awaits_it() -> None:
    async def main() -> None:
        await asyncio.to_thread(raises)

    with pytest.raises(ValueError, match="in a callback"):
        simulate(main())


def test_cancelled_work_for_an_executor_does_not_run() -> None:
    async def main() -> list[int]:
        ran: list[int] = []
        asyncio.get_running_loop().run_in_executor(None, ran.append, 1).cancel()
        await asyncio.sleep(1)
        return ran

    assert simulate(main()) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda: asyncio.get_running_loop().add_reader(0, print),
        lambda: asyncio.get_running_loop().add_writer(0, print),
        lambda: asyncio.get_running_loop().add_signal_handler(2, print),
        lambda: asyncio.open_connection("localhost", 80),
        lambda: asyncio.start_server(print, "localhost", 0),
        lambda: asyncio.create_subprocess_exec("true"),
    ],
    ids=["add_reader", "add_writer", "add_signal_handler", "connection", "server", "subprocess"],
)
def test_the_real_world_is_refused_by_name(call: Callable[[], Any]) -> None:
    async def main() -> None:
        result = call()
        if result is not None:
            await result

    with pytest.raises(NotSimulated, match=r"\(\) needs the real world"):
        simulate(main())


def test_a_call_from_another_thread_is_refused() -> None:
    async def main() -> list[BaseException]:
        errors: list[BaseException] = []
        loop = asyncio.get_running_loop()

        def intrude() -> None:
            try:
                loop.call_soon_threadsafe(print)
            except NotSimulated as error:
                errors.append(error)

        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
        return errors

    assert len(simulate(main())) == 1
