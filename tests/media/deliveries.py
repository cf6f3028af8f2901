"""Deliveries of several workers on one Firestore, and a provider's media endpoint that a test holds in its hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from firestore_emulator.virtual_time import run
from firestore_outbox.firestore import paths
from firestore_outbox.local.simulation.network import NO_BAD_LUCK, Luck
from firestore_outbox.local.simulation.processes import Process
from firestore_outbox.local.simulation.world import World
from firestore_outbox.media.delivery import FileDelivery
from firestore_outbox.media.directory import DirectoryStorage
from firestore_outbox.media.storage import FileRef, Found
from firestore_outbox.messages.model import MediaPart
from firestore_outbox.providers.media import MediaHandle, MediaStream, NotUploaded, ReadyMedia, Uploaded
from firestore_outbox.providers.protocol import MediaMode
from firestore_outbox.settings import Settings
from firestore_outbox.wiring import media_delivery
from tests.media.support import MEDIA_ID, PICTURE, START

T = TypeVar("T")
LIMIT = timedelta(seconds=20)
PART = MediaPart(type="media", mediaId=MEDIA_ID, mimeType="image/png", filename="cat.png")


@dataclass
class Endpoint:
    """Takes files, as slowly as told; answers what it was given, or a new handle."""

    takes_seconds: float = 0.0
    lasts: timedelta | None = None
    answers: list[NotUploaded | Exception] = field(default_factory=list)
    files: list[bytes] = field(default_factory=list)
    limits: list[timedelta] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    async def __call__(self, file: MediaStream, limit: timedelta) -> Uploaded | NotUploaded:
        self.files.append(b"".join([piece async for piece in file.body.pieces()]))
        self.limits.append(limit)
        handle = f"handle-{len(self.files)}"
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self.takes_seconds)
        finally:
            self.at_once -= 1
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        now = self.now()
        return answer or Uploaded(handle=handle, expires_at=None if self.lasts is None else now + self.lasts)

    now: Callable[[], datetime] = lambda: START
    """A world puts its clock here."""


class CountingStorage(DirectoryStorage):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.finds = 0
        self.reads = 0

    async def find(self, ref: FileRef) -> Found | None:
        self.finds += 1
        return await super().find(ref)

    async def read(self, ref: FileRef) -> bytes | None:
        self.reads += 1
        return await super().read(ref)

    async def pieces(self, ref: FileRef, found: Found) -> AsyncIterator[bytes]:
        self.reads += 1
        async for piece in super().pieces(ref, found):
            yield piece


@dataclass
class Worker:
    process: Process
    delivery: FileDelivery

    async def ready(
        self,
        upload: Endpoint,
        *,
        part: MediaPart = PART,
        mode: MediaMode = MediaMode.UPLOAD,
        limit: timedelta = LIMIT,
        account_id: str = "shop",
    ) -> ReadyMedia | NotUploaded:
        work = self.delivery.ready(account_id, "p", part, mode, upload, limit=limit)
        return await self.process.serve(work)

    async def until_ready(self, upload: Endpoint) -> MediaHandle:
        """As a message does it, which comes back until the file is there."""
        while True:
            media = await self.ready(upload)
            if isinstance(media, MediaHandle):
                return media
            await asyncio.sleep(2)

    async def forget(self, handle: str) -> None:
        await self.delivery.forget("shop", "p", PART, MediaHandle(handle=handle))


class Place:
    """A Firestore in memory, a storage with PICTURE on it, and as many workers as a test asks for."""

    def __init__(self, directory: Path, seed: int, luck: Luck, **settings: Any) -> None:
        self.world = World(seed, settings=Settings(**settings), luck=luck, workers=0)
        self.storage = CountingStorage(directory)

    def worker(self, name: str, *, skew: timedelta = timedelta()) -> Worker:
        process = Process(name)
        self.world.truth.dead.append(process)  # to be buried when all has ended, dead or not
        delivery = process.context.run(
            media_delivery,
            self.world.settings,
            self.storage,
            client=self.world._client(self.world.network.wire()),
            owner=name,
            clock=lambda: self.world.clock() + skew,
            random=Random(name),
        )
        assert delivery is not None
        return Worker(process, delivery)

    def workers(self, names: Iterable[str] = ("w1", "w2", "w3")) -> list[Worker]:
        return [self.worker(name) for name in names]

    def endpoint(self, **options: Any) -> Endpoint:
        endpoint = Endpoint(**options)
        endpoint.now = self.world.clock
        return endpoint

    def document(self) -> dict[str, Any]:
        return self.world.truth.latest()[paths.upload("shop", MEDIA_ID)]

    def seconds(self) -> float:
        return (self.world.clock() - START).total_seconds()


def with_workers(
    test: Callable[[Place], Awaitable[T]], directory: Path, *, seed: int = 1, luck: Luck = NO_BAD_LUCK, **settings: Any
) -> T:
    async def main() -> T:
        place = Place(directory, seed, luck, **settings)
        await place.world.start()
        await place.storage.add(FileRef("shop", MEDIA_ID), PICTURE, mime_type="image/png", filename=None)
        try:
            return await test(place)
        finally:
            await place.world.stop()

    return run(main(), seed=seed, start=START, time_limit=timedelta(days=400))
