"""Each file goes to the provider once for an account, whatever messages, workers, restarts and accidents there are."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from firestore_outbox.local.simulators.core import Account
from firestore_outbox.local.simulators.faults import NO_FAULTS, Faults
from firestore_outbox.media.storage import FileRef, media_id_of
from firestore_outbox.media.upload import REFUSAL_LASTS
from firestore_outbox.settings import Settings
from tests.calm import Meter
from tests.media.support import MEDIA_ID, PICTURE, Shop, part, simulate


def test_a_picture_is_uploaded_and_the_message_names_the_providers_own_handle() -> None:
    async def body(shop: Shop) -> None:
        await shop.open()
        await shop.send("request-1", parts=[part(caption="look"), {"type": "text", "text": "and read"}])
        await shop.until(lambda: shop.status("request-1") == "sent")
        (upload,) = shop.uploads
        assert (upload.sha256, upload.size_bytes, upload.mime_type) == (MEDIA_ID, len(PICTURE), "image/png")
        assert shop.upload()["handle"] == upload.handle
        assert [call.part for call in shop.world.provider.record.calls()] == [0, 1]

    simulate(body)


def test_200_messages_over_three_workers_are_one_upload() -> None:
    async def body(shop: Shop) -> None:
        await shop.open()
        await shop.send_pictures(200)
        await shop.until(lambda: shop.statuses() == {"sent": 200})
        assert len(shop.uploads) == 1
        assert sum(upload.size_bytes for upload in shop.uploads) == len(PICTURE)
        holders = {attempt.process for attempt in shop.world.truth.attempts}
        assert len(holders) > 1, "the lane went through several hands"

    simulate(body, workers=3, settings=Settings(longest_hold_seconds=2))


def test_messages_with_a_file_cost_no_more_reads_and_writes_than_others_except_for_the_upload_itself() -> None:
    async def body(shop: Shop) -> tuple[int, int]:
        shop.world.provider.faults = Faults(latencyMs=100, receiptLossRate=1.0)
        await shop.open(status="paused")
        await shop.send_pictures(300)
        await asyncio.sleep(5)
        meter = Meter(shop)
        await shop.change_account(status="active")
        await shop.until(lambda: shop.statuses() == {"sent": 300})
        return meter.reads, meter.writes

    reads, writes = simulate(body)

    assert reads <= 1.1 * 300 + 1
    assert writes <= 3.1 * 300 + 2


def test_accounts_have_uploads_of_their_own() -> None:
    async def body(shop: Shop) -> None:
        await shop.open()
        await shop.account("other")
        await shop.has_picture("other")
        await shop.send_pictures(5)
        await shop.send_pictures(5, account_id="other")
        await shop.until(lambda: shop.statuses() == {"sent": 10})
        assert sorted(upload.account_id for upload in shop.uploads) == ["other", "shop"]

    simulate(body)


def test_a_restart_and_a_month_of_rest_cost_one_read_and_no_upload() -> None:
    async def body(shop: Shop) -> None:
        await shop.open()
        await shop.send("request-1", parts=[part()])
        await shop.until(lambda: shop.status("request-1") == "sent")
        for place in range(len(shop.world.workers)):
            shop.world.crash(shop.world.workers, place)
        await asyncio.sleep(timedelta(days=20).total_seconds())
        await shop.send("request-2", parts=[part()])
        await shop.until(lambda: shop.status("request-2") == "sent")
        assert len(shop.uploads) == 1

    simulate(body, sweeps=False)


def test_a_handle_that_is_about_to_expire_is_replaced_by_one_upload() -> None:
    async def body(shop: Shop) -> None:
        shop.world.provider.faults = Faults(handleSeconds=60)
        await shop.open(pace={"perMinute": 60})
        await shop.send_pictures(90)
        await shop.until(lambda: shop.statuses() == {"sent": 90})
        first, second = shop.uploads
        assert timedelta(seconds=50) < second.at - first.at < timedelta(seconds=60)
        assert len(shop.world.truth.attempts) == 90, "no message met the expired one"

    simulate(body, workers=3)


# --- the provider refuses a handle


def test_a_handle_that_the_provider_lost_is_replaced_once_and_nothing_fails() -> None:
    async def body(shop: Shop) -> None:
        await shop.open()
        await shop.send_pictures(20)
        await shop.until(lambda: shop.statuses() == {"sent": 20})
        (first,) = shop.uploads
        assert first.handle is not None
        shop.world.provider.files.lose("shop", first.handle)
        for number in range(60):
            await shop.send(f"later-{number:05d}", to=f"+49{number}", parts=[part()])
        await shop.until(lambda: shop.statuses() == {"sent": 80})
        assert len(shop.uploads) == 2
        assert all(shop.outbox(f"later-{number:05d}").get("failures", 0) == 0 for number in range(60))

    simulate(body, workers=3)


def test_a_provider_that_refuses_every_handle_is_sent_the_file_twice_in_ten_minutes_and_not_for_each_message() -> None:
    async def body(shop: Shop) -> None:
        shop.world.provider.faults = Faults(handleLostRate=1.0)
        await shop.open(pace={"perMinute": 60})
        await shop.send_pictures(100)
        await shop.send("text-0001", to="+49text")
        await shop.until(lambda: shop.statuses() == {"failed": 100, "sent": 1})
        assert len(shop.uploads) == 2
        assert shop.error("shop-00099")["code"] == "media_missing"
        shop.world.provider.faults = NO_FAULTS
        await asyncio.sleep(REFUSAL_LASTS.total_seconds())
        await shop.send("corrected-001", parts=[part()])
        await shop.until(lambda: shop.status("corrected-001") == "sent")
        assert len(shop.uploads) == 3

    simulate(body)


# --- the upload goes wrong


def test_when_the_uploader_is_killed_another_worker_uploads_after_its_lease() -> None:
    async def body(shop: Shop) -> None:
        shop.world.provider.faults = Faults(uploadMs=8_000)
        await shop.open()
        await shop.send_pictures(10)
        await shop.until(lambda: len(shop.uploads) == 1)
        await asyncio.sleep(1)
        assert shop.upload()["leaseUntil"] > shop.world.clock()
        owner = shop.upload()["owner"]
        (place,) = [n for n, machine in enumerate(shop.world.workers) if machine.process.name == owner]
        shop.world.crash(shop.world.workers, place)
        await shop.change_account(onUncertain="resend")
        await shop.until(lambda: shop.statuses() == {"sent": 10}, within=timedelta(minutes=10))
        assert len(shop.uploads) == 2, "the first was on its way when its sender died"
        assert shop.upload()["attempts"] == 2

    simulate(body, workers=3)


def test_an_upload_whose_answer_is_lost_is_done_again_and_no_message_is_in_doubt() -> None:
    async def body(shop: Shop) -> None:
        shop.world.provider.faults = Faults(uploadLostRate=1.0)
        await shop.open()
        await shop.send_pictures(10)
        await shop.until(lambda: len(shop.uploads) == 1)
        shop.world.provider.faults = NO_FAULTS
        await shop.until(lambda: shop.statuses() == {"sent": 10})
        assert len(shop.uploads) == 2
        assert {attempt.request_id for attempt in shop.world.truth.attempts} >= {"shop-00000"}

    simulate(body)


def test_what_the_provider_refuses_for_good_is_not_uploaded_for_each_message() -> None:
    async def body(shop: Shop) -> None:
        shop.world.provider.faults = Faults(uploadErrorRate=1.0, errorCode="rejected")
        await shop.open()
        await shop.send_pictures(100)
        await shop.until(lambda: shop.statuses() == {"failed": 100})
        assert len(shop.uploads) == 1
        assert shop.error("shop-00099")["code"] == "rejected"
        assert shop.outbox("shop-00099")["attempts"] == 1

    simulate(body, workers=3)


def test_a_provider_that_throttles_uploads_is_left_alone_and_no_message_fails() -> None:
    async def body(shop: Shop) -> None:
        shop.world.provider.faults = Faults(uploadErrorRate=1.0, errorCode="throttled", retryAfterSeconds=30)
        await shop.open()
        await shop.send_pictures(20)
        await shop.until(lambda: len(shop.uploads) == 1)
        shop.world.provider.faults = NO_FAULTS
        await asyncio.sleep(29)
        assert len(shop.uploads) == 1
        await shop.until(lambda: shop.statuses() == {"sent": 20}, within=timedelta(minutes=2))
        assert len(shop.uploads) == 2
        assert all(shop.outbox(f"shop-{n:05d}").get("failures", 0) == 0 for n in range(20))

    simulate(body)


def test_refused_credentials_park_the_account_and_the_file_is_uploaded_when_it_is_resumed() -> None:
    async def body(shop: Shop) -> None:
        shop.world.provider.set_account("shop", Account(credentials="revoked"))
        await shop.open()
        await shop.send_pictures(5)
        await shop.until(lambda: shop.document("accounts/shop")["status"] == "parked")
        shop.world.provider.set_account("shop", Account())
        await shop.change_account(status="active")
        await shop.until(lambda: shop.statuses() == {"sent": 5}, within=timedelta(minutes=3))

    simulate(body)


# --- files that take long, are missing, or too large


def test_an_upload_that_takes_longer_than_a_message_has_fails_no_message() -> None:
    async def body(shop: Shop) -> None:
        shop.world.provider.faults = Faults(uploadMs=9_500)
        await shop.open()
        await shop.send_pictures(20)
        await shop.until(lambda: shop.statuses() == {"sent": 20})
        assert len(shop.uploads) == 1
        assert all(shop.outbox(f"shop-{n:05d}").get("failures", 0) == 0 for n in range(20))

    simulate(body, settings=Settings(send_timeout_seconds=10))


def test_a_missing_file_fails_its_message_in_words_and_the_lane_goes_on() -> None:
    async def body(shop: Shop) -> None:
        await shop.open()
        await shop.send("gone-0001", parts=[part("nowhere")])
        await shop.send("behind-it", to="+491")
        await shop.send("elsewhere", to="+492", parts=[part()])
        await shop.until(lambda: shop.statuses() == {"failed": 1, "sent": 2})
        error = shop.error("gone-0001")
        assert error["code"] == "media_missing"
        assert "the account has no file nowhere: it must be at " in error["message"]
        assert not error["retryable"]

    simulate(body)


def test_a_file_that_is_too_large_is_refused_in_words_before_anything_is_uploaded() -> None:
    async def body(shop: Shop) -> None:
        large = bytes(200_000)
        await shop.open()
        await shop.storage.add(FileRef("shop", media_id_of(large)), large, mime_type="image/png", filename=None)
        await shop.send("large-001", parts=[part(media_id_of(large))])
        await shop.send("behind-it", parts=[part()])
        await shop.until(lambda: shop.statuses() == {"failed": 1, "sent": 1})
        assert shop.error("large-001")["code"] == "invalid_message"
        assert "has 0.2 MB, and at most 0.1 MB are sent (OUTBOX_MEDIA_MAX_MB)" in shop.error("large-001")["message"]
        assert [upload.size_bytes for upload in shop.uploads] == [len(PICTURE)]

    simulate(body, settings=Settings(media_max_mb=0.11))


@pytest.mark.parametrize("media_id", ["..", ".", "__x__", "ü" * 512, "a b%c\x00d"])
def test_a_media_id_of_any_form_finds_nothing_but_its_own_file(media_id: str) -> None:
    async def body(shop: Shop) -> None:
        await shop.open()
        await shop.send("missing-1", parts=[part(media_id)])
        await shop.until(lambda: shop.status("missing-1") == "failed")
        assert shop.error("missing-1")["code"] == "media_missing"
        await asyncio.sleep(60)
        await shop.storage.add(FileRef("shop", media_id), PICTURE, mime_type="image/png", filename=None)
        await shop.send("present-1", parts=[part(media_id)])
        await shop.until(lambda: shop.status("present-1") == "sent")

    simulate(body)
