"""Runs at their edges: commands that cross each other, what is in flight or in doubt meanwhile, odd times."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import SERVER_TIME, WriteOp, update
from firestore_outbox.lane.ref import reminder_lane
from firestore_outbox.local.simulators.faults import Faults
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.reminders.control import NotTaken, Taken
from firestore_outbox.reminders.expand import Expand, in_the_queue
from firestore_outbox.reminders.reminder_states import ReminderStatus
from firestore_outbox.reminders.run import Command, run_id_of
from firestore_outbox.reminders.store import StoredRun
from tests.calm import START, Calm, simulate
from tests.reminders.support import call_times, only_run, remind, runs, targets_called, until_ended

RUN = run_id_of("rem", START)
UNKNOWN_OUTCOMES = Faults(lostResponseRate=1.0, receiptLossRate=1.0)


async def ask(calm: Calm, command: Command) -> Taken | NotTaken:
    return await calm.world.client.system.control.ask(RUN, command)


def attempts(calm: Calm) -> Counter[str]:
    return Counter(attempt.request_id for attempt in calm.world.truth.attempts)


# --- pause


@pytest.mark.parametrize(
    "faults",
    [
        Faults(latencyMs=4000, errorRate=1.0, errorCode="overloaded", forCalls=3),
        Faults(latencyMs=4000, lostResponseRate=1.0, receiptLossRate=1.0, forCalls=3),
    ],
    ids=["refused", "in doubt"],
)
def test_a_run_is_paused_only_when_what_was_in_flight_can_not_be_tried_again(faults: Faults) -> None:
    async def body(calm: Calm) -> None:
        await calm.account(onUncertain="resend")
        calm.world.provider.faults = faults
        await remind(calm, targets=6)
        await calm.until(lambda: calm.statuses()["sending"] == 3)
        assert await ask(calm, Command.PAUSE) == Taken(RUN)
        await calm.until(lambda: only_run(calm)["status"] == "paused")
        tried = len(calm.world.truth.attempts)
        await asyncio.sleep(900)
        assert len(calm.world.truth.attempts) == tried
        assert calm.statuses()["queued"] >= 3
        assert await ask(calm, Command.RESUME) == Taken(RUN)
        await until_ended(calm)
        assert only_run(calm)["counts"]["sent"] == 6

    simulate(body)


def test_a_run_that_is_done_before_it_could_be_paused_has_ended() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        calm.world.provider.faults = Faults(latencyMs=2000)
        await remind(calm, targets=3)
        await calm.until(lambda: calm.statuses()["sending"] == 3)
        assert await ask(calm, Command.PAUSE) == Taken(RUN)
        await until_ended(calm, within=timedelta(minutes=1))
        assert only_run(calm)["status"] == "success"

    simulate(body)


def test_a_pause_takes_back_a_resume_that_was_not_carried_out_yet() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 60})
        await remind(calm, targets=60)
        await calm.until(lambda: calm.statuses()["sent"] >= 5)
        await ask(calm, Command.PAUSE)
        await calm.until(lambda: only_run(calm)["status"] == "paused")
        assert isinstance(await ask(calm, Command.PAUSE), NotTaken)
        assert await ask(calm, Command.RESUME) == Taken(RUN)
        assert await ask(calm, Command.PAUSE) == Taken(RUN)
        await calm.until(lambda: "requested" not in only_run(calm))
        await asyncio.sleep(60)
        sent = calm.statuses()["sent"]
        assert only_run(calm)["status"] == "paused"
        await asyncio.sleep(600)
        assert calm.statuses()["sent"] == sent
        await ask(calm, Command.RESUME)
        await until_ended(calm)
        assert set(targets_called(calm).values()) == {1}
        assert only_run(calm)["counts"]["sent"] == 60

    simulate(body)


def test_a_run_that_is_paused_while_its_targets_are_made_sends_nothing_and_loses_none() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 60})
        await remind(calm, targets=1500)
        await calm.until(lambda: RUN in runs(calm) and only_run(calm)["total"] >= 300)
        assert await ask(calm, Command.PAUSE) == Taken(RUN)
        await calm.until(lambda: only_run(calm)["status"] == "paused")
        assert only_run(calm)["total"] == 1500
        sent = calm.statuses()["sent"]
        await asyncio.sleep(600)
        assert calm.statuses()["sent"] == sent
        assert calm.statuses()["queued"] == 1500 - sent
        await ask(calm, Command.CANCEL)
        await until_ended(calm)
        assert only_run(calm)["counts"]["cancelled"] == 1500 - sent

    simulate(body, receipts=False)


def test_a_paused_run_whose_window_closes_is_skipped_and_one_that_resumes_stays_paused() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 60})
        await remind(calm, targets=50, window={"startHour": 0, "endHour": 13})
        await remind(calm, "other", targets=50, window={"startHour": 14, "endHour": 13}, onWindowEnd="resumeNextDay")
        other = run_id_of("other", START)
        await calm.until(lambda: calm.statuses()["sent"] >= 5)
        await ask(calm, Command.PAUSE)
        await calm.world.client.system.control.ask(other, Command.PAUSE)
        await asyncio.sleep(2 * 3600)
        stopped, waiting = runs(calm)[RUN], runs(calm)[other]
        assert stopped["status"] in ("failed", "partial")
        assert stopped["counts"]["skipped"] + stopped["counts"]["sent"] == 50
        assert waiting["status"] == "paused"
        await calm.world.client.system.control.ask(other, Command.RESUME)
        await until_ended(calm, 2)
        assert runs(calm)[other]["counts"]["sent"] == 50
        assert set(targets_called(calm).values()) <= {1, 2}, "each of the two runs reaches a group once"

    simulate(body)


# --- cancel


def test_a_cancel_is_not_undone_by_a_pause_or_a_resume_that_comes_after_it() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 60})
        calm.world.provider.faults = Faults(latencyMs=9000)
        await remind(calm, targets=100)
        await calm.until(lambda: calm.statuses()["sending"] >= 1)
        assert await ask(calm, Command.CANCEL) == Taken(RUN)
        assert await ask(calm, Command.PAUSE) == NotTaken("the run is being cancelled")
        assert await ask(calm, Command.RESUME) == NotTaken("the run is being cancelled")
        assert await ask(calm, Command.CANCEL) == Taken(RUN), "to say it twice is no fault"
        await until_ended(calm)
        run = only_run(calm)
        assert run["status"] == "cancelled"
        assert run["counts"]["cancelled"] >= 97

    simulate(body)


def test_what_is_in_doubt_when_its_run_is_cancelled_is_not_sent_again() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(onUncertain="resend")
        calm.world.provider.faults = UNKNOWN_OUTCOMES
        await remind(calm, targets=3)
        await calm.until(lambda: calm.statuses()["uncertain"] == 3)
        await ask(calm, Command.CANCEL)
        await until_ended(calm)
        run = only_run(calm)
        assert run["status"] == "cancelled"
        assert run["counts"]["failed"] == 3, "cancelled would say that they were not sent, and that is unknown"
        assert set(attempts(calm).values()) == {1}

    simulate(body)


# --- times


def test_a_missed_run_that_is_made_up_for_waits_for_its_window() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        schedule = {"type": "once", "at": START}
        window = {"startHour": 10, "endHour": 18}
        await remind(calm, targets=3, schedule=schedule, window=window, missed="runOnce", status="paused")
        await asyncio.sleep(14 * 3600)  # to 2 in the night
        await calm.world.client.system.change_reminder.set_status("rem", ReminderStatus.ACTIVE)
        await calm.world.client.system.waker.wake(reminder_lane("rem"))
        await until_ended(calm, within=timedelta(hours=12))
        assert min(call_times(calm)) >= START + timedelta(hours=22), "at 10 in the morning"
        assert only_run(calm)["counts"]["sent"] == 3

    simulate(body, sweeps=False)


def test_a_run_that_resumes_and_fires_after_its_window_goes_out_in_the_next() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await remind(calm, targets=5, window={"startHour": 6, "endHour": 11}, onWindowEnd="resumeNextDay")
        await until_ended(calm, within=timedelta(hours=20))
        assert only_run(calm)["status"] == "success"
        assert START + timedelta(hours=18) <= min(call_times(calm)) <= START + timedelta(hours=18, minutes=2)

    simulate(body, sweeps=False)


def test_a_message_that_is_put_off_until_tomorrow_does_not_keep_a_person_waiting() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        calm.world.provider.faults = Faults(errorRate=1.0, errorCode="overloaded")
        last_seconds = {"type": "once", "at": START + timedelta(minutes=59, seconds=57)}
        window = {"startHour": 9, "endHour": 13}
        await remind(calm, targets=1, window=window, onWindowEnd="resumeNextDay", schedule=last_seconds)
        await asyncio.sleep(3605)
        assert len(calm.world.truth.attempts) > 0
        calm.world.provider.faults = Faults()
        await calm.send("hello-there", to="00000@g.us")
        await calm.until(lambda: calm.status("hello-there") == "sent", within=timedelta(seconds=10))
        assert calm.statuses() == {"sent": 1, "queued": 1}
        await until_ended(calm, within=timedelta(hours=24))
        assert only_run(calm)["status"] == "success"

    simulate(body, sweeps=False)


# --- counts


def test_a_receipt_that_comes_while_the_run_is_counted_does_not_make_the_counts_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A message that was sent fails between the count of the sent and the count of the failed: it is in both."""
    real = MessageStore.count_of_run
    moved: list[str] = []

    async def count(self: MessageStore, run_id: str, status: OutboxStatus) -> int:
        counted = await real(self, run_id, status)
        if status is OutboxStatus.SENT and not moved:
            (stored, *_) = await self.of_run(run_id, OutboxStatus.SENT, 1)
            moved.append(stored.request_id)
            await calms[0].world.client.system.gateway.commit([failed(stored.request_id)])
        return counted

    calms: list[Calm] = []

    async def body(calm: Calm) -> None:
        calms.append(calm)
        await calm.account()
        calm.world.provider.faults = Faults(receiptLossRate=1.0)
        await remind(calm, targets=4)
        await until_ended(calm)
        counts = only_run(calm)["counts"]
        assert (counts["sent"], counts["failed"], counts["total"]) == (3, 1, 4)
        assert only_run(calm)["status"] == "partial"

    monkeypatch.setattr(MessageStore, "count_of_run", count)
    simulate(body)


