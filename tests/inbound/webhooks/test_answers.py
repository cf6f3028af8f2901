"""How fast a webhook is answered, and what becomes of what there was no time for."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import timedelta

import pytest

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.queries import Find
from firestore_outbox.inbound import webhook
from firestore_outbox.messages.address import name_of_recipient
from tests.inbound.webhooks import support
from tests.inbound.webhooks.support import ACCOUNT, Hooks, counted, inbound, now, receipt
from tests.patience import PATIENCE_SECONDS

MANY = 400


# --- many at once


async def test_of_many_receipts_a_few_are_applied_at_once_and_the_rest_by_workers(hooks: Hooks) -> None:
    names = [f"request-{n:04d}" for n in range(MANY)]
    await hooks.sent(names)
    assert await hooks.tell(*(receipt(name, "read") for name in names)) == 200

    before = await hooks.statuses()
    assert sum(status == "read" for status in before.values()) == 50
    batches = [body for body, _ in hooks.tasks.receipts]
    assert sum(len(body["receipts"]) for body in batches) == MANY - 50
    assert max(len(body["receipts"]) for body in batches) <= 100
    assert max(len(json.dumps(body)) for body in batches) < 64 * 1024
    assert all(at <= now() for _, at in hooks.tasks.receipts), "they need not wait"

    await hooks.run_tasks()
    assert set((await hooks.statuses()).values()) == {"read"}


async def test_a_task_is_never_larger_than_the_worker_takes(hooks: Hooks) -> None:
    names = [f"request-{n:04d}" for n in range(150)]
    await hooks.sent(names)
    lengthy = {"code": "rejected", "message": "🦀" * 400}
    assert await hooks.tell(*({**receipt(name, "failed"), "error": lengthy} for name in names)) == 200
    assert max(len(json.dumps(body)) for body, _ in hooks.tasks.receipts) < 64 * 1024
    await hooks.run_tasks()
    assert set((await hooks.statuses()).values()) == {"failed"}


async def test_receipts_of_one_message_keep_their_order_and_do_not_meet_each_other(hooks: Hooks) -> None:
    await hooks.sent(["request-1"])
    hooks.wire.writes = 0
    statuses = ["sent", "delivered", "read"] * 5
    assert await hooks.tell(*(receipt("request-1", status) for status in statuses)) == 200
    assert await hooks.statuses() == {"request-1": "read"}
    assert hooks.wire.writes == 1, "one commit says it all"


async def test_several_receipts_cost_as_much_as_one_by_one_and_take_far_fewer_calls(hooks: Hooks) -> None:
    names = [f"request-{n:04d}" for n in range(40)]
    await hooks.sent(names)
    hooks.wire.writes = hooks.wire.calls = 0
    reads, writes = (counted("outbox_firestore_operations", kind) for kind in ("read", "write"))
    assert await hooks.tell(*(receipt(name, "delivered") for name in names)) == 200
    assert set((await hooks.statuses()).values()) == {"delivered"}
    assert counted("outbox_firestore_operations", "write") - writes == 40
    assert counted("outbox_firestore_operations", "read") - reads == 40 + 40, "and forty to look at them here"
    assert (hooks.wire.calls, hooks.wire.writes) == (2 + 4 + 1, 4)


async def test_bodies_that_tell_of_the_same_messages_at_once_lose_nothing(hooks: Hooks) -> None:
    """Their commits meet; the second one looks again."""
    names = [f"request-{n:04d}" for n in range(30)]
    await hooks.sent(names)
    bodies = [
        [receipt(name, status, echo=echo) for name in order]
        for status, echo, order in (
            ("delivered", False, names),
            ("read", True, names[::-1]),
            ("delivered", True, names[::2] + names[1::2]),
            ("sent", False, names),
        )
    ]
    assert await asyncio.gather(*(hooks.tell(*body) for body in bodies)) == [200] * 4
    await hooks.run_tasks()
    assert set((await hooks.statuses()).values()) == {"read"}
    for message in await hooks.outbound():
        assert {"sentAt", "deliveredAt", "readAt"} <= message.data.keys()


async def test_what_is_not_usual_goes_its_own_way_and_the_others_with_it(hooks: Hooks) -> None:
    names = [f"request-{n}" for n in range(6)]
    await hooks.sent(names)
    told = (
        receipt(names[0], "delivered"),
        {**receipt(names[1], "failed"), "error": {"code": "recipient_invalid", "message": "no such number"}},
        receipt("unknown-1", "read"),
        receipt(names[2], "read", echo=True),
        {**receipt(names[3], "read"), "echo": f"{names[3]}:0:2"},
        receipt(names[4], "delivered"),
        receipt(names[4], "read", echo=True),
    )
    assert await hooks.tell(*told) == 200
    assert await hooks.statuses() == {
        names[0]: "delivered",
        names[1]: "failed",
        names[2]: "read",
        names[3]: "sent",
        names[4]: "read",
        names[5]: "sent",
    }
    ((body, _),) = hooks.tasks.receipts
    assert [entry["providerMessageId"] for entry in body["receipts"]] == ["provider-unknown-1"]


# --- a task holds what it must and nothing more


async def test_a_task_holds_neither_texts_nor_secrets(hooks: Hooks) -> None:
    told = (inbound(text="a private word"), receipt("request-1", "delivered"), receipt("request-2", "read", echo=True))
    assert await hooks.tell(*told) == 200
    ((body, at),) = hooks.tasks.receipts
    assert body == {
        "accountId": ACCOUNT,
        "looks": 1,
        "receipts": [
            {"at": told[1]["at"], "providerMessageId": "provider-request-1", "status": "delivered"},
            {
                "at": told[2]["at"],
                "echo": "request-2:0:1",
                "providerMessageId": "provider-request-2",
                "status": "read",
            },
        ],
    }
    assert timedelta(seconds=1) < at - now() <= timedelta(seconds=2)


# --- what is out of reach


async def test_receipts_are_handed_on_while_firestore_is_out_of_reach(hooks: Hooks) -> None:
    await hooks.sent(["request-1"])
    hooks.wire.is_down = True
    assert await hooks.tell(receipt("request-1", "read")) == 200
    hooks.wire.is_down = False
    assert await hooks.statuses() == {"request-1": "sent"}
    assert await hooks.run_tasks() == 1
    assert await hooks.statuses() == {"request-1": "read"}


async def test_receipts_are_handed_on_when_firestore_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    async with support.hooks(monkeypatch, webhook_seconds=0.05) as hooks:
        await hooks.sent(["request-1"])
        hooks.wire.hangs = True
        assert await hooks.tell(receipt("request-1", "read")) == 200
        hooks.wire.hangs = False
        await hooks.run_tasks()
        assert await hooks.statuses() == {"request-1": "read"}


async def test_a_webhook_comes_again_when_neither_firestore_nor_cloud_tasks_takes_it(hooks: Hooks) -> None:
    await hooks.sent(["request-1"])
    hooks.wire.is_down = hooks.tasks.is_down = True
    assert await hooks.tell(receipt("request-1", "read")) == 503
    hooks.wire.is_down = hooks.tasks.is_down = False
    assert await hooks.tell(receipt("request-1", "read")) == 200
    assert await hooks.statuses() == {"request-1": "read"}


async def test_a_webhook_comes_again_when_what_is_left_of_it_cannot_be_handed_on(hooks: Hooks) -> None:
    names = [f"request-{n:04d}" for n in range(80)]
    await hooks.sent(names)
    hooks.tasks.is_down = True
    assert await hooks.tell(*(receipt(name, "read") for name in names)) == 503
    hooks.tasks.is_down = False
    assert await hooks.tell(*(receipt(name, "read") for name in names)) == 200
    await hooks.run_tasks()
    assert set((await hooks.statuses()).values()) == {"read"}


async def test_an_inbound_message_that_cannot_be_stored_comes_again(hooks: Hooks) -> None:
    hooks.wire.is_down = True
    assert await hooks.tell(inbound()) == 503
    hooks.wire.is_down = False
    assert await hooks.tell(inbound()) == 200
    assert [message.id for message in await hooks.inbound()] == ["in-1"]


async def test_a_provider_does_not_wait_for_ever_for_an_inbound_message(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "LONGEST", timedelta(seconds=0.05))
    hooks.wire.hangs = True
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await hooks.tell(inbound()) == 503


# --- inbound


async def test_messages_of_one_sender_are_stored_in_order_and_wake_its_lane_once(hooks: Hooks) -> None:
    events = [inbound(f"in-{n}", text=f"word {n}") for n in range(20)]
    assert await hooks.tell(*events, inbound("in-x", sender="4977")) == 200
    assert len(await hooks.inbound()) == 21
    thread = await hooks.system.gateway.get(paths.thread(f"{ACCOUNT}__4915112345"))
    assert thread is not None
    assert (thread.data["lastMessageText"], thread.data["unreadCount"]) == ("word 19", 20)
    assert sorted(body["key"] for path, body, _ in hooks.tasks.asked if path == "/tasks/lane") == [
        "shop__4915112345",
        "shop__4977",
    ]


@pytest.mark.parametrize("sender", ["_mallory", "__x", "%5Fmallory", "_"])
async def test_a_sender_who_begins_with_an_underscore_gets_a_thread_of_this_account(hooks: Hooks, sender: str) -> None:
    """`shop___mallory` is a thread of the account `shop_` to the security rules."""
    await hooks.account("shop_")
    assert await hooks.tell(inbound(sender=sender, text="hi")) == 200
    (message,) = await hooks.inbound()
    (thread,) = await hooks.system.gateway.find(Find(collection=paths.THREADS))
    assert re.sub("(?s)__[^_].*", "", thread.id) == ACCOUNT == thread.data["accountId"]
    assert message.data["threadId"] == thread.id == f"{ACCOUNT}__{thread.data['to']}"
    assert name_of_recipient(thread.data["to"]) == sender, "an answer reaches the sender"


@pytest.mark.parametrize(("length", "parts"), [(4096, 1), (4097, 2), (40_960, 10), (100_000, 10)])
async def test_a_long_text_is_stored_in_parts_and_only_what_ten_cannot_hold_is_cut(
    hooks: Hooks, length: int, parts: int
) -> None:
    text = "".join(chr(97 + n % 26) for n in range(length))
    assert await hooks.tell(inbound(text=text)) == 200
    (message,) = await hooks.inbound()
    stored = "".join(part["text"] for part in message.data["parts"])
    assert len(message.data["parts"]) == parts
    assert stored == text if length <= 40_960 else stored == text[:40_959] + "…"


async def test_one_event_that_cannot_be_stored_costs_no_other(hooks: Hooks) -> None:
    await hooks.sent(["request-1"])
    before = counted("outbox_webhook_events", "unusable")
    never = {**inbound("in-never"), "at": "0001-01-01T00:00:00+14:00"}
    too_late = {**receipt("request-1", "delivered"), "at": "9999-12-31T23:59:59-12:00"}
    assert await hooks.tell(never, too_late, receipt("request-1", "read"), inbound("in-2"), {"type": "?"}) == 200
    assert [message.id for message in await hooks.inbound()] == ["in-2"]
    assert await hooks.statuses() == {"request-1": "read"}
    assert counted("outbox_webhook_events", "unusable") == before + 1


# --- whose webhook


@pytest.mark.parametrize("account_id", ["a__b", "x" * 129, "%2F"])
async def test_an_account_that_cannot_exist_has_no_webhook(hooks: Hooks, account_id: str) -> None:
    body = json.dumps({"events": [inbound()]}).encode()
    assert await hooks.post("simulated", body, account_id=account_id) in (401, 404)
    assert hooks.wire.writes == 0


async def test_a_body_that_is_nested_too_deeply_is_taken_and_changes_nothing(hooks: Hooks) -> None:
    before = counted("outbox_webhook_events", "unrecognised")
    for body in (b"[" * 400_000, b"[" * 100_000 + b"]" * 100_000, b'{"events":' * 33 + b"1" + b"}" * 33):
        assert await hooks.post("simulated", body) == 200
    assert hooks.wire.writes == 0
    assert counted("outbox_webhook_events", "unrecognised") == before + 3
