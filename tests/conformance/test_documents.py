"""Documents: written, read back, replaced, deleted, and the times that tell."""

from __future__ import annotations

from tests.conformance.backends import Backend, refused
from tests.conformance.wire import REQUESTS, Document, DocumentMask, delete, document, fields_of, set_, shown, stamp


async def test_a_written_document_is_read_back_with_the_commits_time(backend: Backend) -> None:
    answer = await backend.commit(set_(backend.name("c/a"), {"x": 1}))
    found = await backend.get("c/a")
    assert found.name == backend.name("c/a")
    assert shown(fields_of(found)) == shown({"x": 1})
    assert stamp(found.create_time) == stamp(found.update_time) == stamp(answer.commit_time)
    assert stamp(answer.write_results[0].update_time) == stamp(answer.commit_time)


async def test_times_have_microseconds_and_grow(backend: Backend) -> None:
    times = []
    for number in range(5):
        answer = await backend.commit(set_(backend.name("c/a"), {"x": number}))
        times.append(stamp(answer.commit_time))
    assert all(time.nanos % 1000 == 0 for time in times)
    assert times == sorted(set(times))


async def test_a_replaced_document_keeps_its_create_time_and_loses_the_old_fields(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1, "y": 2}})
    before = await backend.get("c/a")
    await backend.seed({"c/a": {"z": 3}})
    after = await backend.get("c/a")
    assert shown(fields_of(after)) == shown({"z": 3})
    assert stamp(after.create_time) == stamp(before.create_time)
    assert stamp(after.update_time) > stamp(before.update_time)


async def test_a_deleted_document_is_gone_and_written_again_starts_anew(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    before = await backend.get("c/a")
    answer = await backend.commit(delete(backend.name("c/a")))
    assert not answer.write_results[0].HasField("update_time")
    with refused("NOT_FOUND"):
        await backend.get("c/a")
    await backend.seed({"c/a": {"x": 1}})
    after = await backend.get("c/a")
    assert stamp(after.create_time) == stamp(after.update_time) > stamp(before.update_time)


async def test_an_empty_document_exists(backend: Backend) -> None:
    await backend.seed({"c/a": {}})
    assert await backend.shown("c/a") == shown({})


async def test_a_document_lives_without_its_parent(backend: Backend) -> None:
    await backend.seed({"c/a/d/b": {"x": 1}})
    assert await backend.shown("c/a/d/b") == shown({"x": 1})
    with refused("NOT_FOUND"):
        await backend.get("c/a")


async def test_deleting_a_parent_leaves_its_subcollections(backend: Backend) -> None:
    await backend.seed({"c/a": {}, "c/a/d/b": {"x": 1}})
    await backend.commit(delete(backend.name("c/a")))
    assert await backend.shown("c/a/d/b") == shown({"x": 1})


async def test_deleting_a_document_that_is_not_there_is_fine(backend: Backend) -> None:
    answer = await backend.commit(delete(backend.name("c/a")))
    assert not answer.write_results[0].HasField("update_time")


async def test_a_write_that_changes_nothing_leaves_the_update_time(backend: Backend) -> None:
    first = await backend.commit(set_(backend.name("c/a"), {"x": 1, "m": {"k": [1.5]}}))
    again = await backend.commit(set_(backend.name("c/a"), {"x": 1, "m": {"k": [1.5]}}))
    assert stamp(again.commit_time) > stamp(first.commit_time)
    assert stamp(again.write_results[0].update_time) == stamp(first.commit_time)
    assert await backend.update_time("c/a") == stamp(first.commit_time)


async def test_one_and_one_point_zero_are_different_contents(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    before = await backend.update_time("c/a")
    await backend.seed({"c/a": {"x": 1.0}})
    assert await backend.shown("c/a") == shown({"x": 1.0})
    assert await backend.update_time("c/a") > before


async def test_a_commit_of_nothing_is_fine(backend: Backend) -> None:
    answer = await backend.commit()
    assert len(answer.write_results) == 0


async def test_times_in_a_written_document_are_ignored(backend: Backend) -> None:
    written = set_(backend.name("c/a"), {"x": 1})
    written.update.create_time.seconds = 5
    written.update.update_time.seconds = 6
    answer = await backend.commit(written)
    found = await backend.get("c/a")
    assert stamp(found.create_time) == stamp(found.update_time) == stamp(answer.commit_time)


async def test_a_commit_of_six_hundred_writes_is_taken(backend: Backend) -> None:
    answer = await backend.commit(*(set_(backend.name(f"c/{number}"), {"x": number}) for number in range(600)))
    assert len(answer.write_results) == 600
    assert {stamp(result.update_time) for result in answer.write_results} == {stamp(answer.commit_time)}


async def test_a_read_with_a_mask_answers_only_those_fields(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1, "y": 2, "m": {"k": 1, "l": 2}}})
    assert shown(await backend.fields("c/a", mask=DocumentMask(field_paths=["x", "m.k", "none"]))) == shown(
        {"x": 1, "m": {"k": 1}}
    )
    assert shown(await backend.fields("c/a", mask=DocumentMask())) == shown({})


