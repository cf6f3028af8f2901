"""How a run stands: counted on request, and stored once at its end."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from firestore_outbox import log
from firestore_outbox.accounts.account import Account, Open, sending
from firestore_outbox.accounts.store import AccountStore
from firestore_outbox.accounts.window import is_open
from firestore_outbox.clock import Clock
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.compare_and_set import AGAIN, Again, Contended
from firestore_outbox.firestore.writes import DELETE, WriteOp
from firestore_outbox.health.days import days_of
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.lane.state import Lane
from firestore_outbox.lane.store import LaneStore
from firestore_outbox.messages.states import MessageStatus, OutboxStatus
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.notifications.notification import Kind, OfRun
from firestore_outbox.reminders.forecast import Forecast, forecast, held_up, starts_at
from firestore_outbox.reminders.progress import Rate, estimated, learned
from firestore_outbox.reminders.run import Counts, Run, closed_sentence, error_summary, verdict
from firestore_outbox.reminders.run_queries import RunQueries
from firestore_outbox.reminders.store import RunStore, StoredRun, count_fields, rate_of

TRIES = 8
"""Times that the documents of a run are counted, at most."""
WHILE_IT_RUNS = ("waitsFor", "overlaps", "rate")
"""Fields of a run document that its end removes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a run's end depends on, read at one time."""

    account: Account | None
    """None: the account is not usable, and the forecast's warning says why."""
    lane: Lane | None
    """The account's outbox lane; None without an account."""
    forecast: Forecast
    rate: Rate | None
    ahead: int
    """Other messages of the account that come due before the run's last one."""
    each: timedelta = timedelta(0)
    """How long one message takes, as far as is known."""


