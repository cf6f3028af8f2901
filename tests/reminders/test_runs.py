"""Runs, in virtual time over the production code."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from firestore_emulator.outgoing import Answered, HttpCall
from firestore_outbox.firestore import paths
from firestore_outbox.lane.ref import reminder_lane
from firestore_outbox.local.simulators.faults import Faults
from firestore_outbox.reminders.control import NotTaken, Taken
from firestore_outbox.reminders.looks import SECOND_LOOK
from firestore_outbox.reminders.reminder_states import ReminderStatus
from firestore_outbox.reminders.run import Command, run_id_of
from firestore_outbox.reminders.window_end import WINDOW_END_TASK
from tests.calm import START, Calm, simulate
from tests.reminders.support import call_times, has_ended, only_run, remind, runs, targets_called, until_ended
from tests.sending.test_pace import most_in

_ACTIVE = ReminderStatus.ACTIVE
_LOST = Faults(lostResponseRate=1.0)


def test_every_target_gets_one_message_and_the_run_ends_with_its_counts() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await remind(calm, targets=10)
        await until_ended(calm)
        assert set(targets_called(calm).values()) == {1}
        assert len(targets_called(calm)) == 10

        run = only_run(calm)
        assert run["status"] == "success"
        assert run["counts"]["total"] == run["counts"]["sent"] == 10
        assert "errorSummary" not in run
        assert run["finishedAt"] >= run["startedAt"]

    simulate(body)


def test_a_runs_message_appears_in_its_thread_when_it_is_sent_and_not_before() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 2})
        await remind(calm, targets=4)
        await calm.until(lambda: calm.statuses()["sent"] == 2)
        documents = calm.world.truth.latest()
        shown = {path: data for path, data in documents.items() if "/messages/" in path}
        assert len(shown) == calm.statuses()["sent"] == 2
        assert calm.statuses()["queued"] == 2, "all targets are there to be seen"
        for path, message in shown.items():
            assert message["status"] in ("sent", "delivered", "read")
            assert message["runId"] == only_run(calm)["runId"]
            thread = documents[path.split("/messages/")[0]]
            assert thread["lastMessageText"] == "The market opens at nine."
            assert thread["lastMessageAt"] == message["sentAt"]

    simulate(body)


def test_a_fire_that_comes_twice_makes_one_run() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await remind(calm, targets=3)
        for _ in range(5):
            await calm.world.client.system.waker.wake(reminder_lane("rem"))
        await until_ended(calm)
        assert list(runs(calm)) == [run_id_of("rem", START)]
        assert calm.document("reminders/rem")["status"] == "ended"
        assert sum(targets_called(calm).values()) == 3

    simulate(body)


def test_targets_may_stand_in_documents_of_their_own_and_one_listed_twice_is_sent_once() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        targets = [{"id": f"t{n}", "to": f"{n}@g.us"} for n in range(700)]
        await calm.world.client.system.runs.add_reminder(
            "rem",
            {
                "accountId": "shop",
                "parts": [{"type": "text", "text": "x"}],
                "timezone": "UTC",
                "window": {"startHour": 0, "endHour": 24},
                "schedule": {"type": "once", "at": START},
            },
            [targets[:400], targets[300:]],
        )
        await calm.world.client.system.waker.wake(reminder_lane("rem"))
        await until_ended(calm)
        assert len(targets_called(calm)) == 700
        assert set(targets_called(calm).values()) == {1}
        assert only_run(calm)["counts"]["total"] == 700

    simulate(body, receipts=False)


def test_a_window_that_closes_skips_the_rest_and_says_so() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 40})
        # It fires at 20:45 in Kuala Lumpur; the window closes at 21:00.
        hours = {"startHour": 6, "endHour": 21}
        await remind(calm, targets=800, timezone="Asia/Kuala_Lumpur", window=hours, schedule=_at(45))
        await until_ended(calm)
        run = only_run(calm)
        counts = run["counts"]
        assert run["status"] == "partial"
        assert counts["sent"] + counts["skipped"] == counts["total"] == 800
        assert 580 <= counts["sent"] <= 601
        assert run["errorSummary"] == (
            f"Delivery window closed at 21:00 (Asia/Kuala_Lumpur). {counts['sent']} of 800 groups delivered. "
            "This account is at capacity for this fan-out — consider sending the remainder from another paired account."
        )
        assert max(call_times(calm)) < START + timedelta(hours=1)
        skipped = [data for path, data in calm.world.truth.latest().items() if data.get("status") == "skipped"]
        assert {data["lastError"]["code"] for data in skipped} == {"window_closed"}
        warning = r"(800|79\d) targets at 40/min ends 21:0[45]; the window closes 21:00"
        told = [seen.data for seen in calm.world.truth.changes if seen.path == paths.run(run["runId"])]
        first = next(data["forecast"] for data in told if data and "forecast" in data)
        assert re.match(warning, first["warning"]), "the first may be on its way when it is made"

    simulate(body, receipts=False)


def test_the_run_enqueues_a_task_for_the_end_of_its_window_which_ends_it() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 1})
        await remind(calm, targets=100, window={"startHour": 6, "endHour": 13}, schedule=_at(30))
        await until_ended(calm)
        closes = START + timedelta(hours=1)
        assert only_run(calm)["counts"]["skipped"] > 0
        assert closes <= only_run(calm)["finishedAt"] < closes + SECOND_LOOK, "by the task; the lane itself looks later"

    simulate(body, receipts=False)


def test_a_lost_window_end_task_delays_the_end_of_a_run_by_half_a_minute() -> None:
    async def body(calm: Calm) -> None:
        take = calm.world.tasks._dispatcher._send

        async def losing(call: HttpCall) -> Answered:
            return Answered(200) if call.url.endswith(WINDOW_END_TASK) else await take(call)

        calm.world.tasks._dispatcher._send = losing
        await calm.account(pace={"perMinute": 1})
        await remind(calm, targets=100, window={"startHour": 6, "endHour": 13}, schedule=_at(30))
        await until_ended(calm)
        closes = START + timedelta(hours=1)
        assert closes <= only_run(calm)["finishedAt"] < closes + 2 * SECOND_LOOK, "a refresh may come sooner"

    simulate(body, receipts=False)


def test_a_run_that_fires_after_its_window_has_failed_with_nothing_sent() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await remind(calm, targets=5, window={"startHour": 6, "endHour": 11})
        await until_ended(calm)
        assert only_run(calm)["status"] == "failed"
        assert only_run(calm)["counts"]["skipped"] == 5
        assert not targets_called(calm)

    simulate(body)


def test_a_run_that_fires_before_its_window_waits_for_it() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await remind(calm, targets=5, window={"startHour": 14, "endHour": 18})
        await until_ended(calm, within=timedelta(hours=3))
        assert START + timedelta(hours=2) <= min(call_times(calm)) <= START + timedelta(hours=2, minutes=1)

    simulate(body)


def test_a_run_that_resumes_goes_on_when_the_window_opens_again() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 2})
        await remind(calm, targets=180, window={"startHour": 9, "endHour": 13}, onWindowEnd="resumeNextDay")
        await until_ended(calm, within=timedelta(days=3))
        run = only_run(calm)
        assert run["status"] == "success"
        assert run["counts"]["sent"] == 180
        assert set(targets_called(calm).values()) == {1}
        hours = {at.hour for at in call_times(calm)}
        assert hours == {9, 12}, "from 12 to 13 today, the rest from 9 tomorrow"

    simulate(body, receipts=False, sweeps=False)


def test_pause_keeps_everything_back_and_resume_lets_it_go() -> None:
    async def body(calm: Calm) -> None:
        control = calm.world.client.system.control
        await calm.account(pace={"perMinute": 60})
        await remind(calm, targets=100)
        run_id = run_id_of("rem", START)
        await calm.until(lambda: calm.statuses()["sent"] >= 10)
        assert await control.ask(run_id, Command.PAUSE) == Taken(run_id)
        await calm.until(lambda: runs(calm)[run_id]["status"] == "paused")
        sent = calm.statuses()["sent"]
        assert sent < 20
        await asyncio.sleep(600)
        assert calm.statuses()["sent"] == sent
        assert isinstance(await control.ask(run_id, Command.PAUSE), NotTaken)
        assert await control.ask(run_id, Command.RESUME) == Taken(run_id)
        await until_ended(calm)
        assert only_run(calm)["counts"]["sent"] == 100
        assert set(targets_called(calm).values()) == {1}

    simulate(body)


def test_a_run_that_is_resumed_says_so_before_anything_of_it_can_be_sent() -> None:
    async def body(calm: Calm) -> None:
        control = calm.world.client.system.control
        await calm.account(pace={"perMinute": 60})
        await remind(calm, targets=20)
        run_id = run_id_of("rem", START)
        await calm.until(lambda: calm.statuses()["sent"] >= 5)
        await control.ask(run_id, Command.PAUSE)
        await calm.until(lambda: runs(calm)[run_id]["status"] == "paused")
        seen = len(calm.world.truth.changes)
        await control.ask(run_id, Command.RESUME)
        await until_ended(calm)
        since = [(change.path.split("/")[0], change.data or {}) for change in calm.world.truth.changes[seen:]]
        running = next(n for n, (kind, data) in enumerate(since) if (kind, data.get("status")) == ("runs", "running"))
        back = next(n for n, (kind, _) in enumerate(since) if kind == "outbox")
        assert running < back

    simulate(body)


def test_cancel_ends_what_was_not_sent() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 60})
        await remind(calm, targets=100)
        run_id = run_id_of("rem", START)
        await calm.until(lambda: calm.statuses()["sent"] >= 10)
        await calm.world.client.system.control.ask(run_id, Command.CANCEL)
        await until_ended(calm)
        run = only_run(calm)
        assert run["status"] == "cancelled"
        assert run["counts"]["sent"] + run["counts"]["cancelled"] == 100
        assert run["counts"]["sent"] < 20
        assert isinstance(await calm.world.client.system.control.ask(run_id, Command.RESUME), NotTaken)

    simulate(body)


def test_retry_failed_makes_a_new_run_of_the_failed_targets() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        bad = ("00003@g.us", "00007@g.us")
        calm.world.provider.faults = Faults(invalidRecipients=bad)
        await remind(calm, targets=10)
        await until_ended(calm)
        run = only_run(calm)
        assert (run["status"], run["counts"]["failed"]) == ("partial", 2)
        assert run["errorSummary"] == "8 of 10 groups delivered. 2 failed. Most often: recipient_invalid."
        calm.world.provider.faults = Faults()
        taken = await calm.world.client.system.control.retry_failed(run["runId"])
        assert isinstance(taken, Taken)
        await until_ended(calm, 2)
        again = runs(calm)[taken.run_id]
        assert (again["status"], again["counts"]["total"], again["retryOf"]) == ("success", 2, run["runId"])
        assert targets_called(calm)["00003@g.us"] == 1
        assert isinstance(await calm.world.client.system.control.retry_failed(run["runId"]), NotTaken)

    simulate(body)


def test_a_persons_message_goes_ahead_of_a_runs() -> None:
    async def body(calm: Calm) -> float:
        await calm.account(pace={"perMinute": 40})
        await remind(calm, targets=1000)
        await asyncio.sleep(300)
        await calm.send("hello-there", to="+49170")
        asked = calm.world.clock()
        await calm.until(lambda: calm.status("hello-there") == "sent")
        return (calm.world.clock() - asked).total_seconds()

    assert simulate(body, receipts=False) <= 4


def test_two_runs_on_one_account_never_exceed_its_pace() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 40})
        await remind(calm, "one", targets=100)
        await remind(calm, "two", targets=100)
        await until_ended(calm, 2)
        assert most_in(call_times(calm), timedelta(minutes=1)) <= 40
        assert sum(targets_called(calm).values()) == 200

    simulate(body, receipts=False)


def test_two_runs_on_two_accounts_end_within_5_percent_of_one_alone() -> None:
    async def alone(calm: Calm) -> timedelta:
        await calm.account(pace={"perMinute": 40})
        await remind(calm, targets=200)
        await until_ended(calm)
        return max(call_times(calm)) - START

    async def together(calm: Calm) -> list[timedelta]:
        for name in ("one", "two"):
            await calm.account(name, pace={"perMinute": 40})
            await remind(calm, f"rem-{name}", targets=200, accountId=name)
        await until_ended(calm, 2)
        return [max(call_times(calm, name)) - START for name in ("one", "two")]

    one = simulate(alone, receipts=False)
    for took in simulate(together, receipts=False):
        assert took <= one * 1.05


@pytest.mark.parametrize("moment", range(20))
def test_killed_at_any_moment_a_run_that_hits_its_window_has_the_same_totals(moment: int) -> None:
    """Both workers die, one after the other; nothing that they had in hand is lost or done twice."""

    async def body(calm: Calm) -> tuple[dict[str, Any], int]:
        await calm.account(pace={"perMinute": 60}, provider="simulated-idempotent", onUncertain="resend")
        await remind(calm, targets=120, window={"startHour": 6, "endHour": 13}, schedule=_at(58.5))
        dies = 58.5 * 60 + moment * moment * 0.27
        await asyncio.sleep(dies)
        for place in range(len(calm.world.workers)):
            calm.world.crash(calm.world.workers, place)
        await until_ended(calm)
        accepted = targets_called(calm)
        assert max(accepted.values()) == 1
        assert max(call_times(calm)) < START + timedelta(hours=1)
        return only_run(calm)["counts"], len(accepted)

    counts, accepted = simulate(body)
    assert counts["total"] == 120
    assert counts["sent"] == accepted
    assert counts["sent"] + counts["skipped"] + counts["failed"] + counts["uncertain"] == 120


def _at(minutes: float) -> dict[str, Any]:
    return {"type": "once", "at": START + timedelta(minutes=minutes)}


def test_a_cron_reminder_fires_each_day_without_drift_and_beyond_thirty_days() -> None:
    async def body(calm: Calm) -> list[datetime]:
        await calm.account()
        await remind(calm, targets=1, schedule={"type": "cron", "cron": "0 9 1 * *"})
        await asyncio.sleep(timedelta(days=95).total_seconds())
        return [run["fireAt"] for run in runs(calm).values()]

    fired = simulate(body, sweeps=False)
    assert sorted(fired) == [datetime(2026, month, 1, 9, tzinfo=UTC) for month in (4, 5, 6)]


@pytest.mark.parametrize(("missed", "expected"), [("skip", 1), ("runOnce", 2)])
def test_what_was_missed_while_nothing_ran_is_skipped_or_run_once(missed: str, expected: int) -> None:
    async def body(calm: Calm) -> list[datetime]:
        await calm.account()
        await remind(calm, targets=1, status="paused", missed=missed, schedule={"type": "cron", "cron": "0 * * * *"})
        await asyncio.sleep(5.5 * 3600)
        await calm.world.client.system.change_reminder.set_status("rem", _ACTIVE)
        await calm.world.client.system.waker.wake(reminder_lane("rem"))
        await asyncio.sleep(3600)
        return sorted(run["fireAt"] for run in runs(calm).values())

    fired = simulate(body)
    assert len(fired) == expected
    assert fired[-1] == START + timedelta(hours=6)
    assert expected == 1 or fired[0] == START + timedelta(hours=5)


def test_a_reminder_that_cannot_fire_blocks_no_other() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await remind(calm, "broken", schedule={"type": "cron", "cron": "61 * * * *"})
        await remind(calm, "worse", timezone="Mars/Olympus")
        await remind(calm, "good", targets=2)
        await until_ended(calm)
        assert has_ended(calm)
        assert only_run(calm)["reminderId"] == "good"

    simulate(body)


def test_a_receipt_settles_a_runs_message_whose_answer_was_lost() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(onUncertain="hold")
        calm.world.provider.faults = _LOST
        await remind(calm, targets=3)
        await until_ended(calm)
        assert only_run(calm)["status"] == "success"
        assert set(targets_called(calm).values()) == {1}
        shown = [data for path, data in calm.world.truth.latest().items() if "/messages/" in path]
        assert len(shown) == 3
        assert all(message["runId"] == only_run(calm)["runId"] for message in shown)
        assert all(calm.document(paths.thread(message["threadId"]))["lastMessageAt"] for message in shown)

    simulate(body)