async def test_a_read_with_a_malformed_mask_is_refused(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    with refused("INVALID_ARGUMENT"):
        await backend.get("c/a", mask=DocumentMask(field_paths=["a..b"]))


# --- CreateDocument, UpdateDocument, DeleteDocument: single writes with an answer of their own


async def test_create_document_answers_the_document(backend: Backend) -> None:
    made = await _create(backend, "c", "a", {"x": 1})
    assert made.name == backend.name("c/a")
    assert shown(fields_of(made)) == shown({"x": 1})
    assert stamp(made.create_time) == stamp(made.update_time) == await backend.update_time("c/a")


async def test_create_document_refuses_one_that_exists(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    with refused("ALREADY_EXISTS"):
        await _create(backend, "c", "a", {"x": 2})
    assert await backend.shown("c/a") == shown({"x": 1})


async def test_create_document_gives_an_id_of_twenty_letters_and_digits(backend: Backend) -> None:
    made = await _create(backend, "c", "", {"x": 1})
    given = made.name.rsplit("/", 1)[-1]
    assert len(given) == 20
    assert given.isalnum()
    assert given.isascii()
    assert await backend.exists(f"c/{given}")


async def test_create_document_makes_it_below_a_document(backend: Backend) -> None:
    request = REQUESTS["CreateDocument"](
        parent=backend.name("c/a"), collection_id="d", document_id="b", document=Document()
    )
    assert (await backend.call("CreateDocument", request)).name == backend.name("c/a/d/b")


async def test_create_document_answers_by_its_mask(backend: Backend) -> None:
    request = REQUESTS["CreateDocument"](
        parent=backend.root,
        collection_id="c",
        document_id="a",
        document=document("", {"x": 1, "y": 2}),
        mask=DocumentMask(field_paths=["x"]),
    )
    assert shown(fields_of(await backend.call("CreateDocument", request))) == shown({"x": 1})
    assert await backend.shown("c/a") == shown({"x": 1, "y": 2})


async def test_create_document_refuses_bad_ids_and_a_named_document(backend: Backend) -> None:
    for collection, given in (
        ("c", "__x__"),
        ("c", "a/b"),
        ("c", "."),
        ("", "a"),
        ("c/d", "a"),
        ("__x__", "a"),
    ):
        with refused("INVALID_ARGUMENT"):
            await _create(backend, collection, given, {})
    named = REQUESTS["CreateDocument"](
        parent=backend.root, collection_id="c", document_id="a", document=document(backend.name("c/a"))
    )
    with refused("INVALID_ARGUMENT"):
        await backend.call("CreateDocument", named)


async def test_update_document_writes_one_that_is_missing(backend: Backend) -> None:
    request = REQUESTS["UpdateDocument"](document=document(backend.name("c/a"), {"x": 1}))
    answer = await backend.call("UpdateDocument", request)
    assert shown(fields_of(answer)) == shown({"x": 1})
    assert await backend.exists("c/a")


async def test_update_document_merges_by_its_update_mask_and_answers_by_its_mask(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1, "y": 2}})
    request = REQUESTS["UpdateDocument"](
        document=document(backend.name("c/a"), {"y": 3}),
        update_mask=DocumentMask(field_paths=["y"]),
        mask=DocumentMask(field_paths=["x"]),
    )
    assert shown(fields_of(await backend.call("UpdateDocument", request))) == shown({"x": 1})
    assert await backend.shown("c/a") == shown({"x": 1, "y": 3})


async def test_update_document_keeps_its_precondition(backend: Backend) -> None:
    request = REQUESTS["UpdateDocument"](document=document(backend.name("c/a"), {"x": 1}))
    request.current_document.exists = True
    with refused("NOT_FOUND"):
        await backend.call("UpdateDocument", request)


async def test_delete_document_is_fine_twice_unless_it_must_exist(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    request = REQUESTS["DeleteDocument"](name=backend.name("c/a"))
    await backend.call("DeleteDocument", request)
    await backend.call("DeleteDocument", request)
    request.current_document.exists = True
    with refused("NOT_FOUND"):
        await backend.call("DeleteDocument", request)


async def _create(backend: Backend, collection: str, given: str, data: dict[str, object]) -> Document:
    request = REQUESTS["CreateDocument"](
        parent=backend.root, collection_id=collection, document_id=given, document=document("", data)
    )
    return await backend.call("CreateDocument", request)
