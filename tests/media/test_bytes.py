"""What a file to a thousand groups moves: bytes that leave the worker, the bucket and the gateway, counted at each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

import httpx
import pytest

from firestore_outbox.media.budget import ByteBudget
from firestore_outbox.media.delivery import BRIEF_LINK_LASTS, FileDelivery
from firestore_outbox.media.files import Files
from firestore_outbox.media.storage import PIECE_BYTES, FileRef, Found
from firestore_outbox.media.store import UploadStore
from firestore_outbox.media.uploads import Uploads
from firestore_outbox.messages.model import MediaPart
from firestore_outbox.providers.credentials import Credentials
from firestore_outbox.providers.http import Http
from firestore_outbox.providers.outcome import Sent
from firestore_outbox.providers.parts import PartJitter, PartSender
from firestore_outbox.providers.waha.adapter import Waha
from firestore_outbox.providers.whatsapp_cloud.adapter import WhatsAppCloud
from tests.providers.support import message
from tests.providers.waha.support import credentials
from tests.web.service.support import certificates, now, service

MEGABYTE = 1_000_000
FILE = bytes(5 * MEGABYTE)
GROUPS = 1_000
NO_JITTER = PartJitter(shortest=timedelta(0), longest=timedelta(0))
LIMIT = timedelta(seconds=20)
PART = MediaPart(type="media", mediaId="m", mimeType="image/png")


@dataclass
class Bucket:
    """Counts what leaves it: to workers that read a file, and to gateways that fetch a link."""

    sent_bytes: int = 0
    links: int = 0

    def where(self, ref: FileRef) -> str:
        return "bucket"

    async def find(self, ref: FileRef) -> Found | None:
        return Found(size_bytes=len(FILE), mime_type="image/png", filename="cat.png")

    async def read(self, ref: FileRef) -> bytes | None:
        self.sent_bytes += len(FILE)
        return FILE

    async def pieces(self, ref: FileRef, found: Found) -> AsyncIterator[bytes]:
        for start in range(0, len(FILE), PIECE_BYTES):
            piece = FILE[start : start + PIECE_BYTES]
            self.sent_bytes += len(piece)
            yield piece

    async def link(self, ref: FileRef, *, lasts: timedelta) -> str | None:
        assert lasts == BRIEF_LINK_LASTS
        self.links += 1
        return f"https://storage.test/media/{ref.account_id}/{ref.media_id}?signature={self.links}"

    async def open_upload(
        self, ref: FileRef, *, size_bytes: int, mime_type: str, filename: str | None, origin: str | None
    ) -> str | None: ...

    async def add(self, ref: FileRef, content: bytes, *, mime_type: str, filename: str | None) -> None: ...

    async def copy(self, ref: FileRef, to: FileRef) -> None: ...

    async def delete_all(self, account_id: str) -> int:
        return 0

    async def delete(self, ref: FileRef) -> bool:
        return False

    def close(self) -> None: ...


class Gateway(httpx.AsyncBaseTransport):
    """Takes calls, and fetches what they name."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self.taken_bytes = 0
        self.calls = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, httpx.AsyncByteStream)
        head, size = b"", 0
        async for piece in request.stream:
            size += len(piece)
            head = head or piece[:4096]
        self.taken_bytes += size
        self.calls += 1
        if size < 4096:
            body: dict[str, Any] = json.loads(head)
            assert body["file"]["url"].startswith("https://storage.test/")
            self._bucket.sent_bytes += len(FILE)
        return httpx.Response(201, json={"id": f"true_1@g.us_{self.calls:08X}"})


async def sent(groups: int, secrets: Credentials) -> tuple[Bucket, Gateway]:
    bucket = Bucket()
    gateway = Gateway(bucket)
    budget = ByteBudget(128 * MEGABYTE)

    async def had_it(ref: FileRef) -> bool:
        return False

    files = Files(bucket, budget=budget, had_it=had_it, max_bytes=100 * MEGABYTE)
    delivery = FileDelivery(bucket, files, uploads=None)  # type: ignore[arg-type]  # WAHA takes no uploads
    waha = Waha(Http(gateway), PartSender(jitter=NO_JITTER, random=Random(1), media=delivery))
    for start in range(0, groups, 50):
        some = range(start, min(groups, start + 50))
        messages = [message(f"request-{number}", parts=(PART,), to=f"{10_000 + number}@g.us") for number in some]
        outcomes = await asyncio.gather(*(waha.send(one, secrets, limit=LIMIT) for one in messages))
        assert all(isinstance(outcome, Sent) for outcome in outcomes)
    return bucket, gateway


async def test_by_url_a_thousand_groups_take_a_third_of_a_megabyte_from_the_worker() -> None:
    bucket, gateway = await sent(GROUPS, credentials())
    assert gateway.calls == GROUPS
    assert gateway.taken_bytes < 0.4 * MEGABYTE
    assert bucket.sent_bytes == GROUPS * len(FILE), "the gateway fetches the file for each call; WAHA keeps none"
    assert bucket.links == 1, "one signature serves all of them"


@pytest.mark.parametrize("groups", [20])
async def test_inside_the_call_each_file_leaves_the_worker_in_base64_and_the_bucket_once(groups: int) -> None:
    bucket, gateway = await sent(groups, credentials(media="inline"))
    assert gateway.taken_bytes >= groups * len(FILE) * 4 / 3
    assert bucket.sent_bytes == len(FILE)


class Meta(httpx.AsyncBaseTransport):
    """Takes files and messages, as WhatsApp Cloud does."""

    def __init__(self) -> None:
        self.uploads: list[int] = []
        self.message_bytes = 0
        self.messages = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, httpx.AsyncByteStream)
        size = 0
        async for piece in request.stream:
            size += len(piece)
        if request.url.path.endswith("/media"):
            self.uploads.append(size)
            return httpx.Response(200, json={"id": "handle"})
        self.messages += 1
        self.message_bytes += size
        return httpx.Response(200, json={"messages": [{"id": f"wamid.{self.messages}"}]})


async def test_through_whatsapp_cloud_a_thousand_groups_are_one_upload() -> None:
    bucket, meta, budget = Bucket(), Meta(), ByteBudget(128 * MEGABYTE)

    async def had_it(ref: FileRef) -> bool:
        return False

    async with certificates() as served, service(served) as running:
        uploads = Uploads(UploadStore(running.system.gateway), budget=budget, owner="w", clock=now)
        files = Files(bucket, budget=budget, had_it=had_it, max_bytes=100 * MEGABYTE)
        parts = PartSender(jitter=NO_JITTER, random=Random(1), media=FileDelivery(bucket, files, uploads))
        cloud = WhatsAppCloud("http://graph.test/v23.0", Http(meta), parts)
        secrets = Credentials({"token": "t", "phoneNumberId": "1"})
        for start in range(0, GROUPS, 50):
            some = [
                message(f"request-{number}", parts=(PART,), to=f"+49{number}") for number in range(start, start + 50)
            ]
            outcomes = await asyncio.gather(*(cloud.send(one, secrets, limit=LIMIT) for one in some))
            assert all(isinstance(outcome, Sent) for outcome in outcomes)
        await uploads.stop()
    (upload,) = meta.uploads
    assert len(FILE) <= upload < len(FILE) + 2_000, "the file and its form, once"
    assert bucket.sent_bytes == len(FILE)
    assert meta.messages == GROUPS
    assert meta.message_bytes < 0.4 * MEGABYTE
