"""Large and unwritable documents: what they cost is bounded, they fail alone, and others go on."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from firestore_emulator.documents import values
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import WriteOp, create
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.local.simulators.faults import Faults
from firestore_outbox.messages.enqueue import NewMessage, batch
from firestore_outbox.messages.outbox_document import LARGEST_BYTES, PAGE_BYTES
from firestore_outbox.sending.candidates import Candidates
from firestore_outbox.settings import Settings
from tests.calm import Calm, simulate
from tests.sending.test_life import resume

LARGEST_PARTS = [{"type": "template", "name": "t", "language": "en", "params": ["x" * 1024] * 32}] * 7
"""As much as a message may hold: 224 KiB."""
TINY_LIMIT = 20_000
"""Bytes that a document may have in a database that these tests make strict."""


def with_extra(request_id: str, to: str, extra: Any) -> list[WriteOp]:
    """A message whose outbox document has a field that clients do not write."""
    new = NewMessage(
        request_id=request_id, account_id="shop", to=to, parts=[{"type": "text", "text": "x"}], created_by="u"
    )
    thread, message, outbox = batch(new)
    return [thread, message, replace(outbox, fields={**outbox.fields, "extra": extra})]


def filled_to(request_id: str, to: str, limit: int) -> list[WriteOp]:
    """A message whose outbox document has exactly as many bytes as the database takes."""
    return with_extra(request_id, to, "x" * (limit - _size_of(request_id, to)))


def _size_of(request_id: str, to: str) -> int:
    """Of the document with an empty `extra`: its name, its fields and 32 bytes."""
    name = 16 + len("outbox") + 1 + len(request_id) + 1
    texts = {
        "requestId": request_id,
        "accountId": "shop",
        "threadId": f"shop__{to}",
        "to": to,
        "status": "queued",
        "createdBy": "u",
        "extra": "",
    }
    numbers = ("createdAt", "nextAttemptAt", "attempts")
    parts = len("parts") + 1 + sum(map(len, ("type", "text", "text", "x"))) + 4
    fields = sum(len(field) + len(text) + 2 for field, text in texts.items()) + sum(len(n) + 1 + 8 for n in numbers)
    return name + 32 + fields + parts


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database refuses documents above TINY_LIMIT, far below what the worker takes."""
    monkeypatch.setattr(values, "MAX_DOCUMENT_BYTES", TINY_LIMIT)


# --- large documents


@pytest.mark.parametrize("age_seconds", [1, 60], ids=["within the overlap of pages", "older"])
def test_pages_of_large_documents_end_after_4_mebibytes_and_every_message_is_sent(age_seconds: int) -> None:
    async def body(calm: Calm) -> list[int]:
        await calm.account(status="paused")
        for number in range(45):
            await calm.send(f"large-{number:05d}", to=f"+49{number}", parts=LARGEST_PARTS)
        await asyncio.sleep(age_seconds)
        now, sizes = calm.world.clock(), list[int]()
        store = calm.world.client.system.messages
        candidates = Candidates(store, outbox_lane("shop"), Settings().overlap, calm.world.clock)
        while not candidates.exhausted:
            sizes.append(len(await candidates.read_more(now, now, 100, ())))
        await resume(calm)
        await calm.until(lambda: calm.statuses()["sent"] == 45)
        return sizes

    most = PAGE_BYTES // (224 * 1024) + 1
    assert simulate(body, receipts=False) == [most, most, 45 - 2 * most]


@pytest.mark.parametrize(
    "parts",
    [
        [{"type": "template", "name": "t", "language": "en", "params": [""] * 170_000}],
        [{"type": "template", "name": "t", "language": "en", "params": ["x" * 4096] * 240}],
    ],
    ids=["very many parameters", "parameters of a megabyte"],
)
def test_a_document_above_256_kibibytes_fails_as_invalid_and_others_are_sent(parts: list[Any]) -> None:
    async def body(calm: Calm) -> dict[str, Any]:
        await calm.account()
        await calm.send("too-large", to="+1", parts=parts)
        await calm.send("innocent", to="+2")
        await calm.until(lambda: calm.status("innocent") == "sent" and calm.status("too-large") == "failed")
        return calm.outbox("too-large")

    document = simulate(body)

    assert document["lastError"]["code"] == "invalid_message"
    assert f"at most {LARGEST_BYTES:,} are allowed" in document["lastError"]["message"]
    assert "parts" not in document, "what is left is small"


