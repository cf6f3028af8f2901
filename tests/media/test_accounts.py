"""Files belong to accounts: none sends another's, and those of the time before that are still found by their owners."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from firestore_outbox.media.files import REMEMBER
from firestore_outbox.media.owner import GiveTo, Named, Unclear, owners
from firestore_outbox.media.storage import FileRef
from firestore_outbox.media.store import StoredUpload, UploadRef, UploadStore
from firestore_outbox.media.upload import Upload
from firestore_outbox.operations.adopt_media import adopt_files
from firestore_outbox.providers.media import MediaContent, MediaHandle, MediaLink
from firestore_outbox.providers.outcome import ErrorCode, Rejected
from firestore_outbox.providers.protocol import MediaMode
from tests.media.deliveries import PART, Place, with_workers
from tests.media.support import MEDIA_ID, PICTURE, Shop, part, simulate


def test_an_account_cannot_send_another_accounts_file() -> None:
    async def body(shop: Shop) -> None:
        await shop.open()
        await shop.account("thief")
        await shop.send_pictures(1)
        await shop.send_pictures(1, account_id="thief")
        await shop.until(lambda: shop.statuses() == {"sent": 1, "failed": 1})
        assert shop.error("thief-00000")["code"] == "media_missing"
        assert [upload.account_id for upload in shop.uploads] == ["shop"]

    simulate(body)


@pytest.mark.parametrize("mode", MediaMode)
@pytest.mark.parametrize("account_id", ["thief", "%2E%2E", "shop%2F..%2Fshop"])
def test_no_name_of_an_account_leads_to_another_accounts_file(tmp_path: Path, mode: MediaMode, account_id: str) -> None:
    async def body(place: Place) -> None:
        endpoint, (worker,) = place.endpoint(), place.workers(["w1"])
        await place.storage.add(FileRef(None, MEDIA_ID), PICTURE, mime_type="image/png", filename=None)
        answer = await worker.ready(endpoint, mode=mode, account_id=account_id)
        assert isinstance(answer, Rejected)
        assert answer.code is ErrorCode.MEDIA_MISSING
        assert endpoint.files == []

    with_workers(body, tmp_path, media_url="https://files.example")


# --- files of the time when all accounts shared one place


async def had(place: Place, account_id: str, media_id: str) -> None:
    """The account uploaded the file before; its handle has expired since."""
    store = UploadStore(place.world.client.system.gateway)
    expired = place.world.clock() - timedelta(days=1)
    before = Upload(provider="p", attempts=1, handle="old", uploaded_at=expired, expires_at=expired)
    await store.write(UploadRef(account_id, media_id), before, StoredUpload(None, None))


@pytest.mark.parametrize("mode", MediaMode)
def test_an_old_file_is_found_by_the_account_that_uploaded_it_and_by_no_other(tmp_path: Path, mode: MediaMode) -> None:
    async def body(place: Place) -> None:
        endpoint, (worker,) = place.endpoint(), place.workers(["w1"])
        old = PART.model_copy(update={"mediaId": "old-file"})
        await place.storage.add(FileRef(None, "old-file"), PICTURE, mime_type="image/png", filename=None)
        assert isinstance(await worker.ready(endpoint, part=old, mode=mode), Rejected)
        await had(place, "shop", "old-file")
        await asyncio.sleep(REMEMBER.total_seconds())
        media = await worker.ready(endpoint, part=old, mode=mode)
        match media:
            case MediaHandle():
                assert endpoint.files == [PICTURE]
            case MediaContent(content=content):
                assert content == PICTURE
            case MediaLink(url=url):
                assert url == "https://files.example/old-file"
            case _:
                pytest.fail(f"{media}")
        assert isinstance(await worker.ready(endpoint, part=old, mode=mode, account_id="thief"), Rejected)

    with_workers(body, tmp_path, media_url="https://files.example")


def test_a_file_goes_to_those_that_uploaded_it_or_else_to_the_only_one_that_names_it() -> None:
    named = [
        Named("alone", "m1", has_uploaded=False),
        Named("owner", "m2", has_uploaded=True),
        Named("thief", "m2", has_uploaded=False),
        Named("one", "m3", has_uploaded=False),
        Named("two", "m3", has_uploaded=False),
        Named("one", "m4", has_uploaded=True),
        Named("two", "m4", has_uploaded=True),
    ]
    assert owners(named) == [
        GiveTo("alone", "m1"),
        GiveTo("owner", "m2"),
        Unclear("m2", ("thief",)),
        Unclear("m3", ("one", "two")),
        GiveTo("one", "m4"),
        GiveTo("two", "m4"),
    ]


def test_files_that_waiting_messages_name_are_copied_to_their_account_once() -> None:
    async def body(shop: Shop) -> None:
        await shop.account(status="paused")
        await shop.storage.add(FileRef(None, MEDIA_ID), PICTURE, mime_type="image/png", filename=None)
        await shop.send("waits-001", parts=[part()])
        gateway = shop.world.client.system.gateway
        planned = await adopt_files(gateway, shop.storage, dry_run=True)
        assert planned.copied == [GiveTo("shop", MEDIA_ID)]
        assert await shop.storage.find(FileRef("shop", MEDIA_ID)) is None
        assert await adopt_files(gateway, shop.storage, dry_run=False) == planned
        again = await adopt_files(gateway, shop.storage, dry_run=False)
        assert (again.copied, again.unclear) == ([], [])
        await shop.change_account(status="active")
        await shop.until(lambda: shop.status("waits-001") == "sent")

    simulate(body)
