"""A session of the hot set: its states, and the entry that stands for it. Theory in docs/sessions.md.

The stored set is authoritative: it has an entry for each session that is up or on its way up or down. slots.py decides
which accounts get a slot, requests.py what other lanes may ask for, and moves.py what a session's own lane does.

    state           event                 becomes
    cold            granted               connecting
    cold            adopted               hot
    connecting      came_up               hot
    connecting      failed, preempted     disconnecting
    hot             restarted             connecting
    hot             failed, cooled,       disconnecting
                    preempted
    disconnecting   stopped, given_up     cold
    any             logged_out            cold

Cold means no entry. A crash leaves an entry with a time (`until`), after which another account may take its slot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum


class State(StrEnum):
    COLD = "cold"
    CONNECTING = "connecting"
    HOT = "hot"
    DISCONNECTING = "disconnecting"


class Event(StrEnum):
    GRANTED = "granted"
    ADOPTED = "adopted"
    """A person started it, and a slot is free."""
    CAME_UP = "came_up"
    FAILED = "failed"
    RESTARTED = "restarted"
    """It fell back to starting by itself."""
    COOLED = "cooled"
    """No lane needs it."""
    PREEMPTED = "preempted"
    """Another account needs the slot more."""
    STOPPED = "stopped"
    GIVEN_UP = "given_up"
    """It could not be stopped in time."""
    LOGGED_OUT = "logged_out"
    """A person unlinked the phone."""


_S, _E = State, Event

TRANSITIONS: Mapping[tuple[State, Event], State] = {
    (_S.COLD, _E.GRANTED): _S.CONNECTING,
    (_S.COLD, _E.ADOPTED): _S.HOT,
    (_S.CONNECTING, _E.CAME_UP): _S.HOT,
    (_S.CONNECTING, _E.FAILED): _S.DISCONNECTING,
    (_S.CONNECTING, _E.PREEMPTED): _S.DISCONNECTING,
    (_S.HOT, _E.RESTARTED): _S.CONNECTING,
    (_S.HOT, _E.FAILED): _S.DISCONNECTING,
    (_S.HOT, _E.COOLED): _S.DISCONNECTING,
    (_S.HOT, _E.PREEMPTED): _S.DISCONNECTING,
    (_S.DISCONNECTING, _E.STOPPED): _S.COLD,
    (_S.DISCONNECTING, _E.GIVEN_UP): _S.COLD,
    (_S.CONNECTING, _E.LOGGED_OUT): _S.COLD,
    (_S.HOT, _E.LOGGED_OUT): _S.COLD,
    (_S.DISCONNECTING, _E.LOGGED_OUT): _S.COLD,
}


class IllegalTransition(Exception):
    """A pair that is not in the table: an error in the program."""


def after(state: State, event: Event) -> State:
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise IllegalTransition(f"{event} while {state}") from None


_NONE = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How many, and how long. Constant."""

    slots: int = 5
    """Of one shard; 0 while it holds none."""
    sticky_slots: int | None = None
    """How many of them may be sticky; None: all except one."""
    sticky_budget: timedelta = timedelta(hours=24)
    """From the first login on; none switches stickiness off."""
    use: timedelta = timedelta(seconds=60)
    """How long a session is in use after it was wanted. Longer than two provider calls."""
    idle: timedelta = timedelta(seconds=60)
    """How long a session is kept warm without use."""
    keep_ahead: timedelta = timedelta(minutes=2)
    """A session is kept warm for a message that comes within this."""
    turn: timedelta = timedelta(minutes=2)
    """How long an account may use its session while others wait."""
    connect: timedelta = timedelta(seconds=60)
    """How long a connection may take."""
    look_every: timedelta = timedelta(minutes=5)
    """Between two looks at a session that is hot."""
    grace: timedelta = timedelta(seconds=60)
    """How late a session's lane may be before another account may take its slot."""
    stop: timedelta = timedelta(minutes=2)
    """How long it is tried to stop a session."""
    ask_again: timedelta = timedelta(minutes=2)
    """When an account in line asks again, in case its wake is lost."""
    longest_line: int = 100
    """The most accounts in line at once; as many again may wait for a seat."""

    def __post_init__(self) -> None:
        if not 0 <= self.seats <= self.slots:
            raise ValueError("a hot set has not more seats than slots")

    @property
    def seats(self) -> int:
        return max(0, self.slots - 1) if self.sticky_slots is None else self.sticky_slots


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A session that is not cold."""

    provider: str
    """Set with the grant."""
    state: State
    """Changes with each event; never cold."""
    until: datetime
    """By when its own lane must have touched it. Moves with each change of state and each look."""
    look_at: datetime
    """When its lane looks at it next. Moves with each look."""
    used_until: datetime | None = None
    """In use until then: its slot may not be taken away. Moves with `want`, cleared by `done`."""
    keep_until: datetime | None = None
    """Kept warm until then. Set by `done`."""
    turn_since: datetime
    """Since when its account has had it. Set with the grant and when it comes up."""
    hot_since: datetime | None = None
    """Set while it is hot: the budget burns from here."""
    sticky_left: timedelta | None = None
    """What was left of the budget at `hot_since`. Settled whenever it stops being hot. None: not known here before it
    is hot, but remembered with the account."""
    sticky: bool = False
    """Has a seat. Set by `done`, or with the grant."""
    doubted: bool = False
    """A report says that it is not up. Cleared by a look."""

    def in_use(self, now: datetime) -> bool:
        return self.used_until is not None and self.used_until > now

    def remaining(self, now: datetime) -> timedelta:
        """Of the sticky budget."""
        if self.sticky_left is None:
            return _NONE
        burned = _NONE if self.hot_since is None else max(now - self.hot_since, _NONE)
        return max(self.sticky_left - burned, _NONE)

    def kept_until(self, now: datetime) -> datetime:
        """Until when there is a reason to keep it, as things stand; not after `now` if there is none."""
        reasons = [self.used_until or now, self.keep_until or now]
        if self.sticky:
            reasons.append(now + self.remaining(now))
        return max(reasons)

    def on(self, event: Event, now: datetime, rules: Rules) -> Entry:
        """After an event that does not end it."""
        state = after(self.state, event)
        left = None if self.sticky_left is None else self.remaining(now)
        settled = replace(self, state=state, sticky_left=left, hot_since=None, doubted=False)
        match state:
            case State.CONNECTING:
                return replace(settled, until=now + rules.connect + rules.grace, look_at=now)
            case State.HOT:
                return replace(settled, hot_since=now, turn_since=now).looked(now, rules)
            case State.DISCONNECTING:
                gone = replace(settled, used_until=None, keep_until=None, sticky=False)
                return replace(gone, until=now + rules.stop, look_at=now)
            case State.COLD:
                raise IllegalTransition(f"{event} while {self.state} ends the entry")

    def looked(self, now: datetime, rules: Rules) -> Entry:
        """It was found to be up."""
        look_at = now + rules.look_every
        return replace(self, look_at=look_at, until=look_at + rules.grace, doubted=False)


def granted(provider: str, sticky_left: timedelta | None, now: datetime, rules: Rules, *, sticky: bool) -> Entry:
    """For a message that is due, or for its seat alone."""
    return Entry(
        provider=provider,
        state=after(State.COLD, Event.GRANTED),
        until=now + rules.connect + rules.grace,
        look_at=now,
        used_until=None if sticky else now + rules.connect + rules.use,
        turn_since=now,
        sticky_left=sticky_left,
        sticky=sticky,
    )


def adopted(provider: str, sticky_left: timedelta, now: datetime, rules: Rules, *, sticky: bool) -> Entry:
    """For a session that is up already."""
    entry = Entry(
        provider=provider,
        state=after(State.COLD, Event.ADOPTED),
        until=now,
        look_at=now,
        keep_until=now + rules.idle,
        turn_since=now,
        hot_since=now,
        sticky_left=sticky_left,
        sticky=sticky,
    )
    return entry.looked(now, rules)
