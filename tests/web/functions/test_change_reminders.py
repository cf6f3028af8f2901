"""`/v1/reminders/{reminderId}`, the list of runs, and calls from web pages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import functions_framework.aio
import httpx
import pytest

import firestore_outbox.web.functions
from firestore_outbox.web.cors import origin_headers
from tests.web.functions.calling import call, member, prepared
from tests.web.functions.firebase import now, unsigned_token
from tests.web.service.support import Service

AT = (now() + timedelta(days=1)).replace(microsecond=0)
PAGE = "https://app.example"


@pytest.fixture
async def instance(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    return await prepared(service, monkeypatch)


def body(**changes: Any) -> dict[str, Any]:
    fields = {
        "reminderId": "rem",
        "accountId": "shop",
        "targets": ["1@g.us"],
        "parts": [{"type": "text", "text": "Hello {name}"}],
        "timezone": "UTC",
        "schedule": {"type": "once", "at": AT.isoformat()},
        **changes,
    }
    return {name: value for name, value in fields.items() if value is not None}


async def add(**changes: Any) -> httpx.Response:
    return await call("reminders", "POST", "/v1/reminders", body(**changes))


async def test_an_app_reads_edits_pauses_and_removes_a_reminder(instance: Service) -> None:
    assert (await add()).status_code == 201
    read = await call("reminders", "GET", "/v1/reminders/rem", uid="vic")
    assert (read.status_code, read.json()["targetCount"], read.json()["status"]) == (200, 1, "active")
    assert "targets" not in read.json()

    later = AT + timedelta(hours=1)
    changes = {"schedule": {"type": "once", "at": later.isoformat()}, "window": {"startHour": 0, "endHour": 24}}
    edited = await call("reminders", "PATCH", "/v1/reminders/rem", changes)
    assert (edited.status_code, edited.json()["nextFires"]) == (200, [later.isoformat().replace("+00:00", "Z")])

    paused = await call("reminders", "POST", "/v1/reminders/rem:pause")
    assert (paused.status_code, paused.json()["status"]) == (200, "paused")
    assert (await call("reminders", "POST", "/v1/reminders/rem:resume")).json()["status"] == "active"
    assert (await call("reminders", "DELETE", "/v1/reminders/rem")).json() == {"reminderId": "rem", "removed": True}
    assert await instance.system.runs.reminder_document("rem") is None
    assert (await call("reminders", "GET", "/v1/reminders/rem")).status_code == 403


@pytest.mark.parametrize(
    ("method", "path", "content", "status", "words"),
    [
        ("PATCH", "/v1/reminders/rem", {"window": {"startHour": 24, "endHour": 6}}, 409, "a whole hour from 0 to 23"),
        ("PATCH", "/v1/reminders/rem", {"accountId": "other"}, 409, "accountId is unknown"),
        ("PATCH", "/v1/reminders/rem", {"targetsFile": "a,1@g.us,x"}, 400, "targetsFile, line 1: there are 3 columns"),
        ("PATCH", "/v1/reminders/rem", b"[]", 400, "JSON object"),
        ("PUT", "/v1/reminders/rem", b"", 405, "GET, PATCH, DELETE"),
        ("GET", "/v1/reminders", b"", 405, "POST"),
        ("POST", "/v1/reminders/rem:explode", b"", 404, "no such path"),
        ("GET", "/v1/reminders/none", b"", 403, "no such reminder"),
    ],
)
async def test_what_cannot_be_done_is_said(
    instance: Service, method: str, path: str, content: Any, status: int, words: str
) -> None:
    await add()
    answer = await call("reminders", method, path, content)
    assert (answer.status_code, words in answer.json()["error"]) == (status, True), answer.json()


async def test_only_members_see_a_reminder_and_only_owners_and_agents_change_it(instance: Service) -> None:
    await add()
    await member(instance, "sam", "owner", account="other")
    assert (await call("reminders", "GET", "/v1/reminders/rem", uid="sam")).status_code == 403
    assert (await call("reminders", "DELETE", "/v1/reminders/rem", uid="vic")).status_code == 403
    assert await instance.system.runs.reminder_document("rem") is not None


async def test_targets_may_come_as_the_text_of_a_file_with_variables(instance: Service) -> None:
    answer = await add(targets=None, targetsFile="to;name\n1@g.us;Ann\n2@g.us;Bob\n")
    assert (answer.status_code, answer.json()["targets"]) == (201, 2)
    refused = await add(reminderId="two", targets=None, targetsFile="to;name\n1@g.us;Ann\n2@g.us;\n")
    assert refused.json()["error"] == "targets[1] (2@g.us): the variable name is missing; the message has {name}."
    both = await add(reminderId="two", targetsFile="1@g.us")
    assert both.json()["error"] == "give either targets or targetsFile"


async def test_the_runs_of_an_account_are_listed_for_its_members(instance: Service) -> None:
    await add(schedule={"type": "once", "at": now().isoformat()})
    await instance.post("/tasks/lane", {"kind": "reminder", "key": "rem"})
    listed = await call("runs", "GET", "/v1/runs?accountId=shop", uid="vic")
    assert [(one["reminderId"], one["status"]) for one in listed.json()["runs"]] == [("rem", "pending")]
    assert (await call("runs", "GET", "/v1/runs?accountId=other")).status_code == 403
    assert (await call("runs", "GET", "/v1/runs")).status_code == 400


# --- web pages


async def asked(name: str, path: str, method: str, **headers: str) -> httpx.Response:
    app = functions_framework.aio.create_asgi_app_from_module(
        name, "main.py", None, firestore_outbox.web.functions, None
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://functions") as client:
        return await client.request(method, path, headers=headers)


FUNCTIONS = {
    "enqueue": "/v1/messages",
    "reminders": "/v1/reminders",
    "runs": "/v1/runs/x:pause",
    "accounts": "/v1/accounts/shop",
}
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}


@pytest.mark.parametrize("name", FUNCTIONS)
async def test_a_page_of_an_allowed_origin_may_call_and_others_may_not(
    instance: Service, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("OUTBOX_ALLOWED_ORIGINS", f"{PAGE}, http://127.0.0.1:8084")
    ours = await asked(name, FUNCTIONS[name], "OPTIONS", origin=PAGE, **PREFLIGHT)
    assert (ours.status_code, ours.headers["access-control-allow-origin"]) == (204, PAGE)
    assert "Authorization" in ours.headers["access-control-allow-headers"]
    theirs = await asked(name, FUNCTIONS[name], "OPTIONS", origin="https://evil.example", **PREFLIGHT)
    assert (theirs.status_code, "access-control-allow-origin" in theirs.headers) == (403, False)


async def test_an_answer_a_refusal_too_can_be_read_by_the_page(
    instance: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUTBOX_ALLOWED_ORIGINS", PAGE)
    refused = await asked("reminders", "/v1/reminders/none", "GET", origin=PAGE)
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, PAGE)
    bearer = {"authorization": f"Bearer {unsigned_token('ann')}"}
    listed = await asked("runs", "/v1/runs?accountId=shop", "GET", origin=PAGE, **bearer)
    assert (listed.status_code, listed.headers["access-control-allow-origin"]) == (200, PAGE)


def test_without_the_setting_no_page_may_call() -> None:
    assert origin_headers(PAGE, ()) == {}
    assert origin_headers(None, (PAGE,)) == {}
    assert origin_headers(PAGE, ("*",))["Access-Control-Allow-Origin"] == PAGE
