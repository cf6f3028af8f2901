"""Whatever is written into the outbox: it ends as failed with a reason that people can read, and blocks no other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import DELETE, SERVER_TIME, create, update
from firestore_outbox.messages.enqueue import NewMessage, batch
from tests.calm import Calm, simulate

TEXT = {"type": "text", "text": "hello"}
MEBIBYTE = 1024 * 1024

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no parts": ({"parts": []}, "1 to 10 parts"),
    "parts of another type": ({"parts": "hello"}, "1 to 10 parts"),
    "a part of an unknown type": ({"parts": [{"type": "dance"}]}, "parts[0].type must be"),
    "a part without a type": ({"parts": [{"text": "hello"}]}, "parts[0].type must be"),
    "a part that is no map": ({"parts": ["hello"]}, "parts[0]"),
    "too many parts": ({"parts": [TEXT] * 11}, "1 to 10 parts"),
    "a text too long": ({"parts": [{"type": "text", "text": "x" * 4097}]}, "4,097 characters"),
    "an empty text": ({"parts": [{"type": "text", "text": ""}]}, "is empty"),
    "a number for a text": ({"parts": [{"type": "text", "text": 7}]}, "parts[0].text"),
    "the thread of another account": ({"threadId": "other__+491"}, "threadId"),
    "another recipient's thread": ({"threadId": "shop__+499"}, "threadId"),
    "a recipient of another type": ({"to": 491}, "to must be a text"),
    "a recipient with a slash": ({"to": "a/b", "threadId": "shop__a/b"}, "to must be 1 to 256"),
    "another requestId": ({"requestId": "another-one"}, "requestId"),
    "an account of another type": ({"accountId": 5}, "accountId must be a text"),
    "an account with two underscores": ({"accountId": "a__b", "threadId": "a__b__+491"}, "two underscores"),
    "no nextAttemptAt": ({"nextAttemptAt": DELETE}, "nextAttemptAt is missing"),
    "nextAttemptAt as text": ({"nextAttemptAt": "tomorrow"}, "nextAttemptAt"),
    "attempts as text": ({"attempts": "0"}, "attempts"),
    "attempts below zero": ({"attempts": -1}, "attempts"),
    "an unknown status": ({"status": "ready"}, "status"),
    "a status of another type": ({"status": 1}, "status"),
    "no status": ({"status": DELETE}, "status is missing"),
    "no createdAt": ({"createdAt": DELETE}, "createdAt is missing"),
    "a deadline of another type": ({"sendBy": "soon"}, "sendBy"),
    "more than a mebibyte with ours": ({"junk": "x" * (MEBIBYTE - 2000)}, "bytes"),
}


async def write_bad(calm: Calm, request_id: str, changes: dict[str, Any]) -> None:
    good = batch(NewMessage(request_id=request_id, account_id="shop", to="+491", parts=[TEXT], created_by="author"))
    wrong = {name: value for name, value in {**good[-1].fields, **changes}.items() if value is not DELETE}
    await calm.write(*good[:-1], create(paths.outbox(request_id), wrong))


@pytest.mark.parametrize("case", BAD)
def test_a_malformed_document_fails_with_a_reason_and_blocks_no_other(case: str) -> None:
    changes, words = BAD[case]

    async def body(calm: Calm) -> None:
        await calm.account()
        await calm.send("before-it")
        await write_bad(calm, "malformed", changes)
        await calm.send("behind-it")
        await calm.send("elsewhere", to="+492")
        await calm.until(lambda: calm.status("malformed") == "failed")
        await calm.until(lambda: calm.statuses() == {"sent": 3, "failed": 1})
        error = calm.outbox("malformed")["lastError"]
        assert (error["code"], error["retryable"]) == ("invalid_message", False)
        assert words in error["message"]
        assert len(error["message"]) < 300
        assert calm.outbox("malformed")["expireAt"] is not None
        assert "malformed" not in calm.order_of_calls()
        assert calm.sent_at("behind-it") < 5

    simulate(body, sweeps=False)


@pytest.mark.parametrize(
    "case",
    [
        "a part of an unknown type",
        "attempts as text",
        "more than a mebibyte with ours",
        "the thread of another account",
        "another recipient's thread",
        "a recipient of another type",
    ],
)
def test_people_see_that_it_failed_and_why(case: str) -> None:
    changes, words = BAD[case]

    async def body(calm: Calm) -> dict[str, Any]:
        await calm.account()
        await write_bad(calm, "malformed", changes)
        await calm.until(lambda: calm.status("malformed") == "failed")
        return calm.document("threads/shop__+491/messages/malformed")

    shown = simulate(body)

    assert shown["status"] == "failed"
    assert shown["error"]["code"] == "invalid_message"
    assert words in shown["error"]["message"]


@pytest.mark.parametrize("case", ["no parts", "attempts as text", "more than a mebibyte with ours"])
def test_the_lane_refuses_what_the_trigger_never_heard_of(case: str) -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        calm.world.functions[0].process.die()
        await write_bad(calm, "malformed", BAD[case][0])
        await calm.send("behind-it")
        await calm.until(lambda: calm.statuses() == {"sent": 1, "failed": 1})

    simulate(body)


def test_a_foreign_thread_is_not_written_to() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await calm.account("other")
        await calm.send("genuine-one", account_id="other")
        await calm.until(lambda: calm.status("genuine-one") == "sent")
        await calm.write(
            create(
                paths.outbox("forged-one"),
                {
                    "requestId": "forged-one",
                    "accountId": "shop",
                    "threadId": "other__+491",
                    "to": "+491",
                    "parts": [TEXT],
                    "status": "queued",
                    "createdAt": SERVER_TIME,
                    "nextAttemptAt": SERVER_TIME,
                    "attempts": 0,
                },
            )
        )
        await calm.until(lambda: calm.status("forged-one") == "failed")
        messages = await calm.gateway.find(Find(collection="threads/other__+491/messages"))
        assert [message.id for message in messages] == ["genuine-one"]

    simulate(body)


@pytest.mark.parametrize(
    "fields",
    [
        {"provider": "unknown-provider"},
        {"provider": 7},
        {"pace": "fast"},
        {"timezone": "Nowhere/Else"},
        {"concurrency": 0},
    ],
    ids=str,
)
def test_an_unusable_account_keeps_its_messages_and_stops_no_other(fields: dict[str, Any]) -> None:
    async def body(calm: Calm) -> None:
        await calm.account("broken", **fields)
        await calm.account("healthy")
        await calm.send("request-1", account_id="broken")
        await calm.send("request-2", account_id="healthy")
        await calm.until(lambda: calm.status("request-2") == "sent")
        await asyncio.sleep(300)
        assert calm.status("request-1") == "queued"
        corrected = {"provider": "simulated", "pace": {}, "timezone": "UTC", "concurrency": 3, "status": "active"}
        await calm.change_account("broken", **corrected)
        await calm.until(lambda: calm.status("request-1") == "sent")

    simulate(body)


def test_a_message_of_no_account_waits_for_it() -> None:
    async def body(calm: Calm) -> None:
        await calm.send("request-1", account_id="later")
        await asyncio.sleep(120)
        assert calm.status("request-1") == "queued"
        await calm.account("later")
        await calm.until(lambda: calm.status("request-1") == "sent")

    simulate(body)


def test_a_message_document_that_cannot_be_written_does_not_make_the_message_go_twice() -> None:
    """The message document is filled to the brim: `sent` does not fit into it any more."""

    async def body(calm: Calm) -> None:
        await calm.account(onUncertain="resend")
        await calm.send("overfull-1")
        path = paths.message("shop__+491", "overfull-1")
        await calm.write(update(path, {"junk": "x" * (MEBIBYTE - 470)}, version=None))
        await calm.send("behind-it")
        await calm.until(lambda: calm.statuses() == {"sent": 2})
        assert calm.order_of_calls().count("overfull-1") == 1

    simulate(body)