def failed(request_id: str) -> WriteOp:
    error = {"code": "rejected", "message": "bounced", "retryable": False, "at": START}
    return update(paths.outbox(request_id), {"status": "failed", "lastError": error}, version=None)


def test_a_run_without_targets_has_failed_and_says_so() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await remind(calm, targets=0)
        await until_ended(calm)
        run = only_run(calm)
        assert (run["status"], run["counts"]["total"]) == ("failed", 0)
        assert run["errorSummary"] == "There were no targets."

    simulate(body)


def test_targets_that_no_document_can_be_sent_to_end_with_the_window_also_if_the_account_is_gone() -> None:
    """The run does not look at them every few seconds for ever."""

    async def body(calm: Calm) -> None:
        await remind(calm, targets=3, accountId="unknown", window={"startHour": 0, "endHour": 13})
        await until_ended(calm)
        run = only_run(calm)
        assert (run["status"], run["counts"]["skipped"]) == ("failed", 3)

    simulate(body)


# --- crashes


def test_a_page_whose_answer_is_lost_is_made_once_and_the_lane_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even with no sweep to repair it."""
    real = Expand._commit

    async def deaf(self: Expand, stored: StoredRun, page: Any, new: Any, database_time: Any) -> bool:
        await real(self, stored, page, new, database_time)
        return False

    async def body(calm: Calm) -> None:
        await calm.account()
        await remind(calm, targets=700)
        await until_ended(calm)
        assert only_run(calm)["counts"]["sent"] == 700
        assert set(targets_called(calm).values()) == {1}

    monkeypatch.setattr(Expand, "_commit", deaf)
    simulate(body, receipts=False, sweeps=False)


@pytest.mark.parametrize("skew", [-2, 0, 2])
@pytest.mark.parametrize("per_minute", [0, 40, 600])
def test_no_message_of_a_run_is_due_before_it_is_written(skew: int, per_minute: int) -> None:
    """A lane that has read up to its present would not see it, and send what people write later first."""

    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": per_minute})
        await remind(calm, targets=700)  # three pages
        await calm.until(lambda: bool(runs(calm)) and only_run(calm).get("expanded") is True)
        first: dict[str, tuple[datetime, datetime]] = {}
        for seen in calm.world.truth.changes:
            if seen.path.startswith("outbox/") and seen.data is not None:
                first.setdefault(seen.path, (seen.data["nextAttemptAt"], seen.at))
        assert len(first) == 700
        early = {path: due - at for path, (due, at) in first.items() if due <= at - timedelta(milliseconds=1)}
        assert not early

    simulate(body, receipts=False, draw_skew=lambda: timedelta(seconds=skew))


@pytest.mark.parametrize("skew", [-2, 0, 2])
@pytest.mark.parametrize("per_minute", [0, 60])
def test_no_message_of_a_run_that_goes_on_is_due_before_it_is_brought_back(skew: int, per_minute: int) -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": per_minute})
        calm.world.provider.faults = Faults(latencyMs=2_000)
        await remind(calm, targets=700)
        await calm.until(lambda: bool(runs(calm)) and only_run(calm).get("expanded") is True)
        await ask(calm, Command.PAUSE)
        await calm.until(lambda: only_run(calm)["status"] == "paused")
        now = calm.world.truth.latest()
        waiting = {path for path in now if path.startswith("outbox/") and now[path]["status"] == "queued"}
        assert len(waiting) > 100
        seen = len(calm.world.truth.changes)
        await ask(calm, Command.RESUME)
        await calm.until(lambda: "requested" not in only_run(calm))
        back: dict[str, tuple[datetime, datetime]] = {}
        for change in calm.world.truth.changes[seen:]:
            if change.path in waiting and change.data is not None:
                back.setdefault(change.path, (change.data["nextAttemptAt"], change.at))
        assert back.keys() == waiting
        assert not {path: due - at for path, (due, at) in back.items() if due <= at - timedelta(milliseconds=1)}

    simulate(body, receipts=False, draw_skew=lambda: timedelta(seconds=skew))


@pytest.mark.parametrize("skew", [-30, 0, 30])
def test_no_message_of_a_run_is_due_before_its_window_opens_whatever_clock_made_it(skew: int) -> None:
    """Another worker, whose clock is right, would send it."""
    opening = START + timedelta(hours=1)

    async def body(calm: Calm) -> None:
        await calm.account()
        await asyncio.sleep(timedelta(minutes=59, seconds=40).total_seconds())
        await remind(calm, targets=50, window={"startHour": opening.hour, "endHour": opening.hour + 1})
        await calm.until(lambda: bool(runs(calm)) and only_run(calm).get("expanded") is True)
        due = [data["nextAttemptAt"] for data in calm.world.truth.collection("outbox").values()]
        assert len(due) == 50
        assert min(due) >= opening

    simulate(body, draw_skew=lambda: timedelta(seconds=skew))


def test_what_is_written_before_its_run_starts_is_not_due_before_the_start() -> None:
    start = START + timedelta(seconds=3)
    early = in_the_queue(start, start, now=START)
    assert isinstance(early, datetime)
    assert early >= start
    assert in_the_queue(start + timedelta(minutes=1), start, now=START) == start + timedelta(minutes=1)
    assert in_the_queue(start, start, now=start) is SERVER_TIME
