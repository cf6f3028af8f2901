"""A storage with files on it, and the calm world of tests/core with workers that use it."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from firestore_emulator.virtual_time import run
from firestore_outbox.firestore import paths
from firestore_outbox.local.simulators.files import File
from firestore_outbox.media.directory import DirectoryStorage
from firestore_outbox.media.storage import FileRef, media_id_of
from tests.calm import Calm
from tests.calm import _silence as silence

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
PICTURE = b"\x89PNG" + bytes(range(256)) * 400
MEDIA_ID = media_id_of(PICTURE)
T = TypeVar("T")


def part(media_id: str = MEDIA_ID, **fields: Any) -> dict[str, Any]:
    return {"type": "media", "mediaId": media_id, "mimeType": "image/png", **fields}


class Shop(Calm):
    """The world, with PICTURE on its storage and an account that may send three at once."""

    def __init__(self, directory: Path, **options: Any) -> None:
        self.storage = DirectoryStorage(directory)
        super().__init__(storage=self.storage, **options)

    async def open(self, **account: Any) -> None:
        await self.has_picture("shop")
        await self.account(**account)

    async def has_picture(self, account_id: str) -> None:
        await self.storage.add(FileRef(account_id, MEDIA_ID), PICTURE, mime_type="image/png", filename=None)

    async def send_pictures(self, count: int, *, account_id: str = "shop", media_id: str = MEDIA_ID) -> None:
        for number in range(count):
            await self.send(
                f"{account_id}-{number:05d}", to=f"+49{number}", account_id=account_id, parts=[part(media_id)]
            )

    @property
    def uploads(self) -> list[File]:
        """What the provider saw."""
        return self.world.provider.files.uploads()

    def upload(self, media_id: str = MEDIA_ID, account_id: str = "shop") -> dict[str, Any]:
        return self.document(paths.upload(account_id, media_id))

    def error(self, request_id: str) -> dict[str, Any]:
        error: dict[str, Any] = self.outbox(request_id)["lastError"]
        return error


def simulate(test: Callable[[Shop], Awaitable[T]], *, sweeps: bool = True, **options: Any) -> T:
    async def main() -> T:
        with ExitStack() as stack:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            shop = Shop(directory, **options)
            await shop.start(sweeps=sweeps)
            try:
                return await test(shop)
            finally:
                await shop.stop()

    with silence():
        return run(main(), seed=1, start=START, time_limit=timedelta(days=400))
