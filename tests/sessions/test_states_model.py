"""The hot set under everything that can happen, at random: accounts that want and are done, lanes that come late or
never, sessions that fail, fall, restart and are started by people, gateways that do not answer. What must hold, holds
always.

The provider here is a table of the sessions that run. Only a session's own lane orders it, as in production.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

import pytest

from firestore_outbox.sessions.memory import Memory
from firestore_outbox.sessions.moves import Cool, Look, Rest, Seen, Start, Stop, cooled, next_move, seen
from firestore_outbox.sessions.requests import Hot, NotYet, Step, View, done, doubt, reported_up, want
from firestore_outbox.sessions.slots import HotSet
from firestore_outbox.sessions.states import TRANSITIONS, Entry, Rules, State
from tests.builders import NOW

ONE_STEP = {(before, becomes) for (before, _), becomes in TRANSITIONS.items()}
THROUGH_COLD = {(before, State.CONNECTING) for before, becomes in ONE_STEP if becomes is State.COLD}
"""It ended, and was the next in line."""


@dataclass
class Model:
    random: Random
    rules: Rules
    accounts: list[str]
    is_calm: bool = False
    """Nothing fails, and lanes run when they are woken."""
    now: datetime = NOW
    hot: HotSet = field(default_factory=HotSet)
    memory: dict[str, Memory] = field(default_factory=dict)
    up: set[str] = field(default_factory=set)
    """What really runs at the provider."""
    using: dict[str, datetime] = field(default_factory=dict)
    """Accounts that believe to have a hot session, and until when."""
    woken: set[str] = field(default_factory=set)
    strayed: set[str] = field(default_factory=set)
    """Sessions that may run without an entry: given up, or started by a person."""
    hot_time: Counter[str] = field(default_factory=Counter)
    turns: Counter[str] = field(default_factory=Counter)
    waited: dict[str, datetime] = field(default_factory=dict)
    longest_wait: timedelta = timedelta(0)

    def view(self, account_id: str) -> View:
        return View(
            hot=self.hot,
            memory=self.memory.get(account_id, Memory()),
            account_id=account_id,
            provider="waha",
            now=self.now,
            rules=self.rules,
            jitter=self.random.random(),
        )

    def commit(self, account_id: str, step: Step) -> Step:
        before = self.hot
        self._check_step(account_id, before, step.hot)
        self.hot, self.memory[account_id] = step.hot, step.memory
        for other, left in step.dropped.items():
            self.memory[other] = self.memory.get(other, Memory()).dropped(left)
            self.strayed.add(other)
        self.woken |= step.wake
        if step.memory.trouble is not None:
            self.using.pop(account_id, None)  # its sends find out
        return step

    # --- what happens

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def wants(self, account_id: str) -> None:
        self.waited.setdefault(account_id, self.now)
        step = self.commit(account_id, want(self.view(account_id)))
        if isinstance(step.answer, Hot):
            if account_id in self.hot.entries:
                self.using[account_id] = step.answer.until
                wait = self.now - self.waited.pop(account_id, self.now)
                self.longest_wait = max(self.longest_wait, wait)
                self.turns[account_id] += 1
        else:
            assert isinstance(step.answer, NotYet)
            assert step.answer.retry_at > self.now

    def is_done(self, account_id: str) -> None:
        self.using.pop(account_id, None)
        next_at = self.now + timedelta(seconds=self.random.choice([1, 30, 100, 1000]))
        self.commit(account_id, done(self.view(account_id), self.random.choice([None, next_at])))

    def dies(self, account_id: str) -> None:
        """The worker that used it dies: nothing says that it is done."""
        self.using.pop(account_id, None)

    def run_lane(self, account_id: str) -> None:
        self.woken.discard(account_id)
        for _ in range(4):
            view = self.view(account_id)
            of = State.COLD if view.entry is None else view.entry.state
            match next_move(view):
                case Rest():
                    return
                case Cool():
                    self.commit(account_id, cooled(view))
                case Start():
                    self.commit(account_id, seen(view, self._start(account_id), of))
                case Look():
                    self.commit(account_id, seen(view, self._look(account_id), of))
                case Stop():
                    self.commit(account_id, seen(view, self._stop(account_id), of))

    def falls(self, account_id: str) -> None:
        self.up.discard(account_id)
        if self.random.random() < 0.7:
            self.commit(account_id, doubt(self.view(account_id)))

    def is_started_by_a_person(self, account_id: str) -> None:
        self.up.add(account_id)
        self.strayed.add(account_id)
        self.commit(account_id, reported_up(self.view(account_id)))

    def _start(self, account_id: str) -> Seen:
        chance = 0 if self.is_calm else self.random.random()
        if chance < 0.6:
            self.up.add(account_id)
            return Seen.UP
        return self.random.choice([one for one in Seen if one is not Seen.UP])

    def _look(self, account_id: str) -> Seen:
        if not self.is_calm and self.random.random() < 0.1:
            return self.random.choice([Seen.UNREACHABLE, Seen.STARTING])
        return Seen.UP if account_id in self.up else Seen.DOWN

    def _stop(self, account_id: str) -> Seen:
        if not self.is_calm and self.random.random() < 0.3:
            self.strayed.add(account_id)  # it may be given up
            return self.random.choice([Seen.UNREACHABLE, Seen.REFUSED])
        self.up.discard(account_id)
        self.strayed.discard(account_id)
        return Seen.DOWN

    # --- what must hold

    def _check_step(self, actor: str, before: HotSet, after: HotSet) -> None:
        assert len(after.entries) <= self.rules.slots
        assert sum(entry.sticky for entry in after.entries.values()) <= self.rules.seats
        assert len(after.in_order(sticky=True)) <= self.rules.longest_line
        assert sum(name not in after.entries for name in after.in_order(sticky=False)) <= self.rules.longest_line
        for account_id in {*before.entries, *after.entries}:
            old, new = before.entries.get(account_id), after.entries.get(account_id)
            self._check_change(actor, account_id, old, new)

    def _check_change(self, actor: str, account_id: str, old: Entry | None, new: Entry | None) -> None:
        pair = (old.state if old else State.COLD, new.state if new else State.COLD)
        assert pair[0] is pair[1] or pair in ONE_STEP | THROUGH_COLD, pair
        if old is not None and old.in_use(self.now) and account_id != actor:
            assert new == old, "in use, and another lane changed it"
        if old is not None and new is not None and old.sticky_left is not None:
            assert new.remaining(self.now) <= old.remaining(self.now)

    def check(self) -> None:
        """Between steps."""
        for account_id, until in self.using.items():
            entry = self.hot.entries.get(account_id)
            if until > self.now:
                assert entry is not None, "taken away while it is in use"
                assert entry.state is not State.DISCONNECTING, "taken away while it is in use"
        for account_id in self.up - self.strayed:
            assert account_id in self.hot.entries, "up without a place"

    def settle(self) -> None:
        """No free place while a session is due, as long as any lane looks."""
        while self.woken:
            self.run_lane(min(self.woken))


def choose(model: Model) -> None:
    account_id = model.random.choice(model.accounts)
    using = sorted(model.using)
    happening = model.random.choices(
        ["want", "done", "die", "lane", "fall", "person", "late lane"], weights=[30, 12, 2, 35, 4, 1, 6]
    )[0]
    match happening:
        case "want":
            model.wants(account_id)
        case "done" if using:
            model.is_done(model.random.choice(using))
        case "die" if using:
            model.dies(model.random.choice(using))
        case "lane" if model.woken:
            model.run_lane(model.random.choice(sorted(model.woken)))
        case "fall" if model.up:
            model.falls(model.random.choice(sorted(model.up)))
        case "person":
            model.is_started_by_a_person(account_id)
        case "late lane" if model.hot.entries:
            model.run_lane(model.random.choice(sorted(model.hot.entries)))
        case _:
            pass


@pytest.mark.parametrize("seed", range(150))
def test_whatever_happens_the_set_keeps_its_promises(seed: int) -> None:
    random = Random(seed)
    rules = Rules(
        slots=random.choice([1, 2, 3, 5]),
        sticky_budget=timedelta(seconds=random.choice([0, 100, 5000])),
        longest_line=random.choice([2, 100]),
    )
    model = Model(random, rules, [f"account-{number}" for number in range(random.choice([2, 4, 9]))])
    for _ in range(400):
        model.advance(random.choice([0, 0.1, 1, 5, 20, 70, 400]))
        choose(model)
        model.check()


@pytest.mark.parametrize("seed", range(20))
def test_when_everything_is_quiet_everything_is_cold(seed: int) -> None:
    random = Random(seed)
    rules = Rules(slots=3, sticky_budget=timedelta(seconds=200))
    model = Model(random, rules, [f"account-{number}" for number in range(6)])
    for _ in range(200):
        model.advance(random.choice([0, 1, 20]))
        choose(model)
    model.is_calm = True
    for account_id in sorted(model.using):
        model.dies(account_id)
    for _ in range(400):
        model.advance(60)
        for account_id in sorted({*model.hot.entries, *model.woken}):
            model.run_lane(account_id)
    assert str(model.hot) == "- | -"
    assert model.up <= model.strayed


@pytest.mark.parametrize(("slots", "accounts"), [(1, 4), (2, 6), (5, 20)])
def test_accounts_that_never_have_enough_take_turns(slots: int, accounts: int) -> None:
    """All have more to send than they ever can. None waits longer than the others' turns take."""
    rules = Rules(slots=slots)
    model = Model(Random(1), rules, [f"account-{number:02d}" for number in range(accounts)], is_calm=True)
    asks_at = dict.fromkeys(model.accounts, NOW)
    for _ in range(6 * 3600 // 5):
        model.advance(5)
        model.settle()
        for account_id in model.accounts:
            if (
                account_id not in model.using
                and asks_at[account_id] > model.now
                and account_id not in model.hot.entries
            ):
                continue  # it rests, and has not been woken
            before = model.using.get(account_id)
            model.waited.setdefault(account_id, model.now)
            step = model.commit(account_id, want(model.view(account_id)))
            if isinstance(step.answer, Hot):
                model.using[account_id] = step.answer.until
                if before is None:
                    model.turns[account_id] += 1
                    model.longest_wait = max(model.longest_wait, model.now - model.waited.pop(account_id))
                else:
                    model.waited.pop(account_id)
            elif isinstance(step.answer, NotYet):
                asks_at[account_id] = step.answer.retry_at
                if before is not None:
                    model.is_done(account_id)
    rounds = accounts / slots
    assert model.longest_wait <= rules.turn * rounds + timedelta(seconds=20 * rounds)
    assert max(model.turns.values()) - min(model.turns.values()) <= 2
    assert min(model.turns.values()) > 6 * 3600 / ((rules.turn.total_seconds() + 20) * rounds) - 3


def test_a_due_message_never_waits_behind_sessions_that_are_not_in_use() -> None:
    rules = Rules(slots=5)
    model = Model(Random(1), rules, ["due"], is_calm=True)
    for number in range(5):
        model.wants(f"new-{number}")
        model.run_lane(f"new-{number}")
        model.wants(f"new-{number}")
        model.is_done(f"new-{number}")
    assert sum(entry.sticky for entry in model.hot.entries.values()) == 4
    model.advance(1)
    model.wants("due")
    model.settle()
    model.wants("due")
    assert "due" in model.using
    assert model.longest_wait == timedelta(0)
