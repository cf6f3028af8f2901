"""A session's own lane: what it does next, and what follows from what it finds.

Who is authoritative: the provider about its session. What a crash leaves is an entry in some state; the lane does that
state's work again, which does no harm. Only this lane ever orders its session up or down.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

from firestore_outbox.sessions.memory import STEADY, Astray, Shown, Trouble
from firestore_outbox.sessions.requests import News, Step, View, step, unchanged
from firestore_outbox.sessions.slots import in_line_for_a_seat, settled
from firestore_outbox.sessions.states import Entry, Event, State, adopted, after

_NONE = timedelta(0)


class Seen(StrEnum):
    """What the provider said of the session, or that it said nothing."""

    UP = "up"
    STARTING = "starting"
    DOWN = "down"
    BROKEN = "broken"
    NEEDS_PAIRING = "needs_pairing"
    UNREACHABLE = "unreachable"
    REFUSED = "refused"


TROUBLES: dict[Seen, Trouble] = {
    Seen.DOWN: Trouble.BROKEN,
    Seen.BROKEN: Trouble.BROKEN,
    Seen.NEEDS_PAIRING: Trouble.NEEDS_PAIRING,
    Seen.UNREACHABLE: Trouble.UNREACHABLE,
    Seen.REFUSED: Trouble.REFUSED,
}
"""Of a session that should be up, or on its way."""


@dataclass(frozen=True, slots=True)
class Start:
    """Order it up; then look until `by`."""

    by: datetime


@dataclass(frozen=True, slots=True)
class Pair:
    """Make the session at its gateway, order it up, and show its code."""


@dataclass(frozen=True, slots=True)
class Logout:
    """Unlink the phone."""


@dataclass(frozen=True, slots=True)
class Fill:
    """Store the contacts from this offset on."""

    offset: int


@dataclass(frozen=True, slots=True)
class Look:
    pass


@dataclass(frozen=True, slots=True)
class Cool:
    """It is not in use."""


@dataclass(frozen=True, slots=True)
class Stop:
    pass


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing to do before `until`; None: before the next wake."""

    until: datetime | None


Move = Start | Pair | Logout | Fill | Look | Cool | Stop | Rest


def next_move(view: View) -> Move:
    entry, now = view.entry, view.now
    if view.memory.logout:
        return Logout()
    if entry is None:
        match view.memory.astray:
            case Astray.REPORTED:
                return Look()
            case Astray.UNWANTED:
                return Stop()
            case None:
                return Rest(None)
    match entry.state:
        case State.CONNECTING:
            return Pair() if view.memory.pairs(now) else Start(entry.until - view.rules.grace)
        case State.DISCONNECTING:
            return Stop()
        case State.HOT:
            if entry.doubted or entry.look_at <= now:
                return Look()
            kept_until = entry.kept_until(now)
            if kept_until > now and view.memory.contacts_next is not None:
                return Fill(view.memory.contacts_next)
            return Rest(min(kept_until, entry.look_at)) if kept_until > now else Cool()
        case State.COLD:
            raise AssertionError("a cold session has no entry")
        case _:
            assert_never(entry.state)


def cooled(view: View) -> Step:
    """It is not in use: it takes a seat if there is one for it, and is put to sleep otherwise."""
    hot, now, rules = view.hot, view.now, view.rules
    before = hot.entries[view.account_id]
    if not before.sticky and before.remaining(now) > _NONE and hot.free_seats(rules) > 0 and not hot.line:
        return replace(unchanged(view), hot=hot.with_entry(view.account_id, replace(before, sticky=True)))
    entry = before.on(Event.COOLED, now, rules)
    hot = in_line_for_a_seat(hot.with_entry(view.account_id, entry), view.account_id, entry, now, rules)
    return step(settled(hot, now, rules), view.memory)


def seen(view: View, what: Seen, of: State) -> Step:
    """What the lane found when it looked, or was told when it ordered the session up or down.

    `of` is the state in which it did so: if that changed meanwhile, what was found says nothing of the new one.
    """
    entry = view.entry
    if of is not (State.COLD if entry is None else entry.state):
        return unchanged(view)
    if entry is None:
        return _seen_astray(view, what)
    match entry.state:
        case State.CONNECTING:
            return _seen_connecting(view, entry, what)
        case State.HOT:
            return _seen_hot(view, entry, what)
        case State.DISCONNECTING:
            return _seen_stopping(view, entry, what)
        case State.COLD:
            raise AssertionError("a cold session has no entry")
        case _:
            assert_never(entry.state)


def _seen_astray(view: View, what: Seen) -> Step:
    hot, now, rules = view.hot, view.now, view.rules
    if view.memory.astray is Astray.UNWANTED and what is Seen.UNREACHABLE:
        return unchanged(view)  # once its gateway answers again
    if view.memory.astray is not Astray.REPORTED or what is not Seen.UP:
        return replace(unchanged(view), memory=replace(view.memory, astray=None))
    memory = replace(view.memory.came_up(rules.sticky_budget), failures=0, restarts=0)
    others = [account_id for account_id in hot.in_order(sticky=False) if account_id != view.account_id]
    if hot.free(rules) <= 0 or others:
        unwanted = replace(memory, astray=Astray.UNWANTED)
        return Step(hot=hot, memory=unwanted, news=News.UP, shown=Shown.CONNECTED)
    left = memory.sticky_left or _NONE
    entry = adopted(view.provider, left, now, rules, sticky=left > _NONE and hot.free_seats(rules) > 0)
    hot = hot.not_in_line(view.account_id).with_entry(view.account_id, entry)
    return Step(hot=hot, memory=memory, news=News.UP, shown=Shown.CONNECTED)


