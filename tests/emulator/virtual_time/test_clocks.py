"""The loop on virtual time: timers, and the wall clocks of its machines."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from google.api_core import exceptions as google_errors
from google.api_core import retry_async

from firestore_emulator.virtual_time import TimeLimitReached, VirtualClock, VirtualTimeLoop, run
from tests.emulator.virtual_time.support import START, now, simulate

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
