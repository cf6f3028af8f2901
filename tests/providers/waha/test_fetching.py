"""The WAHA simulator fetches a file by its URL while it answers the call, as the real one does."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from firestore_outbox.local.file_server import FileServer
from firestore_outbox.local.simulators.simulator import ProviderSimulator
from firestore_outbox.media.directory import DirectoryStorage
from firestore_outbox.media.storage import FileRef
from tests.patience import PATIENCE_SECONDS

PICTURE = b"\x89PNG" + bytes(range(256)) * 40
CAT = FileRef("shop", "cat")


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with ProviderSimulator(others=FileServer(tmp_path).routes()) as simulator:
        await simulator.start(port=0)
        async with httpx.AsyncClient(base_url=simulator.url, trust_env=False, timeout=PATIENCE_SECONDS) as client:
            yield client


async def send(gateway: httpx.AsyncClient, url: str) -> httpx.Response:
    file = {"mimetype": "image/png", "filename": "cat.png", "url": url}
    body = {"session": "shop", "chatId": "491701@c.us", "file": file}
    return await gateway.post("/waha/api/sendImage", json=body, headers={"X-Api-Key": "k"})


async def fetches(gateway: httpx.AsyncClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await gateway.get("/_sim/waha/fetches")).json()
    return found


async def test_a_file_is_fetched_whole_by_its_signed_url_and_the_record_keeps_no_signature(
    gateway: httpx.AsyncClient, tmp_path: Path
) -> None:
    storage = DirectoryStorage(tmp_path, url=f"{str(gateway.base_url).rstrip('/')}/files")
    await storage.add(CAT, PICTURE, mime_type="image/png", filename="cat.png")
    url = await storage.link(CAT, lasts=timedelta(minutes=20))
    assert url is not None
    assert (await send(gateway, url)).status_code == 201
    (fetch,) = await fetches(gateway)
    assert (fetch["status"], fetch["bytes"]) == (200, len(PICTURE))
    assert fetch["sha256"] == hashlib.sha256(PICTURE).hexdigest()
    assert "signature" not in fetch["url"]


@pytest.mark.parametrize("lasts", [timedelta(minutes=20), timedelta(seconds=-1)], ids=["no such file", "ended"])
async def test_a_file_that_cannot_be_fetched_is_not_sent(
    gateway: httpx.AsyncClient, tmp_path: Path, lasts: timedelta
) -> None:
    storage = DirectoryStorage(tmp_path, url=f"{str(gateway.base_url).rstrip('/')}/files")
    if lasts < timedelta(0):
        await storage.add(CAT, PICTURE, mime_type="image/png", filename="cat.png")
    url = await storage.link(CAT, lasts=lasts)
    assert url is not None
    assert (await send(gateway, url)).status_code >= 400
    (fetch,) = await fetches(gateway)
    assert fetch["status"] in (403, 404)
    calls = (await gateway.get("/_sim/calls")).json()
    assert [call for call in calls if call["accepted"]] == []
