"""What one turn may still send today: the account's daily cap, its warm-up, and its cap on new contacts.

As with the pace, the turn spends from memory what writes of the lane have reserved (health/day_use.py). The block is
filled up with the write that acquires the lane and with every renewal; a turn that has used it up before pays a write.
An account without such a cap pays nothing.

Whether a contact is new is one read of its conversation, before its first claim in a turn. A message to a new contact
for which there is no room waits, and so does the rest of its thread; what stands behind it goes on. Of a run it is
moved to a later day, so that the turns until then do not read it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from firestore_outbox.clock import Clock
from firestore_outbox.health.caps import DayCaps
from firestore_outbox.health.day_use import DayUse, begun, postponed_to, reserved
from firestore_outbox.lane.holder import Holder
from firestore_outbox.lane.pacing import Allowance
from firestore_outbox.lane.state import Lane
from firestore_outbox.messages.line import Line
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode
from firestore_outbox.sending.plan import Defer, Ending, Shut


class DayBudget:
    def __init__(self, holder: Holder, clock: Clock, caps: DayCaps | None, before: DayUse | None) -> None:
        """`before` is the lane's use without what this holder has reserved."""
        self._holder = holder
        self._clock = clock
        self.caps: DayCaps | None = None
        self._mine = before
        """How far this holder has spent; None: the lane has no day yet."""
        self._known: set[str] = set()
        self.new: set[str] = set()
        """Threads whose contact is new."""
        self.follow(caps)

    def follow(self, caps: DayCaps | None) -> None:
        """The caps at the beginning, and whenever the account was read again."""
        self.caps = caps
        if self._mine is None and caps is not None:
            self._mine = begun(None, caps, self._clock())

    # --- messages

    async def fill_up(self, now: datetime, waiting: int) -> None:
        """Reserve more, if there is no room for one more; `waiting` are claimed and not started."""
        room = self._room(now)
        if room is not None and room <= waiting and self._holder.may_start():
            await self._reserve()

    def within(self, allowed: Allowance, now: datetime, waiting: int) -> Allowance:
        """What the day leaves of that."""
        room = self._room(now)
        if self.caps is None or room is None:
            return allowed
        sends = max(0, room - waiting)
        if sends or not self._is_used_up(self.caps, now):
            return replace(allowed, sends=sends if allowed.sends is None else min(allowed.sends, sends))
        next_day = self.caps.after(begun(self._use, self.caps, now).day)
        return replace(allowed, sends=0, next_at=max(allowed.next_at, next_day))

    def spend(self, now: datetime) -> bool:
        """Takes one send from the day at the moment it starts; False if there is none left."""
        room = self._room(now)
        if room is None:
            return True
        if room < 1:
            return False
        spent = self._spent
        self._mine = replace(spent, sends=spent.sends + 1)
        return True

    # --- new contacts

    async def ask(self, claims: Sequence[OutboxMessage], line: Line) -> bool:
        """Learn which contacts are new. Returns whether anything was learned: then the plan is made again."""
        if self.caps is None or self.caps.new_contacts is None:
            return False
        threads = dict.fromkeys(message.thread_id for message in claims)
        unknown = [one for one in threads if one not in self._known and one not in self.new]
        if not unknown:
            return False
        found = await asyncio.gather(*(line.has_spoken(thread_id) for thread_id in unknown))
        self._known.update(thread_id for thread_id, has_spoken in zip(unknown, found, strict=True) if has_spoken)
        self.new.update(thread_id for thread_id in unknown if thread_id not in self._known)
        return True

    async def admitted(self, claims: Sequence[OutboxMessage], now: datetime) -> tuple[OutboxMessage, ...]:
        """Of claims whose contacts are known or new, those for which there is room. Their units are spent."""
        if self.caps is None or self.caps.new_contacts is None:
            return tuple(claims)
        wanted = sum(1 for message in claims if message.thread_id in self.new)
        if wanted and self._contact_room(now) < wanted:
            await self._reserve()
        admitted = []
        for message in claims:
            if message.thread_id in self.new:
                if self._contact_room(now) < 1:
                    continue
                spent = self._spent
                self._mine = replace(spent, contacts=spent.contacts + 1)
                self.new.discard(message.thread_id)
                self._known.add(message.thread_id)
            admitted.append(message)
        return tuple(admitted)

    def shut(self, now: datetime) -> Shut | None:
        """Threads with new contacts for which the day has no room; None: there are none."""
        if self.caps is None or self.caps.new_contacts is None or not self.new or self._use is None:
            return None
        if self._use.day < self.caps.day_of(now) or self._spent.contacts < self.caps.new_contacts:
            return None
        until = self.caps.after(self._use.day)
        return Shut(
            threads=self.new,
            until=until,
            to=partial(postponed_to, self._spent, self.caps),
            error=new_contact_capped(self.caps.new_contacts, now),
        )

    def note_postponed(self, endings: Sequence[Ending]) -> None:
        """These were planned, and are being written."""
        moved = sum(1 for one in endings if isinstance(one, Defer) and _is_capped(one.message))
        if moved:
            spent = self._spent
            self._mine = replace(spent, postponed=spent.postponed + moved)

    # --- the lane document

    def extended(self, lane: Lane, now: datetime) -> Lane:
        """The lane with a full block. Unchanged without a cap."""
        if self.caps is None:
            return lane
        use = reserved(lane.day_use, self._mine, self.caps, now)
        mine = self._mine
        return replace(
            lane, day_use=use if mine is None or mine.day != use.day else replace(use, postponed=mine.postponed)
        )

    def tidied(self, lane: Lane) -> Lane:
        """The lane without what was reserved and not used."""
        if self.caps is None or lane.day_use is None:
            return lane
        return replace(lane, day_use=self._spent_of(lane.day_use))

    async def _reserve(self) -> None:
        await self._holder.write(lambda lane: self.extended(lane, self._clock()))

    @property
    def _use(self) -> DayUse | None:
        return self._holder.lane.day_use

    @property
    def _spent(self) -> DayUse:
        assert self._use is not None, "there is room, so a block is reserved"
        return self._spent_of(self._use)

    def _spent_of(self, use: DayUse) -> DayUse:
        """Of another day than this holder has spent from, nothing is spent: it was begun by this holder."""
        if self._mine is not None and self._mine.day == use.day:
            return self._mine
        return replace(use, sends=0, contacts=0)

    def _is_used_up(self, caps: DayCaps, now: datetime) -> bool:
        """Whether nothing more can be reserved. What is reserved may still be in use by claims that wait to start."""
        limit = caps.sends_on(begun(self._use, caps, now).day)
        is_begun = self._use is not None and self._use.day >= caps.day_of(now)
        return is_begun and self._use is not None and limit is not None and self._use.sends >= limit

    def _room(self, now: datetime) -> int | None:
        """None: the day has no limit."""
        if self.caps is None:
            return None
        limit = self.caps.sends_on(begun(self._use, self.caps, now).day)
        if limit is None:
            return None
        if self._use is None or self._use.day < self.caps.day_of(now):
            return 0
        return min(self._use.sends, limit) - self._spent.sends

    def _contact_room(self, now: datetime) -> int:
        assert self.caps is not None, "the caller has asked"
        assert self.caps.new_contacts is not None, "the caller has asked"
        if self._use is None or self._use.day < self.caps.day_of(now):
            return 0
        return min(self._use.contacts, self.caps.new_contacts) - self._spent.contacts


def _is_capped(message: OutboxMessage) -> bool:
    return message.last_error is not None and message.last_error.code is ErrorCode.NEW_CONTACT_CAPPED


def new_contact_capped(cap: int, at: datetime) -> DeliveryError:
    sentence = f"the account writes to {cap:,} new contacts a day, and its recipient is one"
    return DeliveryError(code=ErrorCode.NEW_CONTACT_CAPPED, message=sentence, retryable=True, at=at)
