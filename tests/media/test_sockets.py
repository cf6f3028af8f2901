"""On real time: deliveries on each of the three Firestores, and a file on its way to the simulator over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import httpx
import pytest
import pytest_asyncio

from firestore_outbox.clock import system_clock
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.local.simulators.simulator import ProviderSimulator
from firestore_outbox.media.delivery import FileDelivery
from firestore_outbox.media.directory import DirectoryStorage
from firestore_outbox.media.storage import FileRef
from firestore_outbox.media.store import StoredUpload, UploadRef, UploadStore
from firestore_outbox.providers.built_in import ProviderSettings, providers
from firestore_outbox.providers.media import MediaHandle, Uploaded
from firestore_outbox.providers.outcome import ErrorCode, Rejected, Sent
from firestore_outbox.providers.protocol import MediaMode
from firestore_outbox.providers.registry import Providers
from firestore_outbox.settings import Settings
from firestore_outbox.wiring import media_delivery
from tests.conformance.backends import Backend
from tests.media.deliveries import LIMIT, PART, Endpoint
from tests.media.support import MEDIA_ID, PICTURE
from tests.patience import PATIENCE_SECONDS
from tests.providers.support import CREDENTIALS, NO_JITTER, message, text

pytestmark = pytest.mark.asyncio(loop_scope="session")

REF = UploadRef("acme", MEDIA_ID)


async def delivery_on(backend: Backend, directory: Path, owner: str) -> FileDelivery:
    storage = DirectoryStorage(directory)
    await storage.add(FileRef("acme", MEDIA_ID), PICTURE, mime_type="image/png", filename=None)
    delivery = media_delivery(
        Settings(), storage, client=backend.client(), owner=owner, clock=system_clock, random=Random(owner)
    )
    assert delivery is not None
    return delivery


async def test_three_workers_with_twenty_messages_each_are_one_upload(backend: Backend, tmp_path: Path) -> None:
    deliveries = [await delivery_on(backend, tmp_path, owner) for owner in ("w1", "w2", "w3")]
    expires_at = datetime(2100, 1, 1, tzinfo=UTC)
    started = 0

    async def upload(file: object, limit: timedelta) -> Uploaded:
        nonlocal started
        started += 1
        await asyncio.sleep(0)
        return Uploaded(handle=f"handle-{started}", expires_at=expires_at)

    asked = [
        delivery.ready("acme", "p", PART, MediaMode.UPLOAD, upload, limit=LIMIT)
        for delivery in deliveries
        for _ in range(20)
    ]
    assert set(await asyncio.gather(*asked)) == {MediaHandle(handle="handle-1")}
    assert started == 1
    for delivery in deliveries:
        await delivery.close()
    stored = (await UploadStore(Gateway(backend.client())).read(REF)).upload
    assert stored is not None
    assert (stored.provider, stored.attempts, stored.handle, stored.expires_at) == ("p", 1, "handle-1", expires_at)
    assert (stored.owner, stored.lease_until) == (None, None)


async def test_an_upload_is_read_from_the_store_as_it_was_written(backend: Backend, tmp_path: Path) -> None:
    delivery = await delivery_on(backend, tmp_path, "w1")
    store = UploadStore(Gateway(backend.client()))
    assert await store.read(REF) == StoredUpload(None, None)
    refusal = Rejected(code=ErrorCode.REJECTED, detail="no such type")
    endpoint = Endpoint(answers=[refusal])
    assert await delivery.ready("acme", "p", PART, MediaMode.UPLOAD, endpoint, limit=LIMIT) == refusal
    failed = await store.read(REF)
    assert failed.upload is not None
    assert failed.upload.error is not None
    assert (failed.upload.error.code, failed.upload.error.message) == (ErrorCode.REJECTED, "no such type")
    other = await delivery_on(backend, tmp_path, "w2")
    assert await other.ready("acme", "p", PART, MediaMode.UPLOAD, endpoint, limit=LIMIT) == refusal
    assert len(endpoint.files) == 1


# --- to the simulator


@pytest_asyncio.fixture(loop_scope="session")
async def simulator() -> AsyncIterator[ProviderSimulator]:
    async with ProviderSimulator() as it:
        await it.start()
        yield it


@pytest_asyncio.fixture(loop_scope="session")
async def registry(simulator: ProviderSimulator, inprocess_place: object, tmp_path: Path) -> AsyncIterator[Providers]:
    delivery = await delivery_on(Backend(inprocess_place), tmp_path, "w1")  # type: ignore[arg-type]  # pytest knows no types
    settings = ProviderSettings(simulated_url=simulator.url, part_jitter=NO_JITTER)
    registry = providers(settings, credentials=CREDENTIALS, media=delivery)
    yield registry
    await delivery.close()
    await registry.close()


async def test_a_file_travels_to_the_provider_once_and_messages_name_its_handle(
    simulator: ProviderSimulator, registry: Providers
) -> None:
    for number in range(3):
        letter = message(f"request-{number}", parts=(PART, text("look")))
        assert isinstance(await registry.send("simulated", letter, limit=LIMIT), Sent)
    async with httpx.AsyncClient(base_url=simulator.url, trust_env=False, timeout=PATIENCE_SECONDS) as http:
        (upload,) = (await http.get("/_sim/media", params={"accountId": "acme"})).json()
        assert (await http.get("/_sim/media", params={"accountId": "other"})).json() == []
        assert len((await http.get("/_sim/calls")).json()) == 6
    assert (upload["bytes"], upload["sha256"], upload["accepted"]) == (len(PICTURE), MEDIA_ID, True)


async def test_a_handle_that_the_simulator_lost_is_replaced_within_the_same_attempt(
    simulator: ProviderSimulator, registry: Providers
) -> None:
    letter = message(parts=(PART,))
    assert isinstance(await registry.send("simulated", letter, limit=LIMIT), Sent)
    (first,) = simulator.core.files.uploads()
    assert first.handle is not None
    simulator.core.files.lose("acme", first.handle)
    assert isinstance(await registry.send("simulated", letter, limit=LIMIT), Sent)
    assert len(simulator.core.files.uploads()) == 2


async def test_a_media_part_without_an_upload_is_refused_by_the_simulator(simulator: ProviderSimulator) -> None:
    body = {"requestId": "request-1", "to": "49", "part": PART.model_dump(mode="json")}
    headers = {"Authorization": "Bearer t"}
    async with httpx.AsyncClient(
        base_url=simulator.url, trust_env=False, timeout=PATIENCE_SECONDS, headers=headers
    ) as http:
        missing = await http.post("/v1/acme/messages", json=body)
        unknown = await http.post("/v1/acme/messages", json={**body, "mediaHandle": "unknown"})
        uploaded = await http.post("/v1/acme/media", content=b"file", headers={"Content-Type": "text/plain"})
        handle = uploaded.json()["handle"]
        others = await http.post("/v1/other/messages", json={**body, "mediaHandle": handle})
        mine = await http.post("/v1/acme/messages", json={**body, "mediaHandle": handle})
    assert (missing.status_code, missing.json()["error"]["code"]) == (400, "invalid_message")
    assert [answer.json()["error"]["code"] for answer in (unknown, others)] == ["media_expired"] * 2
    assert (uploaded.status_code, mine.status_code) == (201, 202)
