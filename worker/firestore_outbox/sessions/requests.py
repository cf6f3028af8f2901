"""Requests to the hot set: an outbox lane needs a session, is done with it, or doubts it; a webhook reports a change.

Each function takes what was read as a `View` and returns a `Step`: what to write, and what to do after the commit. A
report about a session is never trusted: it only makes the session's own lane check (moves.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from firestore_outbox.sessions.memory import Astray, Memory, Shown, Trouble
from firestore_outbox.sessions.slots import HotSet, Settled, Waiting, settled
from firestore_outbox.sessions.states import Entry, Rules, State

_NONE = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One account and the set, as they were read."""

    hot: HotSet
    memory: Memory
    account_id: str
    provider: str
    now: datetime
    rules: Rules
    jitter: float = 0.5
    """A uniform random number in [0, 1)."""

    @property
    def entry(self) -> Entry | None:
        return self.hot.entries.get(self.account_id)


@dataclass(frozen=True, slots=True)
class Hot:
    """Send. Ask again while half of the time is left."""

    until: datetime


@dataclass(frozen=True, slots=True)
class NotYet:
    """Do not send yet. The account's lane is woken when the session is up; if not, it asks again at `retry_at`."""

    retry_at: datetime
    trouble: Trouble | None = None
    """None: the session is connecting, or the account waits for a slot."""


class News(StrEnum):
    UP = "up"
    DOWN = "down"
    """It did not come up, or went down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    hot: HotSet
    memory: Memory
    answer: Hot | NotYet | None = None
    wake: frozenset[str] = frozenset()
    """Accounts whose session lane has something to do now."""
    dropped: Mapping[str, timedelta | None] = field(default_factory=dict)
    """Other accounts whose entries are gone, and what was left of their budgets: for `Memory.dropped`."""
    shown: Shown | None = None
    """What members see from now on; None: as before."""
    news: News | None = None
    """For lanes that wait for this account's session: ask again."""


def unchanged(view: View, answer: Hot | NotYet | None = None, *, wake_own: bool = False) -> Step:
    own = frozenset({view.account_id} if wake_own else ())
    return Step(hot=view.hot, memory=view.memory, answer=answer, wake=own)


def step(made: Settled, memory: Memory, answer: Hot | NotYet | None = None) -> Step:
    return Step(hot=made.hot, memory=memory, answer=answer, wake=made.wake, dropped=made.dropped)


# --- the outbox ---------------------------------------------------------------------------------------------------


def want(view: View) -> Step:
    """The account has something to send."""
    entry, now = view.entry, view.now
    if entry is not None and entry.state is State.HOT and not entry.doubted:
        return _use(view, entry)
    if entry is not None and entry.state is not State.DISCONNECTING:
        return _wait_for_it(view, entry)
    if view.memory.waits(now):
        return _wait_after_trouble(view)
    return _queue(view)


def _use(view: View, entry: Entry) -> Step:
    hot, now, rules = view.hot, view.now, view.rules
    late = entry.until <= now  # its lane has not been heard of
    if now - entry.turn_since >= rules.turn and hot.shortage(now, rules, except_for=view.account_id) > 0:
        if not hot.is_yielding(view.account_id):
            hot = hot.in_line(view.account_id, _waiting(view, since=now))
        return replace(unchanged(view, NotYet(now + rules.ask_again), wake_own=late), hot=hot)
    hot = hot.not_in_line(view.account_id)
    used_until = entry.used_until
    if used_until is None or used_until - now <= rules.use * 3 / 4:
        used_until = now + rules.use
        hot = hot.with_entry(view.account_id, replace(entry, used_until=used_until))
    return replace(unchanged(view, Hot(used_until), wake_own=late), hot=hot)


def _wait_for_it(view: View, entry: Entry) -> Step:
    """It is connecting, or being looked at. From now on it is in use, so its slot is not taken away."""
    hot, now, rules = view.hot, view.now, view.rules
    if not entry.in_use(now):
        hot = hot.with_entry(view.account_id, replace(entry, used_until=now + rules.connect + rules.use))
    retry_at = max(entry.until, now + rules.grace / 4)
    return replace(unchanged(view, NotYet(retry_at), wake_own=True), hot=hot)


