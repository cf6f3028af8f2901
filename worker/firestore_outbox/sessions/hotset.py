"""Requests to the hot set, carried out: read, decide, write by compare-and-set, and wake the lanes concerned.

A wake comes after the commit. A crash in between leaves an entry whose lane was not woken; the next `want` of its
account wakes the lane again, and after the entry's time another account may take its slot.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

from firestore_outbox import log, metrics
from firestore_outbox.clock import Clock
from firestore_outbox.errors import Unavailable
from firestore_outbox.firestore.compare_and_set import AGAIN, Again, Contended
from firestore_outbox.lane.ref import session_lane
from firestore_outbox.lane.wake import Waker
from firestore_outbox.providers.protocol import Contact
from firestore_outbox.sessions.listing import counted
from firestore_outbox.sessions.memory import Shown
from firestore_outbox.sessions.requests import (
    Hot,
    News,
    NotYet,
    Step,
    View,
    connect,
    disconnect,
    done,
    doubt,
    reported_up,
    want,
)
from firestore_outbox.sessions.shares import balanced, unbalanced, usable
from firestore_outbox.sessions.states import Rules
from firestore_outbox.sessions.store import SessionStore, StoredSession

PAIRING = timedelta(minutes=5)
"""How long a person may take to scan a code. Gateways show new codes for two to three minutes."""
CONTENDED = timedelta(seconds=5)
"""When to ask again if others were faster each time; up to twice as long."""

OnNews = Callable[[str, News], Awaitable[object]]
"""Gets the account whose session came up or failed: lanes that wait for it ask again."""


class HotSet:
    def __init__(
        self, store: SessionStore, waker: Waker, *, rules: Rules, clock: Clock, random: Random, on_news: OnNews
    ) -> None:
        self._store = store
        self._waker = waker
        self._clock = clock
        self._random = random
        self._on_news = on_news
        self.rules = rules

    # --- the outbox

    async def want(self, account_id: str, provider: str) -> Hot | NotYet:
        """The account has something to send. While it sends, it asks again when half of the time has passed."""
        step = await self.change(account_id, want, provider=provider)
        if step is None or step.answer is None:
            return NotYet(self._clock() + CONTENDED * (1 + self._random.random()))
        return step.answer

    async def done(self, account_id: str, provider: str, next_at: datetime | None) -> None:
        """Nothing of the account is in flight, and nothing will be before `next_at`."""
        with suppress(Unavailable):  # its use ends by itself
            await self.change(account_id, lambda view: done(view, next_at), provider=provider)

    async def doubt(self, account_id: str, provider: str) -> None:
        """A send found the session not to be up."""
        with suppress(Unavailable):  # the next send finds the same
            await self.change(account_id, doubt, provider=provider)

    # --- people

    async def connect(self, account_id: str, provider: str) -> Shown | None:
        """Link the account's phone: its lane makes the session and shows its code. None: others wrote each time."""
        step = await self.change(account_id, lambda view: connect(view, PAIRING), provider=provider)
        return None if step is None else step.memory.shown

    async def disconnect(self, account_id: str, provider: str) -> Shown | None:
        step = await self.change(account_id, disconnect, provider=provider)
        return None if step is None else step.memory.shown

    async def add_contacts(self, account_id: str, contacts: Sequence[Contact]) -> None:
        await self._store.add_contacts(account_id, contacts)

    async def show_code(self, account_id: str, code: str, expires_at: datetime) -> None:
        await self._store.show_code(account_id, code, expires_at)

    # --- webhooks

    async def reported(self, account_id: str, provider: str, *, connected: bool) -> None:
        """What a provider says of a session that came up or went down. It may be old news, so it only makes us look."""
        await self.change(account_id, reported_up if connected else doubt, provider=provider)

    # --- for all of them, and for the session's lane

    async def view(self, account_id: str, provider: str | None = None) -> View:
        return self._view(account_id, await self._read(account_id), provider)

    async def change(
        self, account_id: str, decide: Callable[[View], Step], *, provider: str | None = None
    ) -> Step | None:
        """None: others were faster each time, and nothing was changed."""

        async def attempt() -> tuple[StoredSession, Step] | Again:
            stored = await self._read(account_id)
            view = self._view(account_id, stored, provider)
            step = decide(view)
            if step.shown is not None and step.shown is not stored.memory.shown:
                step = replace(step, memory=replace(step.memory, shown=step.shown))
            if step.memory != stored.memory:
                step = replace(step, memory=replace(step.memory, provider=view.provider))
            return (stored, step) if await self._store.write(account_id, stored, step) else AGAIN

        try:
            stored, step = await self._store.compare_and_set(attempt)
        except Contended:
            log.hot_set_contended(account_id)
            return None
        metrics.sessions(stored.shard.name, counted(step.hot))
        await self._follow(account_id, stored, step)
        return step

    async def _read(self, account_id: str) -> StoredSession:
        """The account's memory and its shard, which first gets the slots that it lacks, if they are free."""
        stored = await self._store.read(account_id)
        shard = stored.shard
        for number in unbalanced(shard.hot, shard.number, shard.layout):
            first, other = await self._store.pair(shard.layout, number)
            made = balanced(first.hot, other.hot, number, shard.layout, self._clock(), self.rules)
            if (made.first, made.other) == (first.hot, other.hot) or not await self._store.write_pair(
                first, other, made
            ):
                continue  # no slot is free, or another worker moves them: the next request tries again
            for account in sorted(made.wake):
                await self._waker.wake(session_lane(account))
            stored = await self._store.read(account_id)
        return stored

    def _view(self, account_id: str, stored: StoredSession, provider: str | None) -> View:
        entry = stored.hot.entries.get(account_id)
        layout, number = stored.shard.layout, stored.shard.number
        known = stored.memory.provider if entry is None else entry.provider
        return View(
            hot=stored.hot,
            memory=stored.memory,
            account_id=account_id,
            provider=provider or known,
            now=self._clock(),
            rules=layout.rules(self.rules, number, usable(stored.hot, number, layout)),
            jitter=self._random.random(),
        )

    async def _follow(self, account_id: str, stored: StoredSession, step: Step) -> None:
        for other in sorted(step.wake):
            await self._waker.wake(session_lane(other))
        for other in step.dropped:
            log.session_not_stopped(other)
        if step.memory.trouble is not None and step.memory.retry_at != stored.memory.retry_at:
            log.session_troubled(account_id, step.memory.trouble.value, step.memory.retry_at)
        if step.news is not None:
            await self._on_news(account_id, step.news)
