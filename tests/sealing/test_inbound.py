"""What people write to a sealed account: sealed on arrival, opened for handlers, and answered sealed."""

from __future__ import annotations

from typing import Any

from firestore_outbox.firestore import paths
from firestore_outbox.handlers.context import Context
from firestore_outbox.handlers.registration import Registration
from firestore_outbox.lane.ref import INBOUND
from tests.calm import Calm, Meter, simulate
from tests.sealing.support import TEXT, LocalKms, seal_account, sealing_of

MEDIA = {"type": "media", "mediaId": "m-1", "mimeType": "image/png", "caption": "the planted caption"}


def comes_in(calm: Calm, *parts: dict[str, Any], identity: str = "in-1") -> None:
    event = {
        "type": "inbound",
        "providerMessageId": identity,
        "from": "+491",
        "at": calm.world.clock().isoformat(),
        "parts": list(parts),
    }
    calm.world.webhooks.post("simulated", "shop", event)


def stored(calm: Calm, identity: str = "in-1") -> dict[str, Any] | None:
    return calm.world.truth.latest().get(paths.message("shop__+491", identity))


def test_an_inbound_text_and_a_caption_are_sealed_on_arrival() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await seal_account(calm)
        comes_in(calm, TEXT, MEDIA)
        await calm.until(lambda: stored(calm) is not None)
        message = calm.document(paths.message("shop__+491", "in-1"))
        assert [part["type"] for part in message["parts"]] == ["sealed", "media", "sealed"]
        assert calm.document(paths.thread("shop__+491"))["lastMessageText"] == ""
        assert "planted" not in repr(calm.world.truth.changes)
        opened = await sealing_of(calm).open_parts("shop", "in-1", message["parts"])
        assert opened == [
            TEXT,
            {name: value for name, value in MEDIA.items() if name != "caption"},
            {"type": "text", "text": MEDIA["caption"]},
        ]

    simulate(body, release=LocalKms())


def test_with_a_damaged_key_nothing_is_stored_in_clear_and_the_provider_sends_it_again() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(sealing={"keyVersion": 1, "publicKey": "damaged"})
        comes_in(calm, TEXT)
        await calm.until(lambda: calm.world.webhooks.pending == 0)
        assert stored(calm) is None
        await seal_account_anew(calm)
        comes_in(calm, TEXT)
        await calm.until(lambda: stored(calm) is not None)
        assert "planted" not in repr(calm.world.truth.changes)

    async def seal_account_anew(calm: Calm) -> None:
        rotated = await sealing_of(calm).keys.rotate("shop", sealing_of(calm).kms_key)
        assert rotated.version == 1

    simulate(body, release=LocalKms())


def test_a_handler_reads_clear_text_and_its_answer_is_sealed() -> None:
    seen: list[str] = []

    async def handle(context: Context) -> None:
        for message in await context.messages():
            seen.append(message.text)
            await context.reply(f"planted answer to {len(seen)}")

    async def body(calm: Calm) -> None:
        await calm.account()
        await seal_account(calm)
        comes_in(calm, TEXT)
        await calm.until(lambda: calm.statuses() == {"sent": 1})
        (answer,) = calm.world.truth.collection("outbox").values()
        assert [part["type"] for part in answer["parts"]] == ["sealed"]
        assert "planted" not in repr(calm.world.truth.changes)

    handlers = {INBOUND: Registration(kind=INBOUND, function=handle)}
    simulate(body, release=LocalKms(), handlers=handlers)
    assert seen == [TEXT["text"]]


def test_sealing_what_arrives_costs_no_read() -> None:
    costs = []
    for is_sealed in (False, True):

        async def body(calm: Calm, is_sealed: bool = is_sealed) -> tuple[int, int]:
            await calm.account()
            if is_sealed:
                await seal_account(calm)
            meter = Meter(calm)
            for number in range(5):
                comes_in(calm, TEXT, identity=f"in-{number}")
            await calm.until(lambda: all(stored(calm, f"in-{number}") for number in range(5)))
            return meter.reads, meter.writes

        costs.append(simulate(body, release=LocalKms()))
    assert costs[0] == costs[1]
