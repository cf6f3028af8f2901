"""Who may do what in the console: each action with each role, without a session, with a wrong form, on another's."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

import pytest

from firestore_outbox.web.console.pages import DEEDS, SCREENS
from tests.system.console.conftest import ROLES, UIDS, World
from tests.system.console.documents import job_document, outbox_document, reminder_document, run_document
from tests.web.functions.firebase import PROJECT, unsigned_token

pytestmark = pytest.mark.asyncio(loop_scope="session")

DONE, SHOWN, REFUSED, UNKNOWN = 303, 200, 403, 404

TABLE: Mapping[str, Mapping[str, int]] = {
    # owner, agent, viewer, a person who is no member, operator
    action: dict(zip(ROLES, row, strict=True))
    for action, row in {
        "message.cancel": (DONE, REFUSED, REFUSED, UNKNOWN, DONE),
        "message.settle": (DONE, DONE, REFUSED, UNKNOWN, DONE),
        "message.redrive": (DONE, DONE, REFUSED, UNKNOWN, DONE),
        "account.redrive": (DONE, REFUSED, REFUSED, UNKNOWN, DONE),
        "account.pause": (DONE, REFUSED, REFUSED, UNKNOWN, DONE),
        "account.resume": (DONE, REFUSED, REFUSED, UNKNOWN, DONE),
        "set": (DONE, REFUSED, REFUSED, UNKNOWN, DONE),
        "member": (DONE, REFUSED, REFUSED, UNKNOWN, DONE),
        "connect": (DONE, REFUSED, REFUSED, UNKNOWN, DONE),
        "disconnect": (DONE, REFUSED, REFUSED, UNKNOWN, DONE),
        "account.check": (DONE, REFUSED, REFUSED, UNKNOWN, DONE),
        "run.pause": (DONE, REFUSED, REFUSED, UNKNOWN, DONE),
        "run.resume": (DONE, REFUSED, REFUSED, UNKNOWN, DONE),
        "run.cancel": (DONE, REFUSED, REFUSED, UNKNOWN, DONE),
        "run.retry": (DONE, DONE, REFUSED, UNKNOWN, DONE),
        "reminder.pause": (DONE, DONE, REFUSED, UNKNOWN, DONE),
        "reminder.resume": (DONE, DONE, REFUSED, UNKNOWN, DONE),
        "reminder.edit": (DONE, DONE, REFUSED, UNKNOWN, DONE),
        "reminder.remove": (DONE, DONE, REFUSED, UNKNOWN, DONE),
        "reminder.check": (SHOWN, SHOWN, REFUSED, UNKNOWN, SHOWN),
        "reminder.add": (DONE, DONE, REFUSED, UNKNOWN, DONE),
        "dev.faults": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, DONE),
        "dev.say": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, DONE),
        "job.retry": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, DONE),
        "job.drop": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, DONE),
        "audit.run": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, DONE),
    }.items()
}
REMINDER = {"targets": "+491511234567", "text": "Hello", "timezone": "UTC", "at": "2090-01-31T09:00"}
FORMS: Mapping[str, Mapping[str, str]] = {
    "message.settle": {"as": "sent"},
    "set": {"pace.burst": "2"},
    "member": {"uid": "new-person", "role": "viewer"},
    "reminder.edit": {"text": "Good evening", "timezone": "UTC", "when": "keep"},
    "reminder.check": REMINDER,
    "reminder.add": REMINDER,
}
STATUSES = {"message.cancel": "queued", "message.settle": "uncertain", "message.redrive": "failed"}
DEED_OF = {deed.action: deed for deed in DEEDS}


async def path_of(world: World, action: str, account_id: str) -> str:
    """The address of the action, on something of this account on which it can be done."""
    match DEED_OF[action].path.split("/")[1]:
        case "messages":
            subject = await outbox_document(world, account_id, STATUSES[action])
        case "runs":
            subject = await run_document(world, account_id)
        case "reminders":
            subject = await reminder_document(world, account_id)
        case "jobs":
            subject = await job_document(world)
        case _:
            subject = account_id
    return DEED_OF[action].path.replace("{id}", subject)


async def test_every_action_is_in_the_table() -> None:
    assert set(TABLE) == set(DEED_OF)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("action", TABLE)
async def test_an_action_is_open_to_the_roles_that_the_table_says(world: World, action: str, role: str) -> None:
    account_id = await world.account(f"table-{secrets.token_hex(4)}")
    person = await world.person(role)
    answer = await person.post(await path_of(world, action, account_id), **FORMS.get(action, {}))
    assert answer.status_code == TABLE[action][role], answer.text
    belongs = "actions" if action.startswith(("job.", "audit.", "dev.")) else f"accounts/{account_id}/actions"
    log = [one.to_dict() or {} async for one in world.firestore.collection(belongs).stream()]
    by_them = [entry for entry in log if entry["by"] == UIDS[role] and entry["action"] == action]
    assert bool(by_them) is (answer.status_code == DONE), "what was done is in the log, and nothing else"


@pytest.mark.parametrize("action", TABLE)
async def test_without_a_session_nothing_is_done(world: World, action: str) -> None:
    path = await path_of(world, action, await world.account("table"))
    assert (await world.browser().post(path)).status_code == 401
    forged = world.browser()
    forged.http.cookies.set("__session", "not.a.cookie")
    assert (await forged.post(path)).status_code == 401


@pytest.mark.parametrize("action", TABLE)
async def test_a_form_of_another_session_or_site_is_refused(world: World, action: str) -> None:
    path = await path_of(world, action, await world.account("table"))
    owner, other = await world.person("owner"), await world.person("agent")
    for token in ("", "0" * 64, other.token):
        assert (await owner.post(path, csrf=token)).status_code == 403
    for headers in ({}, {"origin": "https://evil.example"}, {"origin": world.url, "sec-fetch-site": "cross-site"}):
        answer = await owner.http.post(path, data={"csrf": owner.token}, headers=headers)
        assert answer.status_code == 403


@pytest.mark.parametrize("action", TABLE)
async def test_what_belongs_to_another_tenant_is_answered_like_what_does_not_exist(world: World, action: str) -> None:
    others = await path_of(world, action, await world.account("others", members=False))
    owner = await world.person("owner")
    answer = await owner.post(others, **FORMS.get(action, {}))
    missing = await owner.post(DEED_OF[action].path.replace("{id}", "no-such-thing"), **FORMS.get(action, {}))
    assert answer.status_code == missing.status_code == 404
    assert answer.text == missing.text


async def test_an_owner_who_looked_first_leaves_nothing_to_a_viewer_of_the_same_accounts(world: World) -> None:
    account_id = await world.account(f"shared-{secrets.token_hex(4)}")
    owner, viewer = await world.person("owner"), await world.person("viewer")
    await owner.post(f"/accounts/{account_id}/pause")
    assert "account.pause" in (await owner.get(f"/accounts/{account_id}")).text
    assert "account.pause" not in (await viewer.get(f"/accounts/{account_id}")).text


async def test_an_owner_cannot_choose_the_plan_that_an_operator_gives(world: World) -> None:
    account_id = await world.account(f"plan-{secrets.token_hex(4)}")
    for role, plan in (("owner", None), ("operator", "pro")):
        await (await world.person(role)).post(f"/accounts/{account_id}/settings", plan="pro")
        assert (await world.read(f"accounts/{account_id}")).get("plan") == plan


async def test_the_code_of_a_phone_is_for_owners_alone(world: World) -> None:
    account_id = await world.account(f"phone-{secrets.token_hex(4)}", provider="waha")
    await world.firestore.document(f"accounts/{account_id}/session/current").set({"state": "scan"})
    await world.firestore.document(f"accounts/{account_id}/session/qr").set({"code": "2@secret"})
    for role, may_see in (("agent", False), ("viewer", False), ("stranger", False), ("owner", True)):
        person = await world.person(role)
        answer = await person.get(f"/accounts/{account_id}/phone")
        assert ("The code to scan" in answer.text) is may_see, role
        assert "2@secret" not in answer.text, "it is drawn, not written"


async def test_the_role_is_read_anew_for_each_action(world: World) -> None:
    account_id = await world.account("leaving")
    owner = await world.person("owner")
    path = await path_of(world, "message.cancel", account_id)
    await world.firestore.document(f"accounts/{account_id}/members/{UIDS['owner']}").delete()
    assert (await owner.post(path)).status_code == 404


def session_from_before(role: str) -> str:
    """A cookie of five minutes ago. Firebase counts in seconds: it cannot revoke one of this very second."""
    issuer = f"https://session.firebase.google.com/{PROJECT}"
    return unsigned_token(UIDS[role], iss=issuer, email=f"{role}@example.com")


async def test_a_session_that_was_signed_out_everywhere_is_refused_at_once(world: World) -> None:
    laptop, phone = world.browser(), world.browser()
    for device in (laptop, phone):
        device.http.cookies.set("__session", session_from_before("viewer"))
        assert (await device.get("/")).status_code == 200
    assert (await laptop.post("/sign-out", everywhere="1")).status_code == 303
    assert (await phone.get("/")).headers["location"] == "/sign-in?to=/"


async def test_signing_in_leads_to_a_page_of_the_console_alone(world: World) -> None:
    for to in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"):
        answer = await world.browser().post("/sign-in", email="owner@example.com", password="local", to=to)
        assert answer.headers["location"] == "/"


async def test_a_wrong_password_opens_nothing(world: World) -> None:
    browser = world.browser()
    answer = await browser.post("/sign-in", email="owner@example.com", password="guess", to="/")
    assert answer.status_code == 401
    assert "__session" not in browser.http.cookies


async def test_google_signs_in_and_an_answer_without_its_beginning_does_not(world: World) -> None:
    browser = world.browser()
    browser.http.follow_redirects = True
    assert "Now" in (await browser.get("/sign-in/google")).text
    assert "__session" in browser.http.cookies
    stranger = world.browser()
    assert (await stranger.get("/sign-in/google/back?code=operator")).status_code == 401


# --- what answers say


PATHS = [screen.path for screen in SCREENS if "{" not in screen.path]


@pytest.mark.parametrize("path", [*PATHS, "/sign-in", "/healthz", "/static/console.css", "/no/such/page"])
async def test_every_answer_has_a_strict_policy(world: World, path: str) -> None:
    answer = await (await world.person("operator")).get(path)
    policy = dict(one.strip().split(" ", 1) for one in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son\w+=", answer.text), "nothing inline"


async def test_the_session_cookie_is_out_of_reach_of_scripts_and_other_sites(world: World) -> None:
    answer = await world.browser().post("/sign-in", email="owner@example.com", password="local", to="/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie


# --- canaries


async def everything_seen_by(world: World, role: str, ids: Mapping[str, str]) -> str:
    """All pages, live parts and files that this person can ask for, with these ids in them."""
    person, texts = await world.person(role), []
    for screen in SCREENS:
        path = screen.path.replace("{id}", ids.get(screen.path.split("/")[1], "x"))
        texts.append((await person.get(path)).text)
        if screen.is_live:
            async with person.http.stream("GET", f"/live{path}") as answer:
                async for line in answer.aiter_lines():
                    texts.append(line)
                    if answer.status_code != 200 or line.startswith("data:"):
                        break
    paths = [f"/messages/{ids['messages']}.json", f"/runs/{ids['runs']}.csv"]
    queries = ("status=failed", f"account={ids['accounts']}", f"id={ids['messages']}")
    paths += [f"/messages?{query}" for query in (*queries, f"account={ids['accounts']}&to=%2B491511234567")]
    return "\n".join([*texts, *[(await person.get(path)).text for path in paths]])


async def test_no_page_shows_another_tenants_data_and_none_shows_a_secret(world: World) -> None:
    canary = f"canary-{secrets.token_hex(6)}"
    account_id = await world.account(f"apart-{secrets.token_hex(4)}", members=False, note=canary)
    ids = {
        "accounts": account_id,
        "messages": await outbox_document(world, account_id, "failed", canary),
        "runs": await run_document(world, account_id, canary),
        "reminders": await reminder_document(world, account_id, canary),
    }
    await job_document(world, canary)
    for role in ("owner", "agent", "viewer", "stranger"):
        assert canary not in await everything_seen_by(world, role, ids), role
    seen = await everything_seen_by(world, "operator", ids)
    assert canary in seen, "the pages were looked at"
    credentials = json.loads(await asyncio.to_thread(Path(world.stack.exports["OUTBOX_CREDENTIALS_FILE"]).read_text))
    kept = [value for one in credentials.values() for name, value in one.items() if "ecret" in name]
    assert kept
    assert [value for value in kept if value in seen] == []