def _wait_after_trouble(view: View) -> Step:
    memory, now = view.memory, view.now
    made = settled(view.hot.not_in_line(view.account_id), now, view.rules)
    if memory.trouble is Trouble.REFUSED:  # let it send: the refusal then parks the account
        return step(made, memory, Hot(now + view.rules.use))
    assert memory.retry_at is not None, "it waits"
    return step(made, memory, NotYet(memory.retry_at, memory.trouble))


def _queue(view: View) -> Step:
    now, rules = view.now, view.rules
    hot = view.hot.as_of(now)
    before = hot.line.get(view.account_id)
    if (before is None or before.sticky) and len(hot.in_order(sticky=False)) >= rules.longest_line:
        return unchanged(view, NotYet(now + rules.ask_again * (0.5 + view.jitter)))
    since = now if before is None or before.sticky else before.since
    made = settled(hot.in_line(view.account_id, _waiting(view, since=since)), now, rules)
    entry = made.hot.entries.get(view.account_id)
    is_granted = entry is not None and entry.state is State.CONNECTING
    return step(made, view.memory, NotYet(now + (rules.connect + rules.grace if is_granted else rules.ask_again)))


def _waiting(view: View, *, since: datetime) -> Waiting:
    until = view.now + view.rules.ask_again + view.rules.grace
    return Waiting(provider=view.provider, since=since, until=until, sticky=False)


def done(view: View, next_at: datetime | None) -> Step:
    """The account has nothing in flight, and nothing to send before `next_at`."""
    hot, entry, now, rules = view.hot, view.entry, view.now, view.rules
    if entry is not None and entry.state is State.HOT:
        keep_until = now + rules.idle
        if next_at is not None and next_at - now <= rules.keep_ahead:
            keep_until = max(keep_until, next_at + rules.idle / 2)
        seated = entry.sticky or (entry.remaining(now) > _NONE and hot.free_seats(rules) > 0)
        kept = replace(entry, used_until=None, keep_until=keep_until, sticky=seated)
        hot = hot.with_entry(view.account_id, kept)
    return step(settled(hot, now, rules), view.memory)


# --- people -------------------------------------------------------------------------------------------------------


def connect(view: View, lasts: timedelta) -> Step:
    """A person links the phone within `lasts`. Until then the session has a slot, or waits for one, and keeps it while
    its gateway shows a code. Nothing changes if it is up."""
    entry, now, rules = view.entry, view.now, view.rules
    if entry is not None and entry.state is State.HOT and not entry.doubted:
        return replace(unchanged(view), shown=Shown.CONNECTED)
    until = now + lasts
    memory = replace(view.memory, pair_until=until, logout=False, trouble=None, retry_at=None)
    if entry is not None and entry.state is not State.DISCONNECTING:
        hot = view.hot.with_entry(view.account_id, replace(entry, used_until=until))
        wake = frozenset({view.account_id})
        return Step(hot=hot, memory=memory, wake=wake, shown=Shown.STARTING)
    waiting = Waiting(provider=view.provider, since=now, until=until, sticky=False)
    return replace(step(settled(view.hot.in_line(view.account_id, waiting), now, rules), memory), shown=Shown.STARTING)


def disconnect(view: View) -> Step:
    """A person unlinks the phone: the session's lane tells the gateway, and gives the slot back."""
    memory = replace(view.memory, pair_until=None, logout=True, astray=None)
    hot = view.hot.not_in_line(view.account_id)
    own = frozenset({view.account_id})
    return Step(hot=hot, memory=memory, wake=own, shown=Shown.DISCONNECTED)


# --- hearsay ------------------------------------------------------------------------------------------------------


def doubt(view: View) -> Step:
    """A send found the session down: its lane checks, and nothing is sent before."""
    entry = view.entry
    if entry is None or entry.state is not State.HOT or entry.doubted:
        return unchanged(view)  # its lane is at work, or there is nothing to lose
    doubted = view.hot.with_entry(view.account_id, replace(entry, doubted=True))
    return replace(unchanged(view, wake_own=True), hot=doubted)


def reported_up(view: View) -> Step:
    """A webhook reports that the session is up. If no lane started it, its own lane adopts it if a slot is free."""
    if view.entry is not None or view.memory.astray is not None:
        return unchanged(view)
    return replace(unchanged(view, wake_own=True), memory=replace(view.memory, astray=Astray.REPORTED))
