"""`/v1/accounts/{accountId}/suppressed`: the list of those who opted out, for owners."""

from __future__ import annotations

import pytest

from tests.web.functions.calling import call, prepared
from tests.web.service.support import Service

LIST = "/v1/accounts/shop/suppressed"


@pytest.fixture
async def instance(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    return await prepared(service, monkeypatch)


async def test_an_owner_adds_lists_and_removes_an_address(instance: Service) -> None:
    added = await call("accounts", "PUT", f"{LIST}/+491511234567", uid="olga")
    assert (added.status_code, added.json()["skipped"]) == (200, 0)
    (listed,) = (await call("accounts", "GET", LIST, uid="olga")).json()["suppressed"]
    assert (listed["address"], listed["because"], listed["by"]) == ("+491511234567", "api", "olga")
    removed = await call("accounts", "DELETE", f"{LIST}/491511234567", uid="olga")
    assert removed.json()["removed"] is True, "the number in another form is the same number"
    assert (await call("accounts", "GET", LIST, uid="olga")).json() == {"suppressed": []}


async def test_others_are_refused(instance: Service) -> None:
    for uid in ("ann", "vic", "sam"):
        assert (await call("accounts", "PUT", f"{LIST}/+491511234567", uid=uid)).status_code == 403
    assert (await call("accounts", "PUT", f"{LIST}/_bad", uid="olga")).status_code == 404
    assert await instance.system.suppressions.page("shop", 10) == []
