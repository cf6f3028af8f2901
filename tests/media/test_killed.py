"""Kill -9 at each step of an upload by an app and of the fetch of an inbound file: nothing stays open, no file is
stored twice, and none is lost. In virtual time, with the production code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import httpx
import pytest

from firestore_emulator.virtual_time import run
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import create
from firestore_outbox.local.simulation.network import NO_BAD_LUCK
from firestore_outbox.local.simulation.processes import ProcessDied
from firestore_outbox.local.simulation.world import SECRET, World
from firestore_outbox.local.simulators.own import OWN
from firestore_outbox.local.simulators.simulator import ProviderSimulator
from firestore_outbox.media.directory import DirectoryStorage
from firestore_outbox.media.directory_uploads import DirectoryUploads
from firestore_outbox.media.intake import Open, Stored
from firestore_outbox.media.new_file import NewFile
from firestore_outbox.media.storage import FileRef, Found, media_id_of
from firestore_outbox.messages.ids import thread_id_of
from firestore_outbox.settings import Settings
from tests.calm import _silence as silence

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
PICTURE = b"\x89PNG" + bytes(range(256)) * 40
FILE = NewFile(sha256=media_id_of(PICTURE), size_bytes=len(PICTURE), mime_type="image/png", filename="a.png")
MEDIA_ID, SENDER = "1234567890", "+491701"
T = TypeVar("T")


class DeadlyStorage(DirectoryStorage):
    """Kills the process that uses it, once, at one step."""

    at = ""
    kill: Callable[[], None]

    async def step(self, name: str) -> None:
        if name == self.at:
            self.at = ""
            self.kill()
            await asyncio.sleep(0)  # the dead process gets no further

    async def find(self, ref: FileRef) -> Found | None:
        await self.step("before the file is looked for")
        return await super().find(ref)

    async def open_upload(self, ref: FileRef, **about: Any) -> str | None:
        await self.step("before the session is opened")
        url = await super().open_upload(ref, **about)
        await self.step("before the session is stored")
        return url

    async def add(self, ref: FileRef, content: bytes, *, mime_type: str, filename: str | None) -> None:
        await self.step("before the file is stored")
        await super().add(ref, content, mime_type=mime_type, filename=filename)
        await self.step("after the file is stored")


class Killed(World):
    """Functions, workers, storage in a directory, and the provider's whole simulator."""

    def __init__(self, directory: Path) -> None:
        self.storage = DeadlyStorage(directory, url="http://files")
        super().__init__(1, settings=Settings(), luck=NO_BAD_LUCK, storage=self.storage)

    def _provider_network(self) -> httpx.AsyncBaseTransport:
        self.simulator = ProviderSimulator(clock=self.clock, random=Random(1), send=self.network.sender(self._webhook))
        return self.simulator.transport

    async def stop(self) -> None:
        await super().stop()
        await self.simulator.stop()

    async def person_sends_a_picture(self) -> None:
        async with httpx.AsyncClient(transport=self.transport, base_url="http://provider") as control:
            (await control.put(f"/_sim/files/{MEDIA_ID}", content=PICTURE)).raise_for_status()
        part = {"type": "media", "mediaId": MEDIA_ID, "mimeType": "image/png"}
        event = {"type": "inbound", "providerMessageId": "in-1", "from": SENDER, "at": self.clock().isoformat()}
        body = OWN.body("shop", {**event, "parts": [part]})
        headers = httpx.Headers(OWN.headers(SECRET, body, self.clock()))
        functions = self.functions[0]
        await functions.process.serve(functions.system.webhook.take("simulated", "shop", headers, body))

    async def fetched(self) -> int:
        async with httpx.AsyncClient(transport=self.transport, base_url="http://provider") as control:
            return int((await control.get("/_sim/files")).json().get(MEDIA_ID, 0))


def simulate(directory: Path, story: Callable[[Killed], Awaitable[T]]) -> T:
    async def main() -> T:
        world = Killed(directory)
        await world.start()
        await world.client.system.gateway.commit(
            [create(paths.account("shop"), {"provider": "simulated", "timezone": "UTC", "status": "active"})]
        )
        try:
            return await story(world)
        finally:
            await world.stop()

    with silence():
        return run(main(), seed=1, start=START, time_limit=timedelta(days=2))


def parts_of(content: bytes) -> Iterator[tuple[int, bytes]]:
    half = len(content) // 2
    yield 0, content[:half]
    yield half, content[half:]


@pytest.mark.parametrize(
    "step", ["before the file is looked for", "before the session is opened", "before the session is stored"]
)
def test_a_function_that_is_killed_while_it_opens_an_upload_leaves_one_file_and_one_session(
    tmp_path: Path, step: str
) -> None:
    async def story(world: Killed) -> None:
        async def ask() -> Open | Stored | object:
            functions = world.functions[0]
            start = functions.system.intake.start("shop", FILE, by="alice", origin=None, is_lost=False)
            return await functions.process.serve(start)

        world.storage.at, world.storage.kill = step, lambda: world.kill(world.functions[0])
        with pytest.raises(ProcessDied):
            await ask()
        world.functions[0] = world.machine("functions")
        first, again = await ask(), await ask()
        assert isinstance(first, Open)
        assert again == first, "the app goes on under one session"
        uploads, token = DirectoryUploads(tmp_path), first.url.rpartition("/")[2]
        session = uploads.find(token)
        assert session is not None
        for start, piece in parts_of(PICTURE):
            uploads.append(token, session, start, piece)
        assert await ask() == Stored(FILE.sha256)
        assert await world.storage.read(FileRef("shop", FILE.sha256)) == PICTURE
        stored = await world.client.system.gateway.find(Find(collection="accounts/shop/incoming"))
        assert [one.id for one in stored] == [FILE.sha256]
        assert stored[0].data["expireAt"] > world.clock(), "Firestore deletes it"

    simulate(tmp_path, story)


@pytest.mark.parametrize(
    ("step", "fetches"),
    [("before the file is looked for", 1), ("before the file is stored", 2), ("after the file is stored", 1)],
)
def test_a_worker_that_is_killed_while_it_fetches_an_inbound_file_loses_none(
    tmp_path: Path, step: str, fetches: int
) -> None:
    async def story(world: Killed) -> None:
        def kill() -> None:
            for place in range(len(world.workers)):
                world.crash(world.workers, place)

        world.storage.at, world.storage.kill = step, kill
        await world.person_sends_a_picture()
        gateway = world.client.system.gateway
        messages = f"{paths.thread(thread_id_of('shop', SENDER))}/messages"
        for _ in range(10):
            await asyncio.sleep(60)
            await world.sweep()
        (message,) = await gateway.find(Find(collection=messages))
        assert message.data["filesStoredAt"] is not None
        assert world.storage.at == "", "a worker was killed"
        assert await world.storage.read(FileRef("shop", MEDIA_ID)) == PICTURE
        assert await gateway.find(Find(collection=paths.fetches("shop"))) == []
        assert await world.fetched() == fetches
        (lane,) = [data for path, data in world.truth.latest().items() if path == paths.lane("fetch", "shop")]
        assert lane["state"] == "idle"

    simulate(tmp_path, story)
