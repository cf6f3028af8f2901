"""What a view reads does not depend on how many people look at it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from firestore_emulator.virtual_time import run
from firestore_outbox.web.console.views import Views

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
EVERY = timedelta(seconds=15)
HOUR = 3_600


def clock() -> datetime:
    return BEGIN + timedelta(seconds=asyncio.get_running_loop().time())


def reads_in_an_hour(viewers: int) -> int:
    async def look() -> int:
        views, reads = Views(clock), 0

        async def load() -> int:
            nonlocal reads
            reads += 1
            return reads

        async def viewer() -> None:
            async for _ in views.follow("now", load, EVERY):
                pass

        watching = [asyncio.create_task(viewer()) for _ in range(viewers)]
        await asyncio.sleep(HOUR)
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        await asyncio.sleep(HOUR)  # nothing is read while no page is open
        return reads

    return run(look(), seed=1, start=BEGIN)


@pytest.mark.parametrize("viewers", [1, 20])
def test_an_open_page_is_read_every_15_seconds_whatever_the_number_of_viewers(viewers: int) -> None:
    assert reads_in_an_hour(viewers) == pytest.approx(HOUR / EVERY.total_seconds(), abs=1)


def test_without_a_viewer_nothing_is_read() -> None:
    assert reads_in_an_hour(0) == 0


def test_an_action_makes_open_pages_read_at_once_and_all_viewers_see_it() -> None:
    async def look() -> list[list[int]]:
        views, stored = Views(clock), 1
        seen: list[list[int]] = [[], []]

        async def load() -> int:
            return stored

        async def viewer(into: list[int]) -> None:
            async for read in views.follow("now", load, EVERY):
                into.append(read.data)

        watching = [asyncio.create_task(viewer(into)) for into in seen]
        await asyncio.sleep(1)
        stored = 2
        views.forget()
        await asyncio.sleep(1)
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        return seen

    assert run(look(), seed=1, start=BEGIN) == [[1, 2], [1, 2]]


def test_a_read_that_fails_leaves_the_page_as_it_is_and_the_next_one_succeeds() -> None:
    async def look() -> list[int]:
        views, count, seen = Views(clock), 0, list[int]()

        async def load() -> int:
            nonlocal count
            count += 1
            if count == 2:
                raise ConnectionError
            return count

        async def viewer() -> None:
            async for read in views.follow("now", load, EVERY):
                seen.append(read.data)

        watching = asyncio.create_task(viewer())
        await asyncio.sleep(3 * EVERY.total_seconds())
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        return seen

    assert run(look(), seed=1, start=BEGIN)[:2] == [1, 3]
