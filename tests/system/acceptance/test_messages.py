"""A, B, C and E: threads, first-class messages, inbound messages, and the double click."""

from __future__ import annotations

import asyncio

from google.api_core.exceptions import Aborted, AlreadyExists

from tests.system.acceptance.world import World, until

ALICE = "+4917000001"


async def test_a_two_accounts_that_write_to_one_recipient_have_two_threads_that_never_mix(world: World) -> None:
    first, second = await world.account(), await world.account()
    from_first = await world.send(first, ALICE, text="from the first")
    from_second = await world.send(second, ALICE, text="from the second")
    await world.all_end(first, second)
    answer = await world.inbound(second, ALICE, "to the second")
    await world.becomes(f"threads/{second}__{ALICE}", lastMessageText="to the second")

    assert {one["requestId"] for one in await world.messages_in(f"{first}__{ALICE}")} == {from_first.request_id}
    assert {one["requestId"] for one in await world.messages_in(f"{second}__{ALICE}")} == {
        from_second.request_id,
        answer,
    }
    assert (await world.read(f"threads/{first}__{ALICE}"))["lastMessageText"] == "from the first"
    assert "unreadCount" not in await world.read(f"threads/{first}__{ALICE}")
    calls = await world.calls(first, second)
    assert {(call["accountId"], call["requestId"], call["to"]) for call in calls} == {
        (first, from_first.request_id, ALICE),
        (second, from_second.request_id, ALICE),
    }


async def test_b_a_message_is_queued_in_both_documents_at_once_and_then_sent_in_both(world: World) -> None:
    account_id = await world.account()
    written = await world.send(account_id, ALICE)

    for path in (written.message, written.outbox):
        assert (await world.read(path, read_time=written.at))["status"] == "queued", "as the batch left it"

    outbox = await world.becomes(written.outbox, status="sent")
    message = await until(
        lambda: world.read(written.message), lambda shown: shown["status"] in ("sent", "delivered", "read"), "sent"
    )
    assert outbox["providerMessageId"]
    assert message["providerMessageId"] == outbox["providerMessageId"]
    assert message["sentAt"] == outbox["sentAt"]
    assert outbox["attempts"] == 1
    assert not {"claimedBy", "leaseUntil"} & outbox.keys()
    assert [call["requestId"] for call in await world.calls(account_id)] == [written.request_id]


async def test_c_an_inbound_message_appears_in_its_thread_and_counts_as_unread(world: World) -> None:
    account_id = await world.account()
    thread = f"threads/{account_id}__{ALICE}"
    identity = await world.inbound(account_id, ALICE, "is anybody there?")

    shown = await world.becomes(f"{thread}/messages/{identity}", status="delivered")
    assert shown["direction"] == "inbound"
    assert shown["parts"] == [{"type": "text", "text": "is anybody there?"}]
    fields = await world.read(thread)
    assert (fields["accountId"], fields["to"]) == (account_id, ALICE)
    assert (fields["lastMessageText"], fields["unreadCount"]) == ("is anybody there?", 1)
    assert fields["lastMessageAt"] == shown["createdAt"]

    await world.inbound(account_id, ALICE, "hello?")
    fields = await world.becomes(thread, unreadCount=2)
    assert fields["lastMessageText"] == "hello?"


async def test_c_the_same_webhook_twice_counts_once(world: World) -> None:
    account_id = await world.account()
    for _ in range(2):
        await world.inbound(account_id, ALICE, "once", providerMessageId="wamid/1+2==")
    await world.webhooks_taken()
    (shown,) = await world.messages_in(f"{account_id}__{ALICE}")
    assert shown["providerMessageId"] == "wamid/1+2=="
    assert (await world.read(f"threads/{account_id}__{ALICE}"))["unreadCount"] == 1


async def test_e_a_double_click_is_one_document_and_one_call(world: World) -> None:
    account_id = await world.account()
    clicks = [world.send(account_id, ALICE, request_id=f"click-{account_id}") for _ in range(2)]
    answers = await asyncio.gather(*clicks, return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, BaseException)]
    assert len(refused) == 1, answers
    assert isinstance(refused[0], AlreadyExists | Aborted), refused

    (sent,) = await world.all_end(account_id)
    try:  # once more, now that it is sent
        await world.send(account_id, ALICE, request_id=f"click-{account_id}")
    except AlreadyExists:
        pass
    else:
        raise AssertionError("a sent message was written again")
    assert await world.outbox_of(account_id) == [sent]
    assert len(await world.messages_in(f"{account_id}__{ALICE}")) == 1
    assert [call["requestId"] for call in await world.calls(account_id)] == [f"click-{account_id}"]
