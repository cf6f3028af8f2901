"""Processor time of the worker for each message, without an open page of the console and with twenty.

Part of `bench.console`. Rounds with and without viewers alternate on one stack, so that both meet the same machine;
the figure is the ratio of processor time, which other processes change little.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
from collections.abc import AsyncIterator
from typing import Any

import httpx

from bench.report import say
from bench.streams import Kind, measure
from firestore_outbox.local.dev import DevSettings, DevStack

VIEWERS = 20
PAIRS, SECONDS = 5, 8.0
SMALL_PAIRS, SMALL_SECONDS = 1, 0.5
KIND = Kind(20.0)
PAGES = ("/live/", "/live/needs", "/live/messages", "/live/lanes")
"""What the viewers have open, in turn."""
STACK = DevSettings(
    firestore_port=0,
    tasks_port=0,
    functions_port=0,
    worker_port=0,
    provider_port=0,
    console_port=0,
    environment={"OUTBOX_LOG_LEVEL": "ERROR", "OUTBOX_SHORT_TURNS": "0"},
)
"""The worker sends every message, so that its processor time has all of the work."""


async def _look(http: httpx.AsyncClient, path: str, seen: asyncio.Event) -> None:
    """Follow a live page as a browser does: after its end, again."""
    while True:
        async with http.stream("GET", path) as answer:
            answer.raise_for_status()
            async for line in answer.aiter_lines():
                if line.startswith("event: changed"):
                    seen.set()


@contextlib.asynccontextmanager
async def _open(console: str, viewers: int) -> AsyncIterator[None]:
    """Pages of the console that all show something, until the block ends."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=console, trust_env=False, timeout=60, limits=limits) as http:
        form = {"email": "operator@example.com", "password": "local", "to": "/"}
        await http.post("/sign-in", data=form, headers={"origin": console})
        shown = [asyncio.Event() for _ in range(viewers)]
        looking = [asyncio.create_task(_look(http, PAGES[at % len(PAGES)], seen)) for at, seen in enumerate(shown)]
        try:
            await asyncio.gather(*(seen.wait() for seen in shown))
            yield
            ended = [task for task in looking if task.done()]
            assert not ended, f"a page was not open to the end: {ended[0]}"
        finally:
            for task in looking:
                task.cancel()
            await asyncio.gather(*looking, return_exceptions=True)


async def _round(stack: DevStack, viewers: int, seconds: float) -> float:
    """Milliseconds of the worker's processor time for each message."""
    assert stack.console_url is not None
    async with _open(stack.console_url, viewers):
        run = await measure(stack, KIND, seconds)
    assert not run.faults, run.faults
    return run.cpu["worker"] / len(run.messages) * 1_000


async def watched(*, is_small: bool) -> dict[str, Any]:
    pairs, seconds = (SMALL_PAIRS, SMALL_SECONDS) if is_small else (PAIRS, SECONDS)
    alone: list[float] = []
    viewed: list[float] = []
    async with DevStack(STACK) as stack:
        await _round(stack, VIEWERS, seconds / 4)  # both are warm
        for pair in range(pairs):
            for viewers, into in ((0, alone), (VIEWERS, viewed))[:: -1 if pair % 2 else 1]:
                into.append(await _round(stack, viewers, seconds))
                say(f"{viewers} open pages: {into[-1]:.2f} ms of the worker's processor time a message")
    return {
        "viewers": VIEWERS,
        "perSecond": KIND.rate,
        "messagesARound": round(KIND.rate * seconds),
        "workerCpuMsAMessage": {"noPages": _rounded(alone), "openPages": _rounded(viewed)},
        "ratio": round(statistics.median(viewed) / statistics.median(alone), 2),
    }


def _rounded(values: list[float]) -> list[float]:
    return [round(value, 2) for value in values]
