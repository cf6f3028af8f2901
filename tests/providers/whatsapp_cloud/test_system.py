"""From a queued message to `read`, through the whole system: Firestore, lane, adapter, sockets, webhooks."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from firestore_emulator.outgoing import HttpCall
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import update
from firestore_outbox.inbound.webhook import Answer
from tests.providers.whatsapp_cloud.bodies import envelope, status
from tests.providers.whatsapp_cloud.support import NAME, SECRETS, Office

ORDERS = list(itertools.permutations(["sent", "delivered", "read"]))


async def hear_each(acme: Office, calls: list[HttpCall]) -> None:
    for call in calls:
        assert await acme.hear(call) is Answer.TAKEN


def by_status(acme: Office, request_id: str) -> dict[str, HttpCall]:
    mine = [call for call in acme.webhooks if request_id.encode() in call.body]
    return {state: call for call in mine for state in ORDERS[0] if f'"status": "{state}"'.encode() in call.body}


async def test_a_message_becomes_read_and_keeps_metas_id_and_all_times(acme: Office) -> None:
    await acme.account()
    await acme.send("request-1")
    await acme.drain()
    shown = await acme.message("request-1")
    assert shown["status"] == "read"
    assert shown["providerMessageId"].startswith("wamid.")
    assert all(shown[name] for name in ("sentAt", "deliveredAt", "readAt"))
    assert (await acme.outbox("request-1"))["status"] == "sent"


@pytest.mark.parametrize("is_lost", [False, True], ids=["answered", "answer lost"])
async def test_receipts_in_every_order_and_twice_end_as_read(acme: Office, is_lost: bool) -> None:
    """Where the answer was lost, the receipts are all that tells of it, and the first of them settles it."""
    acme.takes_webhooks = False
    await acme.account()
    await acme.order(lostResponseRate=float(is_lost))
    for number, order in enumerate(ORDERS):
        request_id, to = f"request-{number}", f"49151{number}"
        await acme.send(request_id, to=to)
        await acme.drain()
        assert (await acme.outbox(request_id))["status"] == ("uncertain" if is_lost else "sent")
        posted = by_status(acme, request_id)
        await hear_each(acme, [posted[state] for state in order for _ in range(2)])
        await hear_each(acme, [posted[state] for state in reversed(order)])
        shown = await acme.message(request_id, to=to)
        assert shown["status"] == "read", order
        assert all(shown[name] for name in ("sentAt", "deliveredAt", "readAt")), order
        assert (await acme.outbox(request_id))["status"] == "sent"
    assert len(await acme.truth()) == len(ORDERS)


async def test_a_message_that_meta_fails_later_is_shown_as_failed_with_its_code(acme: Office) -> None:
    await acme.account()
    await acme.order(receiptFailedRate=1, receiptFailedApiCode="131026")
    await acme.send("request-1")
    await acme.drain()
    shown = await acme.message("request-1")
    assert (shown["status"], shown["error"]["code"]) == ("failed", "recipient_invalid")
    assert (await acme.outbox("request-1"))["status"] == "failed"


FALLBACK = {"name": "we_have_news", "language": "en"}
NEWS = {"type": "template", **FALLBACK, "params": []}


async def test_a_text_refused_for_the_24_hours_goes_once_as_the_accounts_template_and_says_so(acme: Office) -> None:
    await acme.account(fallbackTemplate=FALLBACK)
    await acme.order(windowClosed=True)
    await acme.send("request-1")
    await acme.send("request-2")
    await acme.drain()
    accepted = [call["requestId"] for call in await acme.truth() if call["accepted"]]
    assert accepted == ["request-1", "request-2"], "once each, in order"
    assert [body["type"] for body in acme.posted].count("template") == 2
    stored, shown = await acme.outbox("request-1"), await acme.message("request-1")
    assert (stored["status"], stored["attempts"]) == ("sent", 2)
    assert stored["sentInstead"] == shown["sentInstead"] == NEWS
    assert stored["parts"] == shown["parts"] != [NEWS]
    assert shown["status"] == "read"


async def test_the_template_goes_once_if_the_worker_died_after_it_was_chosen(acme: Office) -> None:
    await acme.account(fallbackTemplate=FALLBACK, status="paused")
    await acme.order(windowClosed=True)
    await acme.send("request-1")
    chosen = update(paths.outbox("request-1"), {"sentInstead": NEWS, "attempts": 1}, version=None)
    resumed = update(paths.account("acme"), {"status": "active"}, version=None)
    await acme.system.gateway.commit([chosen, resumed])
    await acme.drain()
    assert [body["type"] for body in acme.posted] == ["template"]
    assert (await acme.outbox("request-1"))["status"] == "sent"


async def test_without_a_template_a_text_refused_for_the_24_hours_fails(acme: Office) -> None:
    await acme.account()
    await acme.order(windowClosed=True)
    await acme.send("request-1")
    await acme.drain()
    assert (await acme.outbox("request-1"))["lastError"]["code"] == "window_closed"
    assert len(await acme.truth()) == 1


async def test_a_voice_message_that_was_played_is_read(acme: Office) -> None:
    acme.takes_webhooks = False
    await acme.account()
    await acme.send("request-1")
    await acme.drain()
    played = status("played", biz_opaque_callback_data="request-1:0:1")
    body = envelope({"metadata": {"phone_number_id": "acme"}, "statuses": [played]})
    headers = acme.simulator.webhooks._forms[NAME].headers(SECRETS["webhookSecret"], body, acme.simulator.core.clock())
    assert await acme.system.webhook.take(NAME, "acme", headers, body) is Answer.TAKEN
    assert (await acme.message("request-1"))["status"] == "read"


@pytest.mark.parametrize("code", ["131048", "368", "190"])
async def test_an_account_that_meta_refuses_is_parked_and_its_messages_stay_queued(acme: Office, code: str) -> None:
    await acme.account()
    await acme.order(errorRate=1, apiCode=code)
    for number in range(3):
        await acme.send(f"request-{number}", to=f"49151{number}")
    await acme.drain()
    account = await acme.document(paths.account("acme"))
    assert account["status"] == "parked"
    assert {(await acme.outbox(f"request-{number}"))["status"] for number in range(3)} == {"queued"}
    assert len(await acme.truth()) <= 3  # as many as may be in flight


async def test_marketing_that_was_enough_for_today_waits_a_day(acme: Office) -> None:
    await acme.account()
    await acme.order(errorRate=1, apiCode="131049")
    await acme.send("request-1")
    await acme.drain()
    waiting = await acme.outbox("request-1")
    assert (waiting["status"], waiting["lastError"]["code"]) == ("queued", "rate_limited")
    hours = (waiting["nextAttemptAt"] - acme.system.clock()).total_seconds() / 3600
    assert 23.9 < hours <= 24


async def test_a_recipient_who_got_too_much_waits_and_the_others_do_not(acme: Office) -> None:
    await acme.account()
    await acme.order(throttleRate=1, throttleScope="recipient", forCalls=1)
    for number in (1, 2):
        await acme.send(f"request-{number}", to=f"49151{number}")
        tried = update(paths.outbox(f"request-{number}"), {"attempts": 2}, version=None)
        await acme.system.gateway.commit([tried])
    await acme.drain()
    outbox = {it["status"]: it for it in [await acme.outbox(f"request-{number}") for number in (1, 2)]}
    assert set(outbox) == {"queued", "sent"}
    seconds = (outbox["queued"]["nextAttemptAt"] - acme.system.clock()).total_seconds()
    assert 55 < seconds <= 64  # the third time
    assert (await acme.document(paths.account("acme")))["status"] == "active"


async def test_a_picture_in_storage_reaches_the_recipient(acme: Office) -> None:
    await acme.account()
    await acme.add_file()
    parts: list[dict[str, Any]] = [
        {"type": "text", "text": "look"},
        {"type": "media", "mediaId": "picture", "mimeType": "image/png", "caption": "this"},
    ]
    await acme.send("request-1", parts=parts)
    await acme.drain()
    assert (await acme.message("request-1"))["status"] == "read"
    assert [it["type"] for it in acme.posted] == ["text", "image"]
    assert len(await acme.truth("media")) == 1


async def test_a_picture_and_a_button_that_come_in_are_shown_in_their_thread(acme: Office) -> None:
    await acme.account()
    parts = [
        {"type": "media", "mediaId": "1013859600285441", "mimeType": "image/jpeg", "caption": "see"},
        {"type": "button", "button": {"text": "Yes"}},
    ]
    order = {"accountId": "acme", "from": "4917", "provider": NAME, "parts": parts, "providerMessageId": "wamid.A/B="}
    for _ in range(2):
        await acme.control.post("/_sim/inbound", json=order)
        await acme.simulator.webhooks.drained()
    assert acme.answers == [Answer.TAKEN] * 2
    shown = await acme.message("wamid.A%2FB%3D", to="4917")
    assert shown["parts"] == [
        {
            "type": "media",
            "mediaId": "whatsapp_cloud:1013859600285441",
            "mimeType": "image/jpeg",
            "caption": "see",
        }
    ]
    thread = await acme.document("threads/acme__4917")
    assert (thread["unreadCount"], thread["lastMessageText"]) == (2, "Yes")


async def test_an_unsigned_webhook_writes_nothing(acme: Office) -> None:
    acme.takes_webhooks = False
    await acme.account()
    await acme.send("request-1")
    await acme.drain()
    for call in acme.webhooks:
        assert await acme.system.webhook.take(NAME, "acme", {}, call.body) is Answer.REFUSED
    assert (await acme.message("request-1"))["status"] == "sent"


async def test_the_handshake_is_answered_by_the_function_that_takes_webhooks(acme: Office) -> None:
    await acme.account()
    query = {"hub.mode": "subscribe", "hub.challenge": "77", "hub.verify_token": SECRETS["verifyToken"]}
    assert await acme.system.webhook.handshake(NAME, "acme", query) == "77"
    assert await acme.system.webhook.handshake(NAME, "acme", query | {"hub.verify_token": "x"}) is Answer.NO_HANDSHAKE
