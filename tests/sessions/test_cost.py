"""What the hot set costs, in documents read and written as Firestore bills them: the numbers in docs/sessions.md."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta

from firestore_outbox import metrics
from firestore_outbox.sessions.requests import Hot
from firestore_outbox.sessions.states import Rules
from tests.sessions.world import World, simulate

NO_STICKY = Rules(sticky_budget=timedelta(0))


def operations() -> tuple[int, int]:
    """Reads and writes so far, of all workers."""
    shown = metrics.as_text().decode()
    counts = dict(
        re.findall(r'^outbox_firestore_operations\w*\{kind="(read|write)"[^}]*\} ([0-9.]+)', shown, re.MULTILINE)
    )
    return int(float(counts.get("read", 0))), int(float(counts.get("write", 0)))


def test_asking_for_a_session_that_is_hot_costs_two_reads_and_at_most_one_write() -> None:
    async def story(world: World) -> tuple[tuple[int, int], tuple[int, int]]:
        await world.cold("acme")
        await world.due("acme")
        await world.until_sent(1)
        await asyncio.sleep(5)
        costs = []
        for _ in range(2):
            before = operations()
            assert isinstance(await world.client.hot.want("acme", "waha"), Hot)
            after = operations()
            costs.append((after[0] - before[0], after[1] - before[1]))
        return costs[0], costs[1]

    first, second = simulate(story, rules=NO_STICKY)
    assert first == (2, 1)
    assert second == (2, 0)


def test_to_wake_a_session_for_one_message_and_let_it_sleep_costs_at_most_so_much() -> None:
    async def story(world: World) -> tuple[int, int]:
        await world.cold("acme", startMs=3000)
        await asyncio.sleep(10)
        world.swept = False
        before = operations()
        await world.due("acme")
        await asyncio.sleep(300)
        assert len(world.queue.sent) == 1
        after = operations()
        return after[0] - before[0], after[1] - before[1]

    reads, writes = simulate(story, rules=NO_STICKY)
    assert reads <= 40
    assert writes <= 20


def test_a_sticky_session_costs_little_while_nothing_happens() -> None:
    async def story(world: World) -> tuple[int, int]:
        await world.cold("acme")
        await world.due("acme")
        await world.until_sent(1)
        await asyncio.sleep(300)
        world.swept = False
        before = operations()
        await asyncio.sleep(3600)
        after = operations()
        assert await world.running() == ["acme"]
        return after[0] - before[0], after[1] - before[1]

    reads, writes = simulate(story)
    assert reads <= 12 * 7
    assert writes <= 12 * 3
