"""The handler of `session` lanes: only a session's own lane starts and stops it.

A turn does what the session's state requires (moves.py) until there is nothing to do for a while. After a crash the
next holder does the same again: starting and stopping twice does no harm.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal, assert_never
from urllib.parse import quote

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
from firestore_outbox.providers.protocol import ContactsPage, PairingCode, SessionState
from firestore_outbox.providers.registry import Providers
from firestore_outbox.sessions.hotset import HotSet
from firestore_outbox.sessions.memory import Shown
from firestore_outbox.sessions.moves import (
    Cool,
    Fill,
    Logout,
    Look,
    Pair,
    Rest,
    Seen,
    Start,
    Stop,
    cooled,
    filled,
    logged_out,
    next_move,
    seen,
)
from firestore_outbox.sessions.requests import View
from firestore_outbox.sessions.states import State

LONGEST_CALL = timedelta(seconds=15)
POLL = timedelta(seconds=1)
"""Between two looks at a session that is starting."""
POLLS_BETWEEN_READS = 5
"""Another account may need the slot meanwhile; the set is read this much less often."""
CODE_POLL = timedelta(seconds=2)
"""Between two looks at a session that shows a code."""
CODE_LASTS = timedelta(seconds=60)
"""What a code is good for at most. A gateway replaces it every 20 seconds, and the first one after 60."""
CODE_POLLS = 10
"""Looks at a code before the set is written again: it must hear of the lane within a minute."""
CONTACTS_AGAIN = timedelta(seconds=30)
"""Before a page of contacts that the gateway did not give is asked for again."""
SECOND_LOOK = timedelta(seconds=3)
"""One answer that did not come is no reason to take a session for lost."""
STOP_AGAIN = timedelta(seconds=10)
ASTRAY_AGAIN = timedelta(minutes=10)
"""Before the next try to stop a session that has no slot and whose gateway does not answer."""


class SessionHandler:
    def __init__(self, hot: HotSet, providers: Providers, clock: Clock, *, webhook_url: str = "") -> None:
        """`webhook_url` is where gateways reach the function `provider_webhook`; empty: no session is made."""
        self._hot = hot
        self._providers = providers
        self._clock = clock
        self._webhook_url = webhook_url

    async def run(self, holder: Holder) -> Work:
        return await _Turn(holder, self._hot, self._providers, self._clock, self._webhook_url).run()


class _Turn:
    def __init__(self, holder: Holder, hot: HotSet, providers: Providers, clock: Clock, webhook_url: str) -> None:
        self._webhook_url = webhook_url
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
                case Pair():
                    await self._pair(view)
                case Logout():
                    if (again := await self._logout(view)) is not None:
                        return Later(again)
                case Fill(offset=offset):
                    if (again := await self._fill(view, offset)) is not None:
                        return Later(again)
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

    async def _pair(self, view: View) -> None:
        """As `_connect`, with a session that is made if there is none, and whose code is shown while it waits."""
        # Once its code is shown, the session is as it should be: to correct it again would restart it.
        is_made = view.memory.shown is Shown.SCAN
        what = Seen.NEEDS_PAIRING if is_made else _seen(await self._ask_pairing(view, "create"))
        polls, shown = 0, ""
        while what in (Seen.STARTING, Seen.NEEDS_PAIRING) and self._may_go_on() and polls < CODE_POLLS:
            answer = await self._ask_pairing(view, "code")
            what = _seen(answer)
            if isinstance(answer, PairingCode) and not is_made:
                await self._found(view, what)
                is_made = True
            if isinstance(answer, PairingCode) and answer.code != shown:
                shown = answer.code
                await self._hot.show_code(self._account_id, shown, self._clock() + CODE_LASTS)
            if what in (Seen.STARTING, Seen.NEEDS_PAIRING):
                await self._holder.wait(self._clock() + CODE_POLL)
            polls += 1
        await self._found(view, what)

    async def _fill(self, view: View, offset: int) -> datetime | None:
        """The contacts first, then the mark: a page whose holder dies in between is stored again. Returns when to try
        again, if the gateway did not give the page."""
        limit = min(LONGEST_CALL, self._holder.hold.longest_call)
        page = await self._providers.contacts(view.provider, self._account_id, offset=offset, limit=limit)
        if isinstance(page, Rejected | AuthFailed):
            page = ContactsPage(contacts=(), next_offset=None)  # its edition or engine does not tell them
        if not isinstance(page, ContactsPage):
            return self._clock() + CONTACTS_AGAIN
        if page.contacts:
            await self._hot.add_contacts(self._account_id, page.contacts)
        count = len(page.contacts)
        await self._hot.change(self._account_id, lambda now: filled(now, offset, count, page.next_offset))
        return None

    async def _logout(self, view: View) -> datetime | None:
        """When to try again, if the gateway did not answer."""
        what = _seen(await self._ask_pairing(view, "logout"))
        log.session_seen(self._account_id, _state(view).value, what.value)
        await self._hot.change(self._account_id, lambda now: logged_out(now, what))
        return self._clock() + STOP_AGAIN if what is Seen.UNREACHABLE else None

    async def _ask_pairing(
        self, view: View, order: Literal["create", "code", "logout"]
    ) -> PairingCode | SessionState | Outcome:
        limit = min(LONGEST_CALL, self._holder.hold.longest_call)
        webhook = f"{self._webhook_url.rstrip('/')}/{view.provider}/{quote(self._account_id, safe='')}"
        return await self._providers.pair(view.provider, self._account_id, order, webhook=webhook, limit=limit)

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


def _seen(answer: PairingCode | SessionState | Outcome) -> Seen:
    match answer:
        case PairingCode():
            return Seen.NEEDS_PAIRING
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
