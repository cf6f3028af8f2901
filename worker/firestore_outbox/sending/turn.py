"""An account's outbox, drained: the handler of `outbox` lanes.

One turn: read, settle what earlier holders left in doubt, claim what can start now, send, complete, until nothing is
left that could go soon. What comes later is left to a task at that time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random

from firestore_outbox import log, metrics
from firestore_outbox.accounts.account import Account, InvalidAccount
from firestore_outbox.accounts.store import AccountStore, SharedLimit
from firestore_outbox.clock import Clock
from firestore_outbox.lane.hold_room import ROOM_BYTES, HoldRoom
from firestore_outbox.lane.holder import Session
from firestore_outbox.lane.pacing import Allowance
from firestore_outbox.lane.state import NO_DEBOUNCE, Debounce, Lane, Later, More, Nothing, ThreadHold, Work
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.outbox_document import Stored
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.providers.outcome import NotConnected, Outcome, Sent, Throttled
from firestore_outbox.providers.registry import Providers
from firestore_outbox.sending.app_throttles import AppThrottles
from firestore_outbox.sending.candidates import Candidates
from firestore_outbox.sending.complete import Completer
from firestore_outbox.sending.deadline import lateness
from firestore_outbox.sending.decide import ParkAccount, Verdict
from firestore_outbox.sending.judge import Judge
from firestore_outbox.sending.order import named_by_elapsed
from firestore_outbox.sending.pace import LONGEST_LINE, Pace
from firestore_outbox.sending.plan import Plan, lane_after_claims, plan
from firestore_outbox.sending.record_gaps import record_gaps
from firestore_outbox.sending.recover import WithoutSending
from firestore_outbox.sessions.hotset import HotSet
from firestore_outbox.sessions.live import LiveSession
from firestore_outbox.settings import Settings

SOON = timedelta(seconds=5)
"""What comes due within this is waited for with the lane in hand; for anything later the lane is released."""
ACCOUNT_FRESH = timedelta(seconds=20)
"""How long a pause, or another change of the account, may go unnoticed. At forty messages a minute, looking for it
costs each of them 0.075 reads."""
LEAST_PAGE = 10
UNUSABLE_RETRY = timedelta(minutes=10)
A_MOMENT = timedelta(seconds=1)
"""What is known to come due within this is not worth a release: others would have to acquire the lane again for it."""
FIRST_LOOK, LONGEST_LOOK = timedelta(milliseconds=150), timedelta(seconds=1)
"""Between two looks for new documents while the lane waits; twice as long after each that found none."""
NO_TIME, JUST_BEFORE = timedelta(0), timedelta(microseconds=1)
LEAST_WAIT = timedelta(milliseconds=20)
"""Between two looks at the same documents when nothing is in flight."""


OnDry = Callable[[str], Awaitable[None]]
"""Told of a run whose documents were worked on, when no more of it are waiting."""


@dataclass(frozen=True, slots=True)
class Outbox:
    """What draining needs of the rest of the program."""

    messages: MessageStore
    accounts: AccountStore
    providers: Providers
    settings: Settings
    clock: Clock
    random: Random
    shared: SharedLimit | None
    on_dry: OnDry
    hot: HotSet
    app_throttles: AppThrottles
    hold_room_bytes: int = ROOM_BYTES
    """For the holds of a lane."""


class OutboxHandler:
    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    @property
    def debounce(self) -> Debounce:
        return NO_DEBOUNCE

    async def run(self, session: Session) -> Work:
        outbox = self._outbox
        account = await outbox.accounts.read(session.ref.key)
        if isinstance(account, InvalidAccount):
            return _unusable(account, outbox.clock())
        return await Drain(outbox, session, account).run()


class Drain:
    """One turn of one account's lane."""

    def __init__(self, outbox: Outbox, session: Session, account: Account) -> None:
        self._outbox = outbox
        self._session = session
        self._account = account
        self._account_read_at: datetime | None = outbox.clock()
        """None: it is to be read again."""
        self._judge = self._judge_of(account)
        self._candidates = Candidates(outbox.messages, session.ref, outbox.settings.overlap, outbox.clock)
        self._completer = Completer(
            session,
            messages=outbox.messages,
            accounts=outbox.accounts,
            shared=outbox.shared,
            throttle_app=lambda until: outbox.app_throttles.pause(self._account.provider, until),
            clock=outbox.clock,
        )
        self._without_sending = WithoutSending(outbox.messages, self._candidates, self._completer, outbox.clock)
        self._pace = Pace(session, outbox.shared, outbox.clock)
        self._in_flight: dict[str, Stored] = {}
        """By threadId."""
        self._attempts: set[asyncio.Task[None]] = set()
        self._live = LiveSession(outbox.hot, outbox.providers, outbox.clock)
        self._held_back_until: datetime | None = None
        """Set when the provider throttles the whole app: the lane keeps it when it is released."""
        self._failure: BaseException | None = None
        self._look_pause = FIRST_LOOK
        self._runs: set[str] = set()
        """Whose documents were worked on."""
        self._void: dict[str, ThreadHold] = {}
        """Holds that wait for nothing any more."""
        self._spared: dict[str, datetime] = {}
        """threadId -> until when its recipient's pace lets nothing go. Counted from the call; the hold that is stored
        counts from the claim, a little earlier."""
        session.tidy_with(self._tidied)

    # --- the turn

    async def run(self) -> Work:
        try:
            await self._pace.follow(self._account.cap)
            work = await self._drain()
        finally:
            await self._attempts_ended()
        if self._failure is not None:
            raise self._failure
        await self._live.done(self._account, work)
        return work

    async def _drain(self) -> Work:
        session, clock = self._session, self._outbox.clock
        while self._failure is None:
            if not session.may_start() or session.must_yield():
                return More()
            if (unusable := await self._refresh_account()) is not None:
                return unusable
            now = clock()
            await self._candidates.read_named(named_by_elapsed(self._lane().holds, now), self._claimed_ids())
            planned = await self._plan(now)
            self._void.update((thread_id, session.lane.holds[thread_id]) for thread_id in self._void_in(planned))
            if planned.endings or planned.settle:
                await self._without_sending.end(planned.endings)
                await self._without_sending.doubts(planned.settle, self._judge)
            elif planned.claims:
                if (not_before := await self._not_before()) is not None:
                    return Later(not_before)
                await self._claim(planned)
            elif planned.is_crowded and self._has_ended_holds():
                log.lane_crowded(session.ref, session.account_id, len(session.lane.holds))
                await session.write(self._without_ended_holds)
            elif not self._candidates.exhausted and self._could_use_more(planned):
                await self._read_more(now)
            elif self._in_flight or (planned.next_at is not None and planned.next_at - now <= self._patience(now)):
                await self._wait(planned, now)
            elif (rest := await self._rest(planned, now)) is not None:
                return rest
        return More()

    async def _not_before(self) -> datetime | None:
        """When the account may call its provider; None: now."""
        self._held_back_until = await self._outbox.app_throttles.not_before(self._account.provider)
        return self._held_back_until or await self._live.not_before(self._account)

    async def _read_more(self, now: datetime) -> None:
        is_first = self._candidates.read_at is None
        new = await self._candidates.read_more(now, self._due_by(now), self._page(now), self._claimed_ids())
        self._look_pause = FIRST_LOOK if new else min(2 * self._look_pause, LONGEST_LOOK)
        record_gaps(self._session.ref, new, self._outbox.settings.overlap)
        if new or is_first:
            await self._without_sending.abandoned(self._account.account_id, self._session.started_at, self._judge)

    def _page(self, now: datetime) -> int:
        """No more than can go before this run ends at the latest: what is left over then would be read again."""
        most, cap = self._outbox.settings.claim_page, self._account.cap
        if cap is None:
            return most
        can_go = cap.burst + (self._session.ends_at - now) // cap.stretched(self._pace.rate_factor)
        return min(most, max(LEAST_PAGE, can_go))

    def _due_by(self, now: datetime) -> datetime:
        """What has come by our clock, and is over by the database's. Ours may be ahead, and so may the clock of whoever
        set a time. The times that the database sets are whole milliseconds, and the present one is not over."""
        present = self._session.database_time()
        return min(now, present.replace(microsecond=present.microsecond // 1000 * 1000) - JUST_BEFORE)

    def _could_use_more(self, planned: Plan) -> bool:
        return planned.wanted > 0 or not self._candidates.in_order()

    async def _wait(self, planned: Plan, now: datetime) -> None:
        """For a call to end, or a time to come. If more could start meanwhile, new documents are looked for: a wake
        leaves but a mark on the lane, and neither a slow provider nor a message that is tried again may delay others.
        """
        times = []
        if planned.next_at is not None and (planned.next_at > now or not self._in_flight):
            times.append(max(planned.next_at, now + LEAST_WAIT))
        if planned.wanted > 0 and self._candidates.read_at is not None:
            pause = min(max(self._look_pause, self._candidates.price_of_a_look), LONGEST_LOOK)
            look_at = self._candidates.read_at + pause
            if look_at <= now:
                self._candidates.look_again()
                return
            times.append(look_at)
        elif not self._in_flight and planned.next_at is not None:
            metrics.pace_wait((planned.next_at - now).total_seconds())
        await self._session.wait(min(times, default=None))

    async def _plan(self, now: datetime) -> Plan:
        own = await self._pace.allowed(now)
        planned = self._planned(own, now)
        if not planned.claims or planned.endings or planned.settle:
            return planned
        allowed = await self._pace.allowed_by_all(len(planned.claims), own, now)
        # Planned anew if we waited for the shared cap: what was in flight may have come back to the queue meanwhile.
        return planned if allowed is own else self._planned(allowed, now)

    def _planned(self, allowed: Allowance, now: datetime) -> Plan:
        room = HoldRoom(self._session.lane.holds, self._in_flight, room_bytes=self._outbox.hold_room_bytes)
        return plan(
            self._candidates.in_order(),
            lane=self._lane(),
            account=self._account,
            in_flight=self._in_flight.keys(),
            allowed=allowed,
            room=room,
            now=now,
        )

    def _lane(self) -> Lane:
        """As far as this turn knows."""
        lane = self._sparing(self._completer.tidied(self._session.lane))
        return replace(lane, rate_factor=self._pace.rate_factor)

    def _sparing(self, lane: Lane) -> Lane:
        later = {
            thread_id: replace(hold, until=until)
            for thread_id, until in self._spared.items()
            if (hold := lane.holds.get(thread_id, ThreadHold(until=until))).until <= until
        }
        return replace(lane, holds={**lane.holds, **later}) if later else lane

    def _claimed_ids(self) -> set[str]:
        return {stored.request_id for stored in self._in_flight.values()}

    def _void_in(self, planned: Plan) -> list[str]:
        return [t for t in planned.void_holds if t in self._session.lane.holds and t not in self._in_flight]

    def _patience(self, now: datetime) -> timedelta:
        return LONGEST_LINE if self._pace.is_in_line(now) else SOON

    async def _rest(self, planned: Plan, now: datetime) -> Work | None:
        """Nothing can go soon. When is the next time that something can? None: it came while we were at work."""
        later = await self._outbox.messages.next_due(self._account.account_id, self._candidates.due_by or now)
        has_come = later is not None and later.at <= now
        if later is not None and has_come and self._candidates.exhausted and self._could_use_more(planned):
            if (early := later.at - self._due_by(now)) > NO_TIME:  # our clock is ahead
                await self._session.wait(now + min(early, LONGEST_LOOK))
            self._candidates.look_again()
            return None
        dry = self._runs - {None if later is None else later.run_id}
        for run_id in sorted(dry):
            await self._outbox.on_dry(run_id)
        self._runs -= dry
        next_due = None if later is None or has_come else later.at  # what has come goes with the others, at next_at
        if next_due is not None and next_due - now <= A_MOMENT and self._could_use_more(planned):
            await self._session.wait(next_due)
            self._candidates.look_again()
            return None
        times = [at for at in (planned.next_at, next_due) if at is not None]
        return Later(min(times)) if times else Nothing()  # if it waits for a person, that person wakes the lane

    def _judge_of(self, account: Account) -> Judge:
        outbox = self._outbox
        return Judge(account, outbox.providers, outbox.settings, outbox.clock, outbox.random)

    async def _refresh_account(self) -> Work | None:
        """What is left to do if the account can no longer be used."""
        now = self._outbox.clock()
        if self._account_read_at is not None and now - self._account_read_at < ACCOUNT_FRESH:
            return None
        self._account_read_at = now
        account = await self._outbox.accounts.read(self._account.account_id)
        if isinstance(account, InvalidAccount):
            return _unusable(account, now)
        self._account, self._judge = account, self._judge_of(account)
        await self._pace.follow(account.cap)
        return None

    # --- claim and send

    async def _claim(self, planned: Plan) -> None:
        session, now = self._session, self._outbox.clock()
        if self._account.per_recipient:
            await session.write(lambda lane: lane_after_claims(lane, planned.claims, self._account, now))
        for claim in await self._candidates.claim(planned, session.hold):
            self._in_flight[claim.valid.thread_id] = claim
            if (run_id := claim.valid.run_id) is not None:
                self._runs.add(run_id)
            metrics.queue_age((now - (claim.valid.next_attempt_at or now)).total_seconds())
            self._pace.unstarted += 1
            attempt = asyncio.create_task(self._attempt(claim))
            self._attempts.add(attempt)
            attempt.add_done_callback(self._attempts.discard)

    async def _attempt(self, claim: Stored) -> None:
        """Every error ends the turn without a release: what is in doubt is then settled by whoever takes over."""
        message = claim.valid
        self._pace.unstarted -= 1
        try:
            if self._session.may_start() and self._in_time(message) and self._pace.spend():
                if self._account.per_recipient:
                    self._spared[message.thread_id] = self._outbox.clock() + self._account.per_recipient
                stored = await self._sent(claim, message)
            else:
                stored = await self._completer.give_back(claim)
            self._candidates.settled(stored)
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody may take the document for completed
            self._failure = self._failure or error
        finally:
            self._in_flight.pop(message.thread_id, None)
            self._session.changed.set()

    def _in_time(self, message: OutboxMessage) -> bool:
        """Between the plan and the call time passes, and a window may close."""
        now = self._outbox.clock()
        return lateness(message, now, now) is None

    async def _sent(self, claim: Stored, message: OutboxMessage) -> Stored | None:
        limit = min(self._session.hold.longest_call, timedelta(seconds=self._outbox.settings.send_timeout_seconds))
        outcome = await self._outbox.providers.send(self._account.provider, message, limit=limit)
        if isinstance(outcome, Throttled):
            metrics.throttle(outcome.scope.value)
        verdict = self._judge(message, outcome)
        stored = await self._completer.complete(claim, verdict)
        self._learn(outcome, verdict)
        if isinstance(outcome, NotConnected):
            await self._live.was_down(self._account)
        return stored

    def _learn(self, outcome: Outcome, verdict: Verdict) -> None:
        if isinstance(outcome, Sent):
            self._pace.accepted()
            self._outbox.app_throttles.accepted(self._account.provider)
        elif verdict.effects:
            self._pace.throttled()
            if any(isinstance(effect, ParkAccount) for effect in verdict.effects):
                self._account_read_at = None  # look whether it is parked now

    async def _attempts_ended(self) -> None:
        """What was started is finished and completed, whatever else happens."""
        while self._attempts:
            await asyncio.wait(self._attempts)

    # --- the end

    def _tidied(self, lane: Lane) -> Lane:
        """The lane as it is released: unused pace given back, the rate as it is now, ended holds gone."""
        if self._held_back_until is not None:
            lane = lane.held_back(until=self._held_back_until)
        return self._pace.tidied(self._without_ended_holds(lane))

    def _without_ended_holds(self, lane: Lane) -> Lane:
        lane = self._sparing(self._completer.tidied(lane))
        void = frozenset(thread_id for thread_id, hold in self._void.items() if lane.holds.get(thread_id) == hold)
        return lane.without_holds(void).without_elapsed_holds(self._outbox.clock())

    def _has_ended_holds(self) -> bool:
        lane = self._session.lane
        return len(self._without_ended_holds(lane).holds) < len(lane.holds)


def _unusable(account: InvalidAccount, now: datetime) -> Later:
    log.account_unusable(account.account_id, account.sentence)
    return Later(now + UNUSABLE_RETRY)
