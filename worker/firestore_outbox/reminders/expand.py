"""Targets become outbox documents, a page at a time.

A page is one commit: its documents, and how far the run has got. The documents' ids are derived from the run's seed and
the target, so a page that is done again finds its documents there, and a target that is listed twice gets one. A
document of another account or run under such an id is not the target's: the run takes the next id that it derives, and
after `MOST_DERIVED` of those a random one, which a person who can read the seed cannot foresee either.

What is due at once, or only when the window opens, depends on the database's time: a worker whose clock is ahead would
take the window for open, and another, whose clock is right, would send what it made.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, assert_never

from firestore_outbox import log
from firestore_outbox.accounts.account import Account, InvalidAccount
from firestore_outbox.accounts.store import AccountStore
from firestore_outbox.accounts.window import Window, are_open, next_open
from firestore_outbox.clock import Clock
from firestore_outbox.consent.frequency import Counting
from firestore_outbox.consent.frequency_store import Frequency, Tally, frequency_capped
from firestore_outbox.consent.suppressions import Suppressions, opted_out
from firestore_outbox.consent.zones import hours_of
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.compare_and_set import AGAIN, Again, Contended
from firestore_outbox.firestore.writes import SERVER_TIME, ServerTime, WriteOp, create
from firestore_outbox.messages.model import OutboxMessage, StoredPart
from firestore_outbox.messages.new_documents import identity_fields, outbox_fields
from firestore_outbox.messages.outbox_document import skipped_fields
from firestore_outbox.messages.priority import Priority
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode
from firestore_outbox.reminders.choices import Category, OnWindowEnd
from firestore_outbox.reminders.due_times import due_at
from firestore_outbox.reminders.looks import RandomId
from firestore_outbox.reminders.reminder import LATE
from firestore_outbox.reminders.run import (
    TRANSITIONS,
    Command,
    Cursor,
    Run,
    RunEvent,
    Target,
    Whose,
    request_id_of,
    whose,
)
from firestore_outbox.reminders.store import RunStore, StoredReminder, StoredRun, cursor_fields
from firestore_outbox.reminders.targets import parse_targets
from firestore_outbox.reminders.variables import filled, missing, placeholders
from firestore_outbox.sending.deadline import last_moment, next_chance, outside_hours
from firestore_outbox.transitions import after

MOST = 300
"""Documents in one commit."""
MOST_DERIVED = 8
"""Ids that are derived for a target before a random one is taken. With a random id, a target that is listed twice and
whose ids are all taken gets two documents."""
MOST_TRIES = 20
"""Commits tried for a page in one step: more than there are derived ids. The lane's next step begins anew."""
MOST_BYTES = 2_000_000
"""Of one commit, roughly. Google's emulator takes 4 MiB, production 10."""
COMMITTED_WITHIN = timedelta(seconds=20)
"""The answer that told us the database's time, and the commit: each ends within ten seconds."""


@dataclass(frozen=True, slots=True)
class Page:
    targets: Sequence[Target]
    cursor: Cursor
    is_last: bool


