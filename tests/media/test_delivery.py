"""Several workers that need one file at the same time: one uploads, the others wait, and none waits for ever."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import grpc
import pytest
from grpc.aio import Metadata

from firestore_outbox.local.simulation.network import Luck
from firestore_outbox.local.simulation.processes import ProcessDied
from firestore_outbox.media.directory_uploads import DirectoryUploads, Session
from firestore_outbox.media.files import REMEMBER
from firestore_outbox.media.storage import FileRef, media_id_of
from firestore_outbox.messages.model import MediaPart
from firestore_outbox.providers.media import MediaContent, MediaHandle, MediaLink
from firestore_outbox.providers.outcome import ErrorCode, Postponed, Rejected, Retryable, Unknown
from firestore_outbox.providers.protocol import MediaMode
from tests.media.deliveries import PART, Endpoint, Place, with_workers
from tests.media.support import PICTURE

FIRST = MediaHandle(handle="handle-1")
SECOND = MediaHandle(handle="handle-2")


def test_three_workers_at_once_are_one_upload_and_hear_of_the_same_handle(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        endpoint = place.endpoint(takes_seconds=3)
        asked = [worker.until_ready(endpoint) for worker in place.workers() for _ in range(20)]
        assert set(await asyncio.gather(*asked)) == {FIRST}
        assert endpoint.files == [PICTURE]
        assert place.seconds() < 3 + 2, "the others look again each second"

    with_workers(body, tmp_path)


@pytest.mark.parametrize("seed", range(25))
def test_whatever_is_lost_or_late_on_the_way_to_firestore_it_stays_one_upload(tmp_path: Path, seed: int) -> None:
    luck = Luck(lost_request=0.1, lost_answer=0.15, contended=0.15, late=0.2, latest_seconds=0.5)

    async def body(place: Place) -> None:
        endpoint = place.endpoint(takes_seconds=1)
        asked = [worker.until_ready(endpoint) for worker in place.workers() for _ in range(3)]
        assert set(await asyncio.gather(*asked)) == {FIRST}
        assert len(endpoint.files) == 1

    with_workers(body, tmp_path, seed=seed, luck=luck)


def test_a_claim_whose_answer_was_lost_is_known_by_its_owner_and_used_at_once(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        endpoint, (worker,) = place.endpoint(), place.workers(["w1"])
        commits = []

        def lose_the_first(path: str, answer: object) -> None:
            if path.endswith("/Commit"):
                commits.append(answer)
                if len(commits) == 1:
                    raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, Metadata(), Metadata())

        place.world.network.on_answer = lose_the_first
        assert await worker.ready(endpoint) == FIRST
        assert place.seconds() < 1, "it did not wait for its own lease to end"

    with_workers(body, tmp_path)


def test_one_worker_reads_the_document_once_for_a_thousand_messages(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        endpoint, (worker,) = place.endpoint(), place.workers(["w1"])
        reads: list[str] = []
        place.world.network.on_answer = lambda path, answer: reads.append(path.rsplit("/", 1)[-1])
        for _ in range(1000):
            assert await worker.ready(endpoint) == FIRST
        assert sorted(reads) == ["BatchGetDocuments", "Commit", "Commit"]
        assert (place.storage.finds, place.storage.reads) == (1, 1)

    with_workers(body, tmp_path)


# --- those who wait


def test_a_message_waits_for_half_of_its_time_and_goes_back_without_blame(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        endpoint, (worker,) = place.endpoint(takes_seconds=15), place.workers(["w1"])
        answer = await worker.ready(endpoint, limit=timedelta(seconds=20))
        assert isinstance(answer, Postponed)
        assert answer.retry_after == timedelta(seconds=2)
        assert 10 <= place.seconds() < 10.1
        await asyncio.sleep(6)
        assert await worker.ready(endpoint) == FIRST
        assert len(endpoint.files) == 1

    with_workers(body, tmp_path)


def test_an_upload_goes_on_when_the_message_that_asked_for_it_is_given_up(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        endpoint, (worker,) = place.endpoint(takes_seconds=5), place.workers(["w1"])
        asked = asyncio.create_task(
            worker.delivery.ready("shop", "p", PART, MediaMode.UPLOAD, endpoint, limit=timedelta(20))
        )
        await asyncio.sleep(1)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        assert await worker.ready(endpoint) == FIRST
        assert len(endpoint.files) == 1

    with_workers(body, tmp_path)


# --- an uploader that dies, or sleeps too long


def test_after_a_killed_uploader_another_one_goes_on_when_its_lease_ends_and_not_before(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        endpoint, (first, second) = place.endpoint(takes_seconds=4), place.workers(["w1", "w2"])
        asked = asyncio.create_task(first.ready(endpoint))
        await asyncio.sleep(2)
        first.process.die()
        with pytest.raises(ProcessDied):
            await asked
        lease_until = place.document()["leaseUntil"]
        assert place.document()["owner"] == "w1"
        assert await second.until_ready(endpoint) == SECOND
        assert timedelta(0) < place.world.clock() - lease_until < timedelta(seconds=8)
        assert place.document()["attempts"] == 2

    with_workers(body, tmp_path)


def test_an_uploader_that_slept_through_its_lease_does_not_undo_what_another_one_did(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        endpoint, (sleeper, other) = place.endpoint(takes_seconds=2), place.workers(["w1", "w2"])
        asked = asyncio.create_task(sleeper.until_ready(endpoint))
        await asyncio.sleep(1)
        sleeper.process.pause()
        assert await other.until_ready(endpoint) == SECOND
        sleeper.process.go_on()
        await asked
        assert place.document()["handle"] == "handle-2"

    with_workers(body, tmp_path)


# --- handles that end


def test_a_handle_that_another_worker_replaced_already_is_not_uploaded_again(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        endpoint, (one, other) = place.endpoint(), place.workers(["w1", "w2"])
        assert [await one.ready(endpoint), await other.ready(endpoint)] == [FIRST, FIRST]
        await one.forget("handle-1")
        assert await one.ready(endpoint) == SECOND
        assert await other.ready(endpoint) == FIRST, "it has not heard of it"
        await other.forget("handle-1")
        assert await other.ready(endpoint) == SECOND
        await other.forget("handle-1")  # of a message that was on its way for long
        assert await other.ready(endpoint) == SECOND
        assert len(endpoint.files) == 2

    with_workers(body, tmp_path)


def test_a_replacement_that_is_refused_too_ends_it_for_all_workers(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        endpoint, (one, other) = place.endpoint(), place.workers(["w1", "w2"])
        for handle in ("handle-1", "handle-2"):
            assert await one.ready(endpoint) == MediaHandle(handle=handle)
            await one.forget(handle)
        for worker in (one, other):
            await worker.forget("handle-2")
            answer = await worker.ready(endpoint)
            assert isinstance(answer, Rejected)
            assert answer.code is ErrorCode.MEDIA_MISSING
        assert len(endpoint.files) == 2

    with_workers(body, tmp_path)


def test_an_expired_handle_is_replaced_by_one_upload_for_all_workers(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        endpoint, workers = place.endpoint(lasts=timedelta(days=30)), place.workers()
        assert {await worker.until_ready(endpoint) for worker in workers} == {FIRST}
        await asyncio.sleep(timedelta(days=29, hours=22).total_seconds())
        assert {await worker.until_ready(endpoint) for worker in workers} == {FIRST}
        await asyncio.sleep(timedelta(hours=1.5).total_seconds())
        assert set(await asyncio.gather(*(worker.until_ready(endpoint) for worker in workers))) == {SECOND}

    with_workers(body, tmp_path)


# --- uploads that fail


def test_everybody_who_waited_for_an_upload_hears_why_it_failed(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        answers = [Retryable(code=ErrorCode.PROVIDER_UNAVAILABLE, detail="no connection")]
        endpoint, (worker,) = place.endpoint(takes_seconds=1, answers=[*answers]), place.workers(["w1"])
        assert await asyncio.gather(*(worker.ready(endpoint) for _ in range(5))) == answers * 5
        assert await worker.until_ready(endpoint) == SECOND
        assert len(endpoint.files) == 2

    with_workers(body, tmp_path)


def test_an_adapter_that_breaks_is_an_upload_without_an_answer(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        endpoint, (worker,) = place.endpoint(answers=[KeyError("bug")]), place.workers(["w1"])
        assert await worker.ready(endpoint) == Unknown(detail="the adapter failed (KeyError)")
        assert await worker.until_ready(endpoint) == SECOND

    with_workers(body, tmp_path)


def test_an_upload_that_is_never_answered_is_given_up_within_its_lease(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        endpoint, (worker,) = place.endpoint(takes_seconds=3600), place.workers(["w1"])
        assert isinstance(await worker.ready(endpoint), Postponed)
        assert timedelta(seconds=20) < endpoint.limits[0] < timedelta(seconds=21), "by the size of the file"
        await asyncio.sleep(12)
        assert place.document()["lastError"]["code"] == "provider_timeout"
        assert "owner" not in place.document()
        endpoint.takes_seconds = 0
        assert await worker.until_ready(endpoint) == SECOND

    with_workers(body, tmp_path)


def test_while_firestore_is_away_messages_wait_without_blame(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        endpoint, (worker,) = place.endpoint(), place.workers(["w1"])
        place.world.network.is_dark = True
        answer = await worker.ready(endpoint)
        assert isinstance(answer, Postponed)
        assert endpoint.files == []
        place.world.network.is_dark = False
        assert await worker.until_ready(endpoint) == FIRST

    with_workers(body, tmp_path)


def test_a_handle_is_stored_when_firestore_is_back_before_the_lease_ends(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        endpoint, (one, other) = place.endpoint(takes_seconds=2), place.workers(["w1", "w2"])
        asked = asyncio.create_task(one.until_ready(endpoint))
        await asyncio.sleep(1)
        place.world.network.is_dark = True
        await asyncio.sleep(8)
        place.world.network.is_dark = False
        assert await asked == FIRST
        assert await other.until_ready(endpoint) == FIRST
        assert len(endpoint.files) == 1

    with_workers(body, tmp_path)


# --- other ways to take a file


def test_a_provider_that_takes_bytes_gets_them_and_the_file_is_read_once(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        (worker,) = place.workers(["w1"])
        asked = [worker.ready(Endpoint(), mode=MediaMode.INLINE) for _ in range(100)]
        files = await asyncio.gather(*asked)
        one = MediaContent(media_id=PART.mediaId, mime_type="image/png", filename="cat.png", content=PICTURE)
        assert files == [one] * 100
        assert await worker.ready(Endpoint(), mode=MediaMode.INLINE) == one
        assert place.storage.reads == 1

    with_workers(body, tmp_path)


@pytest.mark.parametrize("mode", [MediaMode.INLINE, MediaMode.UPLOAD])
def test_a_file_that_is_not_what_its_app_announced_reaches_no_provider(tmp_path: Path, mode: MediaMode) -> None:
    part = PART.model_copy(update={"mediaId": media_id_of(b"what the app announced")})

    async def body(place: Place) -> None:
        uploads = DirectoryUploads(tmp_path)
        ref = FileRef("shop", part.mediaId)
        about = {"mimeType": "image/png", "filename": None, "sha256": part.mediaId}
        session = Session(target=place.storage.where(ref), size_bytes=len(PICTURE), about=about, origin=None)
        uploads.append(uploads.open(session), session, 0, PICTURE)
        (worker,) = place.workers(["w1"])
        endpoint = place.endpoint()
        answer = await worker.ready(endpoint, part=part, mode=mode)
        if isinstance(answer, Postponed):  # it was noticed in the middle of the upload
            await asyncio.sleep(60)
            answer = await worker.ready(endpoint, part=part, mode=mode)
        assert isinstance(answer, Rejected)
        assert (answer.code, "upload it again" in answer.detail) == (ErrorCode.INVALID_MESSAGE, True)
        assert endpoint.files == []

    with_workers(body, tmp_path)


def test_a_provider_that_fetches_gets_an_address_below_the_one_that_was_set(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        (worker,) = place.workers(["w1"])
        link = await worker.ready(Endpoint(), mode=MediaMode.LINK)
        assert link == MediaLink(url=f"https://files.example/m/shop/{PART.mediaId}", mime_type="image/png")

    with_workers(body, tmp_path, media_url="https://files.example/m/")


def test_a_provider_that_takes_either_gets_an_address_where_there_is_one(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        (worker,) = place.workers(["w1"])
        assert isinstance(await worker.ready(Endpoint(), mode=MediaMode.LINK_OR_INLINE), MediaLink)
        assert place.storage.reads == 0

    with_workers(body, tmp_path, media_url="https://files.example/m/")


def test_a_provider_that_takes_either_gets_the_bytes_where_storage_has_no_addresses(tmp_path: Path) -> None:
    async def body(place: Place) -> None:
        (worker,) = place.workers(["w1"])
        for _ in range(2):
            assert isinstance(await worker.ready(Endpoint(), mode=MediaMode.LINK_OR_INLINE), MediaContent)

    with_workers(body, tmp_path)


def test_without_an_address_a_provider_that_fetches_cannot_be_served_and_the_words_say_what_to_set(
    tmp_path: Path,
) -> None:
    async def body(place: Place) -> None:
        (worker,) = place.workers(["w1"])
        answer = await worker.ready(Endpoint(), mode=MediaMode.LINK)
        assert isinstance(answer, Rejected)
        assert "set OUTBOX_MEDIA_URL" in answer.detail

    with_workers(body, tmp_path)


@pytest.mark.parametrize("mode", MediaMode)
def test_that_a_file_is_missing_is_remembered_for_a_moment_and_then_looked_for_again(
    tmp_path: Path, mode: MediaMode
) -> None:
    async def body(place: Place) -> None:
        endpoint, (worker,) = place.endpoint(), place.workers(["w1"])
        gone = MediaPart(type="media", mediaId="gone", mimeType="image/png")
        for _ in range(100):
            answer = await worker.ready(endpoint, part=gone, mode=mode)
            assert isinstance(answer, Rejected)
            assert answer.code is ErrorCode.MEDIA_MISSING
        assert place.storage.finds == 1
        await place.storage.add(FileRef("shop", "gone"), PICTURE, mime_type="image/png", filename=None)
        await asyncio.sleep(REMEMBER.total_seconds())
        assert isinstance(await worker.ready(endpoint, part=gone, mode=mode), MediaHandle | MediaLink | MediaContent)

    with_workers(body, tmp_path, media_url="https://files.example")
