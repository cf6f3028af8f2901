"""What files take of a process's memory: one limit in bytes for all accounts and providers."""

from __future__ import annotations

import asyncio
import contextlib
import tracemalloc
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from firestore_outbox.media.budget import ByteBudget
from firestore_outbox.media.directory import DirectoryStorage
from firestore_outbox.media.storage import FileRef
from firestore_outbox.messages.model import MediaPart
from firestore_outbox.providers.http import Http, Streamed
from firestore_outbox.providers.media import MediaContent, MediaHandle
from firestore_outbox.providers.outcome import ErrorCode, Rejected
from firestore_outbox.providers.protocol import MediaMode
from tests.media.deliveries import Endpoint, Place, with_workers
from tests.media.support import PICTURE

TWO_PICTURES_MB = 2.5 * len(PICTURE) / 1_000_000


# --- the semaphore


async def test_no_more_bytes_are_held_than_there_are_and_those_that_wait_are_served_in_order() -> None:
    budget, order = ByteBudget(100), list[int]()
    most = 0

    async def use(number: int, size: int) -> None:
        nonlocal most
        async with budget.hold(size):
            most = max(most, budget.held_bytes)
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*(use(number, size) for number, size in enumerate([60, 60, 10, 30, 100, 5])))
    assert most <= 100
    assert order == [0, 1, 2, 3, 4, 5], "a small one does not pass a large one"
    assert budget.held_bytes == 0


async def test_more_than_the_whole_budget_is_held_alone() -> None:
    budget = ByteBudget(100)
    async with budget.hold(1_000):
        assert budget.held_bytes == 100
    assert budget.held_bytes == 0


@pytest.mark.parametrize("cancelled", [0, 1, 2])
async def test_a_wait_that_is_given_up_takes_nothing(cancelled: int) -> None:
    budget = ByteBudget(100)
    released = asyncio.Event()

    async def use() -> None:
        async with budget.hold(80):
            await released.wait()

    tasks = [asyncio.create_task(use()) for _ in range(3)]
    await asyncio.sleep(0)
    tasks[cancelled].cancel()
    released.set()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert budget.held_bytes == 0


# --- as files are sent


def part(media_id: str) -> MediaPart:
    return MediaPart(type="media", mediaId=media_id, mimeType="image/png")


async def five_accounts(place: Place) -> list[str]:
    accounts = [f"account-{number}" for number in range(5)]
    for account_id in accounts:
        await place.storage.add(FileRef(account_id, "m"), PICTURE, mime_type="image/png", filename=None)
    return accounts


def test_uploads_of_all_accounts_share_one_limit_in_bytes(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        accounts = await five_accounts(place)
        endpoint, (worker,) = place.endpoint(takes_seconds=1), place.workers(["w1"])
        asked = [worker.ready(endpoint, part=part("m"), account_id=account_id) for account_id in accounts]
        answers = await asyncio.gather(*asked)
        assert all(isinstance(answer, MediaHandle) for answer in answers)
        assert endpoint.files == [PICTURE] * 5
        assert endpoint.most_at_once == 2

    with_workers(body, tmp_path, media_memory_mb=TWO_PICTURES_MB)


def test_files_inside_messages_wait_until_others_are_sent(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        accounts = await five_accounts(place)
        (worker,) = place.workers(["w1"])
        asked = [
            asyncio.create_task(worker.ready(Endpoint(), part=part("m"), mode=MediaMode.INLINE, account_id=account_id))
            for account_id in accounts
        ]
        done, waiting = await asyncio.wait(asked, timeout=1)
        assert len(done) == 2, "two fit into memory"
        while waiting:
            for task in done:
                file = task.result()
                assert isinstance(file, MediaContent)
                assert file.content == PICTURE
                file.done()
            done, waiting = await asyncio.wait(waiting, timeout=1)
            assert 1 <= len(done) <= 2

    with_workers(body, tmp_path, media_memory_mb=TWO_PICTURES_MB)


def test_many_messages_with_one_file_hold_it_once(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        (account_id, *_), (worker,) = await five_accounts(place), place.workers(["w1"])
        asked = [
            worker.ready(Endpoint(), part=part("m"), mode=MediaMode.INLINE, account_id=account_id) for _ in range(50)
        ]
        files = await asyncio.gather(*asked)
        assert all(isinstance(file, MediaContent) for file in files)
        assert place.storage.reads == 1

    with_workers(body, tmp_path, media_memory_mb=TWO_PICTURES_MB)


def test_a_file_that_memory_cannot_hold_is_refused_in_words_where_it_must_be_whole(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        endpoint, (worker,) = place.endpoint(), place.workers(["w1"])
        answer = await worker.ready(endpoint, mode=MediaMode.INLINE)
        assert isinstance(answer, Rejected)
        assert answer.code is ErrorCode.INVALID_MESSAGE
        assert "OUTBOX_MEDIA_MEMORY_MB" in answer.detail
        assert isinstance(await worker.ready(endpoint), MediaHandle), "an upload does not need it whole"

    with_workers(body, tmp_path, media_memory_mb=len(PICTURE) / 2_000_000)


# --- a file on a socket


async def test_an_upload_is_never_whole_in_memory(tmp_path: Path) -> None:
    size = 64 * 1024 * 1024
    ref = FileRef("shop", "large")
    (tmp_path / "shop").mkdir()
    with (tmp_path / "shop" / "large").open("wb") as file:
        file.truncate(size)
    storage = DirectoryStorage(tmp_path)
    found = await storage.find(ref)
    assert found is not None
    received = 0

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines = dict(line.split(": ", 1) for line in head.lower().splitlines()[1:] if ": " in line)
        length = int(lines["content-length"])
        while received < length:
            received += len(await reader.read(65_536))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    http = Http()
    tracemalloc.start()
    try:
        answer = await http.post_form(
            f"http://127.0.0.1:{port}/media",
            headers={},
            fields={"type": "video/mp4"},
            file=('ü".mp4', Streamed(size_bytes=size, pieces=lambda: storage.pieces(ref, found)), "video/mp4"),
            limit=timedelta(minutes=5),
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        await http.close()
        server.close()
    assert isinstance(answer, httpx.Response)
    assert answer.status_code == 200
    assert received > size
    assert peak < size / 2
