"""The end of an attempt, written: one commit for all that ended meanwhile, with preconditions and no read.

What a message leaves on its lane (a hold on its thread, a pause) is written before the message itself goes back to the
queue: a crash in between leaves a hold for a message that the takeover settles, never a message that others overtake.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from worker import log
from worker.clock import Clock
from worker.domain.attempt import ParkAccount, ThrottleApp, Verdict
from worker.domain.completion import WriteAgain, lane_after, reconcile, thread_held_until
from worker.domain.lane import Lane
from worker.domain.message import OutboxMessage
from worker.errors import StoreUnavailable
from worker.lane.session import LaneLost, Session
from worker.store.accounts import AccountStore, SharedLimit
from worker.store.gateway import Committed, Conflict, WriteOp
from worker.store.messages import MessageStore, Stored, completion

TRIES = 6
PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class _Ended:
    claim: Stored
    verdict: Verdict
    written: asyncio.Future[Stored | None]


class Completer:
    def __init__(
        self,
        session: Session,
        *,
        messages: MessageStore,
        accounts: AccountStore,
        shared: SharedLimit | None,
        clock: Clock,
    ) -> None:
        self._session = session
        self._messages = messages
        self._accounts = accounts
        self._shared = shared
        self._clock = clock
        self._ended: list[_Ended] = []
        self._writer: asyncio.Task[None] | None = None
        self._freed: set[str] = set()

    async def complete(self, claim: Stored, verdict: Verdict) -> Stored | None:
        """The document as it is afterwards; None if somebody else settled it."""
        ended = _Ended(claim, verdict, asyncio.get_running_loop().create_future())
        self._ended.append(ended)
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_all())
        return await ended.written

    def tidied(self, lane: Lane) -> Lane:
        """The lane without the holds of messages that have ended: written when the lane is written anyway."""
        return lane.without_holds(frozenset(self._freed & lane.holds.keys()))

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
                    if not isinstance(error, StoreUnavailable | LaneLost):
                        raise
        finally:
            self._writer = None

    async def _write(self, batch: list[_Ended]) -> None:
        verdicts = [ended.verdict for ended in batch]
        await self._lane_first(verdicts)
        writes = [completion(ended.claim, ended.verdict.message) for ended in batch]
        result = await self._commit([op for ops in writes for op in ops])
        if not isinstance(result, Conflict):
            position = 0
            for ended, ops in zip(batch, writes, strict=True):
                version = result.versions[position]
                position += len(ops)
                ended.written.set_result(replace(ended.claim, message=ended.verdict.message, version=version))
        elif len(batch) > 1:
            for ended in batch:
                await self._write_one(ended)
        else:
            await self._reconciled(batch[0])
        for verdict in verdicts:
            log.attempt_ended(verdict.message.request_id, type(verdict).__name__, verdict.message.status)
            if thread_held_until(verdict) is None:
                self._freed.add(verdict.message.thread_id)

    async def _write_one(self, ended: _Ended) -> None:
        writes = completion(ended.claim, ended.verdict.message)
        result = await self._commit(writes)
        if isinstance(result, Conflict):
            await self._reconciled(ended)
        else:
            ended.written.set_result(replace(ended.claim, message=ended.verdict.message, version=result.versions[0]))

    async def _reconciled(self, ended: _Ended) -> None:
        """The slow path: somebody touched the document since the claim."""
        claimed = ended.claim.message
        assert isinstance(claimed, OutboxMessage), "only valid documents are claimed"
        for _ in range(TRIES):
            found = await self._messages.get([claimed.request_id])
            current = found[0].message if found else None
            decision = reconcile(current if isinstance(current, OutboxMessage) else None, claimed, ended.verdict)
            if not isinstance(decision, WriteAgain):
                break
            writes = completion(found[0], decision.message)
            result = await self._commit(writes)
            if not isinstance(result, Conflict):
                ended.written.set_result(replace(found[0], message=decision.message, version=result.versions[0]))
                return
        ended.written.set_result(None)

    async def _lane_first(self, verdicts: list[Verdict]) -> None:
        now = self._clock()
        if any(thread_held_until(verdict) is not None or verdict.effects for verdict in verdicts):
            await self._session.write(
                lambda lane: reduce(lambda held, verdict: lane_after(held, verdict, now), verdicts, lane)
            )
            self._freed -= {v.message.thread_id for v in verdicts if thread_held_until(v) is not None}
        for effect in [effect for verdict in verdicts for effect in verdict.effects]:
            if isinstance(effect, ParkAccount):
                log.account_parked(self._session.ref.key, effect.error.message)
                await self._accounts.park(self._session.ref.key, effect.error)
            elif isinstance(effect, ThrottleApp) and self._shared is not None:
                await self._shared.pause(effect.until)

    async def _commit(self, writes: Sequence[WriteOp]) -> Committed | Conflict:
        """Until it is written, or our lease is over: an outcome known to nobody else is worth waiting for."""
        while True:
            try:
                return await self._messages.write(writes)
            except StoreUnavailable:
                if self._clock() >= self._session.hold.until:
                    raise
                await asyncio.sleep(PAUSE_SECONDS)


def _copy(error: BaseException) -> BaseException:
    """One exception object must not be raised in several tasks: each adds its own traceback."""
    return type(error)(*error.args)
