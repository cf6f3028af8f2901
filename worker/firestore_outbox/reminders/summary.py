"""How a run stands: counted when somebody asks, and stored once at its end."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from firestore_outbox import log
from firestore_outbox.accounts.account import Account, sending
from firestore_outbox.accounts.store import AccountStore
from firestore_outbox.clock import Clock
from firestore_outbox.firestore.compare_and_set import AGAIN, Again, Contended
from firestore_outbox.firestore.writes import DELETE
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.lane.store import LaneStore
from firestore_outbox.messages.model import MessageStatus, OutboxMessage, OutboxStatus
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.reminders.forecast import Forecast, forecast, held_up, starts_at
from firestore_outbox.reminders.run import Counts, Run, error_summary, verdict
from firestore_outbox.reminders.store import RunStore, StoredRun, count_fields

TRIES = 8
"""Times that the documents of a run are counted, at most."""
SAMPLE = 50
"""Failed documents that are looked at for the commonest error."""


@dataclass(frozen=True, slots=True)
class Summary:
    runs: RunStore
    messages: MessageStore
    accounts: AccountStore
    lanes: LaneStore
    clock: Clock

    async def counts(self, run: Run) -> Counts:
        """Each is a count() of its own, so while the run goes on they may be a moment apart."""
        of, shown = self.messages.count_of_run, self.messages.count_shown_of_run
        return Counts(
            total=run.total,
            pending=await of(run.run_id, OutboxStatus.QUEUED),
            sending=await of(run.run_id, OutboxStatus.SENDING),
            sent=await of(run.run_id, OutboxStatus.SENT),
            failed=await of(run.run_id, OutboxStatus.FAILED),
            skipped=await of(run.run_id, OutboxStatus.SKIPPED),
            cancelled=await of(run.run_id, OutboxStatus.CANCELLED),
            uncertain=await of(run.run_id, OutboxStatus.UNCERTAIN),
            delivered=await shown(run.run_id, MessageStatus.DELIVERED),
            read=await shown(run.run_id, MessageStatus.READ),
        )

    async def is_open(self, run: Run) -> bool:
        """Whether something may still happen to its documents without a person or a receipt."""
        return await self.is_in_sight(run) or bool(await self.messages.of_run(run.run_id, OutboxStatus.QUEUED, 1))

    async def is_in_sight(self, run: Run) -> bool:
        """Whether any of its documents may be tried, be it after a receipt that does not come."""
        return await self.messages.is_in_sight(run.run_id)

    async def end(self, stored: StoredRun) -> bool:
        """False: somebody changed the run meanwhile; look again."""
        run, counts = stored.run, await self._final_counts(stored.run)
        status = verdict(run, counts)
        summary = error_summary(run, counts, most_often=await self._most_often(run, counts))
        fields: dict[str, Any] = {
            "status": status.value,
            "requested": DELETE,
            "counts": count_fields(counts),
            "errorSummary": DELETE if summary is None else summary,
            "finishedAt": self.clock(),
        }
        if not await self.runs.write(stored, fields):
            return False
        log.run_ended(run.account_id, run.run_id, status.value)
        return True

    async def _final_counts(self, run: Run) -> Counts:
        """Nothing is open any more, but receipts still move documents from one end to another, and one that moves
        between two counts is in both or in neither: then they are taken again."""
        counts: Counts | None = None

        async def attempt() -> Counts | Again:
            nonlocal counts
            counts = await self.counts(run)
            return counts if counts.adds_up else AGAIN

        with suppress(Contended):
            return await self.runs.compare_and_set(attempt, tries=TRIES)
        assert counts is not None, "they were counted"
        return counts

    async def forecast(self, run: Run) -> Forecast:
        """When the run ends as things are now, the state of its account included."""
        account, now = await self.accounts.read(run.account_id), self.clock()
        if not isinstance(account, Account):
            return Forecast(ends_at=None, warning=account.sentence, look_at=now)
        cap, closed = account.cap, sending(account, now)
        lane = (await self.lanes.read(outbox_lane(run.account_id))).lane
        left = await self.messages.count_of_run(run.run_id, OutboxStatus.QUEUED)
        waiting = await self.messages.count_waiting(run.account_id)
        told = forecast(
            targets=left,
            ahead=max(0, waiting - left),
            interval=None if cap is None else cap.stretched(lane.rate_factor),
            window=run.window,
            window_end=run.window_end_at,
            on_window_end=run.on_window_end,
            now=starts_at(now, closed),
        )
        return held_up(told, closed)

    async def _most_often(self, run: Run, counts: Counts) -> str | None:
        if not counts.failed:
            return None
        found = await self.messages.of_run(run.run_id, OutboxStatus.FAILED, SAMPLE)
        errors = [stored.message.last_error for stored in found if isinstance(stored.message, OutboxMessage)]
        codes = Counter(error.code.value for error in errors if error is not None)
        return codes.most_common(1)[0][0] if codes else None
