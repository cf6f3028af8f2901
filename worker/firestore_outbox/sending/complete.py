"""The end of an attempt, written: one commit for all that ended meanwhile, with preconditions and no read.

What a message leaves on its lane (a hold on its thread, a pause) is written before the message itself goes back to the
queue: a crash in between leaves a hold for a message that the takeover settles, never a message that others overtake.

A holder that has lost its lane can leave nothing on it any more. But what the provider told it is still true: messages
that ended are written as such, each under its own claim. Those that would go back to the queue are left to the worker
that has the lane now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from typing import TypeVar

from firestore_outbox import log, metrics
from firestore_outbox.accounts.store import AccountStore, SharedLimit
from firestore_outbox.clock import Clock
from firestore_outbox.errors import Unwritable
from firestore_outbox.firestore.compare_and_set import AGAIN, Again, Contended, while_unavailable
from firestore_outbox.firestore.gateway import Committed, Conflict
from firestore_outbox.firestore.writes import WriteOp
from firestore_outbox.lane.holder import Holder, LaneLost
from firestore_outbox.lane.recent import Recent
from firestore_outbox.lane.state import Lane
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.outbox_document import Stored
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.store import MessageStore, completion
from firestore_outbox.sending.completion import WriteAgain, counted, lane_after, reconcile, thread_held_until
from firestore_outbox.sending.decide import Effect, ParkAccount, RetryAt, ThrottleApp, Verdict
from firestore_outbox.sending.refuse import refuse, unwritable

T = TypeVar("T")

ThrottleAppUntil = Callable[[datetime], Awaitable[None]]
"""Makes all accounts of the provider wait."""
PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class _Ended:
    claim: Stored
    verdict: Verdict
    written: asyncio.Future[Stored | None]


def count_attempt(verdict: Verdict) -> None:
    """Once it is written."""
    message, error = verdict.message, verdict.message.last_error
    log.attempt_ended(
        message.account_id,
        message.request_id,
        type(verdict).__name__,
        message.status,
        code=None if error is None else error.code.value,
        again_at=verdict.at if isinstance(verdict, RetryAt) else None,
    )
    metrics.attempt(message.status.value)


class Completer:
    def __init__(
        self,
        holder: Holder,
        *,
        messages: MessageStore,
        accounts: AccountStore,
        shared: SharedLimit | None,
        throttle_app: ThrottleAppUntil,
        clock: Clock,
    ) -> None:
        self._holder = holder
        self._throttle_app = throttle_app
        self._messages = messages
        self._accounts = accounts
        self._shared = shared
        self._clock = clock
        self._ended: list[_Ended] = []
        self._writer: asyncio.Task[None] | None = None
        self._freed: dict[str, str] = {}
        """threadId -> the message that the thread need not wait for any longer."""
        self._recent = holder.lane.recent
        """With everything that ended in this turn. Only the holder counts, so writing it twice adds nothing."""
        holder.count_with(lambda lane: replace(lane, recent=self._recent))

    async def complete(self, claim: Stored, verdict: Verdict) -> Stored | None:
        """The document as it is afterwards, or as another worker put it back in the queue; None if it was settled."""
        ended = _Ended(claim, verdict, asyncio.get_running_loop().create_future())
        self._ended.append(ended)
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_all())
        return await ended.written

    async def give_back(self, claim: Stored) -> Stored | None:
        """A claim that was never used: the document as if it had not been made, except for the count. None if it is not
        in the queue any more. Its place in the order is what it was, so it leaves no hold."""
        claimed_by = claim.valid.claimed_by

        async def attempt() -> Stored | Again | None:
            nonlocal claim
            again = claim.valid.unclaimed()
            result = await self._end(claim, again)
            if not isinstance(result, Conflict):
                return replace(claim, message=again, version=result.versions[0])
            found = await self._current(claim.request_id)
            current = found[0].message if found else None
            if not isinstance(current, OutboxMessage):
                return None
            claim = found[0]
            if current.status is OutboxStatus.QUEUED:
                return claim  # by our own write, whose answer did not come; or by the holder that took over
            return AGAIN if current.claimed_by == claimed_by else None

        try:
            return await self._messages.compare_and_set(attempt)
        except Contended:
            return None

    def tidied(self, lane: Lane) -> Lane:
        """The lane without the holds of messages that have ended: written when the lane is written anyway."""
        ended = {thread_id for thread_id, hold in lane.holds.items() if self._freed.get(thread_id) == hold.request_id}
        return lane.without_names(frozenset(ended & self._freed.keys()), self._clock())

    def count(self, verdict: Verdict, *, before: Recent | None = None) -> Recent:
        """Count an end for the console. Returns the counts before it; `before` takes an end back that was not
        written."""
        known = self._recent
        if before is None:
            self._recent = known.plus(self._clock(), counted(verdict))
        else:
            self._recent = before
        return known

    async def _write_all(self) -> None:
        """While one commit is under way, what ends gathers for the next."""
        try:
            while self._ended:
                batch, self._ended = self._ended, []
                try:
                    await self._write(batch)
                except BaseException as error:
                    for ended in batch:
                        if not ended.written.done():
                            ended.written.set_exception(_copy(error))
                    if not isinstance(error, Exception):
                        raise
        finally:
            self._writer = None

    async def _write(self, batch: list[_Ended]) -> None:
        try:
            await self._lane_first(batch)
        except LaneLost:
            for ended in batch:
                if thread_held_until(ended.verdict) is None:
                    await self._write_one(ended)
            raise
        writes = [completion(ended.claim, ended.verdict.message) for ended in batch]
        result = await self._commit([op for ops in writes for op in ops])
        if isinstance(result, Committed):
            position = 0
            for ended, ops in zip(batch, writes, strict=True):
                self._written(ended, replace(ended.claim, version=result.versions[position]))
                position += len(ops)
        elif len(batch) > 1 or result is None:
            for ended in batch:
                await self._write_one(ended)
        else:
            await self._reconciled(batch[0])

    async def _write_one(self, ended: _Ended) -> None:
        try:
            result = await self._end(ended.claim, ended.verdict.message)
        except Unwritable:
            if await self._refused(ended):
                return
            result = Conflict(maybe_ours=False)
        if isinstance(result, Conflict):
            await self._reconciled(ended)
        else:
            self._written(ended, replace(ended.claim, version=result.versions[0]))

    def _written(self, ended: _Ended, stored: Stored) -> None:
        message = ended.verdict.message
        count_attempt(ended.verdict)
        self.count(ended.verdict)
        self._let_go(ended)
        if not ended.written.done():
            ended.written.set_result(replace(stored, message=message))

    async def _refused(self, ended: _Ended) -> bool:
        """Firestore does not take the document back into the queue, or into doubt: it ends, and the others go on. False
        if it changed since the claim."""
        error = unwritable(ended.verdict.message, self._clock())
        result = await self._persistently(lambda: refuse(self._messages, ended.claim, error))
        if isinstance(result, Conflict):
            return False
        metrics.attempt(OutboxStatus.FAILED.value)
        if not ended.written.done():
            ended.written.set_result(None)
        return True

    async def _reconciled(self, ended: _Ended) -> None:
        """The slow path: the document changed since the claim."""
        claimed = ended.claim.valid
        found: list[Stored] = []

        async def attempt() -> bool | Again:
            """False: it needs no write of ours any more."""
            nonlocal found
            found = await self._current(claimed.request_id)
            current = found[0].message if found else None
            decision = reconcile(current if isinstance(current, OutboxMessage) else None, claimed, ended.verdict)
            if not isinstance(decision, WriteAgain):
                return False
            try:
                result = await self._end(found[0], decision.message)
            except Unwritable:
                return True if await self._refused(replace(ended, claim=found[0])) else AGAIN
            if isinstance(result, Conflict):
                return AGAIN
            again = replace(ended, verdict=replace(ended.verdict, message=decision.message))
            self._written(again, replace(found[0], version=result.versions[0]))
            return True

        with suppress(Contended):
            if await self._messages.compare_and_set(attempt):
                return
        metrics.attempt("settled")  # by its receipt, or by the holder that took over; or by our own write, unanswered
        self._let_go(ended)
        current = found[0].message if found else None
        is_queued = isinstance(current, OutboxMessage) and current.status is OutboxStatus.QUEUED
        if not ended.written.done():
            ended.written.set_result(found[0] if is_queued else None)

    def _let_go(self, ended: _Ended) -> None:
        if thread_held_until(ended.verdict) is None:
            self._freed[ended.verdict.message.thread_id] = ended.verdict.message.request_id

    async def _lane_first(self, batch: list[_Ended]) -> None:
        now = self._clock()
        verdicts = [ended.verdict for ended in batch]
        if any(thread_held_until(verdict) is not None or verdict.effects for verdict in verdicts):
            await self._persistently(
                lambda: self._holder.write(
                    lambda lane: reduce(lambda held, verdict: lane_after(held, verdict, now), verdicts, lane)
                )
            )
            for verdict in verdicts:
                if thread_held_until(verdict) is not None:
                    self._freed.pop(verdict.message.thread_id, None)
        for ended in batch:
            for effect in ended.verdict.effects:
                await self._apply(effect, ended.claim)

    async def _apply(self, effect: Effect, claim: Stored) -> None:
        shared = self._shared
        if isinstance(effect, ParkAccount):
            log.account_parked(self._holder.ref.key, effect.error.message)
            park = self._accounts.park
            await self._persistently(lambda: park(self._holder.ref.key, effect.error, since=claim.version))
        elif isinstance(effect, ThrottleApp):
            await self._persistently(lambda: self._throttle_app(effect.until))
            if shared is not None:  # lanes look at it before each send: they learn at once
                await self._persistently(lambda: shared.pause(effect.until))

    async def _commit(self, writes: Sequence[WriteOp]) -> Committed | Conflict | None:
        """None: one of them can never be written; see which."""
        try:
            return await self._persistently(lambda: self._messages.write(writes))
        except Unwritable:
            return None

    async def _end(self, document: Stored, new: OutboxMessage) -> Committed | Conflict:
        return await self._persistently(lambda: self._messages.end(document, new))

    async def _current(self, request_id: str) -> list[Stored]:
        """The document as it is now, if it is there."""
        return await self._persistently(lambda: self._messages.get([request_id]))

    async def _persistently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Until it is done, or our lease has ended: only this process knows the outcome, so it is worth waiting for."""
        return await while_unavailable(
            work, pause_seconds=PAUSE_SECONDS, give_up=lambda: self._clock() >= self._holder.hold.until
        )


def _copy(error: BaseException) -> BaseException:
    """One exception object must not be raised in several tasks: each adds its own traceback."""
    try:
        return type(error)(*error.args)
    except TypeError:
        return RuntimeError(repr(error))
