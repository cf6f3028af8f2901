"""Sealed messages on their way: opened for the provider alone, and refused each for its own reason."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import upsert
from firestore_outbox.local.provider_urls import LOCAL_KMS_KEY
from firestore_outbox.messages.enqueue import Differs, Enqueued, NewMessage
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.providers.outcome import Outcome
from firestore_outbox.providers.registry import Providers
from firestore_outbox.sealing.envelope import Reason, decoded, encoded
from firestore_outbox.sealing.keys import KeysRefused
from firestore_outbox.sealing.service import FRESH
from tests.calm import Calm, simulate
from tests.sealing.support import TEXT, LocalKms, seal_account, sealed, sealing_of


@pytest.fixture
def kms() -> LocalKms:
    return LocalKms()


def run(kms: LocalKms, body: Callable[[Calm], Awaitable[None]]) -> None:
    simulate(body, release=kms)


def test_a_sealed_message_reaches_the_provider_in_clear_and_the_database_never(
    kms: LocalKms, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    send = Providers.__getitem__

    def watched(self: Providers, name: str) -> Any:
        adapter = send(self, name)

        class Watched:
            def __getattr__(self, attribute: str) -> Any:
                return getattr(adapter, attribute)

            async def send(self, message: OutboxMessage, credentials: Any, *, limit: timedelta) -> Outcome:
                seen.extend(part.model_dump() for part in message.parts)
                return await adapter.send(message, credentials, limit=limit)

        return Watched()

    monkeypatch.setattr(Providers, "__getitem__", watched)

    async def body(calm: Calm) -> None:
        await calm.account()
        key = await seal_account(calm)
        await calm.send("request-1", parts=sealed("request-1", key))
        await calm.until(lambda: calm.document("threads/shop__+491/messages/request-1")["status"] == "read")
        assert calm.document("threads/shop__+491")["lastMessageText"] == ""
        assert "planted" not in repr(calm.world.truth.changes)

    run(kms, body)
    assert seen == [TEXT]


def test_a_hundred_messages_ask_the_key_service_once_for_each_worker(kms: LocalKms) -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        key = await seal_account(calm)
        before = kms.stand_in.calls
        for number in range(100):
            await calm.send(f"request-{number}", to=f"+49{number}", parts=sealed(f"request-{number}", key))
        await calm.until(lambda: calm.statuses() == {"sent": 100})
        assert kms.stand_in.calls - before <= len(calm.world.workers) + len(calm.world.functions)

    run(kms, body)


# --- what does not open


def altered(part: dict[str, Any]) -> dict[str, Any]:
    raw = bytearray(decoded(part["ciphertext"]))
    raw[-1] ^= 1
    return {**part, "ciphertext": encoded(bytes(raw))}


async def _altered(calm: Calm, key: dict[str, Any]) -> list[dict[str, Any]]:
    return [altered(sealed("bad-message", key)[0])]


async def _of_another_account(calm: Calm, key: dict[str, Any]) -> list[dict[str, Any]]:
    await calm.account("other")
    theirs = await seal_account(calm, "other")
    return list(sealed("bad-message", theirs, account_id="other"))


async def _replayed(calm: Calm, key: dict[str, Any]) -> list[dict[str, Any]]:
    return list(sealed("good-message-0", key))


async def _of_no_version(calm: Calm, key: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**sealed("bad-message", key)[0], "keyVersion": 7}]


async def _of_another_version(calm: Calm, key: dict[str, Any]) -> list[dict[str, Any]]:
    await sealing_of(calm).keys.rotate("shop", LOCAL_KMS_KEY)
    return [{**sealed("bad-message", key)[0], "keyVersion": 2}]


async def _of_a_deleted_key(calm: Calm, key: dict[str, Any]) -> list[dict[str, Any]]:
    part = sealed("bad-message", key)[0]
    await sealing_of(calm).keys.delete("shop", None)
    key |= await seal_account(calm)
    return [part]


async def _no_part(calm: Calm, key: dict[str, Any]) -> list[dict[str, Any]]:
    return list(sealed("bad-message", key, {"type": "text", "text": ""}))


REFUSED: dict[Reason, Callable[[Calm, dict[str, Any]], Awaitable[list[dict[str, Any]]]]] = {
    Reason.ALTERED: _altered,
    Reason.OTHER_ACCOUNT: _of_another_account,
    Reason.OTHER_MESSAGE: _replayed,
    Reason.NO_SUCH_KEY: _of_no_version,
    Reason.OTHER_VERSION: _of_another_version,
    Reason.DELETED_KEY: _of_a_deleted_key,
    Reason.NOT_A_PART: _no_part,
}


@pytest.mark.parametrize("reason", REFUSED, ids=lambda reason: reason.name.lower())
def test_what_does_not_open_fails_with_its_own_reason_and_blocks_nothing(kms: LocalKms, reason: Reason) -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        key = await seal_account(calm)
        bad = await REFUSED[reason](calm, key)
        await calm.send("bad-message", parts=bad)
        for number in range(3):  # behind it, in its own thread and in another
            await calm.send(
                f"good-message-{number}", to=f"+49{1 + number % 2}", parts=sealed(f"good-message-{number}", key)
            )
        await calm.until(lambda: calm.statuses() == {"failed": 1, "sent": 3}, within=timedelta(minutes=2))
        error = calm.outbox("bad-message")["lastError"]
        assert (error["code"], error["message"]) == ("cannot_open", f"part 1 cannot be opened: {reason.value}")
        shown = calm.document("threads/shop__+491/messages/bad-message")
        assert (shown["status"], shown["error"]["code"]) == ("failed", "cannot_open")

    run(kms, body)


# --- the key service


def test_while_the_key_service_is_out_of_reach_the_message_waits(kms: LocalKms) -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        key = await seal_account(calm)
        working, kms._base = kms._base, "http://kms/nowhere"
        await calm.send("request-1", parts=sealed("request-1", key))
        await calm.until(lambda: "lastError" in calm.outbox("request-1"))
        assert calm.outbox("request-1")["lastError"]["code"] == "cannot_open"
        assert (calm.status("request-1"), calm.outbox("request-1").get("failures", 0)) == ("queued", 0)
        kms._base = working
        await calm.until(lambda: calm.status("request-1") == "sent")

    run(kms, body)


def test_without_a_key_service_a_sealed_message_waits_for_a_worker_that_has_one() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await calm.send("request-1", parts=[{"type": "sealed", "keyVersion": 1, "ciphertext": "AQ"}])
        await calm.until(lambda: "lastError" in calm.outbox("request-1"))
        assert "OUTBOX_KMS_KEY" in calm.outbox("request-1")["lastError"]["message"]
        assert calm.status("request-1") == "queued"

    simulate(body)


# --- keys


def test_after_a_rotation_both_versions_open(kms: LocalKms) -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        old = await seal_account(calm)
        rotated = await sealing_of(calm).keys.rotate("shop", LOCAL_KMS_KEY)
        new = calm.document(paths.account("shop"))["sealing"]
        assert new == {"keyVersion": 2, "publicKey": rotated.public_key}
        await calm.send("request-1", to="+491", parts=sealed("request-1", old))
        await calm.send("request-2", to="+492", parts=sealed("request-2", new))
        await calm.until(lambda: calm.statuses() == {"sent": 2})
        assert [key.is_current for key in await sealing_of(calm).keys.of_account("shop")] == [False, True]

    run(kms, body)


def test_a_deleted_key_opens_nothing_after_five_minutes_and_its_number_is_never_used_again(kms: LocalKms) -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        key, keys = await seal_account(calm), sealing_of(calm).keys
        await calm.send("request-1", parts=sealed("request-1", key))
        await calm.until(lambda: calm.status("request-1") == "sent")
        with pytest.raises(KeysRefused, match="rotate"):
            await keys.delete("shop", 1)
        await keys.rotate("shop", LOCAL_KMS_KEY)
        assert await keys.delete("shop", 1) == [1]
        assert "wrappedKey" not in calm.document(paths.sealing_key("shop", 1))
        await asyncio.sleep(FRESH.total_seconds())
        await calm.send("request-2", parts=sealed("request-2", key))
        await calm.until(lambda: calm.status("request-2") == "failed")
        assert await keys.delete("shop", None) == [2]
        assert "sealing" not in calm.document(paths.account("shop"))
        assert (await seal_account(calm))["keyVersion"] == 3

    run(kms, body)


def test_a_wrapped_key_unwraps_for_no_other_account(kms: LocalKms) -> None:
    async def body(calm: Calm) -> None:
        for account in ("shop", "other"):
            await calm.account(account)
        await seal_account(calm)
        theirs = await seal_account(calm, "other")
        stolen = calm.document(paths.sealing_key("shop", 1))
        await calm.write(upsert(paths.sealing_key("other", 1), stolen))
        await calm.send("request-1", account_id="other", parts=sealed("request-1", theirs, account_id="other"))
        await calm.until(lambda: calm.status("request-1") == "failed")
        assert Reason.DELETED_KEY.value in calm.outbox("request-1")["lastError"]["message"]

    run(kms, body)


# --- the same message twice


def test_a_repeated_call_that_sealed_again_is_the_same_message(kms: LocalKms) -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        key, enqueue = await seal_account(calm), calm.world.client.system.enqueue

        def new(*parts: dict[str, Any]) -> NewMessage:
            return NewMessage(request_id="request-1", account_id="shop", to="+491", parts=parts, created_by="u")

        first, second = await enqueue(new(*sealed("request-1", key))), await enqueue(new(*sealed("request-1", key)))
        assert isinstance(first, Enqueued)
        assert isinstance(second, Enqueued)
        assert (first.is_new, second.is_new) == (True, False)
        assert isinstance(await enqueue(new(TEXT)), Differs)

    run(kms, body)