@dataclass(frozen=True, slots=True)
class Expand:
    runs: RunStore
    messages: MessageStore
    accounts: AccountStore
    suppressions: Suppressions
    frequency: Frequency
    random_id: RandomId

    async def page(self, stored: StoredRun, database_time: Clock) -> bool:
        """The next page. Whether it was the last."""
        run = stored.run
        page = await self._next(run, page_size(run))
        new = {request_id_of(run, target.target_id): target for target in page.targets}
        taken: Counter[str] = Counter()

        async def attempt() -> bool | Again:
            nonlocal new
            if await self._commit(stored, page, new, database_time):
                return page.is_last
            current = await self.runs.run(run.run_id)
            if current is None or current.version != stored.version:
                # By another holder, or by our own commit whose answer did not come, and then it may have been the last.
                return current is not None and current.run.is_expanded
            new = self._free(run, new, await self.runs.existing(list(new)), taken)
            return AGAIN

        try:
            return await self.runs.compare_and_set(attempt, tries=MOST_TRIES)
        except Contended:
            return False

    def _free(
        self, run: Run, new: Mapping[str, Target], there: Mapping[str, Mapping[str, Any]], taken: Counter[str]
    ) -> dict[str, Target]:
        """What is still to be written, by another id where the first one is taken."""
        left: dict[str, Target] = {}
        for request_id, target in new.items():
            found = whose(run, there.get(request_id))
            match found:
                case Whose.FREE:
                    left[request_id] = target
                case Whose.OURS:
                    continue
                case Whose.TAKEN:
                    log.request_id_taken(run.account_id, run.run_id, request_id)
                    taken[target.target_id] += 1
                    tried = taken[target.target_id]
                    derived = request_id_of(run, target.target_id, tried)
                    left[derived if tried < MOST_DERIVED else self.random_id()] = target
                case _:
                    assert_never(found)
        return left

    async def _commit(self, stored: StoredRun, page: Page, new: Mapping[str, Target], database_time: Clock) -> bool:
        run = stored.run
        account = await self.accounts.read(run.account_id)
        interval = interval_of(account)
        kept_out = await self._kept_out(stored, page, account)
        now = database_time()
        start = run.started_at or _start(run, now)
        addresses = {target.to for target in new.values() if target.fault is None} - kept_out
        tally = await self._tally(run, account, start, addresses)
        documents = [
            _document(
                run,
                request_id,
                target,
                in_the_queue(due_at(run.total + place, start, interval), start, now),
                now,
                is_kept_out=target.to in kept_out,
                tally=tally,
                hours=_hours(account, target),
            )
            for place, (request_id, target) in enumerate(new.items())
        ]
        fields: dict[str, Any] = {
            "cursor": cursor_fields(page.cursor),
            "expanded": page.is_last,
            "total": run.total + len(new),
            "startedAt": start,
        }
        if page.is_last:
            fields["status"] = after(TRANSITIONS, run.status, RunEvent.EXPANDED).value
        return await self.runs.write(stored, fields, documents if tally is None else [*documents, *tally.writes()])

    async def _kept_out(self, stored: StoredRun, page: Page, account: Account | InvalidAccount) -> frozenset[str]:
        """The addresses of the page that opted out. With the last page, targets that were made for an address before it
        opted out are skipped, too. An account without opt-outs pays nothing for this."""
        if not isinstance(account, Account) or not account.is_suppressing:
            return frozenset()
        if page.is_last:
            began = stored.data.get("createdAt", stored.run.fire_at)
            await self.suppressions.skip_added_since(stored.run.account_id, began - COMMITTED_WITHIN)
        return await self.suppressions.among(stored.run.account_id, {target.to for target in page.targets})

    async def _tally(
        self, run: Run, account: Account | InvalidAccount, start: datetime, addresses: Collection[str]
    ) -> Tally | None:
        """None: the run's targets are not counted, and nothing is read or written for that."""
        if run.category is not Category.MARKETING or not isinstance(account, Account) or account.frequency_cap is None:
            return None
        counting = Counting(
            cap=account.frequency_cap, at=_counts_at(run, start), run_id=run.run_id, retry_of=run.retry_of
        )
        return await self.frequency.tally(run.account_id, counting, addresses)

    # --- where targets come from

    async def _next(self, run: Run, size: int) -> Page:
        if run.retry_of is not None:
            return await self._failed_of(run, run.retry_of, size)
        assert run.reminder_id is not None, "a run is a reminder's, or another run's"
        stored = await self.runs.reminder(run.reminder_id)
        inline = stored.reminder.targets if isinstance(stored, StoredReminder) else ()
        cursor = run.cursor or Cursor(chunk="", index=0)
        if not cursor.chunk and cursor.index < len(inline):
            targets = inline[cursor.index : cursor.index + size]
            return Page(targets, Cursor(chunk="", index=cursor.index + len(targets)), is_last=False)
        return await self._chunked(run, cursor, size)

    async def _chunked(self, run: Run, cursor: Cursor, size: int) -> Page:
        assert run.reminder_id is not None
        index = cursor.index if cursor.chunk else 0
        chunk = await self.runs.chunk_named(run.reminder_id, cursor.chunk) if cursor.chunk else None
        targets: Sequence[Target] = ()
        while True:
            if chunk is not None:
                parsed = parse_targets(chunk.targets, chunk.name)
                if isinstance(parsed, str):
                    log.targets_invalid(run.account_id, run.run_id, chunk.name, parsed)
                else:
                    targets = parsed[index : index + size]
            if targets and chunk is not None:
                return Page(targets, Cursor(chunk=chunk.name, index=index + len(targets)), is_last=False)
            chunk = await self.runs.chunk(run.reminder_id, after=chunk.name if chunk is not None else cursor.chunk)
            if chunk is None:
                return Page((), Cursor(chunk=cursor.chunk, index=index), is_last=True)
            index = 0

    async def _failed_of(self, run: Run, run_id: str, size: int) -> Page:
        """With the parts that each had: values of variables are in them."""
        cursor = run.cursor
        after = None if cursor is None or not cursor.chunk else cursor.chunk
        found = await self.messages.of_run(run_id, OutboxStatus.FAILED, size, after)
        targets = [
            Target(
                target_id=message.target_id,
                to=message.to,
                timezone=message.hours[0].zone.key if len(message.hours) == 1 else None,
                parts=message.parts if run.is_personal else None,
            )
            for message in (stored.message for stored in found)
            if isinstance(message, OutboxMessage) and message.target_id is not None
        ]
        last = found[-1].request_id if found else (after or "")
        return Page(targets, Cursor(chunk=last, index=0), is_last=not found)


