"""One attempt of a short turn: from the claim to the commit that completes the message and releases the lane.

If that commit conflicts (a wake's mark, a cancel, a receipt), or the outcome leaves something on the lane, the
completion is written alone first, and then the release, as a worker does it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from firestore_outbox import metrics
from firestore_outbox.accounts.account import Account
from firestore_outbox.errors import StoreUnavailable, Unwritable
from firestore_outbox.firestore.gateway import Committed
from firestore_outbox.lane.holder import Holder
from firestore_outbox.lane.releaser import Releaser
from firestore_outbox.lane.state import Lost, More, Work, release
from firestore_outbox.lane.store import LaneStore
from firestore_outbox.messages.outbox_document import Stored
from firestore_outbox.messages.store import completion
from firestore_outbox.providers.outcome import Outcome, Sent, Throttled
from firestore_outbox.sending.complete import Completer, count_attempt
from firestore_outbox.sending.deadline import lateness
from firestore_outbox.sending.decide import Verdict
from firestore_outbox.sending.express import ROOM_TO_COMPLETE, Go, is_plain, work_after
from firestore_outbox.sending.holds import TurnHolds
from firestore_outbox.sending.judge import Judge
from firestore_outbox.sending.outbox import Outbox
from firestore_outbox.sending.pace import Pace


class ShortAttempt:
    def __init__(
        self, outbox: Outbox, holder: Holder, account: Account, go: Go, *, lanes: LaneStore, releaser: Releaser
    ) -> None:
        clock = outbox.clock
        self._outbox = outbox
        self._holder = holder
        self._account = account
        self._go = go
        self._lanes = lanes
        self._releaser = releaser
        self._pace = Pace(holder, None, clock, go.reserved)
        self._completer = Completer(
            holder,
            messages=outbox.messages,
            accounts=outbox.accounts,
            shared=None,
            throttle_app=lambda until: outbox.app_throttles.pause(account.provider, until),
            clock=clock,
        )
        self._holds = TurnHolds(self._completer, clock)
        holder.tidy_with(lambda lane: self._pace.tidied(self._holds.without_ended(lane)))
        self.is_sent = False
        """Whether the provider accepted the message."""

    async def run(self, claim: Stored | None, deadline: datetime) -> bool:
        """Whether the call had effects on the lane or the account. `claim` is None if it was settled meanwhile.

        Raises `LaneLost` if another holder has the lane."""
        if claim is None:
            await self._release(More())
            return False
        if not self._may_start(claim, deadline):
            await self._completer.give_back(claim)
            if self._account.per_recipient:
                self._holds.not_called(claim.valid.thread_id, self._holder.lane)
            await self._release(More())
            return False
        verdict = await self._sent(claim)
        if is_plain(verdict) and await self._completed_and_released(claim, verdict):
            return False
        await self._completer.complete(claim, verdict)
        if verdict.effects:
            self._pace.throttled()
        await self._release(work_after(verdict, self._go.work))
        return bool(verdict.effects)

    def _may_start(self, claim: Stored, deadline: datetime) -> bool:
        """Time has passed since the decision. The pace is spent when the call starts."""
        now = self._outbox.clock()
        is_in_time = now + self._limit + ROOM_TO_COMPLETE / 2 <= deadline and lateness(claim.valid, now, now) is None
        return is_in_time and self._holder.may_start() and self._pace.spend()

    @property
    def _limit(self) -> timedelta:
        return min(self._holder.hold.longest_call, timedelta(seconds=self._outbox.settings.send_timeout_seconds))

    async def _sent(self, claim: Stored) -> Verdict:
        message, account, now = claim.valid, self._account, self._outbox.clock()
        metrics.queue_age((now - (message.next_attempt_at or now)).total_seconds())
        if account.per_recipient:
            self._holds.rest(message.thread_id, now + account.per_recipient)
        outcome = await self._outbox.providers.send(account.provider, message, limit=self._limit)
        self._learn(outcome)
        outbox = self._outbox
        return Judge(account, outbox.providers, outbox.settings, outbox.clock, outbox.random)(message, outcome)

    def _learn(self, outcome: Outcome) -> None:
        if isinstance(outcome, Throttled):
            metrics.throttle(outcome.scope.value)
        elif isinstance(outcome, Sent):
            self.is_sent = True
            self._pace.accepted()
            self._outbox.app_throttles.accepted(self._account.provider)

    async def _completed_and_released(self, claim: Stored, verdict: Verdict) -> bool:
        """False: the commit was refused, or not answered. It may have been made: completing again finds that out."""
        holder, message = self._holder, verdict.message
        released = release(holder.tidied(holder.lane), holder.hold, self._outbox.clock(), self._go.work)
        if isinstance(released, Lost):
            return False
        before = self._completer.count(verdict)
        freed = self._lanes.write_op(holder.ref, holder.counted(released.lane), holder.stored)
        assert freed is not None, "a release changes the lane"
        try:
            result = await self._outbox.messages.write([*completion(claim, message), freed])
        except (Unwritable, StoreUnavailable):
            result = None
        if not isinstance(result, Committed):
            self._completer.count(verdict, before=before)
            return False
        count_attempt(verdict)
        await self._releaser.follow(holder, released)
        return True

    async def _release(self, work: Work) -> None:
        """A wake that came meanwhile is a worker's: the function does not go for another round."""
        await self._releaser.release(self._holder, work, may_go_round=lambda: False)
