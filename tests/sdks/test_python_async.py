"""google-cloud-firestore's asynchronous client. Listeners it has none."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from google.api_core import exceptions
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import And, Or
from google.cloud.firestore_v1.base_vector_query import DistanceMeasure
from google.cloud.firestore_v1.query_profile import ExplainOptions, QueryExplainError
from google.cloud.firestore_v1.vector import Vector

from tests.conformance.backends import Backend
from tests.sdks.people import OPERATORS, PEOPLE, every_type, where

Client = Any
DESCENDING = firestore.Query.DESCENDING


@pytest_asyncio.fixture(loop_scope="session")
async def people(async_db: Client) -> Any:
    return await fill(async_db.collection("people"), PEOPLE)


async def fill(collection: Any, documents: dict[str, dict[str, Any]]) -> Any:
    batch = collection._client.batch()
    for document_id, fields in documents.items():
        batch.set(collection.document(document_id), fields)
    await batch.commit()
    return collection


async def ids(query: Any) -> str:
    return " ".join([snapshot.id for snapshot in await query.get()])


# --- one document


async def test_a_document_is_set_read_changed_and_deleted(async_db: Client) -> None:
    document = async_db.document("c/a")
    assert not (await document.get()).exists
    written = await document.set({"x": 1})
    await document.update({"y": 2})
    changed = await document.get()
    assert changed.to_dict() == {"x": 1, "y": 2}
    assert changed.create_time == written.update_time < changed.update_time
    await document.delete()
    assert not (await document.get()).exists


async def test_creating_what_exists_and_updating_what_does_not_are_refused(async_db: Client) -> None:
    document = async_db.document("c/a")
    with pytest.raises(exceptions.NotFound):
        await document.update({"x": 1})
    await document.create({"x": 1})
    with pytest.raises(exceptions.AlreadyExists):
        await document.create({"x": 2})


async def test_setting_replaces_and_merging_keeps(async_db: Client) -> None:
    document = async_db.document("c/a")
    await document.set({"a": 1, "map": {"k": 1, "l": 1}})
    await document.set({"map": {"k": 2}}, merge=True)
    assert (await document.get()).to_dict() == {"a": 1, "map": {"k": 2, "l": 1}}
    await document.set({"b": 1})
    assert (await document.get()).to_dict() == {"b": 1}


async def test_every_type_makes_the_round_trip(async_db: Client) -> None:
    stored = every_type(async_db.document("c/b"))
    await async_db.document("c/a").set({**stored, "nan": math.nan})
    found = (await async_db.document("c/a").get()).to_dict()
    assert math.isnan(found.pop("nan"))
    assert found == stored


async def test_transforms_are_done_by_the_server(async_db: Client) -> None:
    document = async_db.document("c/a")
    await document.set({"n": 1, "list": [1, 2, 1], "gone": 1})
    await document.update(
        {
            "at": firestore.SERVER_TIMESTAMP,
            "n": firestore.Increment(1.5),
            "list": firestore.ArrayUnion([2, 3]),
            "gone": firestore.DELETE_FIELD,
        }
    )
    found = (await document.get()).to_dict()
    assert abs(found.pop("at") - datetime.now(UTC)) < timedelta(minutes=1)
    assert found == {"n": 2.5, "list": [1, 2, 1, 3]}
    await document.update({"list": firestore.ArrayRemove([1])})
    assert (await document.get()).get("list") == [2, 3]


async def test_a_write_that_expects_an_older_state_is_refused(async_db: Client) -> None:
    document = async_db.document("c/a")
    first = async_db.write_option(last_update_time=(await document.set({"x": 1})).update_time)
    await document.update({"x": 2}, option=first)
    with pytest.raises(exceptions.FailedPrecondition):
        await document.update({"x": 3}, option=first)


# --- many


async def test_a_batch_of_500_is_written_at_one_moment(async_db: Client) -> None:
    batch = async_db.batch()
    for number in range(500):
        batch.set(async_db.document(f"c/{number}"), {"number": number})
    assert len({result.update_time for result in await batch.commit()}) == 1
    [[count]] = await async_db.collection("c").count().get()
    assert count.value == 500


async def test_a_batch_with_one_write_that_fails_writes_nothing(async_db: Client) -> None:
    batch = async_db.batch()
    batch.set(async_db.document("c/a"), {"x": 1})
    batch.update(async_db.document("c/none"), {"x": 1})
    with pytest.raises(exceptions.NotFound):
        await batch.commit()
    assert await ids(async_db.collection("c")) == ""


async def test_many_writes_at_once_over_one_connection_all_arrive(async_db: Client) -> None:
    await asyncio.gather(*(async_db.document(f"c/{number}").set({"number": number}) for number in range(200)))
    [[count]] = await async_db.collection("c").count().get()
    assert count.value == 200


async def test_a_bulk_writer_writes_the_others_when_one_fails(async_db: Client) -> None:
    """It blocks, in this client too."""
    await async_db.document("c/taken").set({"x": 0})

    def write() -> None:
        writer = async_db.bulk_writer()
        writer.on_write_error(lambda error, writer: False)
        writer.create(async_db.document("c/taken"), {"x": 1})
        for number in range(100):
            writer.set(async_db.document(f"c/{number}"), {"number": number})
        writer.close()

    await asyncio.to_thread(write)
    [[count]] = await async_db.collection("c").count().get()
    assert count.value == 101
    assert (await async_db.document("c/taken").get()).to_dict() == {"x": 0}


async def test_a_recursive_delete_takes_all_below(async_db: Client) -> None:
    await fill(async_db.collection("c"), {"a": {}, "b": {}})
    await fill(async_db.collection("c/a/s"), {"1": {}, "2": {}})
    await fill(async_db.collection("c/a/s/1/t"), {"3": {}})
    await async_db.recursive_delete(async_db.document("c/a"))
    assert await ids(async_db.collection("c")) == "b"
    assert [one.id async for one in async_db.document("c/a").collections()] == []


async def test_many_documents_are_read_at_once(async_db: Client) -> None:
    await fill(async_db.collection("c"), {"a": {"x": 1, "y": 1}})
    wanted = [async_db.document("c/a"), async_db.document("c/none")]
    found = {one.id: one.to_dict() async for one in async_db.get_all(wanted, ["y"])}
    assert found == {"a": {"y": 1}, "none": None}


async def test_listings_show_collections_and_missing_documents(async_db: Client) -> None:
    await fill(async_db.collection("b"), {"1": {}})
    await fill(async_db.collection("a"), {"1": {}})
    await fill(async_db.collection("a/none/s"), {"1": {}})
    assert [one.id async for one in async_db.collections()] == ["a", "b"]
    assert [one.id async for one in async_db.document("a/none").collections()] == ["s"]
    assert [one.id async for one in async_db.collection("a").list_documents(page_size=1)] == ["1", "none"]


# --- transactions


async def test_transactions_that_race_are_repeated_until_each_has_counted(async_db: Client) -> None:
    document = async_db.document("c/a")
    await document.set({"x": 0})

    async def one_more() -> None:
        @firestore.async_transactional  # type: ignore[untyped-decorator]  # Google's library has no types
        async def body(transaction: Any) -> None:
            found = (await document.get(transaction=transaction)).get("x")
            transaction.update(document, {"x": found + 1})

        await body(async_db.transaction(max_attempts=20))

    await asyncio.gather(one_more(), one_more())
    assert (await document.get()).get("x") == 2


async def test_a_transaction_whose_body_raises_writes_nothing(async_db: Client) -> None:
    document = async_db.document("c/a")

    @firestore.async_transactional  # type: ignore[untyped-decorator]  # as above
    async def body(transaction: Any) -> None:
        await document.get(transaction=transaction)
        transaction.set(document, {"x": 1})
        raise LookupError

    with pytest.raises(LookupError):
        await body(async_db.transaction())
    assert not (await document.get()).exists


async def test_a_read_only_transaction_reads_one_moment(async_db: Client) -> None:
    document = async_db.document("c/a")
    await document.set({"x": 1})

    @firestore.async_transactional  # type: ignore[untyped-decorator]  # as above
    async def body(transaction: Any) -> list[int]:
        first = (await document.get(transaction=transaction)).get("x")
        await document.set({"x": 2})
        found = await async_db.collection("c").get(transaction=transaction)
        return [first, *(one.get("x") for one in found)]

    assert await body(async_db.transaction(read_only=True)) == [1, 1]


async def test_the_past_can_be_read(async_db: Client) -> None:
    document = async_db.document("c/a")
    then = (await document.set({"x": 1})).update_time
    await document.set({"x": 2})
    assert (await document.get(read_time=then)).get("x") == 1
    assert [one.get("x") for one in await async_db.collection("c").get(read_time=then)] == [1]


# --- queries


@pytest.mark.parametrize(("field", "operator", "value", "found"), OPERATORS)
async def test_each_operator_finds_what_it_says(people: Any, field: str, operator: str, value: Any, found: str) -> None:
    assert await ids(people.where(filter=where(field, operator, value))) == found


async def test_conditions_are_joined_by_and_and_or(people: Any) -> None:
    both = And([where("city", "==", "London"), where("born", ">", 1900)])
    assert await ids(people.where(filter=both)) == "alan"
    assert await ids(people.where(filter=Or([both, where("city", "==", "Erlangen")])).order_by("born")) == "emmy alan"
    several = people.where(filter=where("born", ">", 1850)).where(filter=where("city", "<", "New York"))
    assert await ids(several) == "emmy alan"


async def test_a_result_is_ordered_and_cut(people: Any) -> None:
    by_year = people.order_by("born")
    assert await ids(people.order_by("city").order_by("born", direction=DESCENDING)) == "emmy alan ada grace"
    assert await ids(by_year.limit(2)) == "ada emmy"
    assert await ids(by_year.offset(1).limit(2)) == "emmy grace"
    assert await ids(by_year.start_at({"born": 1882}).end_before({"born": 1912})) == "emmy grace"
    assert await ids(people.order_by("city").start_after(await people.document("alan").get())) == "grace"
    assert await ids(by_year.limit_to_last(2)) == "grace alan"


async def test_a_result_is_streamed(people: Any) -> None:
    assert [one.id async for one in people.order_by("born").stream()] == ["ada", "emmy", "grace", "alan"]


async def test_only_the_selected_fields_are_read(people: Any) -> None:
    [found] = await people.where(filter=where("born", "==", 1815)).select(["city"]).get()
    assert found.to_dict() == {"city": "London"}


async def test_a_collection_group_is_every_collection_of_that_name(async_db: Client) -> None:
    await fill(async_db.collection("c"), {"1": {"x": 1}})
    await fill(async_db.collection("d/1/c"), {"2": {"x": 2}})
    assert await ids(async_db.collection_group("c").order_by("x", direction=DESCENDING)) == "2 1"


async def test_documents_are_counted_summed_up_and_averaged(async_db: Client) -> None:
    collection = await fill(async_db.collection("c"), {"a": {"x": 1}, "b": {"x": 2.5}, "c": {"x": "text"}})
    query = collection.count(alias="count")
    query.sum("x", alias="sum")
    query.avg("x", alias="average")
    [found] = await query.get()
    assert {one.alias: one.value for one in found} == {"count": 3, "sum": 3.5, "average": 1.75}


async def test_the_partitions_of_a_collection_group_together_are_all_of_it(
    async_db: Client, socket_backend: Backend
) -> None:
    documents: dict[str, dict[str, Any]] = {f"d{number}": {} for number in range(300)}
    await fill(async_db.collection("a/1/c"), documents)
    partitions = async_db.collection_group("c").get_partitions(4)
    if socket_backend.is_official:
        with pytest.raises(exceptions.MethodNotImplemented):
            await anext(partitions)
        return
    found = [one.id async for part in partitions for one in await part.query().get()]
    assert sorted(found) == sorted(documents)


async def test_the_nearest_vectors_are_found(async_db: Client) -> None:
    vectors = {"near": {"v": Vector([1.0, 1.0])}, "far": {"v": Vector([9.0, 9.0])}}
    collection = await fill(async_db.collection("c"), vectors)
    query = collection.find_nearest("v", Vector([1.0, 2.0]), limit=5, distance_measure=DistanceMeasure.EUCLIDEAN)
    assert await ids(query) == "near far"


async def test_an_explained_query_tells_what_it_read(async_db: Client, socket_backend: Backend) -> None:
    collection = await fill(async_db.collection("c"), {"a": {"x": 1}})
    if socket_backend.is_official:
        with pytest.raises(QueryExplainError):
            await collection.get(explain_options=ExplainOptions(analyze=True))
        return
    result = await collection.get(explain_options=ExplainOptions(analyze=True))
    assert [one.id for one in result] == ["a"]
    assert result.get_explain_metrics().execution_stats.results_returned == 1


# --- bad input


async def test_bad_input_is_refused_with_its_code(async_db: Client) -> None:
    collection = async_db.collection("c")
    with pytest.raises(exceptions.InvalidArgument):
        await collection.document("a").set({"text": "x" * 1024 * 1024})
    with pytest.raises(exceptions.InvalidArgument):
        await collection.document("__reserved__").set({})
    with pytest.raises(exceptions.InvalidArgument):
        await collection.where(filter=where("x", "in", list(range(31)))).get()