@dataclass(frozen=True, slots=True)
class Summary:
    runs: RunStore
    messages: MessageStore
    accounts: AccountStore
    lanes: LaneStore
    queries: RunQueries
    clock: Clock
    pause: timedelta = timedelta(0)
    """The average pause between two parts of a message."""

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

    async def queued(self, run: Run) -> int:
        return await self.messages.count_of_run(run.run_id, OutboxStatus.QUEUED)

    async def is_open(self, run: Run) -> bool:
        """Whether something may still happen to its documents without a person or a receipt."""
        return await self.is_in_sight(run) or bool(await self.messages.of_run(run.run_id, OutboxStatus.QUEUED, 1))

    async def is_in_sight(self, run: Run) -> bool:
        """Whether any of its documents may be tried, be it after a receipt that does not come."""
        return await self.messages.is_in_sight(run.run_id)

    async def end(self, stored: StoredRun, *, notify: bool) -> bool:
        """`notify`: with a notification in the same commit. False: the run was changed meanwhile; look again."""
        run, counts = stored.run, await self._final_counts(stored.run)
        status = verdict(run, counts)
        reasons = await self.reasons(run, counts)
        summary = error_summary(
            run,
            counts,
            most_often=_commonest(reasons.get(OutboxStatus.FAILED.value)),
            skipped_because=_commonest(reasons.get(OutboxStatus.SKIPPED.value)),
        )
        fields: dict[str, Any] = {
            "status": status.value,
            "requested": DELETE,
            "counts": count_fields(counts),
            "countedAt": self.clock(),
            "reasons": reasons or DELETE,
            **dict.fromkeys(WHILE_IT_RUNS, DELETE),
            "errorSummary": DELETE if summary is None else summary,
            "finishedAt": self.clock(),
        }
        told = [] if not notify else [self._notification(run, Kind.RUN_ENDED, counts, status.value, summary)]
        if not await self.runs.write(stored, fields, told):
            return False
        log.run_ended(run.account_id, run.run_id, status.value)
        return True

    async def window_closed(self, run: Run, opens_at: datetime) -> WriteOp:
        """The notification of a run that goes on when its window opens again."""
        counts = await self.counts(run)
        text = f"{closed_sentence(run, counts)} It goes on at {opens_at.astimezone(run.window.zone):%Y-%m-%d %H:%M}."
        occasion = run.window_end_at.isoformat()
        return self._notification(run, Kind.WINDOW_CLOSED, counts, run.status.value, text, occasion)

    async def paused_itself(self, run: Run, because: str) -> WriteOp:
        """The notification of a run that waits for a person."""
        counts, at = await self.counts(run), self.clock()
        text = f"Paused: {because}. {counts.sent} of {counts.total} groups delivered. It waits until it is resumed."
        return self._notification(run, Kind.RUN_PAUSED, counts, run.status.value, text, at.isoformat())

    def _notification(
        self, run: Run, kind: Kind, counts: Counts, status: str, text: str | None, occasion: str = ""
    ) -> WriteOp:
        told = OfRun(
            kind=kind,
            account_id=run.account_id,
            run_id=run.run_id,
            reminder_id=run.reminder_id,
            status=status,
            text=text,
            sent=counts.sent,
            total=counts.total,
            occasion=occasion,
        )
        path = f"{paths.notifications(run.account_id)}/{told.notification_id}"
        return WriteOp(path, told.fields(self.clock()), masked=False)

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

    async def reasons(self, run: Run, counts: Counts) -> dict[str, dict[str, int]]:
        """Why messages failed or were skipped: status -> error code -> how many. Costs two reads for each code that
        occurs, whatever the number of messages."""
        found: dict[str, dict[str, int]] = {}
        for status, total in ((OutboxStatus.FAILED, counts.failed), (OutboxStatus.SKIPPED, counts.skipped)):
            by_code: dict[str, int] = {}
            code: str | None = None
            while sum(by_code.values()) < total:
                code = await self.queries.next_reason(run.run_id, status, code)
                if code is None:
                    break
                by_code[code] = await self.queries.count_reason(run.run_id, status, code)
            if by_code:
                found[status.value] = by_code
        return found

    async def forecast(self, stored: StoredRun) -> Forecast:
        """When the run ends as things are now, the state of its account included."""
        return (await self.standing(stored, await self.queued(stored.run))).forecast

    async def standing(self, stored: StoredRun, left: int, *, learn: bool = False) -> Standing:
        """`left` are the run's queued messages. `learn`: take a new sample of the rate, for the run document."""
        run, now, rate = stored.run, self.clock(), rate_of(stored.data)
        account = await self.accounts.read(run.account_id)
        if not isinstance(account, Account):
            told = Forecast(ends_at=None, warning=account.sentence, look_at=now)
            return Standing(account=None, lane=None, forecast=told, ahead=0, rate=rate)
        lane = (await self.lanes.read(outbox_lane(run.account_id))).lane
        closed = sending(account, now)
        start = starts_at(now, closed)
        interval = None if account.cap is None else account.cap.stretched(lane.rate_factor)
        each = estimated(interval, parts=len(run.parts), concurrency=account.concurrency, pause=self.pause)
        ahead = max(0, await self.queries.count_due(run.account_id, start + left * each) - left)
        if learn:
            may_send = isinstance(closed, Open) and is_open(run.window, now)
            rate = learned(rate, left + ahead, now, is_open=may_send)
        if rate is not None and rate.each is not None:
            each = max(rate.each, interval or timedelta(0))
        told = forecast(
            targets=left,
            ahead=ahead,
            interval=each,
            window=run.window,
            window_end=run.window_end_at,
            on_window_end=run.on_window_end,
            now=start,
            days=days_of(account.caps, account.tier, run.window.zone, lane.day_use),
        )
        return Standing(account=account, lane=lane, forecast=held_up(told, closed), ahead=ahead, rate=rate, each=each)


def _commonest(reasons: Mapping[str, int] | None) -> str | None:
    return max(reasons, key=lambda code: reasons[code]) if reasons else None
