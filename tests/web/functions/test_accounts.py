"""`/v1/accounts/{accountId}`: an owner changes settings and members, and every change is in the action log."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import upsert
from tests.web.functions.calling import call, prepared
from tests.web.service.support import Service

PATH = "/v1/accounts/shop"


@pytest.fixture
async def instance(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    return await prepared(service, monkeypatch)


async def patch(changes: Any, uid: str = "olga") -> tuple[int, dict[str, Any]]:
    answer = await call("accounts", "PATCH", PATH, changes, uid=uid)
    return answer.status_code, answer.json()


async def stored(service: Service) -> dict[str, Any]:
    found = await service.system.gateway.get("accounts/shop")
    assert found is not None
    return found.data


async def actions(service: Service) -> list[dict[str, Any]]:
    found = await service.system.gateway.find(Find(collection="accounts/shop/actions"))
    return [one.data for one in found]


async def test_an_owner_changes_settings_and_the_log_names_them(instance: Service) -> None:
    status, body = await patch({"pace": {"perMinute": 12}, "onUncertain": "resend"})
    assert (status, body["changed"]) == (200, {"pace.perMinute": 12, "onUncertain": "resend"})
    account = await stored(instance)
    assert (account["pace"]["perMinute"], account["onUncertain"]) == (12, "resend")
    (action,) = await actions(instance)
    assert (action["action"], action["by"]) == ("set", "olga")
    assert action["detail"] == {"pace.perMinute": 12, "onUncertain": "resend"}
    assert action["at"] is not None


async def test_a_wrong_value_changes_nothing_and_is_not_logged(instance: Service) -> None:
    before = await stored(instance)
    status, body = await patch({"concurrency": 0, "timezone": "UTC"})
    assert status == 400
    assert "concurrency" in body["error"]
    assert await stored(instance) == before
    assert await actions(instance) == []


@pytest.mark.parametrize("uid", ["ann", "vic", "stranger"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", PATH),
        ("PATCH", PATH),
        ("PUT", f"{PATH}/members/x"),
        ("DELETE", f"{PATH}/members/ann"),
        ("POST", f"{PATH}:check"),
    ],
)
async def test_only_an_owner_administers(instance: Service, uid: str, method: str, path: str) -> None:
    answer = await call("accounts", method, path, {"role": "owner", "concurrency": 2}, uid=uid)
    assert answer.status_code == 403
    assert await actions(instance) == []


async def test_an_owner_adds_changes_and_removes_members(instance: Service) -> None:
    for method, content, role in (
        ("PUT", {"role": "viewer"}, "viewer"),
        ("PUT", {"role": "owner"}, "owner"),
        ("DELETE", {}, None),
    ):
        answer = await call("accounts", method, f"{PATH}/members/new", content, uid="olga")
        assert (answer.status_code, answer.json()["role"]) == (200, role)
    assert await instance.system.gateway.get("accounts/shop/members/new") is None
    assert [one["detail"]["uid"] for one in await actions(instance)] == ["new"] * 3


async def test_the_last_owner_stays(instance: Service) -> None:
    for method, content in (("DELETE", {}), ("PUT", {"role": "agent"})):
        answer = await call("accounts", method, f"{PATH}/members/olga", content, uid="olga")
        assert answer.status_code == 409
        assert "only owner" in answer.json()["error"]


async def test_two_owners_who_remove_each_other_at_once_leave_one(instance: Service) -> None:
    await call("accounts", "PUT", f"{PATH}/members/otto", {"role": "owner"}, uid="olga")
    await asyncio.gather(
        call("accounts", "DELETE", f"{PATH}/members/otto", {}, uid="olga"),
        call("accounts", "DELETE", f"{PATH}/members/olga", {}, uid="otto"),
    )
    shown = [await instance.system.gateway.get(f"accounts/shop/members/{uid}") for uid in ("olga", "otto")]
    assert len([one for one in shown if one is not None]) == 1


async def test_an_account_is_shown_with_members_and_actions_newest_first(instance: Service) -> None:
    await patch({"concurrency": 5})
    await patch({"concurrency": 6})
    answer = await call("accounts", "GET", PATH, uid="olga")
    body = answer.json()
    assert body["settings"]["concurrency"] == 6
    assert body["members"] == {"olga": "owner", "ann": "agent", "vic": "viewer"}
    assert [one["detail"]["concurrency"] for one in body["actions"]] == [6, 5]


async def test_credentials_are_checked_on_demand(instance: Service) -> None:
    answer = await call("accounts", "POST", f"{PATH}:check", uid="olga")
    assert answer.status_code == 200
    assert isinstance(answer.json()["works"], bool)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", PATH),
        ("POST", f"{PATH}:explode"),
        ("GET", f"{PATH}/members"),
        ("GET", "/v1/accounts/"),
        ("PUT", f"{PATH}/x/y"),
    ],
)
async def test_a_call_that_does_not_exist_is_answered_with_those_that_do(
    instance: Service, method: str, path: str
) -> None:
    answer = await call("accounts", method, path, uid="olga")
    assert answer.status_code == 404
    assert "/v1/accounts/ID" in answer.json()["error"]


async def test_an_owner_connects_an_account_and_the_session_lane_is_woken(instance: Service) -> None:
    await instance.system.gateway.commit([upsert("accounts/shop", {"provider": "waha"})])
    answer = await call("accounts", "POST", f"{PATH}:connect", uid="olga")
    assert (answer.status_code, answer.json()["state"]) == (202, "starting")
    current = await instance.system.gateway.get(answer.json()["session"])
    assert current is not None
    assert current.data["state"] == "starting"
    assert {"kind": "session", "key": "shop"} in [body for _, body, _ in instance.tasks.asked]
    assert [one["action"] for one in await actions(instance)] == ["connect"]


async def test_an_account_without_a_phone_cannot_be_connected(instance: Service) -> None:
    answer = await call("accounts", "POST", f"{PATH}:connect", uid="olga")
    assert answer.status_code == 409
    assert "no phone to link" in answer.json()["error"]


async def test_an_owner_removes_the_account_and_a_global_log_keeps_it(instance: Service) -> None:
    assert (await call("accounts", "DELETE", PATH, uid="ann")).status_code == 403, "an agent may not"
    answer = await call("accounts", "DELETE", PATH, uid="olga")
    assert (answer.status_code, answer.json()["members"]) == (200, 3)
    gateway = instance.system.gateway
    assert await gateway.get("accounts/shop") is None
    assert await gateway.find(Find(collection="accounts/shop/members")) == []
    (action,) = await gateway.find(Find(collection="actions"))
    assert (action.data["action"], action.data["by"]) == ("remove", "olga")
    assert action.data["detail"] == {"accountId": "shop", "members": 3}
    assert (await call("accounts", "DELETE", PATH, uid="olga")).status_code == 403, "as if it had never been"


async def test_an_account_with_waiting_messages_is_not_removed(instance: Service) -> None:
    await instance.send("request-1")
    answer = await call("accounts", "DELETE", PATH, uid="olga")
    assert (answer.status_code, "1 messages wait" in answer.json()["error"]) == (409, True)
    assert await instance.system.gateway.get("accounts/shop") is not None
