"""An account's outbox, drained: the handler of `outbox` lanes.

One turn: settle what an earlier holder left in doubt, then read, claim what can start now, send, complete, until
nothing is left that could go soon. What comes later is left to a task at that time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random

from worker import log
from worker.clock import Clock
from worker.domain.account import Account, AccountStatus, InvalidAccount
from worker.domain.attempt import (
    ParkAccount,
    Policy,
    RetryAt,
    TooEarly,
    Verdict,
    after_expired_lease,
    after_receipt_wait,
    decide,
)
from worker.domain.backoff import Backoff
from worker.domain.claim import Cancel, Ending, Plan, Refuse, Skip, lane_after_claims, plan
from worker.domain.lane import NO_DEBOUNCE, Debounce, Entry, Lane, Later, More, Nothing, Work
from worker.domain.lease import Hold
from worker.domain.message import KEEP_ENDED, OutboxMessage
from worker.domain.order import named_by_elapsed
from worker.domain.outcome import ErrorCode as Code
from worker.domain.outcome import Outcome, Retryable, Scope, Sent
from worker.domain.pacing import (
    Allowance,
    Block,
    Gate,
    Taken,
    allowance,
    given_back,
    recovered,
    reserve_through,
    take,
)
from worker.errors import StoreUnavailable
from worker.lane.session import LaneLost, Session
from worker.outbox.claim import Candidates
from worker.outbox.complete import Completer
from worker.providers.registry import Providers
from worker.settings import Settings
from worker.store.accounts import AccountStore, SharedLimit
from worker.store.gateway import Conflict
from worker.store.messages import MessageStore, Stored, completion, refusal, shown_refusal

SOON = timedelta(seconds=5)
"""What comes due within this is waited for with the lane in hand; for anything later the lane is released."""
ACCOUNT_FRESH = timedelta(seconds=10)
UNUSABLE_RETRY = timedelta(minutes=10)
SHARED_BLOCK = 3
"""How many sends of a shared cap are reserved at a time."""


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
            log.account_unusable(account.account_id, account.sentence)
            return Later(outbox.clock() + UNUSABLE_RETRY)
        return await Drain(outbox, session, account).run()


class Drain:
    """One turn of one account's lane."""

    def __init__(self, outbox: Outbox, session: Session, account: Account) -> None:
        self._outbox = outbox
        self._session = session
        self._account = account
        self._account_read_at = outbox.clock()
        self._candidates = Candidates(outbox.messages, session.ref, outbox.settings.claim_page)
        self._completer = Completer(
            session,
            messages=outbox.messages,
            accounts=outbox.accounts,
            shared=outbox.shared,
            clock=outbox.clock,
        )
        self._in_flight: dict[str, Stored] = {}
        """By threadId."""
        self._attempts: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._rate_factor = session.lane.rate_factor
        self._own: Block | None = None
        self._own_after_renewal: Block | None = None
        self._shared: Block | None = None
        session.tidy_with(self._tidied)

    # --- the turn

    async def run(self) -> Work:
        try:
            if self._session.entry is Entry.TAKEOVER:
                await self._settle_what_was_left()
            await self._reserve_pace()
            work = await self._drain()
        finally:
            await self._attempts_ended()
        if self._failure is not None:
            raise self._failure
        return work

    async def _drain(self) -> Work:
        session, clock = self._session, self._outbox.clock
        while self._failure is None:
            if not session.may_start() or session.must_yield():
                return More()
            await self._refresh_account()
            now = clock()
            skip = {stored.request_id for stored in self._in_flight.values()}
            await self._candidates.read_named(named_by_elapsed(session.lane.holds, now), skip)
            allowed = await self._allowed(now)
            planned = self._plan(allowed, now)
            if planned.endings or planned.settle:
                await self._end_in_passing(planned.endings)
                await self._settle_doubts(planned.settle)
                continue
            if planned.claims:
                await self._claim(planned)
                continue
            if not self._candidates.exhausted:
                await self._candidates.read_more(now, skip)
                continue
            if self._in_flight:
                await session.wait(planned.next_at)
                continue
            if planned.next_at is not None and planned.next_at - now <= SOON:
                await session.wait(planned.next_at)
                continue
            return await self._rest(planned.next_at, now)
        return More()

    def _plan(self, allowed: Allowance, now: datetime) -> Plan:
        return plan(
            self._candidates.in_order(),
            lane=replace(self._session.lane, rate_factor=self._rate_factor),
            account=self._account,
            in_flight=self._in_flight.keys(),
            allowed=allowed,
            now=now,
        )

    async def _rest(self, next_at: datetime | None, now: datetime) -> Work:
        """Nothing can go soon. When is the next time that something can?"""
        if next_at is None and len(self._candidates) > 0:
            return Nothing()  # paused or parked: whoever resumes the account wakes the lane
        later = await self._outbox.messages.next_due(self._account.account_id, now)
        times = [at for at in (next_at, later) if at is not None]
        return Later(min(times)) if times else Nothing()

    async def _refresh_account(self) -> None:
        now = self._outbox.clock()
        if now - self._account_read_at < ACCOUNT_FRESH:
            return
        self._account_read_at = now
        account = await self._outbox.accounts.read(self._account.account_id)
        if isinstance(account, Account):
            self._account = account

    # --- claim and send

    async def _claim(self, planned: Plan) -> None:
        session, now = self._session, self._outbox.clock()
        if self._account.per_recipient:
            await session.write(lambda lane: lane_after_claims(lane, planned.claims, self._account, now))
        for claim in await self._candidates.claim(planned, session.hold):
            self._in_flight[_message(claim).thread_id] = claim
            attempt = asyncio.create_task(self._attempt(claim))
            self._attempts.add(attempt)
            attempt.add_done_callback(self._attempts.discard)

    async def _attempt(self, claim: Stored) -> None:
        message = _message(claim)
        try:
            outcome = await self._call(message)
            verdict = self._decide(message, outcome)
            stored = await self._completer.complete(claim, verdict)
            self._learn(outcome, verdict)
            if stored is not None and isinstance(verdict, RetryAt):
                self._candidates.put_back(stored)
        except (StoreUnavailable, LaneLost) as error:
            self._failure = self._failure or error
        finally:
            self._in_flight.pop(message.thread_id, None)
            self._session.changed.set()

    async def _call(self, message: OutboxMessage) -> Outcome:
        if not self._session.may_start() or not self._spend():
            return Retryable(code=Code.PROVIDER_UNAVAILABLE, detail="the lease or the pace ended before the call began")
        limit = min(self._session.hold.longest_call, timedelta(seconds=self._outbox.settings.send_timeout_seconds))
        return await self._outbox.providers.send(self._account.provider, message, limit=limit)

    def _decide(self, message: OutboxMessage, outcome: Outcome) -> Verdict:
        return decide(
            message,
            outcome,
            policy=self._policy(),
            capability=self._outbox.providers[self._account.provider].profile.capability,
            now=self._outbox.clock(),
            jitter=self._outbox.random.random(),
        )

    def _learn(self, outcome: Outcome, verdict: Verdict) -> None:
        if isinstance(outcome, Sent) and self._rate_factor < 1:
            self._rate_factor = recovered(self._rate_factor, self._account.cap)
        elif verdict.effects:
            self._rate_factor = min(self._rate_factor, self._session.lane.rate_factor)
            if any(isinstance(effect, ParkAccount) for effect in verdict.effects):
                self._account = replace(self._account, status=AccountStatus.PARKED)

    def _policy(self) -> Policy:
        settings = self._outbox.settings
        return Policy(
            max_attempts=settings.max_attempts,
            backoff=Backoff(
                base=timedelta(seconds=settings.backoff_seconds), cap=timedelta(seconds=settings.backoff_max_seconds)
            ),
            on_uncertain=self._account.on_uncertain,
            receipt_wait=timedelta(seconds=settings.uncertain_seconds),
        )

    async def _attempts_ended(self) -> None:
        """What was started is finished and completed, whatever else happens."""
        while self._attempts:
            await asyncio.wait(self._attempts)

    # --- without sending

    async def _end_in_passing(self, endings: Sequence[Ending]) -> None:
        for ending in endings:
            match ending:
                case Cancel(message=message) | Skip(message=message):
                    stored = self._candidates.take_out(message.request_id)
                    result = await self._outbox.messages.write(completion(stored, message))
                case Refuse(request_id=request_id, error=error):
                    stored = self._candidates.take_out(request_id)
                    log.message_refused(request_id, error.message)
                    result = await self._outbox.messages.write(refusal(stored, error, error.at + KEEP_ENDED))
                    shown = shown_refusal(stored, self._account.account_id, error)
                    if shown is not None and not isinstance(result, Conflict):
                        await self._outbox.messages.write([shown])
            if isinstance(result, Conflict):
                self._candidates.forget()
                return

    async def _settle_doubts(self, doubts: Sequence[OutboxMessage]) -> None:
        """Uncertain messages that heard of no receipt in time."""
        for message in doubts:
            verdict = after_receipt_wait(message, policy=self._policy(), now=self._outbox.clock())
            if isinstance(verdict, TooEarly):
                continue
            stored = await self._completer.complete(self._candidates.take_out(message.request_id), verdict)
            if stored is not None and isinstance(verdict, RetryAt):
                self._candidates.put_back(stored)

    async def _settle_what_was_left(self) -> None:
        """After a takeover, before anything else: whatever is `sending` is in doubt."""
        while left := await self._outbox.messages.sending(self._account.account_id):
            for stored in left:
                if isinstance(stored.message, OutboxMessage):
                    await self._settle_left(stored, stored.message)
                else:
                    error = stored.message.error(self._outbox.clock())
                    await self._outbox.messages.write(refusal(stored, error, error.at + KEEP_ENDED))

    async def _settle_left(self, stored: Stored, message: OutboxMessage) -> None:
        verdict = after_expired_lease(
            message,
            policy=self._policy(),
            capability=self._outbox.providers[self._account.provider].profile.capability,
            now=self._outbox.clock(),
            jitter=self._outbox.random.random(),
        )
        if isinstance(verdict, TooEarly):
            # Its lease is the late holder's, by a clock ahead of ours. It ends soon; nobody else can touch it.
            await self._session.wait(verdict.until)
            return
        await self._completer.complete(stored, verdict)

    # --- pace

    async def _reserve_pace(self) -> None:
        """The lane's own pace, through the end of the lease and with every renewal."""
        if self._account.cap is None:
            return
        self._session.extend_with(self._extended)
        await self._session.write(lambda lane: self._extended(lane, self._session.hold))

    def _extended(self, lane: Lane, hold: Hold) -> Lane:
        if self._account.cap is None:
            return lane
        self._own_after_renewal = reserve_through(
            self._account.cap,
            lane.tat,
            now=self._outbox.clock(),
            through=hold.until,
            mine=self._own_block(),
            rate_factor=self._rate_factor,
        )
        return lane.reserved(self._own_after_renewal.until)

    def _own_block(self) -> Block | None:
        """Ours, with what the last renewal added, once that is written."""
        added = self._own_after_renewal
        if added is not None and self._session.lane.tat == added.until:
            tat = added.tat if self._own is None else max(self._own.tat, added.tat)
            self._own, self._own_after_renewal = Block(tat=tat, until=added.until), None
        return self._own

    def _gates(self) -> tuple[Gate, ...]:
        gates: list[Gate] = []
        block = self._own_block()
        if self._account.cap is not None and block is not None:
            gates.append(Gate(scope=Scope.ACCOUNT, cap=self._account.cap, block=block, rate_factor=self._rate_factor))
        if self._outbox.shared is not None and self._shared is not None:
            gates.append(Gate(scope=Scope.APP, cap=self._outbox.shared.cap, block=self._shared))
        return tuple(gates)

    async def _allowed(self, now: datetime) -> Allowance:
        shared = self._outbox.shared
        if shared is not None and self._shared is None:
            self._shared = await shared.reserve(SHARED_BLOCK, now, None)
        allowed = allowance(self._gates(), now)
        if shared is not None and Scope.APP in allowed.reserve and len(self._candidates) > 0:
            self._shared = await shared.reserve(SHARED_BLOCK, now, self._shared) or self._shared
            allowed = allowance(self._gates(), now)
        if Scope.ACCOUNT in allowed.reserve and allowed.sends == 0:
            await self._session.write(lambda lane: self._extended(lane, self._session.hold))
            allowed = allowance(self._gates(), now)
        return allowed

    def _spend(self) -> bool:
        """Takes one send from every cap at the moment it starts; False if one of them has none left."""
        taken = take(self._gates(), self._outbox.clock())
        if not isinstance(taken, Taken):
            return False
        for gate in taken.gates:
            if gate.scope is Scope.ACCOUNT:
                self._own = gate.block
            else:
                self._shared = gate.block
        return True

    # --- the end

    def _tidied(self, lane: Lane) -> Lane:
        """The lane as it is released: unused pace given back, the rate as it is now, ended holds gone."""
        lane = replace(self._completer.tidied(lane), rate_factor=min(1.0, self._rate_factor))
        block = self._own_block()
        if block is not None:
            lane = lane.reserved(given_back(lane.tat, block))
        return lane.without_elapsed_holds(self._outbox.clock())


def _message(stored: Stored) -> OutboxMessage:
    assert isinstance(stored.message, OutboxMessage), "only valid documents are claimed"
    return stored.message
