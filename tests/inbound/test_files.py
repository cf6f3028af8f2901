"""Files that people send: noted by the webhook, fetched by a lane into the account's storage, shown by the message."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import delete, upsert
from firestore_outbox.inbound.arriving import MAX_TRIES, Again, Missing, Stored, TryAt, Waiting, WaitingFile, after
from firestore_outbox.inbound.webhook import Answer
from firestore_outbox.lane.engine import Ran
from firestore_outbox.lane.ref import fetch_lane
from firestore_outbox.local.simulators.app import FORMS
from firestore_outbox.local.simulators.own import OWN
from firestore_outbox.media.directory import DirectoryStorage
from firestore_outbox.media.storage import FileRef
from firestore_outbox.messages.ids import thread_id_of
from firestore_outbox.operations.erase import Erased
from firestore_outbox.providers.whatsapp_cloud.files import is_metas
from tests.web.service import support
from tests.web.service.support import SECRET, Service, now

PICTURE = b"\x89PNG" + bytes(range(256)) * 40
SENDER = "491701"
NOW = datetime(2026, 3, 1, tzinfo=UTC)
PROVIDERS = ["simulated", "waha", "whatsapp_cloud"]
PART = {"type": "media", "mediaId": "1234567890", "mimeType": "image/png", "caption": "Look"}


@dataclass
class World:
    service: Service
    storage: DirectoryStorage

    async def person_has(self, media_id: str, content: bytes = PICTURE) -> None:
        async with httpx.AsyncClient(transport=self.service.provider.transport, base_url="http://provider") as client:
            assert (await client.put(f"/_sim/files/{media_id}", content=content)).status_code == 204

    async def fetches(self) -> dict[str, int]:
        async with httpx.AsyncClient(transport=self.service.provider.transport, base_url="http://provider") as client:
            found: dict[str, int] = (await client.get("/_sim/files")).json()
            return found

    async def writes(self, provider: str, part: dict[str, Any], account_id: str = "shop") -> None:
        """A person sends a message with this part: the provider's own webhook, signed."""
        form = FORMS.get(provider, OWN)
        event = {
            "type": "inbound",
            "providerMessageId": "in-1",
            "from": SENDER,
            "at": now().isoformat(),
            "parts": [part],
        }
        body = form.body(account_id, event)
        headers = httpx.Headers(form.headers(SECRET, body, now()))
        assert await self.service.system.webhook.take(provider, account_id, headers, body) is Answer.TAKEN

    async def message(self, account_id: str = "shop") -> dict[str, Any]:
        found = []
        for sender in (SENDER, f"+{SENDER}"):
            collection = f"{paths.thread(thread_id_of(account_id, sender))}/messages"
            found += await self.service.system.gateway.find(Find(collection=collection))
        (message,) = found
        return message.data

    async def waiting(self, account_id: str = "shop") -> list[dict[str, Any]]:
        found = await self.service.system.gateway.find(Find(collection=paths.fetches(account_id)))
        return [one.data for one in found]

    async def run(self, account_id: str = "shop") -> None:
        assert isinstance(await self.service.system.engine.run(fetch_lane(account_id)), Ran)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(support.certificates())
        storage = DirectoryStorage(tmp_path)
        service = await stack.enter_async_context(support.service(served, storage=storage, inbound_max_mb=0.02))
        yield World(service, storage)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_picture_that_a_person_sends_is_fetched_once_and_the_message_says_so(
    world: World, provider: str
) -> None:
    await world.service.account(provider=provider)
    await world.person_has(PART["mediaId"])
    await world.writes(provider, PART)
    assert "filesStoredAt" not in await world.message(), "the text is there before the file"
    assert any(body["kind"] == "fetch" for _, body, _ in world.service.tasks.asked), "a task fetches it"
    await world.run()
    message = await world.message()
    assert message["filesStoredAt"] is not None
    (part,) = message["parts"]
    assert part["caption"] == "Look"
    assert await world.storage.read(FileRef("shop", part["mediaId"])) == PICTURE
    found = await world.storage.find(FileRef("shop", part["mediaId"]))
    assert found is not None
    assert found.mime_type == "image/png"
    assert await world.waiting() == []
    await world.writes(provider, PART)  # the provider sends its webhook again
    await world.run()
    assert await world.fetches() == {PART["mediaId"]: 1}


async def test_a_worker_that_died_after_it_stored_the_file_does_not_fetch_it_again(world: World) -> None:
    await world.service.account()
    await world.person_has(PART["mediaId"])
    await world.writes("simulated", PART)
    await world.storage.add(FileRef("shop", PART["mediaId"]), PICTURE, mime_type="image/png", filename=None)
    await world.run()
    assert await world.fetches() == {}
    assert (await world.message())["filesStoredAt"] is not None


