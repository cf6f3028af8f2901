"""Several accounts behind one app: each event of a webhook goes to the account of the number that it names, and to no
other, at the real function."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import update
from firestore_outbox.local.simulators.app import FORMS
from firestore_outbox.providers.credentials import FixedCredentials
from tests.inbound.webhooks import support
from tests.inbound.webhooks.support import Hooks, counted, inbound, now, receipt, signature_of

META, WAHA, OWN = "whatsapp_cloud", "waha", "signed_webhook"
APP, OTHER_APP = "the app secret", "another app's secret"
NUMBERS = {"shop": "1111", "clinic": "2222", "stranger": "3333", "old": "4444"}
"""`stranger` has an app of its own; `old` is of the app and was added before accounts had a providerNumber."""
TENANTS = ("shop", "clinic", "stranger", "old")


def credentials() -> FixedCredentials:
    entries = {
        account_id: {
            "token": "t",
            "webhookSecret": OTHER_APP if account_id == "stranger" else APP,
            "phoneNumberId": number,
            "session": number,
        }
        for account_id, number in NUMBERS.items()
    }
    return FixedCredentials(entries)


@pytest.fixture(params=[META, WAHA])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def hooks(monkeypatch: pytest.MonkeyPatch, name: str) -> AsyncIterator[Hooks]:
    async with support.hooks(monkeypatch, provider=None, credentials=credentials()) as hooks:
        for account_id in TENANTS:
            number = {} if account_id == "old" else {"providerNumber": NUMBERS[account_id]}
            await hooks.account(account_id, provider=name, **number)
        yield hooks


async def told(hooks: Hooks, name: str, event: dict[str, Any], *, number: str, path: str, secret: str = APP) -> int:
    body = FORMS[name].body(number, {"to": "4915112345", **event})
    return await hooks.post(name, body, signature_of(name, body, secret), account_id=path)


async def owners(hooks: Hooks) -> dict[str, set[str]]:
    """Every account named in what inbound messages wrote: in the paths, and in the documents."""
    threads = await hooks.system.gateway.find(Find(collection=paths.THREADS))
    found = [*threads, *await hooks.inbound()]
    return {
        "paths": {one.path.split("/")[1].partition("__")[0] for one in found},
        "fields": {one.data["accountId"] for one in found},
    }


def only(account_id: str) -> dict[str, set[str]]:
    return {"paths": {account_id}, "fields": {account_id}}


@pytest.mark.parametrize("path", ["shop", "clinic", "old"])
@pytest.mark.parametrize("owner", ["shop", "clinic"])
async def test_a_message_goes_to_the_account_of_its_number_at_whichever_address_it_comes(
    hooks: Hooks, name: str, owner: str, path: str
) -> None:
    assert await told(hooks, name, inbound(), number=NUMBERS[owner], path=path) == 200
    assert await owners(hooks) == only(owner)


@pytest.mark.parametrize("path", ["shop", "clinic"])
async def test_a_receipt_moves_the_message_of_the_account_of_its_number(hooks: Hooks, name: str, path: str) -> None:
    """Both accounts have sent, and the provider gave both messages one id: ids are unique to a number at most."""
    await hooks.sent(["request-shop"], "shop")
    await hooks.sent(["request-clinic"], "clinic")
    for account_id in ("shop", "clinic"):
        document = paths.message(f"{account_id}__+49request-{account_id}", f"request-{account_id}")
        await hooks.system.gateway.commit([update(document, {"providerMessageId": "same"}, version=None)])
    read = {**receipt("request-clinic", "read"), "providerMessageId": "same"}
    assert await told(hooks, name, read, number=NUMBERS["clinic"], path=path) == 200
    assert await hooks.statuses() == {"request-shop": "sent", "request-clinic": "read"}


@pytest.mark.parametrize("name", [META])  # WAHA puts one event into a body
async def test_one_body_with_events_of_two_numbers_reaches_both_accounts(hooks: Hooks, name: str) -> None:
    await hooks.sent(["request-shop"], "shop")
    bodies = [
        json.loads(FORMS[name].body(NUMBERS[account_id], {"to": "4915112345", **event}))
        for account_id, event in (
            ("clinic", inbound("in-1", text="my test result please")),
            ("shop", receipt("request-shop", "delivered", echo=True)),
            ("shop", inbound("in-2", text="a pair of shoes")),
        )
    ]
    merged = json.dumps({**bodies[0], "entry": [entry for body in bodies for entry in body["entry"]]}).encode()
    assert await hooks.post(name, merged, signature_of(name, merged, APP), account_id="shop") == 200
    texts = {one.data["accountId"]: one.data["parts"][0]["text"] for one in await hooks.inbound()}
    assert texts == {"clinic": "my test result please", "shop": "a pair of shoes"}
    assert await hooks.statuses() == {"request-shop": "delivered"}


async def test_a_receipt_that_comes_too_early_waits_under_the_account_of_its_number(hooks: Hooks, name: str) -> None:
    assert await told(hooks, name, receipt("request-9", "read"), number=NUMBERS["clinic"], path="shop") == 200
    assert [body["accountId"] for body, _ in hooks.tasks.receipts] == ["clinic"]


@pytest.mark.parametrize("event", [inbound(), receipt("request-1", "read")], ids=["inbound", "receipt"])
async def test_an_event_of_a_number_that_no_account_has_is_dropped_and_counted(
    hooks: Hooks, name: str, event: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    before = counted("outbox_webhook_events", "unknown_number")
    assert await told(hooks, name, event, number="9999", path="shop") == 200
    assert (hooks.wire.writes, hooks.tasks.asked) == (0, [])
    assert counted("outbox_webhook_events", "unknown_number") == before + 1
    (line,) = [record.__dict__["fields"] for record in caplog.records if "number" in record.__dict__.get("fields", {})]
    assert (line["action"], line["accountId"], line["number"]) == ("webhook_number_unknown", "shop", "9999")


async def test_an_event_that_names_no_number_is_dropped_and_counted(hooks: Hooks, name: str) -> None:
    body = json.loads(FORMS[name].body(NUMBERS["shop"], {"to": "4915112345", **inbound()}))
    (body["entry"][0]["changes"][0]["value"] if name == META else body).pop("metadata" if name == META else "session")
    raw, before = json.dumps(body).encode(), counted("outbox_webhook_events", "unknown_number")
    assert await hooks.post(name, raw, signature_of(name, raw, APP), account_id="shop") == 200
    assert hooks.wire.writes == 0
    assert counted("outbox_webhook_events", "unknown_number") == before + 1


async def test_a_tenant_who_signs_with_a_secret_of_their_own_reaches_no_other_account(hooks: Hooks, name: str) -> None:
    """The stranger may post anything to their own address, and names the number of a neighbour."""
    await hooks.sent(["request-1"], "shop")
    for event in (inbound(), receipt("request-1", "failed")):
        answer = await told(hooks, name, event, number=NUMBERS["shop"], path="stranger", secret=OTHER_APP)
        assert answer == 200
    assert await hooks.inbound() == []
    assert await hooks.statuses() == {"request-1": "sent"}
    assert hooks.tasks.asked == []


async def test_accounts_that_share_a_number_and_differ_in_their_secret_are_distinguished(
    hooks: Hooks, name: str
) -> None:
    """Sessions of two gateways may both be called `default`."""
    for account_id in ("clinic", "stranger"):
        number = {"providerNumber": "default"}
        await hooks.system.gateway.commit([update(paths.account(account_id), number, version=None)])
    assert await told(hooks, name, inbound(), number="default", path="shop") == 200
    assert await owners(hooks) == only("clinic")


async def test_a_number_that_two_accounts_of_one_secret_have_goes_to_neither(hooks: Hooks, name: str) -> None:
    await hooks.account("branch", provider=name, providerNumber=NUMBERS["clinic"])
    hooks.system.providers._credentials = FixedCredentials({"*": {"token": "t", "webhookSecret": APP}})
    assert await told(hooks, name, inbound(), number=NUMBERS["clinic"], path="shop") == 200
    assert await hooks.inbound() == []
    assert await told(hooks, name, inbound(), number=NUMBERS["clinic"], path="branch") == 200
    assert await owners(hooks) == only("branch")


# --- accounts from before providerNumber


async def test_an_account_without_a_provider_number_goes_by_its_credentials(hooks: Hooks, name: str) -> None:
    assert await told(hooks, name, inbound(), number=NUMBERS["old"], path="old") == 200
    assert await owners(hooks) == only("old")


async def test_an_account_without_a_provider_number_gets_nothing_of_another_number(hooks: Hooks, name: str) -> None:
    assert await told(hooks, name, inbound(), number="9999", path="old") == 200
    assert await hooks.inbound() == []


async def test_a_new_number_is_found_soon_after_its_account_was_added(hooks: Hooks, name: str) -> None:
    assert await told(hooks, name, inbound("in-1"), number="5555", path="shop") == 200
    await hooks.system.gateway.commit([update(paths.account("old"), {"providerNumber": "5555"}, version=None)])
    routes = hooks.system.webhook._routes
    routes._clock = lambda: now() + timedelta(seconds=11)
    assert await told(hooks, name, inbound("in-2"), number="5555", path="shop") == 200
    assert [one.data["accountId"] for one in await hooks.inbound()] == ["old"]


# --- the path


@pytest.mark.parametrize(
    ("name", "other"),
    [(name, other) for name in (META, WAHA) for other in ("simulated", OWN, "interakt", META, WAHA) if other != name],
)
async def test_a_path_whose_provider_is_not_the_accounts_is_refused(hooks: Hooks, name: str, other: str) -> None:
    """The secret is right, the signature is right, and the form is another provider's."""
    body = json.dumps({"events": [inbound()]}).encode()
    assert await hooks.post(other, body, signature_of(other, body, APP), account_id="shop") == 401
    assert (hooks.wire.writes, hooks.tasks.asked) == (0, [])
    assert (await hooks.http.get(f"/{other}/shop")).status_code == 403


async def test_an_account_that_does_not_exist_has_no_webhook(hooks: Hooks, name: str) -> None:
    hooks.system.providers._credentials = FixedCredentials({"*": {"token": "t", "webhookSecret": APP}})
    assert await told(hooks, name, inbound(), number="unknown", path="unknown") == 401
    assert hooks.wire.writes == 0


async def test_a_webhook_comes_again_when_firestore_cannot_say_whose_number_it_is(hooks: Hooks, name: str) -> None:
    hooks.wire.is_down = True
    assert await told(hooks, name, inbound(), number=NUMBERS["clinic"], path="shop") == 503
    hooks.wire.is_down = False
    assert await told(hooks, name, inbound(), number=NUMBERS["clinic"], path="shop") == 200
    assert await owners(hooks) == only("clinic")
