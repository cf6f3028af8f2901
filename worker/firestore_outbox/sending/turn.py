"""One turn of an account's lane: the main loop of the product.

A turn reads what is due, settles what earlier holders left in doubt, claims what can start now, sends it and completes
it, until nothing can go soon. For what comes later the lane is released, and a task wakes it at that time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never

from firestore_outbox import log, metrics
from firestore_outbox.accounts.account import Account
from firestore_outbox.health.day_use import DayUse
from firestore_outbox.lane.hold_room import HoldRoom
from firestore_outbox.lane.holder import Holder
from firestore_outbox.lane.pacing import Allowance
from firestore_outbox.lane.state import Lane, Later, More, Nothing, Work
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.sending.account_in_use import AccountInUse
from firestore_outbox.sending.ahead import Ahead
from firestore_outbox.sending.attempts import Attempts
from firestore_outbox.sending.candidates import Candidates
from firestore_outbox.sending.complete import Completer
from firestore_outbox.sending.day_budget import DayBudget
from firestore_outbox.sending.holds import TurnHolds
from firestore_outbox.sending.order import named_by_elapsed
from firestore_outbox.sending.outbox import Outbox
from firestore_outbox.sending.pace import LONGEST_LINE, Pace
from firestore_outbox.sending.plan import Plan, plan
from firestore_outbox.sending.quota import Admitted, AfterCalls, LookAgain, Over, Quota
from firestore_outbox.sending.reader import LONGEST_LOOK, Reader
from firestore_outbox.sending.recover import Recovery
from firestore_outbox.sending.reservation import Reserved
from firestore_outbox.sending.turn_order import TurnOrder
from firestore_outbox.sessions.live import LiveSession

SOON = timedelta(seconds=5)
"""The turn waits for what comes due within this. For anything later it releases the lane."""
RELEASE_COST = timedelta(seconds=1)
"""The turn waits for a message known to come due within this: a release and a new acquire would take as long."""
LEAST_WAIT = timedelta(milliseconds=20)
"""Between two plans of the same documents when nothing is in flight."""


class Turn:
    def __init__(
        self, outbox: Outbox, holder: Holder, account: Account, reserved: Reserved | None, day_before: DayUse | None
    ) -> None:
        """`reserved` is what the acquiring write reserved of the account's pace; None: nothing yet. `day_before` is the
        lane's use of the day before that write."""
        clock = outbox.clock
        self._outbox = outbox
        self._holder = holder
        self._day = DayBudget(holder, clock, account.caps, day_before)
        self._pace = Pace(holder, outbox.shared, clock, reserved, self._day)
        self._account = AccountInUse(outbox, account)
        self._live = LiveSession(outbox.hot, outbox.providers, clock)
        self._candidates = Candidates(outbox.messages, holder.ref, outbox.settings.overlap, clock)
        self._reader = Reader(self._candidates, holder, outbox.settings)
        completer = Completer(
            holder,
            messages=outbox.messages,
            accounts=outbox.accounts,
            shared=outbox.shared,
            throttle_app=lambda until: outbox.app_throttles.pause(self._account.now.provider, until),
            clock=clock,
        )
        self._holds = TurnHolds(completer, clock)
        self._recovery = Recovery(outbox.messages, self._candidates, completer, clock)
        self._attempts = Attempts(
            outbox, holder, self._account, self._candidates, completer, self._pace, self._live, self._holds
        )
        self._order = TurnOrder(holder.lane, outbox.settings.urgent_per_minute)
        self._ahead = Ahead(
            holder,
            outbox.messages,
            outbox.line,
            self._candidates,
            page=outbox.settings.claim_page,
            read_page=self._read_more,
            in_flight=self._attempts.request_ids,
            expects_urgent=self._order.expects_urgent,
        )
        self._quota = Quota(outbox.counts, outbox.plans)
        self._throttled_until: datetime | None = None
        """Set when the provider throttles the whole app. The release keeps it on the lane."""
        holder.tidy_with(self._released)

    async def run(self) -> Work:
        try:
            await self._pace.follow(self._account.now.cap, self._account.now.caps)
            work = await self._loop()
        finally:
            await self._attempts.ended()
        self._attempts.raise_failure()
        await self._live.done(self._account.now, work)
        return work

    async def _loop(self) -> Work:
        while self._attempts.failure is None:
            if not self._holder.may_start() or self._holder.must_yield():
                return More()
            if (unusable := await self._account.refresh(self._pace)) is not None:
                return unusable
            now = self._outbox.clock()
            if await self._ahead.serve(now, self._reader.due_by(now)):
                continue
            await self._candidates.read_named(named_by_elapsed(self._lane().holds, now), self._attempts.request_ids())
            if self._candidates.has_bulk and not self._candidates.has_page:
                await self._read_more(now)  # what goes ahead of retried bulk messages may wait there
                continue
            planned = await self._plan(now)
            self._holds.note_void(planned, self._holder.lane, self._attempts.in_flight)
            if planned.endings or planned.settle:
                self._day.note_postponed(planned.endings)
                await self._recovery.end(planned.endings)
                await self._recovery.doubts(planned.settle, self._account.judge)
            elif planned.claims:
                if (not_before := await self._not_before()) is not None:
                    return Later(not_before)
                if (later := await self._claim(planned, now)) is not None:
                    return later
            elif planned.is_crowded and self._holds.has_ended(self._holder.lane):
                log.lane_crowded(self._holder.ref, self._holder.account_id, len(self._holder.lane.holds))
                await self._holder.write(self._holds.without_ended)
            elif not self._candidates.exhausted and self._reader.could_use_more(planned):
                await self._read_more(now)
            elif self._attempts.in_flight or self._comes_soon(planned, now):
                await self._wait(planned, now)
            elif (rest := await self._rest(planned, now)) is not None:
                return rest
        return More()

    # --- the steps

    async def _plan(self, now: datetime) -> Plan:
        own = await self._pace.allowed(now)
        planned = self._planned(own, now)
        if not planned.claims or planned.endings or planned.settle:
            return planned
        allowed = await self._pace.allowed_by_all(len(planned.claims), own, now)
        # Planned anew after a wait for the shared cap: what was in flight may have come back to the queue meanwhile.
        return planned if allowed is own else self._planned(allowed, now)

    def _planned(self, allowed: Allowance, now: datetime, only: Callable[[OutboxMessage], bool] | None = None) -> Plan:
        """`only`: the messages that are looked at; None: all."""
        in_flight = self._attempts.in_flight
        candidates = self._candidates.in_order()
        if only is not None:
            candidates = [one for one in candidates if isinstance(one, OutboxMessage) and only(one)]
        lane = self._lane()
        return plan(
            self._order.ranked(candidates, self._account.now.cap, lane, in_flight.keys(), now),
            lane=lane,
            account=self._account.now,
            in_flight=in_flight.keys(),
            allowed=allowed,
            room=HoldRoom(self._holder.lane.holds, in_flight, room_bytes=self._outbox.hold_room_bytes),
            now=now,
            shut=self._day.shut(now),
        )

    async def _claim(self, planned: Plan, now: datetime) -> Work | None:
        """Claim what the account's plan admits. Returns what is left to do if the turn ends here."""
        if await self._day.ask(planned.claims, self._outbox.line):
            return None  # the plan is made again, with what is known now
        account, has_calls = self._account.now, bool(self._attempts.in_flight)
        admitted = await self._quota.admit(account, planned.claims, now, has_calls=has_calls)
        match admitted:
            case Admitted(claims=claims):
                claims = await self._day.admitted(claims, now)
                self._order.claimed(claims, now)
                if claims:
                    await self._attempts.start(replace(planned, claims=claims))
            case AfterCalls():
                await self._holder.wait(None)
            case Over(endings=endings):
                # The plan may have been raised since the account was read, and a skip is final.
                self._account.expire()
                if (unusable := await self._account.refresh(self._pace)) is not None:
                    return unusable
                if self._account.now.plan == account.plan:
                    await self._recovery.end(endings)
            case LookAgain() if self._candidates.read_at is None:
                await self._read_more(now)  # what an earlier holder left in flight is settled, and frees its unit
            case LookAgain(at=at):
                return await self._go_on_with_doubts(planned, at, now)
            case _:
                assert_never(admitted)
        return None

    async def _go_on_with_doubts(self, planned: Plan, at: datetime, now: datetime) -> Later | None:
        """Messages in doubt hold the last units. They may stand behind others, for which there is no room: they go on
        first, since nothing else can."""
        allowed = Allowance(sends=len(planned.claims), next_at=now)
        doubted = self._planned(allowed, now, only=lambda message: message.maybe_sent)
        if doubted.settle:
            await self._recovery.doubts(doubted.settle, self._account.judge)
        elif doubted.claims:
            await self._attempts.start(doubted)
        else:
            return Later(at)
        return None

    async def _not_before(self) -> datetime | None:
        """When the account may call its provider; None: now."""
        self._throttled_until = await self._outbox.app_throttles.not_before(self._account.now.provider)
        return self._throttled_until or await self._live.not_before(self._account.now)

    async def _read_more(self, now: datetime) -> None:
        new = await self._reader.read(now, self._account.now.cap, self._pace.rate_factor, self._attempts.request_ids())
        await self._recovery.abandoned(
            self._holder.ref.key,
            self._holder.started_at,
            self._account.judge,
            in_doubt=self._holder.lane.is_in_doubt(now),
            is_new_page=bool(new),
        )

    def _comes_soon(self, planned: Plan, now: datetime) -> bool:
        patience = LONGEST_LINE if self._pace.is_in_line(now) else SOON
        return planned.next_at is not None and planned.next_at - now <= patience

    async def _wait(self, planned: Plan, now: datetime) -> None:
        """Wait for a call to end or a time to come.

        While more could start, the turn looks for new documents: a wake leaves only a mark on the lane, and neither a
        slow provider nor a retried message may delay other messages."""
        times, in_flight = [], self._attempts.in_flight
        if planned.next_at is not None and (planned.next_at > now or not in_flight):
            times.append(max(planned.next_at, now + LEAST_WAIT))
        if (read_at := self._ahead.look_at(now, planned.next_at)) is not None:
            if read_at <= now:
                await self._ahead.look(now)
                return
            times.append(read_at)
        if planned.startable > 0 and (look_at := self._reader.look_at) is not None:
            if look_at <= now:
                self._candidates.look_again()
                return
            times.append(look_at)
        elif not in_flight and planned.next_at is not None and not self._ahead.has_just_looked(now):
            metrics.pace_wait((planned.next_at - now).total_seconds())
        await self._holder.wait(min(times, default=None))

    async def _rest(self, planned: Plan, now: datetime) -> Work | None:
        """Nothing can go soon: find the next time at which something can. None: something came due meanwhile."""
        later = await self._outbox.messages.next_due(self._holder.ref.key, self._candidates.due_by or now)
        has_come = later is not None and later.at <= now
        if later is not None and has_come and self._candidates.exhausted and self._reader.could_use_more(planned):
            if (early := later.at - self._reader.due_by(now)) > timedelta(0):  # our clock is ahead of the database's
                await self._holder.wait(now + min(early, LONGEST_LOOK))
            self._candidates.look_again()
            return None
        await self._attempts.report_dry_runs(except_for=None if later is None else later.run_id)
        next_due = None if later is None or has_come else later.at  # what has come goes with the others, at next_at
        if next_due is not None and next_due - now <= RELEASE_COST and self._reader.could_use_more(planned):
            await self._holder.wait(next_due)
            self._candidates.look_again()
            return None
        times = [at for at in (planned.next_at, next_due) if at is not None]
        return Later(min(times)) if times else Nothing()  # a message that waits for a person: the person wakes the lane

    # --- the lane document

    def _lane(self) -> Lane:
        """The lane with what this turn knows and has not written."""
        return self._pace.on(self._holds.known(self._holder.lane))

    def _released(self, lane: Lane) -> Lane:
        """The lane as the release writes it: unused pace given back, the present rate, ended holds removed, whose turn
        it is next."""
        if self._throttled_until is not None:
            lane = lane.held_back(until=self._throttled_until)
        return self._pace.tidied(self._ahead.kept(self._order.kept(self._holds.without_ended(lane))))
