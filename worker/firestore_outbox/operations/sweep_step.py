"""One step of the sweep: what it finds, page by page, and the work for each. Every error ends here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from firestore_outbox import log, metrics
from firestore_outbox.errors import Unavailable

T = TypeVar("T")

AT_ONCE = 64
"""Documents worked on at the same time: a sweep of many accounts ends within its minute."""


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    done: int = 0
    has_failed: bool = False


async def step(name: str, pages: AsyncIterator[list[T]], work: Callable[[T], Awaitable[bool]]) -> Step:
    """Works on each that was found. Errors go to the log and the metrics; the caller's other steps go on."""
    done, failed = 0, False
    try:
        async for found in pages:
            for first in range(0, len(found), AT_ONCE):
                some = found[first : first + AT_ONCE]
                for result in await asyncio.gather(*(work(one) for one in some), return_exceptions=True):
                    if isinstance(result, bool):
                        done += result
                    elif isinstance(result, Unavailable) or not isinstance(result, Exception):
                        raise result
                    else:
                        failed = True
                        report(name, result)
    except Exception as error:  # noqa: BLE001 - whatever failed, the other steps are worth trying
        failed = True
        report(name, error)
    return Step(name, done, failed)


def together(steps: list[Step]) -> Step:
    """Parts of one step that ran beside each other."""
    return Step(steps[0].name, sum(one.done for one in steps), any(one.has_failed for one in steps))


def report(name: str, error: Exception) -> None:
    log.sweep_failed(name, error)
    metrics.sweep_failure(name)
