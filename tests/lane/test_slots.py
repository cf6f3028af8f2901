"""Places for active lanes: who is next, and that none is lost."""

from __future__ import annotations

import asyncio

from firestore_outbox.lane.slots import Slots
from tests.patience import PATIENCE_SECONDS


class Lane:
    """It takes a place, may give it up for a while, and ends on request."""

    def __init__(self, name: str, slots: Slots, order: list[str]) -> None:
        self.rests, self.returns, self.ends = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.task = asyncio.create_task(self._run(name, slots, order))

    async def _run(self, name: str, slots: Slots, order: list[str]) -> None:
        async with slots.one():
            order.append(f"{name} began")
            await self.rests.wait()
            async with slots.without():
                await self.returns.wait()
            order.append(f"{name} came back")
            await self.ends.wait()


async def _settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_lane_that_comes_back_goes_before_those_that_have_not_begun() -> None:
    slots, order = Slots(1), list[str]()
    first, second, third, fourth = (Lane(name, slots, order) for name in ("first", "second", "third", "fourth"))
    await _settled()
    first.rests.set()
    await _settled()
    assert order == ["first began", "second began"], "a place that is given up is the next one's"
    first.returns.set()
    await _settled()
    assert (slots.waiting, order[2:]) == (3, [])
    second.rests.set()
    await _settled()
    assert order[2:] == ["first came back"], "before the third, who came first and has not begun"
    first.ends.set()
    await _settled()
    assert order[3:] == ["third began"]
    for lane in (second, third, fourth):
        for told in (lane.rests, lane.returns, lane.ends):
            told.set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await asyncio.gather(*(lane.task for lane in (first, second, third, fourth)))
    assert slots.waiting == 0


async def test_no_place_is_lost_when_one_who_waits_gives_up_as_a_place_becomes_free() -> None:
    slots, order = Slots(1), list[str]()
    first, second = Lane("first", slots, order), Lane("second", slots, order)
    await _settled()
    for told in (first.rests, first.returns, first.ends):
        told.set()
    second.task.cancel()  # its place in the queue is still there when the first one's becomes free
    await asyncio.wait([first.task, second.task])
    assert second.task.cancelled(), "not ended by an error of its own"
    third = Lane("third", slots, order)
    await _settled()
    assert order == ["first began", "first came back", "third began"]
    third.task.cancel()
    await asyncio.wait([third.task])
