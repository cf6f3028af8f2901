"""The slots of the hot set: which accounts have one, which wait, and which lose theirs. Theory in docs/sessions.md.

A shard of the set is one document, so that each decision sees all of it, and is written by compare-and-set. It has no
counter: the number of sessions is the number of entries, and there are never more entries than slots. A slot that
becomes free goes to the head of the line in the same write that frees it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from firestore_outbox.sessions.states import Entry, Event, Rules, State, after, granted

_NONE = timedelta(0)
_FOREVER = timedelta(days=36_500)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """An account that waits for a slot."""

    provider: str
    since: datetime
    """The order of the line. Kept while it asks again; new when it had its turn."""
    until: datetime
    """Expires then. Moves when the account asks again."""
    sticky: bool
    """Nothing is due: the account waits for a seat, behind all due accounts."""
    sticky_left: timedelta | None = None
    """What is left of a sticky account's budget, which is not used while it waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HotSet:
    """A shard of a set: `hotsets/{name}`."""

    entries: Mapping[str, Entry] = field(default_factory=dict)
    """By account."""
    line: Mapping[str, Waiting] = field(default_factory=dict)
    """By account."""
    held: int = 0
    """Slots that the first shard gave to this one. Changes with `given` of the first shard, in one commit (shares.py).
    The first shard has none."""
    given: Mapping[str, int] = field(default_factory=dict)
    """Only of the first shard: the slots that other shards hold, by their number."""

    def __str__(self) -> str:
        """For people and assertions: `a:hot b:connecting | c d`."""
        entries = " ".join(f"{account}:{entry.state.value}" for account, entry in sorted(self.entries.items()))
        line = sorted(self.line, key=lambda account: (self.line[account].sticky, self.line[account].since, account))
        return f"{entries or '-'} | {' '.join(line) or '-'}"

    def with_entry(self, account_id: str, entry: Entry) -> HotSet:
        return replace(self, entries={**self.entries, account_id: entry})

    def without_entry(self, account_id: str) -> HotSet:
        return replace(self, entries={key: entry for key, entry in self.entries.items() if key != account_id})

    def in_line(self, account_id: str, waiting: Waiting) -> HotSet:
        return replace(self, line={**self.line, account_id: waiting})

    def not_in_line(self, account_id: str) -> HotSet:
        if account_id not in self.line:
            return self
        return replace(self, line={key: waiting for key, waiting in self.line.items() if key != account_id})

    def as_of(self, now: datetime) -> HotSet:
        """Without the expired entries of the line."""
        line = {account: waiting for account, waiting in self.line.items() if waiting.until > now}
        return self if len(line) == len(self.line) else replace(self, line=line)

    def free(self, rules: Rules) -> int:
        return rules.slots - len(self.entries)

    def free_seats(self, rules: Rules) -> int:
        return rules.seats - sum(entry.sticky for entry in self.entries.values())

    def in_order(self, *, sticky: bool) -> list[str]:
        """The line of due accounts, or of those that wait for a seat."""
        found = [account for account, waiting in self.line.items() if waiting.sticky is sticky]
        return sorted(found, key=lambda account: (self.line[account].since, account))

    def shortage(self, now: datetime, rules: Rules, *, except_for: str | None = None) -> int:
        """How many slots the due accounts in line lack, beyond the slots that are about to be free.

        `except_for`: an account that does not count.
        """
        leaving = {account for account, entry in self.entries.items() if entry.state is State.DISCONNECTING}
        due = [account for account in self.in_order(sticky=False) if account != except_for]
        needed = sum(account not in self.entries or account in leaving for account in due)
        yielding = sum(self.entries[account].in_use(now) for account in due if account in self.entries)
        return max(0, needed - self.free(rules) - len(leaving) - yielding)

    def is_yielding(self, account_id: str) -> bool:
        """Whether the account must finish what is in flight, and waits for its next turn."""
        waiting = self.line.get(account_id)
        return waiting is not None and not waiting.sticky and account_id in self.entries


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A set in which no account waits for a slot that is free, and what follows from it."""

    hot: HotSet
    wake: frozenset[str] = frozenset()
    """Accounts whose session lane has something to do now."""
    dropped: Mapping[str, timedelta | None] = field(default_factory=dict)
    """Accounts whose entries were dropped without their lane, and what was left of their budgets. Their sessions may
    still be up and must be stopped."""


def settled(hot: HotSet, now: datetime, rules: Rules) -> Settled:
    """Drop expired entries, give free slots to the head of the line, and preempt for the rest of the line."""
    hot = hot.as_of(now)
    dropped: dict[str, timedelta | None] = {}
    for account_id, entry in hot.entries.items():
        if entry.state is State.DISCONNECTING and entry.until <= now:
            after(entry.state, Event.GIVEN_UP)
            hot = hot.without_entry(account_id)
            dropped[account_id] = entry.sticky_left
    hot, served = _served(hot, now, rules)
    hot, marked = _room_made(hot, now, rules)
    return Settled(hot=hot, wake=frozenset(served | marked | dropped.keys()), dropped=dropped)


def _served(hot: HotSet, now: datetime, rules: Rules) -> tuple[HotSet, set[str]]:
    """Give free slots to due accounts, in order, and the rest to accounts that wait for a seat."""
    served: set[str] = set()
    for sticky in (False, True):
        for account_id in hot.in_order(sticky=sticky):
            if hot.free(rules) <= 0 or (sticky and hot.free_seats(rules) <= 0):
                break
            if account_id in hot.entries:
                continue
            waiting = hot.line[account_id]
            entry = granted(waiting.provider, waiting.sticky_left, now, rules, sticky=sticky)
            hot = hot.not_in_line(account_id).with_entry(account_id, entry)
            served.add(account_id)
    return hot, served


def _room_made(hot: HotSet, now: datetime, rules: Rules) -> tuple[HotSet, set[str]]:
    marked: set[str] = set()
    victims = _victims(hot, now)
    for account_id in victims[: hot.shortage(now, rules)]:
        hot = preempted(hot, account_id, now, rules)
        marked.add(account_id)
    return hot, marked


def _victims(hot: HotSet, now: datetime) -> list[str]:
    """The entries that may be preempted, in order. None of them is in use."""

    def rank(account_id: str) -> tuple[int, float, str]:
        entry = hot.entries[account_id]
        if entry.until <= now:
            return 0, entry.until.timestamp(), account_id
        if not entry.sticky:
            return 1, (entry.keep_until or now).timestamp(), account_id
        return 2, entry.remaining(now).total_seconds(), account_id

    idle = (a for a, e in hot.entries.items() if e.state is not State.DISCONNECTING and not e.in_use(now))
    return sorted(idle, key=rank)


def preempted(hot: HotSet, account_id: str, now: datetime, rules: Rules) -> HotSet:
    """Take an account's slot away. A sticky account waits for a seat then."""
    before = hot.entries[account_id]
    entry = before.on(Event.PREEMPTED, now, rules)
    hot = hot.with_entry(account_id, entry)
    return in_line_for_a_seat(hot, account_id, entry, now, rules) if before.sticky else hot


def in_line_for_a_seat(hot: HotSet, account_id: str, entry: Entry, now: datetime, rules: Rules) -> HotSet:
    left = entry.remaining(now)
    if (
        left <= _NONE
        or account_id in hot.line
        or len(hot.in_order(sticky=True)) >= rules.longest_line
        or rules.seats == 0
    ):
        return hot
    until = now + _FOREVER  # it does not ask again: nothing is due
    waiting = Waiting(provider=entry.provider, since=now, until=until, sticky=True, sticky_left=left)
    return hot.in_line(account_id, waiting)
