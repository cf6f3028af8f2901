"""Claims made and sent: every attempt of a turn, from the claim to the completing write."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from firestore_outbox import metrics
from firestore_outbox.lane.holder import Holder
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.outbox_document import Stored
from firestore_outbox.providers.outcome import NotConnected, Outcome, Sent, Throttled
from firestore_outbox.sending.account_in_use import AccountInUse
from firestore_outbox.sending.candidates import Candidates
from firestore_outbox.sending.complete import Completer
from firestore_outbox.sending.deadline import lateness
from firestore_outbox.sending.decide import ParkAccount, Verdict
from firestore_outbox.sending.holds import TurnHolds
from firestore_outbox.sending.outbox import Outbox
from firestore_outbox.sending.pace import Pace
from firestore_outbox.sending.plan import Plan, lane_after_claims
from firestore_outbox.sessions.live import LiveSession


class Attempts:
    def __init__(
        self,
        outbox: Outbox,
        holder: Holder,
        account: AccountInUse,
        candidates: Candidates,
        completer: Completer,
        pace: Pace,
        live: LiveSession,
        holds: TurnHolds,
    ) -> None:
        self._outbox = outbox
        self._holder = holder
        self._account = account
        self._candidates = candidates
        self._completer = completer
        self._pace = pace
        self._live = live
        self._holds = holds
        self.in_flight: dict[str, Stored] = {}
        """By threadId: a thread has at most one message in flight."""
        self.failure: BaseException | None = None
        """The first error of an attempt. It ends the turn."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._runs: set[str] = set()
        """The runs whose documents this turn worked on."""

    def request_ids(self) -> set[str]:
        return {stored.request_id for stored in self.in_flight.values()}

    async def start(self, planned: Plan) -> None:
        """Claim what was planned in one commit, and begin an attempt for each claim."""
        account, now = self._account.now, self._outbox.clock()
        if account.per_recipient:
            await self._holder.write(lambda lane: lane_after_claims(lane, planned.claims, account, now))
        if not self._holder.may_start():
            return  # what is claimed now would be given back, and might come after a takeover's `doubtUntil`
        for claim in await self._candidates.claim(planned, self._holder.hold):
            self.in_flight[claim.valid.thread_id] = claim
            if (run_id := claim.valid.run_id) is not None:
                self._runs.add(run_id)
            metrics.queue_age((now - (claim.valid.next_attempt_at or now)).total_seconds())
            self._pace.unstarted += 1
            task = asyncio.create_task(self._attempt(claim))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _attempt(self, claim: Stored) -> None:
        """An error ends the turn without a release: the next holder settles what is in doubt."""
        message, account = claim.valid, self._account.now
        self._pace.unstarted -= 1
        try:
            if self._holder.may_start() and self._is_in_time(message) and self._pace.spend():
                if account.per_recipient:
                    self._holds.rest(message.thread_id, self._outbox.clock() + account.per_recipient)
                stored = await self._send(claim, message)
            else:
                stored = await self._completer.give_back(claim)
                if account.per_recipient:
                    self._holds.not_called(message.thread_id, self._holder.lane)
            self._candidates.settled(stored)
        except Exception as error:  # noqa: BLE001 - after any error the document must not count as completed
            self.failure = self.failure or error
        finally:
            self.in_flight.pop(message.thread_id, None)
            self._holder.changed.set()

    def _is_in_time(self, message: OutboxMessage) -> bool:
        """Time passes between the plan and the call, and a window may close."""
        now = self._outbox.clock()
        return lateness(message, now, now) is None

    async def _send(self, claim: Stored, message: OutboxMessage) -> Stored | None:
        account = self._account.now
        limit = min(self._holder.hold.longest_call, timedelta(seconds=self._outbox.settings.send_timeout_seconds))
        outcome = await self._outbox.providers.send(account.provider, message, limit=limit)
        if isinstance(outcome, Throttled):
            metrics.throttle(outcome.scope.value)
        verdict = self._account.judge(message, outcome)
        stored = await self._completer.complete(claim, verdict)
        self._learn(outcome, verdict)
        if isinstance(outcome, NotConnected):
            await self._live.was_down(self._account.now)
        return stored

    def _learn(self, outcome: Outcome, verdict: Verdict) -> None:
        if isinstance(outcome, Sent):
            self._pace.accepted()
            self._outbox.app_throttles.accepted(self._account.now.provider)
        elif verdict.effects:
            self._pace.throttled()
            if any(isinstance(effect, ParkAccount) for effect in verdict.effects):
                self._account.expire()  # see whether the account is parked now

    async def report_dry_runs(self, *, except_for: str | None) -> None:
        """Report the runs that have nothing waiting any more; `except_for` has the next document that is due."""
        dry = self._runs - {except_for}
        for run_id in sorted(dry):
            await self._outbox.on_dry(run_id)
        self._runs -= dry

    async def ended(self) -> None:
        """Wait until every attempt has been completed, also after an error."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure
