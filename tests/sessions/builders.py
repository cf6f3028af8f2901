"""Sets, entries and views for the tests of the hot set."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from firestore_outbox.sessions.memory import Memory
from firestore_outbox.sessions.requests import Step, View, done, want
from firestore_outbox.sessions.slots import HotSet, Waiting
from firestore_outbox.sessions.states import Entry, Rules, State
from tests.builders import NOW, at

RULES = Rules(slots=2, sticky_budget=timedelta(hours=24))
DAY = timedelta(hours=24)


def entry(state: State = State.HOT, seconds: float = 0, **fields: Any) -> Entry:
    """One that entered its state this number of seconds after NOW."""
    now = at(seconds)
    times = {
        State.CONNECTING: (now + RULES.connect + RULES.grace, now, None),
        State.HOT: (now + RULES.look_every + RULES.grace, now + RULES.look_every, now),
        State.DISCONNECTING: (now + RULES.stop, now, None),
    }
    until, look_at, hot_since = times[state]
    made = Entry(
        provider="waha",
        state=state,
        until=until,
        look_at=look_at,
        turn_since=now,
        hot_since=hot_since,
    )
    return replace(made, **fields)


def used(seconds: float = 60, **fields: Any) -> Entry:
    """A hot one that is in use until this number of seconds after NOW."""
    return entry(used_until=at(seconds), **fields)


def idle(keep: float = 30, **fields: Any) -> Entry:
    return entry(keep_until=at(keep), **fields)


def sticky(left: timedelta, **fields: Any) -> Entry:
    return entry(sticky=True, sticky_left=left, **fields)


def waiting(since: float = 0, *, until: float = 180, is_sticky: bool = False, left: timedelta | None = None) -> Waiting:
    return Waiting(provider="waha", since=at(since), until=at(until), sticky=is_sticky, sticky_left=left)


def hotset(line: dict[str, Waiting] | None = None, **entries: Entry) -> HotSet:
    return HotSet(entries=entries, line=line or {})


def view(
    hot: HotSet | None = None,
    account_id: str = "a",
    *,
    memory: Memory | None = None,
    now: datetime = NOW,
    rules: Rules = RULES,
    jitter: float = 0.5,
) -> View:
    return View(
        hot=hot or HotSet(),
        memory=memory or Memory(),
        account_id=account_id,
        provider="waha",
        now=now,
        rules=rules,
        jitter=jitter,
    )


def wanted(hot: HotSet | None = None, account_id: str = "a", **fields: Any) -> Step:
    return want(view(hot, account_id, **fields))


def is_done(hot: HotSet, account_id: str = "a", *, next_at: datetime | None = None, **fields: Any) -> Step:
    return done(view(hot, account_id, **fields), next_at)
