"""Slots that move between shards: whatever the workers believe about the layout, there are never too many."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random

import pytest

from firestore_outbox.sessions.layout import Layout
from firestore_outbox.sessions.memory import Memory
from firestore_outbox.sessions.requests import View, want
from firestore_outbox.sessions.shares import balanced, unbalanced, usable
from firestore_outbox.sessions.slots import HotSet, settled
from firestore_outbox.sessions.states import Rules, State
from tests.builders import NOW, at
from tests.sessions.builders import idle, used, waiting

RULES = Rules(sticky_budget=timedelta(0))
FIVE = Layout(slots=5, shards=5)
ONE = Layout(slots=5)


def of_shard(number: int, count: int = 1) -> list[str]:
    """Accounts of one of five shards."""
    found = [f"a{n}" for n in range(200) if FIVE.shard_of(f"a{n}") == number]
    return found[:count]


def test_a_new_shard_takes_its_share_from_the_slots_that_are_free() -> None:
    made = balanced(HotSet(), HotSet(), 3, FIVE, NOW, RULES)
    assert (made.other.held, made.first.given) == (1, {"3": 1})
    assert usable(made.other, 3, FIVE) == 1
    assert unbalanced(made.other, 3, FIVE) == []


def test_while_all_slots_are_in_use_a_new_shard_has_none() -> None:
    busy = {account: used() for account in of_shard(0, 5)}
    made = balanced(HotSet(entries=busy), HotSet(), 3, FIVE, NOW, RULES)
    assert (made.other.held, usable(made.other, 3, FIVE)) == (0, 0)


def test_an_account_that_is_up_in_the_first_shard_moves_with_its_slot() -> None:
    (mover,) = of_shard(3)
    busy = {account: used() for account in (*of_shard(0, 4), mover)}
    made = balanced(HotSet(entries=busy), HotSet(), 3, FIVE, NOW, RULES)
    assert list(made.other.entries) == [mover]
    assert mover not in made.first.entries
    assert (made.other.held, made.first.given) == (1, {"3": 1})
    assert mover in made.wake


def test_a_shard_that_is_no_longer_used_gives_its_slots_back_once_they_are_free() -> None:
    (stray,) = of_shard(3)
    first, other = HotSet(given={"3": 1}), HotSet(entries={stray: used(30)}, held=1)
    assert unbalanced(first, 0, ONE) == [3]
    made = balanced(first, other, 3, ONE, NOW, RULES)
    assert (made.other.held, usable(made.first, 0, ONE)) == (1, 4), "it is in use"
    made = balanced(made.first, made.other, 3, ONE, at(31), RULES)
    assert made.other.entries[stray].state is State.DISCONNECTING
    made = balanced(made.first, made.other, 3, ONE, at(31) + RULES.stop, RULES)
    assert stray in made.dropped, "its own lane stops it"
    made = balanced(made.first, made.other, 3, ONE, at(32) + RULES.stop, RULES)
    assert (made.other.held, made.first.given, usable(made.first, 0, ONE)) == (0, {}, 5)


def test_a_shard_whose_document_was_lost_gets_its_share_again_and_no_slot_twice() -> None:
    made = balanced(HotSet(given={"3": 1}), HotSet(), 3, FIVE, NOW, RULES)
    assert (made.other.held, made.first.given) == (1, {"3": 1})


def test_waiting_accounts_of_another_shard_lose_their_place_and_idle_ones_their_slot() -> None:
    (stray, waits) = of_shard(2, 2)
    first = HotSet(entries={stray: idle()}, line={waits: waiting()})
    made = balanced(first, HotSet(), 3, FIVE, NOW, RULES)
    assert made.first.line == {}
    assert made.first.entries[stray].state is State.DISCONNECTING
    assert stray in made.dropped, "its own lane, which sees another shard, stops it"


@dataclass
class Model:
    """Workers that disagree about the layout, at random."""

    random: Random
    now: datetime = NOW
    shards: dict[int, HotSet] = field(default_factory=dict)

    def hot(self, shard: int) -> HotSet:
        return self.shards.get(shard, HotSet())

    def request(self, layout: Layout, account_id: str) -> None:
        shard = layout.shard_of(account_id)
        for other in unbalanced(self.hot(shard), shard, layout):
            made = balanced(self.hot(0), self.hot(other), other, layout, self.now, RULES)
            self.shards[0], self.shards[other] = made.first, made.other
        hot = self.hot(shard)
        rules = layout.rules(RULES, shard, usable(hot, shard, layout))
        view = View(
            hot=hot, memory=Memory(), account_id=account_id, provider="waha", now=self.now, rules=rules, jitter=0.5
        )
        self.shards[shard] = want(view).hot

    def stops(self, layout: Layout) -> None:
        """A session lane, by its own idea of the layout."""
        shard = self.random.randrange(layout.shards)
        hot = self.hot(shard)
        leaving = [account for account, entry in hot.entries.items() if entry.state is State.DISCONNECTING]
        if leaving:
            rules = layout.rules(RULES, shard, usable(hot, shard, layout))
            self.shards[shard] = settled(hot.without_entry(leaving[0]), self.now, rules).hot

    def is_done(self) -> None:
        shard = self.random.choice(list(self.shards) or [0])
        entries = {account: replace(entry, used_until=None) for account, entry in self.hot(shard).entries.items()}
        self.shards[shard] = replace(self.hot(shard), entries=entries)


@pytest.mark.parametrize("seed", range(12))
def test_workers_with_different_layouts_never_have_more_sessions_up_than_slots(seed: int) -> None:
    model = Model(Random(seed))
    layouts = [ONE, Layout(slots=5, shards=2), FIVE]
    for step in range(400):
        # The last half is one layout: then every shard must reach its share.
        layout = model.random.choice(layouts) if step < 200 else FIVE
        model.now += timedelta(seconds=model.random.choice([1, 10, 100]))
        model.request(layout, f"a{model.random.randrange(40)}")
        model.stops(layout)
        if model.random.random() < 0.5:
            model.is_done()
        up = {number: len(hot.entries) for number, hot in model.shards.items()}
        assert sum(up.values()) <= 5, up
        assert all(count <= model.hot(number).held for number, count in up.items() if number), up
    model.now += timedelta(minutes=30)
    for _ in range(4):
        for number in range(5):
            model.is_done()
            model.request(FIVE, of_shard(number)[0])
            model.stops(FIVE)
        model.now += timedelta(minutes=5)
    assert [usable(model.hot(number), number, FIVE) for number in range(5)] == [1, 1, 1, 1, 1]
