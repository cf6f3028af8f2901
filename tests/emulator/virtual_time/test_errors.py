"""The loop on virtual time: what stands still or spins is reported, and no error is lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from firestore_emulator.virtual_time import Deadlock, Livelock, UnhandledError
from tests.emulator.virtual_time.support import SEEDS, now, raises, simulate

# Deadlock and livelock


def test_a_deadlock_names_the_tasks_that_wait_and_where() -> None:
    async def waits_for_nothing() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        await asyncio.sleep(5)
        async with asyncio.TaskGroup() as group:
            group.create_task(waits_for_nothing(), name="lane 17")

    with pytest.raises(Deadlock) as caught:
        simulate(main())
    message = str(caught.value)
    assert "2024-03-10T06:00:05+00:00 (second 5)" in message
    assert "lane 17: " in message
    assert "waits_for_nothing" in message
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
        raise ValueError("an unseen error")

    async def main() -> None:
        box: list[object] = []
        box.append(asyncio.create_task(fail(box)))
        await asyncio.sleep(1)
        if not in_a_cycle:
            box.clear()
        await asyncio.sleep(1)

    with pytest.raises(UnhandledError, match="an unseen error"):
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
