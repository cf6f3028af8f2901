"""The hot set's documents: what is written is read, and no write is lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from firestore_outbox.sessions.memory import Astray, Memory, Trouble
from firestore_outbox.sessions.requests import Step
from firestore_outbox.sessions.slots import HotSet, Waiting
from firestore_outbox.sessions.states import Entry, State
from tests.sessions.world import START, World, simulate

ENTRY = Entry(provider="waha", state=State.CONNECTING, until=START, look_at=START, turn_since=START)
FULL = Entry(
    provider="waha",
    state=State.HOT,
    until=START + timedelta(seconds=1),
    look_at=START + timedelta(seconds=2),
    used_until=START + timedelta(seconds=3),
    keep_until=START + timedelta(seconds=4),
    turn_since=START + timedelta(seconds=5),
    hot_since=START + timedelta(microseconds=7),
    sticky_left=timedelta(hours=23, microseconds=500_000),
    sticky=True,
    doubted=True,
)
LINE = {
    "c.d/e": Waiting(provider="waha", since=START, until=START + timedelta(days=36_500), sticky=True),
    "f": Waiting(provider="x", since=START, until=START, sticky=False, sticky_left=timedelta(seconds=9)),
}
SETS = [HotSet(), HotSet(entries={"a": ENTRY}), HotSet(entries={"a": ENTRY, "b ü.`": FULL}, line=LINE)]
MEMORIES = [
    Memory(),
    Memory(provider="waha", failures=2),
    Memory(
        provider="waha",
        failures=3,
        restarts=4,
        retry_at=START,
        trouble=Trouble.NEEDS_PAIRING,
        sticky_left=timedelta(0),
        astray=Astray.UNWANTED,
    ),
]


def in_world(story: Callable[[World], Awaitable[None]]) -> None:
    simulate(story)


@pytest.mark.parametrize("hot", SETS)
@pytest.mark.parametrize("memory", MEMORIES)
def test_what_is_written_is_read_and_can_be_taken_back(hot: HotSet, memory: Memory) -> None:
    async def story(world: World) -> None:
        store = world.client.store
        empty = await store.read("acme")
        assert (empty.hot, empty.memory) == (HotSet(), Memory())
        assert await store.write("acme", empty, Step(hot=hot, memory=memory))
        stored = await store.read("acme")
        assert (stored.hot, stored.memory) == (hot, memory)
        assert await store.write("acme", stored, Step(hot=HotSet(), memory=Memory()))
        again = await store.read("acme")
        assert (again.hot, again.memory) == (HotSet(), Memory())

    in_world(story)


def test_a_write_on_what_another_changed_is_refused_as_a_whole() -> None:
    async def story(world: World) -> None:
        store = world.client.store
        first = await store.read("acme")
        assert await store.write("acme", first, Step(hot=SETS[1], memory=MEMORIES[1]))
        assert not await store.write("acme", first, Step(hot=SETS[2], memory=MEMORIES[2]))
        stale = await store.read("acme")
        other = await store.read("other")
        assert await store.write("other", other, Step(hot=SETS[2], memory=Memory()))
        assert not await store.write("acme", stale, Step(hot=SETS[0], memory=MEMORIES[2]))
        now = await store.read("acme")
        assert (now.hot, now.memory) == (SETS[2], MEMORIES[1])

    in_world(story)


def test_an_unchanged_set_costs_no_write() -> None:
    async def story(world: World) -> None:
        store = world.client.store
        first = await store.read("acme")
        assert await store.write("acme", first, Step(hot=SETS[1], memory=Memory()))
        stored = await store.read("acme")
        assert await store.write("acme", stored, Step(hot=SETS[1], memory=Memory()))
        assert (await store.read("acme")).shard.version == stored.shard.version

    in_world(story)


def test_one_that_was_dropped_by_others_learns_it_and_keeps_the_rest_of_its_memory() -> None:
    async def story(world: World) -> None:
        store = world.client.store
        victim = await store.read("victim")
        assert await store.write("victim", victim, Step(hot=HotSet(entries={"victim": FULL}), memory=MEMORIES[1]))
        stored = await store.read("acme")
        step = Step(hot=HotSet(), memory=Memory(), dropped={"victim": timedelta(seconds=70)})
        assert await store.write("acme", stored, step)
        memory = (await store.read("victim")).memory
        assert (memory.astray, memory.sticky_left, memory.failures) == (Astray.UNWANTED, timedelta(seconds=70), 2)

    in_world(story)
