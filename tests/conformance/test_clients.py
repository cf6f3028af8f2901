"""Google's own Python clients, as an application uses them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter, Or
from google.cloud.firestore_v1.vector import Vector

from tests.conformance.backends import Backend
from tests.patience import PATIENCE_SECONDS

# --- the asynchronous client


async def test_every_value_makes_the_round_trip(backend: Backend) -> None:
    client = backend.client()
    stored = {
        "null": None,
        "boolean": True,
        "integer": 2**53 + 1,
        "double": -0.5,
        "time": datetime(2024, 2, 29, 12, 0, 0, 123456, tzinfo=UTC),
        "string": "é😀",
        "bytes": b"\x00\xff",
        "reference": client.document("c/b"),
        "point": firestore.GeoPoint(1.5, -2.5),
        "array": [1, "a", {"k": [None]}],
        "map": {"k": {"l": 1}},
        "vector": Vector([1.0, 2.0]),
    }
    await client.document("c/a").set(stored)
    found = (await client.document("c/a").get()).to_dict()
    assert found == stored


async def test_set_merge_update_and_delete(backend: Backend) -> None:
    reference = backend.client().collection("c").document("a")
    await reference.set({"x": 1, "m": {"k": 1, "l": 1}})
    await reference.set({"m": {"k": 2}}, merge=True)
    await reference.update({"m.l": firestore.DELETE_FIELD, "y": firestore.Increment(5), "z": firestore.ArrayUnion([1])})
    assert (await reference.get()).to_dict() == {"x": 1, "m": {"k": 2}, "y": 5, "z": [1]}
    await reference.delete()
    assert not (await reference.get()).exists
    with pytest.raises(exceptions.NotFound):
        await reference.update({"x": 1})
    await reference.create({"x": 1})
    with pytest.raises(exceptions.AlreadyExists):
        await reference.create({"x": 1})


async def test_server_timestamps_and_write_results(backend: Backend) -> None:
    reference = backend.client().document("c/a")
    result = await reference.set({"at": firestore.SERVER_TIMESTAMP})
    snapshot = await reference.get()
    assert snapshot.update_time == result.update_time
    assert abs(snapshot.to_dict()["at"] - datetime.now(UTC)) < timedelta(minutes=1)


async def test_preconditions_through_the_client(backend: Backend) -> None:
    client = backend.client()
    reference = client.document("c/a")
    first = await reference.set({"x": 1})
    await reference.update({"x": 2}, option=client.write_option(last_update_time=first.update_time))
    with pytest.raises(exceptions.FailedPrecondition):
        await reference.update({"x": 3}, option=client.write_option(last_update_time=first.update_time))


async def test_a_batch_is_all_or_nothing(backend: Backend) -> None:
    client = backend.client()
    batch = client.batch()
    batch.set(client.document("c/a"), {"x": 1})
    batch.update(client.document("c/none"), {"x": 1})
    with pytest.raises(exceptions.NotFound):
        await batch.commit()
    assert not (await client.document("c/a").get()).exists


async def test_queries_through_the_client(backend: Backend) -> None:
    client = backend.client()
    collection = client.collection("c")
    for number in range(6):
        await collection.document(f"d{number}").set({"x": number, "even": number % 2 == 0, "tags": [number, "all"]})

    async def ids(query: Any) -> list[str]:
        return [snapshot.id async for snapshot in query.stream()]

    assert await ids(collection.where(filter=FieldFilter("x", ">", 3))) == ["d4", "d5"]
    assert await ids(collection.order_by("x", direction=firestore.Query.DESCENDING).limit(2)) == ["d5", "d4"]
    assert await ids(collection.where(filter=FieldFilter("even", "==", True)).order_by("x").offset(1)) == ["d2", "d4"]
    assert await ids(collection.where(filter=FieldFilter("tags", "array_contains", 3))) == ["d3"]
    assert await ids(collection.where(filter=Or([FieldFilter("x", "==", 1), FieldFilter("x", "==", 4)]))) == [
        "d1",
        "d4",
    ]
    assert await ids(collection.order_by("x").start_after({"x": 3})) == ["d4", "d5"]
    assert await ids(collection.order_by("x").start_at(await collection.document("d4").get())) == ["d4", "d5"]
    assert [s.id for s in await collection.order_by("x").limit_to_last(2).get()] == ["d4", "d5"]
    assert await ids(client.collection_group("c").where(filter=FieldFilter("x", "<", 2))) == ["d0", "d1"]
    [[count]] = await collection.where(filter=FieldFilter("x", ">=", 2)).count(alias="n").get()
    assert (count.alias, count.value) == ("n", 4)
    [[total]] = await collection.sum("x").get()
    assert total.value == 15


async def test_get_all_and_listings_through_the_client(backend: Backend) -> None:
    client = backend.client()
    await client.document("c/a").set({"x": 1})
    await client.document("c/none/s/1").set({})
    snapshots = [s async for s in client.get_all([client.document("c/a"), client.document("c/none")])]
    assert {s.id: s.exists for s in snapshots} == {"a": True, "none": False}
    assert [c.id async for c in client.collections()] == ["c"]
    assert [d.id async for d in client.collection("c").list_documents()] == ["a", "none"]


async def test_a_transaction_through_the_client(backend: Backend) -> None:
    client = backend.client()
    account = client.document("c/a")
    await account.set({"x": 1})

    @firestore.async_transactional  # type: ignore[untyped-decorator]  # Google's library has no types
    async def one_more(transaction: Any) -> int:
        found: int = (await account.get(transaction=transaction)).get("x")
        transaction.update(account, {"x": found + 1})
        transaction.create(client.document(f"log/{found}"), {"was": found})
        return found

    assert [await one_more(client.transaction()) for _ in range(3)] == [1, 2, 3]
    assert (await account.get()).get("x") == 4


# --- the synchronous client, over a socket, found as an application finds it


@pytest.fixture
def sync_client(socket_backend: Backend, monkeypatch: pytest.MonkeyPatch) -> firestore.Client:
    assert socket_backend.address is not None
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", socket_backend.address)
    return firestore.Client(project=socket_backend.project, credentials=AnonymousCredentials())


async def test_the_synchronous_client_writes_and_reads(sync_client: firestore.Client) -> None:
    def use() -> None:
        reference = sync_client.document("c/a")
        reference.set({"x": 1})
        reference.update({"x": firestore.Increment(1)})
        assert reference.get().to_dict() == {"x": 2}
        assert [s.id for s in sync_client.collection("c").where(filter=FieldFilter("x", "==", 2)).stream()] == ["a"]
        bulk = sync_client.bulk_writer()
        for number in range(30):
            bulk.set(sync_client.document(f"b/{number}"), {"x": number})
        bulk.close()
        [[count]] = sync_client.collection("b").count().get()
        assert count.value == 30

    await asyncio.to_thread(use)


async def test_a_synchronous_transaction_counts_right_under_contention(sync_client: firestore.Client) -> None:
    reference = sync_client.document("c/a")

    def one_more() -> None:
        @firestore.transactional  # type: ignore[untyped-decorator]  # Google's library has no types
        def body(transaction: Any) -> None:
            found = reference.get(transaction=transaction).get("x")
            transaction.update(reference, {"x": found + 1})

        body(sync_client.transaction(max_attempts=20))

    await asyncio.to_thread(reference.set, {"x": 0})
    await asyncio.gather(*(asyncio.to_thread(one_more) for _ in range(2)))
    assert (await asyncio.to_thread(reference.get)).get("x") == 2


async def test_on_snapshot_watches_a_query(sync_client: firestore.Client) -> None:
    views = _Views()
    collection = sync_client.collection("c")
    watch = collection.where(filter=FieldFilter("x", ">=", 2)).on_snapshot(
        lambda snapshots, changes, read_time: views.add({s.id: s.get("x") for s in snapshots})
    )
    try:
        await views.wait_for({})
        await asyncio.to_thread(collection.document("a").set, {"x": 2})
        await views.wait_for({"a": 2})
        await asyncio.to_thread(collection.document("b").set, {"x": 3})
        await views.wait_for({"a": 2, "b": 3})
        await asyncio.to_thread(collection.document("a").set, {"x": 1})
        await views.wait_for({"b": 3})
        await asyncio.to_thread(collection.document("b").delete)
        await views.wait_for({})
    finally:
        watch.unsubscribe()


async def test_on_snapshot_watches_a_document(sync_client: firestore.Client) -> None:
    views = _Views()
    reference = sync_client.document("c/a")
    watch = reference.on_snapshot(
        lambda snapshots, changes, read_time: views.add({s.id: s.get("x") for s in snapshots if s.exists})
    )
    try:
        await views.wait_for({})
        await asyncio.to_thread(reference.set, {"x": 2})
        await views.wait_for({"a": 2})
        await asyncio.to_thread(reference.delete)
        await views.wait_for({})
    finally:
        watch.unsubscribe()


class _Views:
    """What a watch has shown; it calls back in a thread of its own."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._last: dict[str, object] | None = None

    def add(self, view: dict[str, object]) -> None:
        with self._changed:
            self._last = view
            self._changed.notify_all()

    async def wait_for(self, wanted: dict[str, object]) -> None:
        await asyncio.to_thread(self._wait, lambda: self._last == wanted)

    def _wait(self, wanted: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(wanted, timeout=PATIENCE_SECONDS), f"the last view was {self._last}"