def test_integers_count_as_firestore_counts_them() -> None:
    """On the wire this document has half of the bytes that Firestore counts."""

    async def body(calm: Calm) -> dict[str, Any]:
        await calm.account()
        await calm.write(*with_extra("many-integers", "+1", [1] * 40_000))
        await calm.until(lambda: calm.status("many-integers") == "failed")
        return calm.outbox("many-integers")

    assert simulate(body)["lastError"]["code"] == "invalid_message"


# --- documents that Firestore refuses to grow


def test_a_document_that_cannot_be_claimed_fails_alone(strict: None) -> None:
    async def body(calm: Calm) -> dict[str, Any]:
        await calm.account(status="paused", concurrency=5)
        await calm.send("innocent-0", to="+480")
        await calm.write(*filled_to("poison-0001", "+491", TINY_LIMIT))
        for number in range(1, 4):
            await calm.send(f"innocent-{number}", to=f"+48{number}")
        await resume(calm)
        await calm.until(lambda: calm.statuses()["sent"] == 4 and calm.status("poison-0001") == "failed")
        assert calm.document(paths.message("shop__+491", "poison-0001"))["status"] == "failed"
        return calm.outbox("poison-0001")

    document = simulate(body)

    assert document["lastError"]["code"] == "invalid_message"
    assert "Firestore refuses" in document["lastError"]["message"]


def test_a_document_that_cannot_go_back_to_the_queue_ends_and_those_of_its_commit_are_completed(strict: None) -> None:
    """The claim fits, the error of its retry does not."""

    async def body(calm: Calm) -> dict[str, Any]:
        await calm.account(status="paused", concurrency=5)
        await calm.write(*filled_to("poison-0001", "+491", TINY_LIMIT - 100))
        for number in range(3):
            await calm.send(f"innocent-{number}", to=f"+48{number}")
        calm.world.provider.faults = Faults(errorRate=1.0)
        await resume(calm)
        await calm.until(lambda: calm.status("poison-0001") == "failed")
        calm.world.provider.faults = Faults()
        await calm.until(lambda: calm.statuses()["sent"] == 3)
        return calm.outbox("poison-0001")

    assert simulate(body)["lastError"]["code"] == "invalid_message"


def test_a_document_that_cannot_be_cancelled_with_all_its_fields_is_cancelled_without_them(strict: None) -> None:
    async def body(calm: Calm) -> dict[str, Any]:
        await calm.account(status="paused")
        await calm.write(*filled_to("poison-0001", "+491", TINY_LIMIT))
        await calm.send("innocent-1")
        assert await calm.world.client.system.cancel("poison-0001") == "cancelled"
        return calm.outbox("poison-0001")

    document = simulate(body)

    assert document["status"] == "cancelled"
    assert "extra" not in document


def test_a_runs_document_that_cannot_be_moved_fails_and_the_others_are_moved(strict: None) -> None:
    async def body(calm: Calm) -> tuple[str, Any]:
        await calm.account(status="paused")
        store, clock = calm.world.client.system.messages, calm.world.clock
        await calm.write(*filled_to("poison-0001", "+491", TINY_LIMIT))
        await calm.send("innocent-1")
        poison, innocent = [(await store.get([one]))[0] for one in ("poison-0001", "innocent-1")]
        later = clock().replace(year=clock().year + 1)
        moved = [(one, one.valid.deferred(to=later, send_by=later)) for one in (poison, innocent)]
        assert await store.move(moved) == [poison]
        return calm.outbox("innocent-1")["nextAttemptAt"], later

    at, later = simulate(body)
    assert at == later


def test_a_message_document_that_is_full_does_not_stop_its_message(strict: None) -> None:
    async def body(calm: Calm) -> None:
        await calm.account(status="paused")
        await calm.send("message-1")
        filler = {"filler": "x" * (TINY_LIMIT - 400)}
        await calm.write(
            replace(create(paths.message("shop__+491", "message-1"), filler), masked=True, exists=None),
        )
        await resume(calm)
        await calm.until(lambda: calm.status("message-1") == "sent")

    simulate(body)
