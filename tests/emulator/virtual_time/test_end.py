"""The loop on virtual time: cancellation, the end of a run, and the real world, which is not there."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from firestore_emulator.virtual_time import NotSimulated, TimeLimitReached, loop
from tests.emulator.virtual_time.support import now, raises, simulate

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


def test_a_long_run_collects_garbage_more_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_CALLBACKS_BETWEEN_COLLECTIONS", 100)
    collections: list[str] = []

    async def main() -> None:
        for _ in range(10_000):
            await asyncio.sleep(0)

    def collected(phase: str, info: object) -> None:
        collections.append(phase)

    gc.callbacks.append(collected)
    try:
        simulate(main())
    finally:
        gc.callbacks.remove(collected)
    assert 8 < collections.count("start") < 50  # with equal pauses a hundred, each over all that the run holds


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
