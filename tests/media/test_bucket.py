"""The storage in Cloud Storage: Google's library over a socket, to a server that speaks its JSON API."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.oauth2.service_account import Credentials

from firestore_outbox.media import bucket as module
from firestore_outbox.media.bucket import BucketStorage
from firestore_outbox.media.budget import ByteBudget
from firestore_outbox.media.files import Files
from firestore_outbox.media.storage import PIECE_BYTES, FileRef, Found, StorageUnavailable
from firestore_outbox.messages.model import MediaPart
from firestore_outbox.providers.media import MediaContent
from firestore_outbox.providers.outcome import Postponed
from tests.media.fake_storage import BUCKET, FakeStorage, fake_storage

M1, M2, GONE = FileRef("shop", "m1"), FileRef("shop", "m2"), FileRef("shop", "gone")
PART = MediaPart(type="media", mediaId="m1", mimeType="image/webp")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeStorage]:
    with fake_storage() as it:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", it.address)
        yield it


@pytest.fixture
def storage(server: FakeStorage) -> Iterator[BucketStorage]:
    it = BucketStorage(BUCKET, project="demo-outbox")
    yield it
    it.close()


async def never(ref: FileRef) -> bool:
    return False


def files_on(storage: BucketStorage) -> Files:
    return Files(storage, budget=ByteBudget(1_000_000), had_it=never, max_bytes=1000)


@pytest.mark.parametrize("size", [1, 100_000, 9_000_000], ids=["a byte", "small", "in pieces"])
async def test_a_file_is_found_and_read_as_it_was_added(server: FakeStorage, storage: BucketStorage, size: int) -> None:
    content = os.urandom(size)
    await storage.add(M1, content, mime_type="image/png", filename="cat.png")
    found = await storage.find(M1)
    assert found == Found(
        size_bytes=size, mime_type="image/png", filename="cat.png", crc32c=server.objects["media/shop/m1"].crc32c
    )
    assert await storage.read(M1) == content
    pieces = [piece async for piece in storage.pieces(M1, found)]
    assert b"".join(pieces) == content
    assert len(pieces) == -(-size // PIECE_BYTES)
    assert list(server.objects) == ["media/shop/m1"]


async def test_a_file_that_is_there_already_stays(server: FakeStorage, storage: BucketStorage) -> None:
    await storage.add(M1, b"first", mime_type="image/png", filename=None)
    await storage.add(M1, b"second", mime_type="image/png", filename=None)
    assert await storage.read(M1) == b"first"


async def test_a_file_that_is_not_there_is_none_and_no_error(storage: BucketStorage) -> None:
    assert await storage.find(GONE) is None
    assert await storage.read(GONE) is None


@pytest.mark.parametrize("media_id", ["with space", "100%", "ü?#&+", "..", "a%2Fb"])
async def test_a_media_id_of_any_form_is_one_object(server: FakeStorage, storage: BucketStorage, media_id: str) -> None:
    await storage.add(FileRef("shop", media_id), b"content", mime_type="image/png", filename=None)
    assert list(server.objects) == [f"media/shop/{media_id}"]
    assert await storage.read(FileRef("shop", media_id)) == b"content"


async def test_a_storage_that_stumbles_is_asked_again(server: FakeStorage, storage: BucketStorage) -> None:
    await storage.add(M1, b"content", mime_type="image/png", filename=None)
    server.trouble = [503, 429]
    found = await storage.find(M1)
    assert found is not None
    assert found.size_bytes == 7
    assert len(server.calls) == 4


@pytest.mark.parametrize(("status", "said"), [(403, "Forbidden 403"), (401, "InvalidOperation")])
async def test_a_bucket_that_refuses_us_is_not_taken_for_a_missing_file(
    server: FakeStorage, storage: BucketStorage, status: int, said: str
) -> None:
    server.trouble = [status]
    with pytest.raises(StorageUnavailable, match=f"gs://{BUCKET} cannot be used .{said}"):
        await storage.find(M1)


async def test_a_download_that_does_not_match_its_checksum_is_not_sent(
    server: FakeStorage, storage: BucketStorage
) -> None:
    await storage.add(M1, b"content", mime_type="image/png", filename=None)
    found = await storage.find(M1)
    assert found is not None
    server.corrupts = True
    with pytest.raises(StorageUnavailable, match="DataCorruption"):
        await storage.read(M1)
    with pytest.raises(StorageUnavailable, match="does not match its checksum"):
        [piece async for piece in storage.pieces(M1, found)]


async def test_a_copy_is_a_file_of_its_own_and_replaces_none(server: FakeStorage, storage: BucketStorage) -> None:
    await storage.add(M1.old, b"shared", mime_type="image/png", filename="cat.png")
    await storage.add(M2.old, b"another", mime_type="image/png", filename=None)
    await storage.add(M2, b"own", mime_type="image/png", filename=None)
    await storage.copy(M1.old, M1)
    await storage.copy(M2.old, M2)
    assert {name: stored.content for name, stored in server.objects.items()} == {
        "media/m1": b"shared",
        "media/m2": b"another",
        "media/shop/m1": b"shared",
        "media/shop/m2": b"own",
    }


async def test_files_of_one_account_are_deleted_and_those_of_others_stay(
    server: FakeStorage, storage: BucketStorage
) -> None:
    for account_id in ("shop", "shop-2"):
        for media_id in ("a", "b"):
            await storage.add(FileRef(account_id, media_id), b"picture", mime_type="image/png", filename=None)
    assert await storage.delete(FileRef("shop", "a"))
    assert not await storage.delete(FileRef("shop", "a"))
    assert await storage.delete_all("shop") == 1
    assert await storage.delete_all("shop") == 0
    assert sorted(server.objects) == ["media/shop-2/a", "media/shop-2/b"]


async def test_a_storage_that_is_not_there_is_unavailable(monkeypatch: pytest.MonkeyPatch, server: FakeStorage) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:1")
    monkeypatch.setattr(module, "TRIES_SECONDS", 0.2)
    storage = BucketStorage(BUCKET, project="demo-outbox")
    with pytest.raises(StorageUnavailable, match="gs://shop-files cannot be used"):
        await storage.find(M1)
    storage.close()


async def test_an_upload_of_an_app_is_a_session_for_one_new_object_of_this_size_and_page(
    server: FakeStorage, storage: BucketStorage
) -> None:
    url = await storage.open_upload(
        M1, size_bytes=7, mime_type="image/png", filename="cat.png", origin="https://app.example"
    )
    assert url == f"{server.address}/resumable/0"
    (session,) = server.sessions.values()
    assert (session["size"], session["origin"], session["type"]) == ("7", "https://app.example", "image/png")
    assert session["query"]["ifGenerationMatch"] == ["0"], "an existing file stays"
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.put(url, content=b"content")).status_code == 200
    found = await storage.find(M1)
    assert found is not None
    assert (found.size_bytes, found.mime_type, found.filename) == (7, "image/png", "cat.png")


# --- as messages see it


async def test_the_buckets_own_type_and_name_go_with_the_file_unless_it_has_none(
    server: FakeStorage, storage: BucketStorage
) -> None:
    files = files_on(storage)
    await storage.add(M1, b"typed", mime_type="image/png", filename="cat.png")
    await storage.add(M2, b"untyped", mime_type="application/octet-stream", filename=None)
    typed = await files.content("shop", PART)
    assert typed == MediaContent(media_id="m1", mime_type="image/png", filename="cat.png", content=b"typed")
    untyped = await files.content("shop", PART.model_copy(update={"mediaId": "m2"}))
    assert untyped == MediaContent(media_id="m2", mime_type="image/webp", filename="m2", content=b"untyped")


async def test_while_the_bucket_refuses_us_messages_wait_and_go_on_when_it_does_not(
    server: FakeStorage, storage: BucketStorage
) -> None:
    await storage.add(M1, b"content", mime_type="image/png", filename=None)
    files = files_on(storage)
    server.trouble = [403]
    answer = await files.content("shop", PART)
    assert isinstance(answer, Postponed)
    assert answer.retry_after == timedelta(seconds=30)
    assert isinstance(await files.content("shop", PART), MediaContent)


async def test_a_file_that_is_too_large_is_not_downloaded(server: FakeStorage, storage: BucketStorage) -> None:
    await storage.add(M1, bytes(1001), mime_type="image/png", filename=None)
    await files_on(storage).content("shop", PART)
    assert not [call for call in server.calls if call.startswith("GET /download/")]


# --- addresses


async def test_with_a_key_addresses_are_signed_and_end(server: FakeStorage) -> None:
    storage = BucketStorage(BUCKET, project="demo-outbox", credentials=_service_account())
    url = await storage.link(M1, lasts=timedelta(days=2))
    storage.close()
    assert url is not None
    query = parse_qs(urlsplit(url).query)
    assert urlsplit(url).path == f"/{BUCKET}/media/shop/m1"
    assert query["X-Goog-Expires"] == ["172800"]
    assert query["X-Goog-Credential"][0].startswith("worker@demo-outbox.iam.gserviceaccount.com/")
    assert len(query["X-Goog-Signature"][0]) == 512
    assert server.calls == [], "no call was needed"


async def test_without_a_signer_there_is_no_address(storage: BucketStorage) -> None:
    assert await storage.link(M1, lasts=timedelta(days=2)) is None


def _service_account() -> Credentials:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    return Credentials.from_service_account_info(
        {
            "client_email": "worker@demo-outbox.iam.gserviceaccount.com",
            "private_key": pem,
            "token_uri": "http://127.0.0.1:1/token",
        }
    )