def _seen_connecting(view: View, entry: Entry, what: Seen) -> Step:
    if what is Seen.UP:
        return _up(view, entry)
    if what in (Seen.STARTING, Seen.NEEDS_PAIRING) and view.memory.pairs(view.now):
        return _waits_for_a_scan(view, entry, what)
    if what is Seen.STARTING:
        in_time = view.now < entry.until - view.rules.grace
        return unchanged(view) if in_time else _failed(view, entry, Trouble.TOO_SLOW)
    return _failed(view, entry, TROUBLES[what])


def _waits_for_a_scan(view: View, entry: Entry, what: Seen) -> Step:
    """The session keeps its slot, and is in use, for as long as its lane goes on looking."""
    now, rules = view.now, view.rules
    kept = replace(entry, until=now + rules.connect + rules.grace, used_until=now + rules.connect + rules.use)
    shown = Shown.SCAN if what is Seen.NEEDS_PAIRING else None
    return Step(hot=view.hot.with_entry(view.account_id, kept), memory=view.memory, shown=shown)


def _up(view: View, entry: Entry) -> Step:
    now, rules = view.now, view.rules
    memory = view.memory.came_up(rules.sticky_budget)
    used_until = now + rules.use if entry.in_use(now) else None
    up = replace(entry, sticky_left=memory.sticky_left).on(Event.CAME_UP, now, rules)
    up = replace(up, used_until=used_until, keep_until=now + rules.idle)
    hot = view.hot.with_entry(view.account_id, up)
    return Step(hot=hot, memory=memory, news=News.UP, shown=Shown.CONNECTED)


def _seen_hot(view: View, entry: Entry, what: Seen) -> Step:
    if what is Seen.UP:
        looked = view.hot.with_entry(view.account_id, entry.looked(view.now, view.rules))
        return Step(hot=looked, memory=view.memory, news=News.UP if entry.doubted else None)
    if what is not Seen.STARTING:
        return _failed(view, entry, TROUBLES[what])
    if view.memory.restarts > 0 and not _was_steady(view, entry):
        return _failed(view, entry, Trouble.RESTARTED)
    again = entry.on(Event.RESTARTED, view.now, view.rules)
    failures = 0 if _was_steady(view, entry) else view.memory.failures
    memory = replace(view.memory, restarts=1, failures=failures, sticky_left=again.sticky_left)
    return Step(hot=view.hot.with_entry(view.account_id, again), memory=memory)


def _failed(view: View, entry: Entry, trouble: Trouble) -> Step:
    leaving = entry.on(Event.FAILED, view.now, view.rules)
    steady = _was_steady(view, entry)
    memory = view.memory.troubled(trouble, view.now, steady=steady, jitter=view.jitter)
    hot = view.hot.not_in_line(view.account_id).with_entry(view.account_id, leaving)
    needs_a_person = trouble is Trouble.NEEDS_PAIRING
    shown = Shown.DISCONNECTED if needs_a_person else None if trouble is Trouble.RESTARTED else Shown.FAILED
    return replace(step(settled(hot, view.now, view.rules), memory), news=News.DOWN, shown=shown)


def logged_out(view: View, what: Seen) -> Step:
    """What the gateway answered to a logout. Unless it was silent, the phone is unlinked and the slot is free."""
    if what is Seen.UNREACHABLE or not view.memory.logout:
        return unchanged(view)
    entry = view.entry
    if entry is not None:
        after(entry.state, Event.LOGGED_OUT)
    memory = view.memory if entry is None else view.memory.ended(entry.sticky_left)
    memory = replace(memory, logout=False)
    memory = memory.troubled(Trouble.NEEDS_PAIRING, view.now, steady=True, jitter=view.jitter)
    hot = view.hot if entry is None else view.hot.without_entry(view.account_id)
    return replace(step(settled(hot, view.now, view.rules), memory), news=News.DOWN, shown=Shown.DISCONNECTED)


def filled(view: View, offset: int, count: int, next_offset: int | None) -> Step:
    """A page of contacts is stored. A page that another holder has counted meanwhile is not counted again."""
    if view.memory.contacts_next != offset:
        return unchanged(view)
    memory = replace(view.memory, contacts_next=next_offset, contacts=view.memory.contacts + count)
    return replace(unchanged(view), memory=memory, shown=memory.shown or Shown.CONNECTED)


def _was_steady(view: View, entry: Entry) -> bool:
    return entry.hot_since is not None and view.now - entry.hot_since >= STEADY


def _seen_stopping(view: View, entry: Entry, what: Seen) -> Step:
    """Whatever state is named after a stop, the order was taken; and where the credentials are refused, it never will
    be."""
    if what is Seen.UNREACHABLE and view.now < entry.until:
        return unchanged(view)
    made = settled(view.hot.without_entry(view.account_id), view.now, view.rules)
    if what is Seen.UNREACHABLE:
        after(entry.state, Event.GIVEN_UP)
        return step(made, view.memory.dropped(entry.sticky_left))
    after(entry.state, Event.STOPPED)
    return step(made, view.memory.ended(entry.sticky_left))