@pytest.mark.parametrize("content", [None, bytes(20_001)], ids=["gone", "too large"])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_file_that_cannot_be_had_is_missing_and_the_text_stays(
    world: World, provider: str, content: bytes | None
) -> None:
    await world.service.account(provider=provider)
    if content is not None:
        await world.person_has(PART["mediaId"], content)
    await world.writes(provider, PART)
    await world.run()
    message = await world.message()
    assert (message["filesMissing"], message["parts"][0]["caption"]) == (True, "Look")
    assert await world.storage.find(FileRef("shop", PART["mediaId"])) is None
    assert await world.waiting() == []


async def test_a_message_without_a_file_writes_nothing_more_and_wakes_no_lane(world: World) -> None:
    await world.service.account()
    await world.writes("simulated", {"type": "text", "text": "hello"})
    assert await world.waiting() == []
    assert world.service.tasks.asked == []


async def test_files_of_two_accounts_are_apart(world: World) -> None:
    for account_id in ("shop", "clinic"):
        await world.service.account(account_id)
    await world.person_has(PART["mediaId"])
    await world.writes("simulated", PART, "clinic")
    await world.run("clinic")
    assert await world.storage.find(FileRef("clinic", PART["mediaId"])) is not None
    assert await world.storage.find(FileRef("shop", PART["mediaId"])) is None


async def test_the_files_of_a_person_are_erased_with_the_conversation_and_those_of_others_stay(world: World) -> None:
    for account_id in ("shop", "clinic"):
        await world.service.account(account_id)
        await world.storage.add(FileRef(account_id, "ours"), PICTURE, mime_type="image/png", filename=None)
    await world.person_has(PART["mediaId"])
    for account_id in ("shop", "clinic"):
        await world.writes("simulated", PART, account_id)
        await world.run(account_id)
    erase = world.service.system.erase
    erased = await erase.address("shop", SENDER, world.storage)
    assert (erased.documents["messages"], erased.files) == (1, 1)
    assert await world.storage.find(FileRef("shop", PART["mediaId"])) is None
    assert await world.storage.find(FileRef("shop", "ours")) is not None, "other conversations may name it"
    await world.service.system.gateway.commit([delete(paths.account("clinic"))])
    of_account = await erase.account("clinic", world.storage)
    assert isinstance(of_account, Erased)
    assert of_account.files == 2
    assert await world.storage.find(FileRef("clinic", "ours")) is None
    assert await world.storage.find(FileRef("shop", "ours")) is not None


async def test_a_file_that_waits_for_its_next_try_is_not_asked_for_before(world: World) -> None:
    await world.service.account()
    await world.person_has(PART["mediaId"])
    await world.writes("simulated", PART)
    (path,) = [one.path for one in await world.service.system.gateway.find(Find(collection=paths.fetches("shop")))]
    await world.service.system.gateway.commit([upsert(path, {"notBefore": now() + timedelta(minutes=5)})])
    await world.run()
    assert await world.fetches() == {}
    assert len(await world.waiting()) == 1


# --- the decision

FILE = WaitingFile(media_id="m", mime_type="image/png", filename=None)


def waiting(attempts: int) -> Waiting:
    return Waiting(
        message_id="m", thread_id="t", provider="waha", files=(FILE, FILE), attempts=attempts, not_before=None
    )


def test_one_file_that_comes_later_makes_all_of_a_message_wait() -> None:
    assert after(waiting(0), [Stored(), Again("busy")], NOW) == TryAt(NOW + timedelta(seconds=5), 1)
    assert after(waiting(1), [Missing("gone"), Again("busy")], NOW) == TryAt(NOW + timedelta(seconds=30), 2)


def test_tries_end() -> None:
    assert after(waiting(MAX_TRIES - 1), [Stored(), Again("busy")], NOW) == Missing("busy")


def test_what_is_there_and_what_never_will_be_settles_it() -> None:
    assert after(waiting(0), [Stored(), Stored()], NOW) == Stored()
    assert after(waiting(0), [Stored(), Missing("gone")], NOW) == Missing("gone")


@pytest.mark.parametrize(
    ("url", "is_taken"),
    [
        ("https://lookaside.fbsbx.com/whatsapp_business/attachments/?mid=1", True),
        ("https://graph.facebook.com/files/1", True),
        ("http://lookaside.fbsbx.com/x", False),
        ("https://lookaside.fbsbx.com:8443/x", False),
        ("https://fbsbx.com.evil.example/x", False),
        ("https://evilfbsbx.com/x", False),
        ("https://lookaside.fbsbx.com@evil.example/x", False),
        ("http://169.254.169.254/computeMetadata/v1/", False),
        ("http://graph.facebook.com/x", False),
        ("https://[::1/x", False),
    ],
)
def test_metas_token_goes_to_metas_hosts_alone(url: str, is_taken: bool) -> None:
    assert is_metas(url, "https://graph.facebook.com/v25.0") is is_taken
