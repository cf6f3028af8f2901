"""`POST /v1/reminders` and `/v1/runs/{runId}`: fan-out for apps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import functions_framework.aio
import httpx
import pytest

import firestore_outbox.web.functions
from firestore_outbox.accounts.roles import MAY
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import update
from firestore_outbox.local.simulators.faults import Faults
from firestore_outbox.reminders.reminder_states import ReminderStatus
from firestore_outbox.web.runs_api import ACTIONS, MAX_BODY_BYTES
from tests.web.functions.calling import call, member, prepared
from tests.web.functions.firebase import now, unsigned_token
from tests.web.service.support import Service

TEXT = {"type": "text", "text": "The market opens at nine."}
AT = (now() + timedelta(days=1)).replace(microsecond=0)


@pytest.fixture
async def instance(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    return await prepared(service, monkeypatch)


def body(**changes: Any) -> dict[str, Any]:
    """A good one; None takes a field away."""
    fields = {
        "reminderId": "rem",
        "accountId": "shop",
        "targets": ["1@g.us", {"id": "two", "to": "2@g.us"}],
        "parts": [TEXT],
        "timezone": "Asia/Kuala_Lumpur",
        "window": {"startHour": 0, "endHour": 24},
        "schedule": {"type": "once", "at": AT.isoformat()},
        **changes,
    }
    return {name: value for name, value in fields.items() if value is not None}


async def post(content: Any, **who: Any) -> httpx.Response:
    return await call("reminders", "POST", "/v1/reminders", content, **who)


async def reminders(service: Service) -> dict[str, dict[str, Any]]:
    return {found.id: found.data for found in await service.system.runs.reminders(100)}


# --- a reminder


async def test_an_app_adds_a_reminder_and_learns_when_it_fires_and_ends(instance: Service) -> None:
    answer = await post(body())
    assert answer.status_code == 201
    at = AT.isoformat().replace("+00:00", "Z")
    assert answer.json() == {
        "reminderId": "rem",
        "reminder": "reminders/rem",
        "status": "active",
        "targets": 2,
        "nextFireAt": at,
        "nextFires": [at],
        "forecast": {"endsAt": at.replace("Z", ".100000Z"), "warning": None},
    }
    stored = (await reminders(instance))["rem"]
    assert stored["targets"] == [{"id": "1@g.us", "to": "1@g.us"}, {"id": "two", "to": "2@g.us"}]
    assert stored["schedule"] == {"type": "once", "at": AT}
    assert (stored["createdBy"], stored["nextFireAt"], stored["status"]) == ("ann", AT, "active")
    lane = {"kind": "reminder", "key": "rem"}
    assert [body for _, body, _ in instance.tasks.asked if body == lane], "its lane was not told"


async def test_a_warning_comes_with_the_answer(instance: Service) -> None:
    await instance.account(pace={"perMinute": 40})
    seventeen = (AT + timedelta(days=1)).replace(hour=9, minute=0, second=0)
    many = [f"{n}@g.us" for n in range(4_000)]
    answer = await post(
        body(
            targets=many,
            window={"startHour": 6, "endHour": 18},
            schedule={"type": "once", "at": seventeen.isoformat()},
        )
    )
    assert answer.status_code == 201
    assert answer.json()["forecast"]["warning"] == "4,000 targets at 40/min ends 18:40; the window closes 18:00"
    chunks = await instance.system.gateway.find(Find(collection=paths.targets("rem")))
    assert [len(chunk.data["targets"]) for chunk in chunks] == [1_000] * 4


async def test_cron_and_rrule_answer_with_their_next_times(instance: Service) -> None:
    daily = await post(body(reminderId="daily", schedule={"type": "cron", "cron": "0 9 * * *"}))
    times = [datetime.fromisoformat(text) for text in daily.json()["nextFires"]]
    assert [(at.hour, at.minute) for at in times] == [(1, 0)] * 3, "09:00 in Kuala Lumpur"
    weekly = {"type": "rrule", "rrule": "FREQ=WEEKLY", "start": AT.isoformat()}
    fires = (await post(body(reminderId="weekly", schedule=weekly))).json()["nextFires"]
    assert [datetime.fromisoformat(text) for text in fires] == [AT + timedelta(weeks=n) for n in range(3)]


async def test_what_is_due_is_sent_by_the_worker(instance: Service) -> None:
    assert (await post(body(schedule={"type": "once", "at": now().isoformat()}))).status_code == 201
    run_id = await run_to_its_end(instance)
    assert sorted(call.to for call in instance.provider.core.record.calls()) == ["1@g.us", "2@g.us"]
    assert (await call("runs", "GET", f"/v1/runs/{run_id}")).json()["status"] == "success"


async def run_to_its_end(service: Service) -> str:
    """As Cloud Tasks would call the worker. The account's lane sends word to the run's."""
    await service.post("/tasks/lane", {"kind": "reminder", "key": "rem"})
    ((run_id),) = [run.run.run_id for run in await service.system.runs.runs("shop", 10)]
    for lane in (("run", run_id), ("outbox", "shop"), ("run", run_id)):
        await service.post("/tasks/lane", {"kind": lane[0], "key": lane[1]})
    return run_id


# --- once


async def test_the_same_call_again_answers_the_same_and_writes_nothing(instance: Service) -> None:
    first = await post(body())
    before = await reminders(instance)
    for same in (
        body(),
        body(missed="skip"),
        body(schedule={"type": "once", "at": AT.isoformat().replace("+00:00", "Z")}),
    ):
        again = await post(same)
        assert (again.status_code, again.json()) == (200, first.json())
    assert await reminders(instance) == before


async def test_ten_calls_at_once_are_one_reminder(instance: Service) -> None:
    answers = await asyncio.gather(*(post(body(targets=[f"{n}@g.us" for n in range(600)])) for _ in range(10)))
    assert sorted(answer.status_code for answer in answers) == [200] * 9 + [201]
    assert len(await reminders(instance)) == 1


OTHER_BODIES: dict[str, dict[str, Any]] = {
    "another text": {"parts": [{"type": "text", "text": "Bye!"}]},
    "a target more": {"targets": ["1@g.us", {"id": "two", "to": "2@g.us"}, "3@g.us"]},
    "another target's name": {"targets": ["1@g.us", {"id": "zwei", "to": "2@g.us"}]},
    "another account": {"accountId": "branch"},
    "another time": {"schedule": {"type": "once", "at": (AT + timedelta(hours=5)).isoformat()}},
    "another zone": {"timezone": "UTC"},
    "other hours": {"window": {"startHour": 6, "endHour": 18}},
    "another end": {"onWindowEnd": "resumeNextDay"},
    "another way with what was missed": {"missed": "runOnce"},
    "another category": {"category": "marketing"},
}


@pytest.mark.parametrize("case", OTHER_BODIES)
async def test_another_body_under_the_same_reminder_id_is_refused_also_later(instance: Service, case: str) -> None:
    await instance.account("branch")
    await member(instance, "ann", "agent", "branch")
    assert (await post(body())).status_code == 201
    change = {"status": "ended", "lastFireAt": now(), "lastRunId": "rem-x"}  # as the worker does
    await instance.system.gateway.commit([update(paths.reminder("rem"), change, version=None)])
    before = await reminders(instance)
    answer = await post(body(**OTHER_BODIES[case]))
    assert answer.status_code == 409
    assert "reminderId rem" in answer.json()["error"]
    assert await reminders(instance) == before
    assert (await post(body())).status_code == 200, "the first call itself may still be repeated"


# --- who may


@pytest.mark.parametrize(("uid", "status"), [("olga", 201), ("ann", 201), ("vic", 403), ("stranger", 403), (None, 401)])
async def test_only_owners_and_agents_add_reminders(instance: Service, uid: str | None, status: int) -> None:
    assert (await post(body(), uid=uid)).status_code == status
    assert bool(await reminders(instance)) is (status == 201)


async def test_a_stranger_learns_neither_which_accounts_there_are_nor_what_is_wrong(instance: Service) -> None:
    refused = await post(body(parts=[]), uid="stranger")
    unknown = await post(body(accountId="no-such-account"), uid="stranger")
    assert (refused.status_code, unknown.status_code) == (403, 403)
    assert refused.json() == unknown.json()


# --- what is wrong, in words


BAD_BODIES: dict[str, tuple[Any, str]] = {
    "no JSON": (b"{", "not JSON"),
    "a list": ([], "must be a JSON object"),
    "no reminder id": (body(reminderId=None), "reminderId is missing"),
    "no targets": (body(targets=None), "targets is missing"),
    "an unknown field": (body(status="active"), "'status' is unknown; known are reminderId"),
    "a reminder id that is a number": (body(reminderId=7), "reminderId must be a text"),
    "a reminder id that is a path": (body(reminderId="a/b/c"), "reminderId must be 1 to 100"),
    "targets that are text": (body(targets="1@g.us"), "targets must be a list"),
    "targets that are none": (body(targets=[]), "targets: there are none"),
    "a target that is a path": (body(targets=["a/b"]), "targets[0].to must be 1 to 256"),
    "a target twice": (body(targets=["1", "1"]), "targets: '1' is there twice"),
    "a part with more in it": (body(parts=[{**TEXT, "bold": True}]), "parts[0].bold is no field of a text part"),
    "a schedule that is text": (body(schedule="daily"), "schedule.type must be"),
    "a time without an offset": (
        body(schedule={"type": "once", "at": "2030-01-31T09:00:00"}),
        "schedule.at must be a time with an offset",
    ),
    "a time that has passed": (
        body(schedule={"type": "once", "at": "2020-01-31T09:00:00Z"}),
        "schedule: no time is left in it",
    ),
    "a cron that is none": (body(schedule={"type": "cron", "cron": "0 25 * * *"}), "schedule: '0 25 * * *' is no cron"),
    "a window of nothing": (body(window={"startHour": 6, "endHour": 6}), "window: startHour and endHour are the same"),
    "an unknown zone": (body(timezone="Mars/Olympus"), "timezone must be a time zone"),
    "two faults": (body(timezone="Mars/Olympus", parts=[]), "parts must be a list of 1 to 10"),
}


@pytest.mark.parametrize("case", BAD_BODIES)
async def test_a_body_at_fault_is_refused_in_words_and_writes_nothing(instance: Service, case: str) -> None:
    content, words = BAD_BODIES[case]
    answer = await post(content)
    assert answer.status_code == 400
    assert words in answer.json()["error"]
    assert await reminders(instance) == {}


async def test_a_body_that_is_too_large_is_not_read_to_its_end(instance: Service) -> None:
    chunks = iter([b"x" * 1_000_000] * 20)

    async def endless() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    app = functions_framework.aio.create_asgi_app_from_module(
        "reminders", "main.py", None, firestore_outbox.web.functions, None
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://functions") as client:
        headers = {"authorization": f"Bearer {unsigned_token('ann')}"}
        answer = await client.post("/v1/reminders", content=endless(), headers=headers)
    assert answer.status_code == 413
    assert f"{MAX_BODY_BYTES:,}" in answer.json()["error"]
    assert len(list(chunks)) > 5, "it was read on"


@pytest.mark.parametrize(
    ("target", "method", "path", "status"),
    [
        ("reminders", "GET", "/v1/reminders", 405),
        ("reminders", "POST", "/v1/reminders/rem", 405),
        ("reminders", "POST", "/", 404),
        ("runs", "POST", "/v1/runs/rem-1", 405),
        ("runs", "DELETE", "/v1/runs/rem-1", 405),
        ("runs", "GET", "/v1/runs/rem-1:pause", 405),
        ("runs", "POST", "/v1/runs/rem-1:explode", 404),
        ("runs", "GET", "/v1/runs", 400),
        ("runs", "GET", "/v1/runs/", 400),
        ("runs", "GET", "/v1/runs/a%2Fb", 404),
        ("runs", "GET", "/v1/runs/..", 404),
    ],
)
async def test_there_is_nothing_else(instance: Service, target: str, method: str, path: str, status: int) -> None:
    assert (await call(target, method, path, body())).status_code == status
    assert await reminders(instance) == {}


async def test_a_call_is_to_be_repeated_when_firestore_is_out_of_reach(instance: Service) -> None:
    instance.store.is_down = True
    assert (await post(body())).status_code == 503
    assert (await call("runs", "GET", "/v1/runs/rem-1")).status_code == 503
    assert (await call("runs", "POST", "/v1/runs/rem-1:cancel")).status_code == 503
    instance.store.is_down = False
    assert (await post(body())).status_code == 201


# --- runs


@pytest.fixture
async def run_id(instance: Service) -> str:
    """A run with 3 targets that wait: its account is paused."""
    await instance.account(status="paused", pace={"perMinute": 1})
    await post(body(targets=["1@g.us", "2@g.us", "3@g.us"], schedule={"type": "once", "at": now().isoformat()}))
    await instance.post("/tasks/lane", {"kind": "reminder", "key": "rem"})
    (stored,) = await instance.system.runs.runs("shop", 10)
    await instance.post("/tasks/lane", {"kind": "run", "key": stored.run.run_id})
    return stored.run.run_id


async def test_a_run_is_counted_and_forecast_when_it_is_asked_for(instance: Service, run_id: str) -> None:
    answer = await call("runs", "GET", f"/v1/runs/{run_id}")
    assert answer.status_code == 200
    told = answer.json()
    assert (told["runId"], told["accountId"], told["reminderId"], told["status"]) == (run_id, "shop", "rem", "running")
    assert (told["counts"]["total"], told["counts"]["pending"], told["counts"]["sent"]) == (3, 3, 0)
    assert told["forecast"]["endsAt"] is None
    assert "the account is paused" in told["forecast"]["warning"]
    assert "finishedAt" not in told
    await instance.system.gateway.commit([update("accounts/shop", {"status": "active"}, version=None)])
    resumed = (await call("runs", "GET", f"/v1/runs/{run_id}")).json()
    ends = datetime.fromisoformat(resumed["forecast"]["endsAt"])
    assert timedelta(minutes=2) < ends - now() <= timedelta(minutes=3)


async def test_targets_are_listed_page_by_page_and_sent_as_a_file(instance: Service, run_id: str) -> None:
    path, found, after = f"/v1/runs/{run_id}/targets", [], ""
    for _ in range(3):
        page = (await call("runs", "GET", f"{path}?limit=2{after}")).json()
        found += page["targets"]
        after = f"&after={page.get('after')}"
    assert sorted(row["to"] for row in found) == ["1@g.us", "2@g.us", "3@g.us"]
    assert {row["status"] for row in found} == {"queued"}
    assert (await call("runs", "GET", f"{path}?status=failed")).json() == {"targets": []}
    for query in ("limit=0", "limit=x", "limit=301", "status=lost", "after=a%2Fb"):
        assert (await call("runs", "GET", f"{path}?{query}")).status_code == 400, query

    file = await call("runs", "GET", f"{path}.csv", uid="vic")
    assert (file.status_code, file.headers["content-type"]) == (200, "text/csv; charset=utf-8")
    assert len(file.text.splitlines()) == 4
    for where in (path, f"{path}.csv"):
        assert (await call("runs", "GET", where, uid="stranger")).status_code == 403
        assert (await call("runs", "GET", where, uid=None)).status_code == 401
    assert (await call("runs", "GET", f"/v1/runs/{run_id}/other")).status_code == 404
    assert (await call("runs", "POST", f"{path}:pause")).status_code == 404


async def test_a_viewer_looks_at_a_run_but_does_not_touch_it_and_a_stranger_finds_none(
    instance: Service, run_id: str
) -> None:
    path = f"/v1/runs/{run_id}"
    assert (await call("runs", "GET", path, uid="vic")).status_code == 200
    assert (await call("runs", "POST", f"{path}:cancel", uid="vic")).status_code == 403
    for uid in ("stranger", "a/b"):
        for method, where in (("GET", path), ("POST", f"{path}:cancel")):
            theirs = await call("runs", method, where, uid=uid)
            unknown = await call("runs", method, where.replace("rem-", "none-"), uid=uid)
            assert (theirs.status_code, unknown.status_code) == (403, 403)
            assert theirs.json() == unknown.json(), "no caller learns which runs there are"
    assert (await call("runs", "GET", path, uid=None)).status_code == 401
    assert (await call("runs", "POST", f"{path}:cancel", uid=None)).status_code == 401
    assert (await call("runs", "GET", path)).json()["status"] == "running"


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(("uid", "role"), [("olga", "owner"), ("ann", "agent"), ("vic", "viewer")])
async def test_each_role_may_ask_of_a_run_what_the_table_says(
    instance: Service, run_id: str, action: str, uid: str, role: str
) -> None:
    """409 where the run does not take it now: who asked was allowed to."""
    answer = await call("runs", "POST", f"/v1/runs/{run_id}:{action}", uid=uid)
    assert (answer.status_code in (202, 409)) is (role in MAY[ACTIONS[action]])
    stored = await instance.system.runs.run(run_id)
    assert stored is not None
    assert (stored.run.requested is not None) is (answer.status_code == 202)


async def test_an_agent_does_not_cancel_a_run(instance: Service, run_id: str) -> None:
    """The security rules let an agent cancel no message of a run."""
    answer = await call("runs", "POST", f"/v1/runs/{run_id}:cancel", uid="ann")
    assert (answer.status_code, answer.json()["error"][-17:]) == (403, "it takes an owner")


async def test_a_run_is_paused_resumed_and_cancelled(instance: Service, run_id: str) -> None:
    async def told(action: str) -> httpx.Response:
        answer = await call("runs", "POST", f"/v1/runs/{run_id}:{action}", uid="olga")
        await instance.post("/tasks/lane", {"kind": "run", "key": run_id})
        return answer

    async def status() -> str:
        return str((await call("runs", "GET", f"/v1/runs/{run_id}")).json()["status"])

    assert (await told("resume")).json() == {"error": "the run is not paused"}
    paused = await told("pause")
    assert (paused.status_code, paused.json()) == (202, {"runId": run_id, "run": f"runs/{run_id}"})
    assert await status() == "paused"
    assert (await told("pause")).status_code == 409
    assert (await told("resume")).status_code == 202
    assert await status() == "running"
    assert (await told("retry-failed")).json() == {"error": "the run has not ended yet (running)"}
    assert (await told("cancel")).status_code == 202
    ended = (await call("runs", "GET", f"/v1/runs/{run_id}")).json()
    assert (ended["status"], ended["counts"]["cancelled"]) == ("cancelled", 3)
    assert ended["errorSummary"] == "Cancelled. 0 of 3 groups delivered."
    assert "forecast" not in ended
    assert (await told("cancel")).status_code == 409


async def test_counts_of_a_run_whose_documents_have_expired_are_those_of_its_end(
    instance: Service, run_id: str
) -> None:
    await call("runs", "POST", f"/v1/runs/{run_id}:cancel", uid="olga")
    await instance.post("/tasks/lane", {"kind": "run", "key": run_id})
    before = (await call("runs", "GET", f"/v1/runs/{run_id}")).json()
    for snapshot in await instance.system.gateway.find(Find(collection=paths.OUTBOX)):
        await instance.system.gateway._client.document(snapshot.path).delete()
    assert (await call("runs", "GET", f"/v1/runs/{run_id}")).json() == before


async def test_failed_targets_are_tried_again_as_a_run_of_their_own(instance: Service) -> None:
    instance.provider.core.faults = Faults(invalidRecipients=("2@g.us",))
    await post(body(schedule={"type": "once", "at": now().isoformat()}))
    run_id = await run_to_its_end(instance)
    assert (await call("runs", "GET", f"/v1/runs/{run_id}")).json()["status"] == "partial"
    again = await call("runs", "POST", f"/v1/runs/{run_id}:retry-failed")
    assert (again.status_code, again.json()["runId"]) == (202, f"{run_id}-again")
    assert (await call("runs", "GET", f"/v1/runs/{run_id}-again")).json()["retryOf"] == run_id


async def test_a_paused_reminder_is_still_the_same_reminder(instance: Service) -> None:
    await post(body())
    await instance.system.change_reminder.set_status("rem", ReminderStatus.PAUSED)
    again = await post(body())
    assert (again.status_code, again.json()["status"]) == (200, "paused")