def _start(run: Run, now: datetime) -> datetime:
    """When its window is open; now, if it is too late for that."""
    opening = next_open(run.window, max(now, run.fire_at))
    return opening if opening < run.window_end_at else max(now, run.fire_at)


def _counts_at(run: Run, start: datetime) -> datetime:
    """Of the frequency cap: the time in the schedule, so that runs a day apart are a day apart; if the run starts much
    later, because its time was missed or its window opens then, that time."""
    return run.fire_at if start - run.fire_at <= LATE else start


async def send_interval(accounts: AccountStore, account_id: str) -> timedelta | None:
    """One send's share of time at the account's configured pace; None without one."""
    return interval_of(await accounts.read(account_id))


def interval_of(account: Account | InvalidAccount) -> timedelta | None:
    return account.cap.interval if isinstance(account, Account) and account.cap is not None else None


def page_size(run: Run) -> int:
    """As many as a commit takes within Firestore's limits."""
    one = len(json.dumps([part.model_dump(mode="json") for part in run.parts])) + 1_000
    return max(1, min(MOST, MOST_BYTES // one))


def in_the_queue(due: datetime, start: datetime, now: datetime) -> datetime | ServerTime:
    """The time to write for what is due then: none that has passed when it is written. A lane that has read up to its
    present would not see it, and send what people wrote later first. If it may be over by then, it is the time of the
    commit; but not before the run starts. `now` is the database's, or a little before it."""
    if due > now + COMMITTED_WITHIN:
        return due
    return SERVER_TIME if start <= now else now + COMMITTED_WITHIN


def _document(
    run: Run,
    request_id: str,
    target: Target,
    due: datetime | ServerTime,
    now: datetime,
    *,
    is_kept_out: bool,
    tally: Tally | None,
    hours: tuple[Window, ...],
) -> WriteOp:
    own: tuple[StoredPart, ...] = run.parts if target.parts is None else target.parts
    parts = [part.model_dump(exclude_none=True) for part in own]
    reason = target.fault
    if run.is_personal and target.parts is None:
        reason = reason or _lacking(placeholders(parts), target)
        parts = filled(parts, target.variables)
    identity = identity_fields(request_id=request_id, account_id=run.account_id, to=target.to, parts=parts)
    resumes = run.window if run.on_window_end is OnWindowEnd.RESUME_NEXT_DAY else None
    due, end, error = _within(hours, resumes, due, run.window_end_at, now)
    fields = outbox_fields(
        identity,
        server_time=SERVER_TIME,
        due=None if run.requested is Command.PAUSE else due,
        send_by=last_moment(end),
        runId=run.run_id,
        targetId=target.target_id,
        priority=Priority.BULK.value,
        window=None if resumes is None else _window_fields(resumes),
        recipientHours=_hours_fields(hours) if hours else None,
    )
    if is_kept_out:
        fields |= skipped_fields(opted_out(now))
    elif reason is not None:
        fields |= skipped_fields(DeliveryError(code=ErrorCode.INVALID_MESSAGE, message=reason, retryable=False, at=now))
    elif error is not None:
        fields |= skipped_fields(error)
    elif tally is not None and not tally.admits(target.to):
        fields |= skipped_fields(frequency_capped(now))
    return create(paths.outbox(request_id), fields)


def _lacking(names: Sequence[str], target: Target) -> str | None:
    name = missing(names, target.variables)
    return None if name is None else f"the target {target.target_id} has no value for the variable {name}"


def _hours(account: Account | InvalidAccount, target: Target) -> tuple[Window, ...]:
    """The recipient's hours; none if the account sets none."""
    if not isinstance(account, Account) or account.recipient_hours is None or target.fault is not None:
        return ()
    return hours_of(account.recipient_hours, target.to, target.timezone)


def _within(
    hours: tuple[Window, ...], resumes: Window | None, due: datetime | ServerTime, end: datetime, now: datetime
) -> tuple[datetime | ServerTime, datetime, DeliveryError | None]:
    """When the target may go, the end of the window for that, and why it never may."""
    at = now if isinstance(due, ServerTime) else due
    if are_open(hours, at):
        return due, end, None
    chance = next_chance(hours, resumes, at, last_moment(end))
    return (due, end, outside_hours(now)) if chance is None else (chance.to, chance.window_end, None)


def _hours_fields(hours: Sequence[Window]) -> dict[str, Any]:
    zones = [window.zone.key for window in hours]
    return {"startHour": hours[0].start_hour, "endHour": hours[0].end_hour, "timezones": zones}


def _window_fields(hours: Window) -> dict[str, Any]:
    return {"startHour": hours.start_hour, "endHour": hours.end_hour, "timezone": hours.zone.key}
