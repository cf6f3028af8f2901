"""Compare-and-set in virtual time: how often it tries, how long it waits, and what it says when it gives up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TypeVar

import pytest

from firestore_emulator.virtual_time import run
from firestore_outbox.errors import StoreUnavailable, Unavailable
from firestore_outbox.firestore.compare_and_set import (
    AGAIN,
    FIRST_WAIT_SECONDS,
    TRIES,
    Again,
    CompareAndSet,
    Contended,
    while_unavailable,
)

T = TypeVar("T")
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def simulated(body: Callable[[], Awaitable[T]]) -> T:
    async def main() -> T:
        return await body()

    return run(main(), seed=1, start=START, time_limit=timedelta(hours=1))


class Writer:
    """Meets a conflict the first few times."""

    def __init__(self, conflicts: int) -> None:
        self.conflicts = conflicts
        self.at: list[float] = []

    async def __call__(self) -> str | Again:
        self.at.append(asyncio.get_running_loop().time())
        return AGAIN if len(self.at) <= self.conflicts else "written"

    @property
    def waits(self) -> list[float]:
        return [after - before for before, after in zip(self.at, self.at[1:], strict=False)]


def test_a_write_that_meets_no_conflict_is_made_once() -> None:
    writer = Writer(conflicts=0)
    assert simulated(lambda: CompareAndSet(Random(1).random)(writer)) == "written"
    assert len(writer.at) == 1


def test_the_first_retry_comes_at_once_and_the_next_ones_wait_twice_as_long_each_time_with_jitter() -> None:
    writer = Writer(conflicts=TRIES - 1)
    assert simulated(lambda: CompareAndSet(Random(1).random)(writer)) == "written"
    first, *others = writer.waits
    assert first == 0
    for number, wait in enumerate(others):
        usual = FIRST_WAIT_SECONDS * 2**number
        assert 0.74 * usual <= wait <= 1.26 * usual


def test_the_waits_are_drawn_from_the_callers_randomness_alone() -> None:
    writers = [Writer(conflicts=6) for _ in range(3)]
    for writer, seed in zip(writers, (1, 1, 2), strict=True):
        simulated(lambda writer=writer, seed=seed: CompareAndSet(Random(seed).random)(writer))  # type: ignore[misc]
    assert writers[0].waits == writers[1].waits != writers[2].waits


def test_after_the_last_attempt_it_is_contended_which_callers_treat_as_a_store_that_cannot_be_used() -> None:
    writer = Writer(conflicts=1_000)
    with pytest.raises(Contended, match="10 attempts") as raised:
        simulated(lambda: CompareAndSet(Random(1).random)(writer))
    assert isinstance(raised.value, Unavailable)
    assert len(writer.at) == TRIES


def test_an_error_in_a_later_attempt_is_raised_as_it_is() -> None:
    tried: list[int] = []

    async def attempt() -> Again:
        tried.append(1)
        if len(tried) == 3:
            raise KeyError("broken")
        return AGAIN

    with pytest.raises(KeyError, match="broken"):
        simulated(lambda: CompareAndSet(Random(1).random)(attempt))
    assert len(tried) == 3


def test_what_the_store_did_not_answer_is_repeated_until_the_caller_gives_up() -> None:
    at: list[float] = []

    async def work() -> str:
        at.append(asyncio.get_running_loop().time())
        if len(at) < 4:
            raise StoreUnavailable("away")
        return "written"

    assert simulated(lambda: while_unavailable(work, pause_seconds=0.5, give_up=lambda: False)) == "written"
    assert [round(moment - at[0], 3) for moment in at] == [0, 0.5, 1, 1.5]
    at.clear()
    with pytest.raises(StoreUnavailable, match="away"):
        simulated(lambda: while_unavailable(work, pause_seconds=0.5, give_up=lambda: len(at) == 2))
    assert len(at) == 2
