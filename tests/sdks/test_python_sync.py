"""google-cloud-firestore's blocking client: documents, batches, transactions, queries, listings."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
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


@pytest.fixture
def people(db: Client) -> Any:
    return fill(db.collection("people"), PEOPLE)


def fill(collection: Any, documents: dict[str, dict[str, Any]]) -> Any:
    batch = collection._client.batch()
    for document_id, fields in documents.items():
        batch.set(collection.document(document_id), fields)
    batch.commit()
    return collection


def ids(query: Any) -> str:
    return " ".join(snapshot.id for snapshot in query.get())


# --- one document


def test_a_document_is_set_read_changed_and_deleted(db: Client) -> None:
    document = db.document("c/a")
    assert not document.get().exists
    written = document.set({"x": 1})
    snapshot = document.get()
    assert (snapshot.to_dict(), snapshot.create_time, snapshot.update_time) == (
        {"x": 1},
        written.update_time,
        written.update_time,
    )
    document.update({"y": 2})
    changed = document.get()
    assert changed.to_dict() == {"x": 1, "y": 2}
    assert changed.create_time == written.update_time < changed.update_time
    document.delete()
    assert not document.get().exists


def test_creating_what_exists_and_updating_what_does_not_are_refused(db: Client) -> None:
    document = db.document("c/a")
    with pytest.raises(exceptions.NotFound):
        document.update({"x": 1})
    document.create({"x": 1})
    with pytest.raises(exceptions.AlreadyExists):
        document.create({"x": 2})
    assert document.get().to_dict() == {"x": 1}


def test_setting_replaces_and_merging_keeps(db: Client) -> None:
    document = db.document("c/a")
    document.set({"a": 1, "map": {"k": 1, "l": 1}})
    document.set({"map": {"k": 2}}, merge=True)
    assert document.get().to_dict() == {"a": 1, "map": {"k": 2, "l": 1}}
    document.set({"a": 9, "map": {"l": 9}}, merge=["map.l"])
    assert document.get().to_dict() == {"a": 1, "map": {"k": 2, "l": 9}}
    document.set({"b": 1})
    assert document.get().to_dict() == {"b": 1}


def test_every_type_makes_the_round_trip(db: Client) -> None:
    stored = every_type(db.document("c/b"))
    db.document("c/a").set({**stored, "nan": math.nan})
    found = db.document("c/a").get().to_dict()
    assert math.isnan(found.pop("nan"))
    assert found == stored


def test_transforms_are_done_by_the_server(db: Client) -> None:
    document = db.document("c/a")
    document.set({"n": 1, "list": [1, 2, 1], "gone": 1, "most": 5, "least": 5})
    document.update(
        {
            "at": firestore.SERVER_TIMESTAMP,
            "n": firestore.Increment(1.5),
            "new.deep": firestore.Increment(-2),
            "list": firestore.ArrayUnion([2, 3]),
            "gone": firestore.DELETE_FIELD,
            "most": firestore.Maximum(7),
            "least": firestore.Minimum(7),
        }
    )
    found = document.get().to_dict()
    assert abs(found.pop("at") - datetime.now(UTC)) < timedelta(minutes=1)
    assert found == {"n": 2.5, "new": {"deep": -2}, "list": [1, 2, 1, 3], "most": 7, "least": 5}
    document.update({"list": firestore.ArrayRemove([1])})
    assert document.get().get("list") == [2, 3]


def test_a_write_that_expects_an_older_state_is_refused(db: Client) -> None:
    document = db.document("c/a")
    first = db.write_option(last_update_time=document.set({"x": 1}).update_time)
    document.update({"x": 2}, option=first)
    with pytest.raises(exceptions.FailedPrecondition):
        document.update({"x": 3}, option=first)
    with pytest.raises(exceptions.FailedPrecondition):
        document.delete(option=first)
    with pytest.raises(exceptions.NotFound):
        db.document("c/none").delete(option=db.write_option(exists=True))
    assert document.get().to_dict() == {"x": 2}


# --- many


def test_a_batch_of_500_is_written_at_one_moment(db: Client) -> None:
    batch = db.batch()
    for number in range(500):
        batch.set(db.document(f"c/{number}"), {"number": number})
    assert len({result.update_time for result in batch.commit()}) == 1
    [[count]] = db.collection("c").count().get()
    assert count.value == 500


def test_a_batch_with_one_write_that_fails_writes_nothing(db: Client) -> None:
    batch = db.batch()
    batch.set(db.document("c/a"), {"x": 1})
    batch.update(db.document("c/none"), {"x": 1})
    with pytest.raises(exceptions.NotFound):
        batch.commit()
    assert ids(db.collection("c")) == ""


def test_a_bulk_writer_writes_the_others_when_one_fails(db: Client) -> None:
    db.document("c/taken").set({"x": 0})
    failures: list[str] = []
    writer = db.bulk_writer()

    def on_error(error: Any, writer: Any) -> bool:
        failures.append(error.operation.reference.id)
        return False

    writer.on_write_error(on_error)
    writer.create(db.document("c/taken"), {"x": 1})
    for number in range(100):
        writer.set(db.document(f"c/{number}"), {"number": number})
    writer.close()
    assert failures == ["taken"]
    [[count]] = db.collection("c").count().get()
    assert count.value == 101


def test_a_recursive_delete_takes_all_below(db: Client) -> None:
    fill(db.collection("c"), {"a": {}, "b": {}})
    fill(db.collection("c/a/s"), {"1": {}, "2": {}})
    fill(db.collection("c/a/s/1/t"), {"3": {}})
    db.recursive_delete(db.document("c/a"))
    assert ids(db.collection("c")) == "b"
    assert list(db.document("c/a").collections()) == []


def test_many_documents_are_read_at_once(db: Client) -> None:
    fill(db.collection("c"), {"a": {"x": 1, "y": 1}})
    wanted = [db.document("c/a"), db.document("c/none")]
    assert {one.id: one.to_dict() for one in db.get_all(wanted, ["y"])} == {"a": {"y": 1}, "none": None}


def test_listings_show_collections_and_missing_documents(db: Client) -> None:
    fill(db.collection("b"), {"1": {}})
    fill(db.collection("a"), {"1": {}})
    fill(db.collection("a/none/s"), {"1": {}})
    assert [one.id for one in db.collections()] == ["a", "b"]
    assert [one.id for one in db.document("a/none").collections()] == ["s"]
    assert [one.id for one in db.collection("a").list_documents(page_size=1)] == ["1", "none"]


# --- transactions


def test_transactions_that_race_are_repeated_until_each_has_counted(db: Client) -> None:
    document = db.document("c/a")
    document.set({"x": 0})

    def one_more(_: int) -> None:
        @firestore.transactional  # type: ignore[untyped-decorator]  # Google's library has no types
        def body(transaction: Any) -> None:
            found = document.get(transaction=transaction).get("x")
            transaction.update(document, {"x": found + 1})

        body(db.transaction(max_attempts=20))

    with ThreadPoolExecutor() as pool:
        list(pool.map(one_more, range(2)))
    assert document.get().get("x") == 2


def test_a_transaction_whose_body_raises_writes_nothing(db: Client) -> None:
    document = db.document("c/a")

    @firestore.transactional  # type: ignore[untyped-decorator]  # as above
    def body(transaction: Any) -> None:
        document.get(transaction=transaction)
        transaction.set(document, {"x": 1})
        raise LookupError

    with pytest.raises(LookupError):
        body(db.transaction())
    assert not document.get().exists


def test_a_read_only_transaction_reads_one_moment_and_cannot_write(db: Client) -> None:
    document = db.document("c/a")
    document.set({"x": 1})

    @firestore.transactional  # type: ignore[untyped-decorator]  # as above
    def body(transaction: Any) -> list[int]:
        first = document.get(transaction=transaction).get("x")
        document.set({"x": 2})
        return [first, *(one.get("x") for one in transaction.get(db.collection("c").order_by("x")))]

    assert body(db.transaction(read_only=True)) == [1, 1]

    @firestore.transactional  # type: ignore[untyped-decorator]  # as above
    def writing(transaction: Any) -> None:
        transaction.set(document, {"x": 3})

    with pytest.raises(ValueError, match="read-only"):
        writing(db.transaction(read_only=True))


def test_the_past_can_be_read(db: Client) -> None:
    document = db.document("c/a")
    then = document.set({"x": 1}).update_time
    document.set({"x": 2})
    assert document.get(read_time=then).get("x") == 1
    assert [one.get("x") for one in db.collection("c").get(read_time=then)] == [1]


# --- queries


@pytest.mark.parametrize(("field", "operator", "value", "found"), OPERATORS)
def test_each_operator_finds_what_it_says(people: Any, field: str, operator: str, value: Any, found: str) -> None:
    assert ids(people.where(filter=where(field, operator, value))) == found


def test_conditions_are_joined_by_and_and_or(people: Any) -> None:
    both = And([where("city", "==", "London"), where("born", ">", 1900)])
    assert ids(people.where(filter=both)) == "alan"
    assert ids(people.where(filter=Or([both, where("city", "==", "Erlangen")])).order_by("born")) == "emmy alan"
    several = people.where(filter=where("born", ">", 1850)).where(filter=where("city", "<", "New York"))
    assert ids(several) == "emmy alan"


def test_a_result_is_ordered_and_cut(people: Any) -> None:
    by_year = people.order_by("born")
    assert ids(people.order_by("city").order_by("born", direction=DESCENDING)) == "emmy alan ada grace"
    assert ids(by_year.limit(2)) == "ada emmy"
    assert ids(by_year.offset(1).limit(2)) == "emmy grace"
    assert ids(by_year.start_at({"born": 1882}).end_before({"born": 1912})) == "emmy grace"
    assert ids(by_year.start_after({"born": 1882}).end_at({"born": 1912})) == "grace alan"
    assert ids(people.order_by("city").start_after(people.document("alan").get())) == "grace"
    assert ids(by_year.limit_to_last(2)) == "grace alan"  # last: this client turns the order of `by_year` itself


def test_only_the_selected_fields_are_read(people: Any) -> None:
    [found] = people.where(filter=where("born", "==", 1815)).select(["city"]).get()
    assert found.to_dict() == {"city": "London"}


def test_a_collection_group_is_every_collection_of_that_name(db: Client) -> None:
    fill(db.collection("c"), {"1": {"x": 1}})
    fill(db.collection("d/1/c"), {"2": {"x": 2}})
    assert ids(db.collection_group("c").order_by("x", direction=DESCENDING)) == "2 1"


def test_documents_are_counted_summed_up_and_averaged(db: Client) -> None:
    collection = fill(db.collection("c"), {"a": {"x": 1}, "b": {"x": 2.5}, "c": {"x": "text"}})
    query = collection.count(alias="count")
    query.sum("x", alias="sum")
    query.avg("x", alias="average")
    [found] = query.get()
    assert {one.alias: one.value for one in found} == {"count": 3, "sum": 3.5, "average": 1.75}


def test_the_partitions_of_a_collection_group_together_are_all_of_it(db: Client, socket_backend: Backend) -> None:
    documents: dict[str, dict[str, Any]] = {f"d{number}": {} for number in range(300)}
    fill(db.collection("a/1/c"), documents)
    if socket_backend.is_official:
        with pytest.raises(exceptions.MethodNotImplemented):
            list(db.collection_group("c").get_partitions(4))
        return
    found = [one.id for part in db.collection_group("c").get_partitions(4) for one in part.query().get()]
    assert sorted(found) == sorted(documents)


def test_the_nearest_vectors_are_found(db: Client) -> None:
    collection = fill(db.collection("c"), {"near": {"v": Vector([1.0, 1.0])}, "far": {"v": Vector([9.0, 9.0])}})
    query = collection.find_nearest("v", Vector([1.0, 2.0]), limit=5, distance_measure=DistanceMeasure.EUCLIDEAN)
    assert ids(query) == "near far"


def test_an_explained_query_tells_what_it_read(db: Client, socket_backend: Backend) -> None:
    collection = fill(db.collection("c"), {"a": {"x": 1}})
    if socket_backend.is_official:
        with pytest.raises(QueryExplainError):
            collection.get(explain_options=ExplainOptions(analyze=True))
        return
    result = collection.get(explain_options=ExplainOptions(analyze=True))
    assert [one.id for one in result] == ["a"]
    assert result.get_explain_metrics().execution_stats.results_returned == 1


# --- bad input


def test_bad_input_is_refused_with_its_code(db: Client) -> None:
    collection = db.collection("c")
    with pytest.raises(exceptions.InvalidArgument):
        collection.document("a").set({"text": "x" * 1024 * 1024})
    with pytest.raises(exceptions.InvalidArgument):
        collection.document("__reserved__").set({})
    with pytest.raises(exceptions.InvalidArgument):
        collection.document("a").set({"__reserved__": 1})
    with pytest.raises(exceptions.InvalidArgument):
        collection.where(filter=where("x", "in", list(range(31)))).get()
    assert ids(collection) == ""
