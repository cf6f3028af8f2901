"""The loop on virtual time: who goes first, and what asyncio code may rely on, whatever the seed."""

from __future__ import annotations

import asyncio
import functools
import itertools
import os
import random
import subprocess
import sys
from pathlib import Path

from firestore_emulator.virtual_time import Order, VirtualTimeLoop
from tests.emulator.virtual_time.support import SEEDS, START, now, simulate

ROOT = Path(__file__).parents[3]


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
        "from tests.emulator.virtual_time.test_order import *\n"
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


def test_callbacks_bound_to_one_object_keep_their_order_whichever_task_scheduled_them() -> None:
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
