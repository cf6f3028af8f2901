"""Adding a reminder: judged in words, written once with all its targets, and its lane told; in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import create, update
from firestore_outbox.reminders.add import Added, Differs
from firestore_outbox.reminders.change import Changed, NotChanged
from firestore_outbox.reminders.check import CHUNK, INLINE, MAX_TARGETS, Faulty, Judged, NewReminder, judge
from firestore_outbox.reminders.reminder_states import ReminderStatus
from tests.calm import START, Calm, simulate
from tests.reminders.support import only_run, runs, targets_called, until_ended

TEXT = {"type": "text", "text": "The market opens at nine."}


def new(
    reminder_id: str = "rem",
    *,
    targets: int | Sequence[Any] = 3,
    **changes: Any,
) -> NewReminder:
    """A good one that fires at once; None takes a field away."""
    fields = {
        "accountId": "shop",
        "parts": [TEXT],
        "timezone": "UTC",
        "window": {"startHour": 0, "endHour": 24},
        "schedule": {"type": "once", "at": START},
        **changes,
    }
    wanted = [f"{n:05}@g.us" for n in range(targets)] if isinstance(targets, int) else targets
    present = {name: value for name, value in fields.items() if value is not None}
    return NewReminder(reminder_id=reminder_id, fields=present, targets=wanted, created_by="ann")


def faults(**changes: Any) -> tuple[str, ...]:
    reminder_id = changes.pop("reminder_id", "rem")
    judged = judge(new(reminder_id, **changes), START)
    assert isinstance(judged, Faulty)
    return judged.sentences


# --- judged


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an id that is a path": ({"reminder_id": "a/b"}, "reminderId must be 1 to 100"),
    "no account": ({"accountId": None}, "accountId is missing"),
    "an account that is a path": ({"accountId": "a/b"}, "accountId must be 1 to 128 characters"),
    "an account with two underscores": ({"accountId": "a__b"}, "accountId must be 1 to 128 characters"),
    "no parts": ({"parts": []}, "parts must be a list of 1 to 10"),
    "a part without words": ({"parts": [{"type": "text", "text": ""}]}, "parts[0].text is empty"),
    "a long text": ({"parts": [{"type": "text", "text": "x" * 4097}]}, "parts[0].text has 4,097 characters"),
    "a part of an unknown type": (
        {"parts": [{"type": "smell"}]},
        "parts[0].type must be text, media, template or sealed",
    ),
    "a zone that there is not": ({"timezone": "Mars/Olympus"}, "timezone must be a time zone"),
    "no zone": ({"timezone": None}, "timezone is missing"),
    "an hour that there is not": (
        {"window": {"startHour": 6, "endHour": 25}},
        "window.endHour must be a whole hour from 1 to 24",
    ),
    "a window without hours": (
        {"window": {"startHour": 6, "endHour": 6}},
        "window: startHour and endHour are the same",
    ),
    "a window with more in it": ({"window": {"startHour": 6, "minute": 1}}, "window.minute is unknown"),
    "no schedule": ({"schedule": None}, "schedule is missing"),
    "a schedule of an unknown type": ({"schedule": {"type": "moon"}}, "schedule.type must be once, cron or rrule"),
    "a time without an offset": (
        {"schedule": {"type": "once", "at": datetime(2027, 1, 1)}},  # noqa: DTZ001 - that is the fault
        "schedule.at must be a time with an offset",
    ),
    "a year of another age": (
        {"schedule": {"type": "once", "at": datetime(9999, 12, 31, tzinfo=UTC)}},
        "schedule.at: the year 9999",
    ),
    "a cron of six fields": ({"schedule": {"type": "cron", "cron": "0 0 9 * * *"}}, "has 6 fields; cron here has 5"),
    "a minute that there is not": (
        {"schedule": {"type": "cron", "cron": "61 * * * *"}},
        "schedule: '61 * * * *' is no",
    ),
    "a rule that is none": (
        {"schedule": {"type": "rrule", "rrule": "whenever", "start": START}},
        "schedule: 'whenever' must be one rule",
    ),
    "an hourly rule of long ago": (
        {"schedule": {"type": "rrule", "rrule": "FREQ=HOURLY", "start": START - timedelta(days=400)}},
        "schedule.start: more than a year ago",
    ),
    "an unknown category": ({"category": "spam"}, "category must be 'utility' or 'marketing'"),
    "an unknown end": ({"onWindowEnd": "explode"}, "onWindowEnd must be 'stop' or 'resumeNextDay'"),
    "an unknown way with what was missed": ({"missed": "cry"}, "missed must be 'skip' or 'runOnce'"),
    "a field that is not used": ({"windows": {}}, "windows is unknown; known are accountId"),
    "no targets": ({"targets": []}, "targets: there are none"),
    "a target with a blank": ({"targets": ["1@g.us", "2 @g.us"]}, "targets[1].to must be 1 to 256 characters"),
    "a target that is a number": ({"targets": [491701]}, "targets[0] is 491701: "),
    "a target without an address": ({"targets": [{"id": "a"}]}, "targets[0].to is missing"),
    "a target twice": ({"targets": ["1@g.us", "2@g.us", "1@g.us"]}, "targets: '1@g.us' is there twice"),
    "too many targets": ({"targets": ["1@g.us"] * (MAX_TARGETS + 1)}, "targets: there are 100,001; at most 100,000"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_in_words_by_field(case: str) -> None:
    changes, words = WRONG[case]
    sentences = faults(**changes)
    assert len(sentences) == 1, sentences
    assert words in sentences[0]
    assert sentences[0].endswith(".")


def test_every_fault_is_reported_at_once() -> None:
    sentences = faults(
        reminder_id="-",
        parts=[{"type": "text", "text": ""}],
        schedule={"type": "cron", "cron": "99 9 * * *"},
        timezone="Mars/Olympus",
        targets=["a b"],
        missed="cry",
    )
    told = " ".join(sentences)
    for words in ("reminderId must", "parts[0].text is", "schedule: '99 9 * * *'", "targets[0].to must", "missed must"):
        assert words in told, told


def test_the_same_content_written_in_another_way_has_the_same_digest() -> None:
    def digest(**changes: Any) -> str:
        judged = judge(new(**changes), START)
        assert isinstance(judged, Judged)
        return judged.digest

    kuala_lumpur = START.astimezone(ZoneInfo("Asia/Kuala_Lumpur"))
    assert digest(schedule={"type": "once", "at": kuala_lumpur}) == digest()
    assert digest(targets=[{"id": "1@g.us", "to": "1@g.us"}]) == digest(targets=["1@g.us"])
    assert digest(onWindowEnd="stop", missed="skip", category="utility") == digest()
    assert digest(category="marketing") != digest()
    assert digest(missed="runOnce") != digest()
    assert digest(targets=4) != digest(targets=3)
    assert digest(targets=["1@g.us", "2@g.us"]) != digest(targets=["2@g.us", "1@g.us"])


@pytest.mark.parametrize(("count", "chunks"), [(1, []), (INLINE, []), (INLINE + 1, [501]), (2_500, [1000, 1000, 500])])
def test_many_targets_go_into_documents_of_a_thousand(count: int, chunks: list[int]) -> None:
    judged = judge(new(targets=count), START)
    assert isinstance(judged, Judged)
    assert [len(chunk) for chunk in judged.documents.chunks] == chunks
    assert len(judged.documents.inline) == (0 if chunks else count)


def test_long_names_make_smaller_documents() -> None:
    judged = judge(new(targets=[{"id": "é" * 250 + str(n), "to": f"{n}@g.us"} for n in range(CHUNK)]), START)
    assert isinstance(judged, Judged)
    assert len(judged.documents.chunks) > 1
    assert sum(len(chunk) for chunk in judged.documents.chunks) == CHUNK


# --- added


def test_a_reminder_that_is_added_fires_and_its_targets_are_sent_once() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 0})
        added = await calm.world.client.system.remind(new(targets=501))
        assert isinstance(added, Added)
        assert (added.is_new, added.status, added.targets, added.fires) == (True, "active", 501, (START,))
        stored = calm.document("reminders/rem")
        assert (stored["targets"], stored["targetCount"], stored["createdBy"]) == ([], 501, "ann")
        assert "incomplete" not in stored
        await until_ended(calm)
        assert only_run(calm)["counts"]["sent"] == 501
        assert set(targets_called(calm).values()) == {1}

    simulate(body, receipts=False, sweeps=False)


def test_the_same_again_is_one_reminder_also_after_it_has_fired_and_another_is_refused() -> None:
    async def body(calm: Calm) -> None:
        remind = calm.world.client.system.remind
        await calm.account()
        answers = await asyncio.gather(*(remind(new(targets=501)) for _ in range(5)))
        assert sorted(isinstance(one, Added) and one.is_new for one in answers) == [False] * 4 + [True]
        await until_ended(calm)
        await asyncio.sleep(3_600)
        again = await remind(new(targets=501))
        assert isinstance(again, Added)
        assert (again.is_new, again.status, again.fires, again.forecast) == (False, "ended", (), None)
        assert isinstance(await remind(new(targets=502)), Differs)
        await asyncio.sleep(3_600)
        assert len(runs(calm)) == 1
        assert len(targets_called(calm)) == 501

    simulate(body, receipts=False)


def test_another_reminder_of_the_same_id_does_not_touch_the_targets_of_the_first() -> None:
    async def body(calm: Calm) -> None:
        remind = calm.world.client.system.remind
        await calm.account()
        later = {"type": "once", "at": START + timedelta(hours=1)}
        await remind(new(targets=501, schedule=later))
        others = [f"{n}@other" for n in range(1_100)]
        assert isinstance(await remind(new(targets=others, schedule=later)), Differs)
        await until_ended(calm)
        assert len(targets_called(calm)) == 501
        assert not any(to.endswith("@other") for to in targets_called(calm))

    simulate(body, receipts=False)


def test_one_that_was_cut_short_does_not_fire_until_the_same_call_completes_it() -> None:
    async def body(calm: Calm) -> None:
        system = calm.world.client.system
        await calm.account()
        judged = judge(new(targets=1_010), START)
        assert isinstance(judged, Judged)
        cut_short = {**judged.asked_for, "targets": [], "digest": judged.digest, "status": "paused", "incomplete": True}
        await calm.write(
            create("reminders/rem", {**cut_short, "createdAt": START}),
            create("reminders/rem/targets/000000", {"targets": judged.documents.chunks[0]}),
        )
        resumed = await system.change_reminder.set_status("rem", ReminderStatus.ACTIVE)
        assert isinstance(resumed, NotChanged)
        assert "add it once more" in resumed.sentence
        await asyncio.sleep(120)
        assert runs(calm) == {}
        assert isinstance(await system.remind(new(targets=1_009)), Differs)
        completed = await system.remind(new(targets=1_010))
        assert isinstance(completed, Added)
        assert not completed.is_new
        await until_ended(calm)
        assert only_run(calm)["counts"]["sent"] == 1_010

    simulate(body, receipts=False)


@pytest.mark.parametrize("targets", [3, 501])
def test_a_writer_that_dies_right_after_writing_it_leaves_a_lane_that_looks_again(targets: int) -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        adding = asyncio.create_task(calm.world.client.system.remind(new(targets=targets)))
        while calm.world.truth.latest().get("reminders/rem", {}).get("status") != "active":  # noqa: ASYNC110 - the store is not ours to ask
            await asyncio.sleep(0)
        adding.cancel()  # its commit has arrived, and the answer has not: nothing wakes the lane
        with pytest.raises(asyncio.CancelledError):
            await adding
        await until_ended(calm, within=timedelta(minutes=5))
        assert only_run(calm)["counts"]["sent"] == targets

    simulate(body, receipts=False, sweeps=False)


def test_a_reminder_of_an_account_that_is_not_there_is_refused() -> None:
    async def body(calm: Calm) -> None:
        refused = await calm.world.client.system.remind(new())
        assert refused == Faulty(("accounts/shop does not exist.",))
        assert "reminders/rem" not in calm.world.truth.latest()

    simulate(body)


def test_a_time_that_is_past_is_refused_unless_missed_times_are_made_up_for() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        past = {"type": "once", "at": START - timedelta(hours=1)}
        refused = await calm.world.client.system.remind(new(schedule=past))
        assert isinstance(refused, Faulty)
        assert "no time is left" in refused.sentences[0]
        assert isinstance(await calm.world.client.system.remind(new(schedule=past, missed="runOnce")), Added)
        await until_ended(calm)
        assert only_run(calm)["counts"]["sent"] == 3

    simulate(body)


# --- forecast


def forecast_of(*, waiting: int = 0, pace: float = 40, account: dict[str, Any] | None = None, **reminder: Any) -> Any:
    async def body(calm: Calm) -> Any:
        await calm.account(**{"pace": {"perMinute": pace}, **(account or {})})
        for number in range(waiting):
            await calm.send(f"waiting-{number:05}", to=f"+49{number}")
        added = await calm.world.client.system.remind(new(**reminder))
        assert isinstance(added, Added)
        stored = calm.document("reminders/rem")["forecast"]
        assert added.forecast is not None
        assert (stored["endsAt"], stored["warning"]) == (added.forecast.ends_at, added.forecast.warning)
        return added.forecast

    return simulate(body)


def test_the_forecast_warns_when_the_window_is_too_short() -> None:
    told = forecast_of(
        targets=4_000,
        timezone="UTC",
        window={"startHour": 6, "endHour": 18},
        schedule={"type": "once", "at": START.replace(hour=17) + timedelta(days=1)},
    )
    assert told.warning == "4,000 targets at 40/min ends 18:40; the window closes 18:00"
    assert told.ends_at == START.replace(hour=18, minute=40) + timedelta(days=1)


def test_the_forecast_is_content_when_all_goes_out_in_time() -> None:
    told = forecast_of(targets=400)
    assert (told.warning, told.ends_at) == (None, START + timedelta(minutes=10))


def test_the_forecast_counts_what_the_account_has_waiting_but_not_what_will_be_gone_by_then() -> None:
    assert forecast_of(targets=40, waiting=40).ends_at == START + timedelta(minutes=2)
    later = START + timedelta(minutes=30)
    assert forecast_of(targets=40, waiting=40, schedule={"type": "once", "at": later}).ends_at == later + timedelta(
        minutes=1
    )


def test_the_forecast_says_that_nothing_goes_when_the_reminder_fires_after_its_window() -> None:
    told = forecast_of(window={"startHour": 6, "endHour": 11})
    assert told.warning is not None
    assert told.warning.startswith("none of 3 targets can be sent: the window closed at 11:00; choose a later time")


def test_the_forecast_says_that_the_account_is_paused() -> None:
    told = forecast_of(account={"status": "paused"})
    assert told.warning == "the account is paused, and sends nothing before it is resumed"


def test_a_run_at_a_reduced_rate_is_forecast_at_that_rate() -> None:
    async def body(calm: Calm) -> None:
        system = calm.world.client.system
        resumes = calm.world.clock() + timedelta(hours=1)
        await calm.account(status="paused", pausedUntil=resumes, pace={"perMinute": 40})
        await system.remind(new(targets=400))
        await calm.until(lambda: bool(runs(calm)) and only_run(calm)["status"] == "running")
        stored = await system.runs.run(only_run(calm)["runId"])
        assert stored is not None
        assert (await system.summary.forecast(stored)).ends_at == resumes + timedelta(minutes=10)
        await calm.write(update(paths.lane("outbox", "shop"), {"rateFactor": 0.5}, version=None))
        assert (await system.summary.forecast(stored)).ends_at == resumes + timedelta(minutes=20)

    simulate(body, sweeps=False)


# --- paused and resumed


async def set_status(calm: Calm, reminder_id: str, status: ReminderStatus) -> Changed | NotChanged:
    return await calm.world.client.system.change_reminder.set_status(reminder_id, status)


def test_a_paused_reminder_fires_no_more_until_it_is_resumed() -> None:
    async def body(calm: Calm) -> None:
        remind = calm.world.client.system.remind
        await calm.account()
        await remind(new(schedule={"type": "cron", "cron": "0 * * * *"}))
        assert await set_status(calm, "rem", ReminderStatus.PAUSED) == Changed(ReminderStatus.PAUSED, ())
        await asyncio.sleep(3.5 * 3600)
        assert runs(calm) == {}
        resumed = await set_status(calm, "rem", ReminderStatus.ACTIVE)
        assert isinstance(resumed, Changed)
        assert resumed.fires[0] == START + timedelta(hours=4)
        await calm.until(lambda: "nextFireAt" in calm.document("reminders/rem"))
        await until_ended(calm)
        assert only_run(calm)["fireAt"] == START + timedelta(hours=4)

    simulate(body)


def test_one_that_has_ended_or_is_not_there_stays_as_it_is() -> None:
    async def body(calm: Calm) -> None:
        remind = calm.world.client.system.remind
        await calm.account()
        await remind(new())
        await calm.until(lambda: calm.document("reminders/rem")["status"] == "ended")
        for status in (ReminderStatus.PAUSED, ReminderStatus.ACTIVE):
            assert await set_status(calm, "rem", status) == NotChanged("the reminder has ended")
            assert await set_status(calm, "none", status) == NotChanged("there is no reminder none")
        assert calm.document("reminders/rem")["status"] == "ended"

    simulate(body)


def test_times_that_were_passed_over_leave_the_next_one_in_the_document() -> None:
    async def body(calm: Calm) -> None:
        remind = calm.world.client.system.remind
        await calm.account()
        await remind(new(schedule={"type": "cron", "cron": "0 * * * *"}))
        await set_status(calm, "rem", ReminderStatus.PAUSED)
        await asyncio.sleep(3.5 * 3600)
        await set_status(calm, "rem", ReminderStatus.ACTIVE)
        await calm.until(lambda: calm.document("reminders/rem")["nextFireAt"] == START + timedelta(hours=4))

    simulate(body)
