"""A task that Cloud Tasks does not take at once: tried again, with a bound, and then the caller learns of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import TypeVar

import grpc
import pytest
from google.api_core.exceptions import PermissionDenied
from grpc import aio

from firestore_emulator import virtual_time
from firestore_emulator.outgoing import Answered, HttpCall
from firestore_emulator.rpc.inprocess import Carry, InProcessChannel
from firestore_emulator.rpc.service import Message
from firestore_emulator.tasks.emulator import TasksEmulator
from firestore_outbox.errors import TasksUnavailable
from firestore_outbox.lane.tasks import TRIES, CloudTasks
from firestore_outbox.settings import Settings
from tests.calm import START

T = TypeVar("T")


@dataclass
class Wire:
    """Fails the first calls, and counts all of them."""

    failures: int
    code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE
    calls: int = 0
    is_lost_on_the_way_back: bool = False

    async def __call__(self, path: str, carry: Carry) -> Message:
        self.calls += 1
        if self.calls > self.failures:
            return await carry()
        if self.is_lost_on_the_way_back:
            await carry()
        raise aio.AioRpcError(self.code, aio.Metadata(), aio.Metadata(), details="as the test says")


class Heard:
    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def __call__(self, call: HttpCall) -> Answered:
        self.bodies.append(call.body)
        return Answered(200)


def with_tasks(wire: Wire, work: Callable[[CloudTasks], Awaitable[T]]) -> tuple[T, list[bytes], float]:
    """What it returned, the tasks that were dispatched, and the seconds that went by."""

    async def main() -> tuple[T, list[bytes], float]:
        settings, clock, heard = Settings(), virtual_time.VirtualClock(), Heard()
        emulator = TasksEmulator(clock=clock, send=heard, queues=[settings.queue_name], random=Random(1))
        await emulator.start()
        result = await work(CloudTasks.over(InProcessChannel([emulator.service], wire=wire), settings, clock))
        seconds = (clock() - START).total_seconds()
        await asyncio.sleep(1)  # of virtual time, for what was taken to be dispatched
        await emulator.stop(timedelta(seconds=1))
        return result, heard.bodies, seconds

    return virtual_time.run(main(), seed=1, start=START, time_limit=timedelta(hours=1))


async def enqueue(tasks: CloudTasks) -> None:
    await tasks.enqueue("/tasks/lane", {"key": "shop"}, START)


@pytest.mark.parametrize("code", ["UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL", "ABORTED", "RESOURCE_EXHAUSTED"])
def test_a_task_that_is_not_taken_at_once_is_tried_again(code: str) -> None:
    wire = Wire(failures=TRIES - 1, code=grpc.StatusCode[code])
    _, dispatched, _ = with_tasks(wire, enqueue)
    assert (wire.calls, dispatched) == (TRIES, [b'{"key": "shop"}'])


def test_a_task_whose_answer_was_lost_is_made_twice_and_no_caller_fails() -> None:
    wire = Wire(failures=1, is_lost_on_the_way_back=True)
    _, dispatched, _ = with_tasks(wire, enqueue)
    assert len(dispatched) == 2


def test_when_cloud_tasks_stays_down_the_caller_learns_it_after_a_bounded_wait() -> None:
    async def refused(tasks: CloudTasks) -> None:
        with pytest.raises(TasksUnavailable, match="as the test says"):
            await enqueue(tasks)

    wire = Wire(failures=10**6)
    _, dispatched, seconds = with_tasks(wire, refused)
    assert (wire.calls, dispatched) == (TRIES, [])
    assert 0 < seconds <= 1.4


def test_a_refusal_that_no_repetition_changes_is_not_repeated() -> None:
    async def refused(tasks: CloudTasks) -> None:
        with pytest.raises(PermissionDenied):
            await enqueue(tasks)

    wire = Wire(failures=10**6, code=grpc.StatusCode.PERMISSION_DENIED)
    with_tasks(wire, refused)
    assert wire.calls == 1
