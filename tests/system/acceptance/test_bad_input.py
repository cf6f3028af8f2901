"""Malformed outbox documents, past any rules: each is refused with a reason, and no other has to wait for it."""

from __future__ import annotations

from typing import Any

from tests.system.acceptance.world import World

MALFORMED: dict[str, dict[str, Any]] = {
    "parts of a wrong type": {"parts": "hello"},
    "no parts": {"parts": []},
    "an unknown part": {"parts": [{"type": "carrier-pigeon", "name": "Gustav"}]},
    "a text that is too long": {"parts": [{"type": "text", "text": "x" * 4097}]},
    "the thread of another account": {"threadId": "another-account__+491701"},
    "no time to send at": {"nextAttemptAt": None},
    "a time of a wrong type": {"nextAttemptAt": "tomorrow"},
    "attempts of a wrong type": {"attempts": "none"},
}


async def test_a_malformed_document_fails_with_a_readable_reason_and_blocks_no_other(world: World) -> None:
    account_id = await world.account(concurrency=1)
    bad = {name: await world.send(account_id, "+491701", **changes) for name, changes in MALFORMED.items()}
    good = await world.send(account_id, "+491701")

    await world.becomes(good.outbox, status="sent")
    for name, written in bad.items():
        fields = await world.becomes(written.outbox, status="failed")
        error = fields["lastError"]
        assert (name, error["code"], error["retryable"]) == (name, "invalid_message", False)
        assert len(error["message"]) > 10, f"{name}: no reason that a person could read"
    assert [call["requestId"] for call in await world.calls(account_id)] == [good.request_id]
