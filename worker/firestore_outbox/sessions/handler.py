"""The handler of `session` lanes: only a session's own lane starts and stops it.

A turn does what the session's state requires (moves.py) until there is nothing to do for a while. After a crash the
next holder does the same again: starting and stopping twice does no harm.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal, assert_never

from firestore_outbox import log
from firestore_outbox.clock import Clock
from firestore_outbox.lane.holder import Holder
from firestore_outbox.lane.state import Later, More, Nothing, Work
from firestore_outbox.providers.outcome import (
    AuthFailed,
    NotConnected,
    Outcome,
    Postponed,
    Rejected,
    Retryable,
    Sent,
    Throttled,
    Unknown,
)
from firestore_outbox.providers.protocol import SessionState
from firestore_outbox.providers.registry import Providers
from firestore_outbox.sessions.hotset import HotSet
from firestore_outbox.sessions.moves import Cool, Look, Rest, Seen, Start, Stop, cooled, next_move, seen
from firestore_outbox.sessions.requests import View
from firestore_outbox.sessions.states import State

LONGEST_CALL = timedelta(seconds=15)
POLL = timedelta(seconds=1)
"""Between two looks at a session that is starting."""
POLLS_BETWEEN_READS = 5
"""Another account may need the slot meanwhile; the set is read this much less often."""
SECOND_LOOK = timedelta(seconds=3)
"""One answer that did not come is no reason to take a session for lost."""
STOP_AGAIN = timedelta(seconds=10)
ASTRAY_AGAIN = timedelta(minutes=10)
"""Before the next try to stop a session that has no slot and whose gateway does not answer."""


class SessionHandler:
    def __init__(self, hot: HotSet, providers: Providers, clock: Clock) -> None:
        self._hot = hot
        self._providers = providers
        self._clock = clock

    async def run(self, holder: Holder) -> Work:
        return await _Turn(holder, self._hot, self._providers, self._clock).run()


class _Turn:
    def __init__(self, holder: Holder, hot: HotSet, providers: Providers, clock: Clock) -> None:
        self._holder = holder
        self._account_id = holder.ref.key
        self._hot = hot
        self._providers = providers
        self._clock = clock

    async def run(self) -> Work:
        while self._may_go_on():
            view = await self._hot.view(self._account_id)
            move = next_move(view)
            match move:
                case Rest(until=until):
                    return Nothing() if until is None else Later(until)
                case Cool():
                    await self._hot.change(self._account_id, cooled)
                case Start(by=by):
                    await self._connect(view, by)
                case Look():
                    await self._look(view)
                case Stop():
                    if (again := await self._stop(view)) is not None:
                        return Later(again)
                case _:
                    assert_never(move)
        return More()

    def _may_go_on(self) -> bool:
        return self._holder.may_start() and not self._holder.must_yield()

    async def _connect(self, view: View, by: datetime) -> None:
        what = await self._order(view, "start")
        polls = 0
        while what is Seen.STARTING and self._clock() < by and self._may_go_on() and polls < POLLS_BETWEEN_READS:
            await self._holder.wait(self._clock() + POLL)
            what = await self._order(view, "state")
            polls += 1
        await self._found(view, what)

    async def _look(self, view: View) -> None:
        what = await self._order(view, "state")
        if what is Seen.UNREACHABLE:
            await self._holder.wait(self._clock() + SECOND_LOOK)
            what = await self._order(view, "state")
        await self._found(view, what)

    async def _stop(self, view: View) -> datetime | None:
        """When to try again, if it has to be."""
        what = await self._order(view, "stop")
        await self._found(view, what)
        if what is not Seen.UNREACHABLE:
            return None
        return self._clock() + (ASTRAY_AGAIN if view.entry is None else STOP_AGAIN)

    async def _found(self, view: View, what: Seen) -> None:
        of = _state(view)
        log.session_seen(self._account_id, of.value, what.value)
        await self._hot.change(self._account_id, lambda now: seen(now, what, of))

    async def _order(self, view: View, order: Literal["state", "start", "stop"]) -> Seen:
        limit = min(LONGEST_CALL, self._holder.hold.longest_call)
        return _seen(await self._providers.session(view.provider, self._account_id, order, limit=limit))


def _state(view: View) -> State:
    return State.COLD if view.entry is None else view.entry.state


def _seen(answer: SessionState | Outcome) -> Seen:
    match answer:
        case SessionState():
            return SEEN[answer]
        case AuthFailed():
            return Seen.REFUSED
        case Rejected():
            return Seen.BROKEN
        case Retryable() | Throttled() | NotConnected() | Postponed() | Unknown() | Sent():
            return Seen.UNREACHABLE
        case _:
            assert_never(answer)


SEEN: dict[SessionState, Seen] = {
    SessionState.UP: Seen.UP,
    SessionState.STARTING: Seen.STARTING,
    SessionState.DOWN: Seen.DOWN,
    SessionState.BROKEN: Seen.BROKEN,
    SessionState.NEEDS_PAIRING: Seen.NEEDS_PAIRING,
}
