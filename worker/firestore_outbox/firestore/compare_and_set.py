"""Compare-and-set: read, decide, write under the version that was read; and once more, if another writer was faster.

The one place for such loops. An attempt does all three steps and returns its result, or `AGAIN` if the write met a
conflict. What an attempt has to remember for the next one (a write may be applied although its answer is lost) stays
with the caller, in its closure.

The first retry follows at once, since most conflicts are with one other writer. The next ones wait, twice as long each
time, with a jitter from the process's own source of randomness, so that a simulated run repeats exactly.

The first attempt is awaited directly and tenacity only sees the rest: it costs 50 µs for a call that needs no retry
(docs/decisions/2026-11-17-retries.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Final, Literal, TypeVar

from tenacity import AsyncRetrying, RetryCallState, RetryError, retry_if_exception_type, retry_if_result

from firestore_outbox.errors import StoreUnavailable

T = TypeVar("T")

TRIES = 10
"""Attempts in all. The waits between them are 2.5 s together, give or take a quarter."""
FIRST_WAIT_SECONDS = 0.01


class _Again(Enum):
    AGAIN = "again"


AGAIN: Final = _Again.AGAIN
Again = Literal[_Again.AGAIN]


class Contended(StoreUnavailable):
    """Other writers were faster in every attempt. Nothing was written, and the same work can succeed later."""


class CompareAndSet:
    def __init__(self, jitter: Callable[[], float]) -> None:
        """`jitter` draws from 0 to 1."""
        self._jitter = jitter

    async def __call__(self, attempt: Callable[[], Awaitable[T | Again]], *, tries: int = TRIES) -> T:
        """Raises `Contended` after that many attempts."""
        first = await attempt()
        if not isinstance(first, _Again):
            return first
        results = [first]

        async def known_first() -> T | Again:
            return results.pop() if results else await attempt()

        retrying = AsyncRetrying(
            retry=retry_if_result(lambda result: result is AGAIN),
            stop=lambda state: state.attempt_number >= tries,
            wait=self._wait,
            sleep=asyncio.sleep,
        )
        try:
            result: T | Again = await retrying(known_first)
        except RetryError:
            raise Contended(f"{tries} attempts at a write met a change by another writer") from None
        assert not isinstance(result, _Again), "it is tried again, or is an error"
        return result

    def _wait(self, state: RetryCallState) -> float:
        if state.attempt_number == 1:
            return 0.0
        return float(FIRST_WAIT_SECONDS * 2 ** (state.attempt_number - 2) * (0.75 + self._jitter() / 2))


async def while_unavailable(
    work: Callable[[], Awaitable[T]], *, pause_seconds: float, give_up: Callable[[], bool]
) -> T:
    """Repeat what Firestore did not answer until `give_up` says so; then raise `StoreUnavailable`."""
    try:
        return await work()
    except StoreUnavailable as error:
        errors = [error]

    async def known_first() -> T:
        if errors:
            raise errors.pop()
        return await work()

    retrying = AsyncRetrying(
        retry=retry_if_exception_type(StoreUnavailable),
        stop=lambda _: give_up(),
        wait=lambda _: pause_seconds,
        sleep=asyncio.sleep,
        reraise=True,
    )
    return await retrying(known_first)
