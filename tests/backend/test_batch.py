"""worker/firestore_outbox/backend/batch.py with Google's own clients, both of them, on our emulator and on Google's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.api_core.exceptions import AlreadyExists, NotFound
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

from firestore_outbox.backend import batch as outbox
from firestore_outbox.firestore.writes import SERVER_TIME
from firestore_outbox.messages.enqueue import NewMessage, batch
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.validation import parse_message
from tests.conformance.backends import Backend
from tests.patience import PATIENCE_SECONDS

ACCOUNT, TO = "shop", "+491511234567"
THREAD = outbox.thread_id_of(ACCOUNT, TO)


def hello(**changes: Any) -> dict[str, Any]:
    fields = {"request_id": outbox.new_request_id(), "account_id": ACCOUNT, "to": TO, "uid": "u1", "text": "Hello"}
    return {**fields, **changes}


@pytest.fixture
def client(socket_backend: Backend) -> Iterator[firestore.Client]:
    """The blocking one. It is used in another thread: our server is in this one."""
    with pytest.MonkeyPatch.context() as patch:  # read once, when a client is made
        patch.setenv("FIRESTORE_EMULATOR_HOST", str(socket_backend.address))
        made = firestore.Client(project=socket_backend.project, credentials=AnonymousCredentials())
    yield made
    made.close()


async def read(backend: Backend, path: str) -> dict[str, Any] | None:
    fields: dict[str, Any] | None = (await backend.client().document(path).get()).to_dict()
    return fields


# --- what is written


async def test_a_message_is_the_three_documents_that_the_worker_itself_writes(backend: Backend) -> None:
    db = backend.client()
    at, send_by = datetime.now(UTC) + timedelta(hours=1), datetime.now(UTC) + timedelta(hours=2)
    new, writes = hello(send_by=send_by, priority="urgent"), db.batch()
    outbox.schedule_message(writes, db, at=at, **new)
    await writes.commit()

    wanted = batch(
        NewMessage(
            request_id=new["request_id"],
            account_id=ACCOUNT,
            to=TO,
            parts=[{"type": "text", "text": "Hello"}],
            created_by="u1",
            send_at=at,
            send_by=send_by,
            priority="urgent",
        )
    )
    for write in wanted:
        stored = await read(backend, write.path)
        assert stored is not None, write.path
        by_server = {name for name, value in write.fields.items() if value is SERVER_TIME}
        assert {name: value for name, value in stored.items() if name not in by_server} == {
            name: value for name, value in write.fields.items() if name not in by_server
        }
        assert all(isinstance(stored[name], datetime) for name in by_server)


async def test_what_is_written_is_a_message_to_the_worker(backend: Backend) -> None:
    db = backend.client()
    writes = db.batch()
    parts = [
        {"type": "media", "mediaId": "m-1", "mimeType": "image/png", "caption": "The bill", "filename": None},
        {"type": "template", "name": "reminder", "language": "en", "params": ("Ada",)},
    ]
    sent = outbox.send_message(writes, db, **hello(text=None, parts=parts))
    await writes.commit()
    stored = await read(backend, f"outbox/{sent.request_id}")
    assert stored is not None
    assert isinstance(parse_message(sent.request_id, stored), OutboxMessage)
    assert stored["nextAttemptAt"] == stored["createdAt"]
    thread = await read(backend, f"threads/{THREAD}")
    assert thread is not None
    assert thread["lastMessageText"] == "The bill"


async def test_a_batch_of_the_blocking_client_takes_it_too(client: firestore.Client, socket_backend: Backend) -> None:
    writes = client.batch()
    writes.set(client.document("orders/7"), {"confirmed": True})
    sent = outbox.send_message(writes, client, **hello())
    assert await read(socket_backend, "orders/7") is None, "nothing is written before the caller commits"
    await asyncio.to_thread(writes.commit)
    assert await read(socket_backend, "orders/7") == {"confirmed": True}
    assert await asyncio.to_thread(sent.is_stored)


async def test_a_transaction_takes_it_and_a_transaction_that_fails_leaves_nothing(backend: Backend) -> None:
    db = backend.client()
    await db.document("orders/7").set({"total": 3})
    new = hello()

    async def confirm(transaction: firestore.AsyncTransaction, *, fails: bool) -> None:
        order = await db.document("orders/7").get(transaction=transaction)
        outbox.send_message(transaction, db, **{**new, "text": f"Total: {order.get('total')}"})
        if fails:
            raise KeyError("a bug in the caller")

    with pytest.raises(KeyError):
        await firestore.async_transactional(confirm)(db.transaction(), fails=True)
    assert await read(backend, f"outbox/{new['request_id']}") is None
    await firestore.async_transactional(confirm)(db.transaction(), fails=False)
    stored = await read(backend, f"outbox/{new['request_id']}")
    assert stored is not None
    assert stored["parts"][0]["text"] == "Total: 3"


async def test_a_transaction_of_the_blocking_client_takes_it_too(
    client: firestore.Client, socket_backend: Backend
) -> None:
    new = hello()

    def confirm(transaction: firestore.Transaction) -> None:
        outbox.send_message(transaction, client, **new)

    await asyncio.to_thread(firestore.transactional(confirm), client.transaction())
    assert await read(socket_backend, f"outbox/{new['request_id']}") is not None


# --- once


async def test_the_same_action_again_writes_nothing_of_its_batch_and_can_tell_why(backend: Backend) -> None:
    db = backend.client()
    new = hello()
    first = db.batch()
    outbox.send_message(first, db, **new)
    await first.commit()
    await db.document(f"outbox/{new['request_id']}").update({"status": "sent"})

    again = db.batch()
    again.set(db.document("orders/7"), {"confirmed": True})
    sent = outbox.send_message(again, db, **new)
    with pytest.raises(AlreadyExists):
        await again.commit()
    assert await sent.is_stored_async()
    assert await read(backend, "orders/7") is None
    stored = await read(backend, f"outbox/{new['request_id']}")
    assert stored is not None
    assert stored["status"] == "sent"


async def test_an_id_that_another_message_has_is_distinguished(backend: Backend) -> None:
    db = backend.client()
    new = hello()
    first = db.batch()
    outbox.send_message(first, db, **new)
    await first.commit()
    for changes in ({"text": "Bye"}, {"to": "+49170"}):
        other = db.batch()
        sent = outbox.send_message(other, db, **{**new, **changes})
        with pytest.raises(AlreadyExists):
            await other.commit()
        assert not await sent.is_stored_async()


async def test_a_scheduled_action_that_is_repeated_after_its_time_is_the_same_action(backend: Backend) -> None:
    db = backend.client()
    writes = db.batch()
    sent = outbox.schedule_message(writes, db, at=datetime.now(UTC) - timedelta(hours=1), **hello())
    await writes.commit()
    stored = await read(backend, f"outbox/{sent.request_id}")
    assert stored is not None
    assert stored["nextAttemptAt"] == stored["createdAt"], "a time that has passed means now, and jumps no queue"


# --- cancelling


async def test_cancelling_asks_for_it_and_a_message_that_is_not_there_is_not_found(backend: Backend) -> None:
    db = backend.client()
    writes = db.batch()
    sent = outbox.schedule_message(writes, db, at=datetime.now(UTC) + timedelta(days=1), **hello())
    await writes.commit()
    for _ in range(2):
        wish = db.batch()
        outbox.cancel_message(wish, db, sent.request_id)
        await wish.commit()
    stored = await read(backend, f"outbox/{sent.request_id}")
    assert stored is not None
    assert stored["cancelRequested"] is True
    assert stored["status"] == "queued", "the worker decides"
    missing = db.batch()
    outbox.cancel_message(missing, db, outbox.new_request_id())
    with pytest.raises(NotFound):
        await missing.commit()


# --- misuse


async def test_what_writes_each_document_on_its_own_is_refused(client: firestore.Client) -> None:
    bulk = client.bulk_writer()
    with pytest.raises(TypeError, match="written together"):
        outbox.send_message(bulk, client, **hello())
    with pytest.raises(TypeError, match="written together"):
        outbox.cancel_message(bulk, client, outbox.new_request_id())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"text": ""}, "text is empty"),
        ({"request_id": "short"}, "8 to 128"),
        ({"at": datetime(2030, 1, 1)}, "at must be a time with an offset"),  # noqa: DTZ001  # that is the fault
        ({"priority": "high"}, "priority must be urgent, normal or bulk"),
        ({"send_by": "2030-01-01"}, "send_by must be a time with an offset"),
    ],
)
async def test_a_wrong_message_is_refused_before_anything_is_added(
    inprocess_backend: Backend, changes: dict[str, Any], words: str
) -> None:
    db = inprocess_backend.client()
    writes = db.batch()
    with pytest.raises(outbox.InvalidMessage, match=words):
        outbox.schedule_message(writes, db, **{"at": datetime.now(UTC), **hello(), **changes})
    assert len(writes) == 0


# --- watching


class Seen:
    """What a listener was told, from another thread."""

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._changed = threading.Condition()

    def add(self, value: Any) -> None:
        with self._changed:
            self._values.append(value)
            self._changed.notify_all()

    async def until(self, good: Callable[[Any], bool]) -> Any:
        def wait() -> Any:
            with self._changed:
                came = self._changed.wait_for(lambda: any(map(good, self._values)), PATIENCE_SECONDS)
                assert came, f"seen: {self._values}"
                return next(value for value in self._values if good(value))

        return await asyncio.to_thread(wait)


async def test_a_message_is_watched_from_before_it_exists_until_it_fails(
    client: firestore.Client, socket_backend: Backend
) -> None:
    new, seen = hello(), Seen()
    stop = outbox.watch_message(client, THREAD, new["request_id"], seen.add)
    await seen.until(lambda message: message is None)
    writes = client.batch()
    outbox.send_message(writes, client, **new)
    await asyncio.to_thread(writes.commit)
    queued = await seen.until(lambda message: message is not None)
    assert (queued.status, queued.direction, queued.thread_id) == ("queued", "outbound", THREAD)
    assert queued.parts == ({"type": "text", "text": "Hello"},)
    error = {"code": "recipient_invalid", "message": "no such number"}
    shown = socket_backend.client().document(f"threads/{THREAD}/messages/{new['request_id']}")
    await shown.update({"status": "failed", "error": error, "failedAt": firestore.SERVER_TIMESTAMP})
    failed = await seen.until(lambda message: message is not None and message.status == "failed")
    assert failed.error == error
    assert failed.failed_at is not None
    await asyncio.to_thread(stop)


async def test_a_thread_shows_its_last_messages_oldest_first(client: firestore.Client, socket_backend: Backend) -> None:
    for text in ("one", "two", "three"):
        writes = client.batch()
        outbox.send_message(writes, client, **hello(text=text))
        await asyncio.to_thread(writes.commit)
    seen = Seen()
    stop = outbox.watch_thread(client, THREAD, seen.add, last=2)
    await seen.until(lambda messages: [one.parts[0]["text"] for one in messages] == ["two", "three"])
    await asyncio.to_thread(stop)
