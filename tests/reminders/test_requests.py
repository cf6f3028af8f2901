"""What members ask of runs and reminders by documents, in virtual time, through the triggers as in production."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from firestore_outbox.firestore.writes import SERVER_TIME, create
from firestore_outbox.reminders.requests import OF_RUNS, Asked, Request, ignored_because, parse_request
from tests.calm import START, Calm, simulate
from tests.reminders.support import only_run, remind, runs, targets_called, until_ended


async def ask(
    calm: Calm, parent: str, action: str, *, name: str = "", age: timedelta = timedelta(), **more: Any
) -> str:
    """As client/campaigns.js writes it."""
    path = f"{parent}/requests/{name or f'request-{action}'}"
    asked = {"action": action, "createdBy": "ann", "createdAt": SERVER_TIME, "askedAt": calm.world.clock() - age}
    await calm.write(create(path, {**asked, **more}))
    return path


async def outcome(calm: Calm, path: str) -> str:
    await calm.until(lambda: "outcome" in calm.document(path))
    return str(calm.document(path)["outcome"])


def reminder(**changed: Any) -> dict[str, Any]:
    fields = {
        "accountId": "shop",
        "parts": [{"type": "text", "text": "Good morning"}],
        "targets": ["1@g.us", {"id": "two", "to": "2@g.us"}],
        "timezone": "UTC",
        "window": {"startHour": 0, "endHour": 24},
        "schedule": {"type": "once", "at": START},
        "status": "active",
        "createdAt": SERVER_TIME,
        "createdBy": "ann",
        **changed,
    }
    return {name: value for name, value in fields.items() if value is not None}


def run_path(calm: Calm) -> str:
    return f"runs/{only_run(calm)['runId']}"


# --- a reminder that a client wrote


def test_a_reminder_that_a_client_wrote_fires() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await calm.write(create("reminders/rem", reminder()))
        await until_ended(calm)
        assert targets_called(calm) == {"1@g.us": 1, "2@g.us": 1}

    simulate(body)


def test_its_next_time_is_written_for_the_page_that_added_it() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        at = START + timedelta(days=1)
        await calm.write(create("reminders/rem", reminder(schedule={"type": "once", "at": at})))
        await calm.until(lambda: calm.document("reminders/rem").get("nextFireAt") == at)

    simulate(body)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"timezone": "Mars/Olympus"}, "timezone must be a time zone such as Europe/Berlin."),
        ({"schedule": {"type": "cron", "cron": "99 9 * * *"}}, "schedule: '99 9 * * *' is no cron schedule"),
        ({"window": {"startHour": 9, "endHour": 9}}, "startHour and endHour are the same"),
    ],
)
def test_one_that_cannot_fire_says_why_in_its_document_until_an_edit_repairs_it(
    changed: dict[str, Any], problem: str
) -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await calm.write(create("reminders/rem", reminder(**changed)))
        await calm.until(lambda: problem in calm.document("reminders/rem").get("problem", ""))
        assert runs(calm) == {}
        repaired = {name: reminder()[name] for name in changed}
        repaired["schedule"] = {"type": "once", "at": calm.world.clock()}
        path = await ask(calm, "reminders/rem", "edit", changes=repaired)
        assert await outcome(calm, path) == "applied", calm.document(path)
        await until_ended(calm)
        assert "problem" not in calm.document("reminders/rem")

    simulate(body)


# --- runs


def test_a_member_pauses_resumes_and_cancels_a_run() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 10})
        await remind(calm, targets=60)
        await calm.until(lambda: calm.statuses()["sent"] >= 5)
        run = run_path(calm)
        assert await outcome(calm, await ask(calm, run, "pause")) == "applied"
        await calm.until(lambda: calm.document(run)["status"] == "paused")
        sent = calm.statuses()["sent"]
        assert await outcome(calm, await ask(calm, run, "resume")) == "applied"
        await calm.until(lambda: calm.statuses()["sent"] > sent)
        assert await outcome(calm, await ask(calm, run, "cancel")) == "applied"
        await until_ended(calm)
        assert calm.document(run)["status"] == "cancelled"
        assert "asked" not in calm.document(run)
        late = await ask(calm, run, "pause", name="request-late")
        assert await outcome(calm, late) == "refused"
        assert calm.document(late)["outcomeReason"] == "the run has ended (cancelled)"

    simulate(body)


def test_requests_that_come_together_are_applied_in_the_order_of_their_arrival() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 10})
        await remind(calm, targets=40)
        await calm.until(lambda: calm.statuses()["sent"] >= 5)
        run = run_path(calm)
        paths = [await ask(calm, run, "pause" if n % 2 else "resume", name=f"request-{9 - n}") for n in range(1, 8)]
        outcomes = [await outcome(calm, path) for path in paths]
        assert outcomes[0] == outcomes[-1] == "applied"
        await calm.until(lambda: calm.document(run)["status"] == "paused")

    simulate(body)


def test_a_request_that_was_offline_for_more_than_ten_minutes_is_ignored() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 10})
        await remind(calm, targets=20)
        await calm.until(lambda: calm.statuses()["sent"] >= 2)
        path = await ask(calm, run_path(calm), "cancel", age=timedelta(minutes=11))
        assert await outcome(calm, path) == "ignored"
        assert "10 minutes" in calm.document(path)["outcomeReason"]
        await until_ended(calm)
        assert only_run(calm)["status"] == "success"

    simulate(body)


def test_what_failed_is_tried_again_when_a_member_asks() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await remind(calm, targets=3)
        await until_ended(calm)
        path = await ask(calm, run_path(calm), "retryFailed")
        assert await outcome(calm, path) == "refused"
        assert calm.document(path)["outcomeReason"] == "no target of this run has failed"

    simulate(body)


# --- reminders


def test_a_member_pauses_edits_resumes_and_removes_a_reminder() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await calm.write(create("reminders/rem", reminder(schedule={"type": "cron", "cron": "15 * * * *"})))
        await calm.until(lambda: "nextFireAt" in calm.document("reminders/rem"))
        assert await outcome(calm, await ask(calm, "reminders/rem", "pause")) == "applied"
        assert calm.document("reminders/rem")["status"] == "paused"
        changes = {"schedule": {"type": "cron", "cron": "30 * * * *"}, "targets": ["3@g.us"]}
        assert await outcome(calm, await ask(calm, "reminders/rem", "edit", changes=changes)) == "applied"
        assert calm.document("reminders/rem")["targetCount"] == 1
        assert calm.document("reminders/rem")["nextFireAt"] == START + timedelta(minutes=30)
        assert await outcome(calm, await ask(calm, "reminders/rem", "resume")) == "applied"
        await until_ended(calm)
        assert only_run(calm)["fireAt"] == START + timedelta(minutes=30)
        assert targets_called(calm) == {"3@g.us": 1}
        await ask(calm, "reminders/rem", "remove")
        await calm.until(lambda: "reminders/rem" not in calm.world.truth.latest())
        assert not [path for path in calm.world.truth.latest() if path.startswith("reminders/")]

    simulate(body)


def test_an_edit_with_a_fault_changes_nothing_and_says_why() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await calm.write(create("reminders/rem", reminder(schedule={"type": "cron", "cron": "15 * * * *"})))
        await calm.until(lambda: "nextFireAt" in calm.document("reminders/rem"))
        before = calm.document("reminders/rem")
        for number, (changes, words) in enumerate(
            (
                ({"targets": ["not an address"]}, "targets[0].to must be"),
                ({"accountId": "other"}, "accountId is unknown"),
                ({}, "nothing is changed"),
                ({"schedule": {"type": "once", "at": START - timedelta(days=1)}}, "no time is left"),
            )
        ):
            path = await ask(calm, "reminders/rem", "edit", name=f"request-{number}", changes=changes)
            assert await outcome(calm, path) == "refused"
            assert words in calm.document(path)["outcomeReason"]
        after = calm.document("reminders/rem")
        assert {name: after[name] for name in before} == before

    simulate(body)


def test_targets_in_documents_of_their_own_are_replaced_by_an_edit() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        many = [{"id": f"t{number}", "to": f"{number}@g.us"} for number in range(2_500)]
        fields = reminder(targets=[{"id": "x", "to": "x@g.us"}], schedule={"type": "cron", "cron": "15 * * * *"})
        await calm.write(create("reminders/rem", fields))
        change = calm.world.client.system.change_reminder
        await change.edit("rem", {"targets": many})
        assert "incomplete" not in calm.document("reminders/rem")
        assert len([path for path in calm.world.truth.latest() if path.startswith("reminders/rem/targets/")]) == 3
        await change.edit("rem", {"targets": ["1@g.us"]})
        assert not [path for path in calm.world.truth.latest() if path.startswith("reminders/rem/targets/")]
        await until_ended(calm)
        assert targets_called(calm) == {"1@g.us": 1}

    simulate(body)


def test_a_reminder_whose_time_has_come_and_gone_fires_again_after_an_edit_of_its_time() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await calm.write(create("reminders/rem", reminder()))
        await calm.until(lambda: calm.document("reminders/rem")["status"] == "ended")
        at = calm.world.clock() + timedelta(hours=1)
        path = await ask(calm, "reminders/rem", "edit", changes={"schedule": {"type": "once", "at": at}})
        assert await outcome(calm, path) == "applied"
        await until_ended(calm, 2)
        assert sorted(run["fireAt"] for run in runs(calm).values()) == [START, at]

    simulate(body)


# --- the decision


def request(action: Asked, created_at: datetime, asked_at: datetime) -> Request:
    return Request(request_id="r", action=action, created_at=created_at, asked_at=asked_at, changes={})


def test_a_pause_that_becomes_visible_after_a_later_resume_was_applied_is_ignored() -> None:
    pause = request(Asked.PAUSE, START, START)
    later = [(Asked.RESUME, START + timedelta(seconds=1))]
    assert ignored_because(pause, later) == "a later request was carried out before it"
    assert ignored_because(pause, [(Asked.RESUME, START - timedelta(seconds=1))]) is None
    assert ignored_because(request(Asked.CANCEL, START, START), later) is None, "a cancel is never taken back"


@pytest.mark.parametrize("data", [{}, {"action": "edit"}, {"action": "pause"}, {"action": 7}])
def test_a_document_that_is_no_request_of_a_run_is_refused_with_a_reason(data: dict[str, Any]) -> None:
    assert not isinstance(parse_request("r", data, OF_RUNS), Request)
