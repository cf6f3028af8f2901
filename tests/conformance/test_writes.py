"""Commits: masks, preconditions, several writes to one document, all or nothing."""

from __future__ import annotations

import pytest

from tests.conformance.backends import Backend, outcome, refused
from tests.conformance.wire import Precondition, Proto, Stamp, Write, delete, increment, set_, shown, stamp

LONG_AGO = Stamp(5)
FAR_AHEAD = Stamp(2**33)

# --- masks


async def test_a_mask_writes_its_fields_and_leaves_the_others(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1, "y": 2, "m": {"k": 1, "l": 2}}})
    await backend.commit(set_(backend.name("c/a"), {"x": 9, "y": 9, "m": {"k": 9, "l": 9}}, mask=["x", "m.k"]))
    assert await backend.shown("c/a") == shown({"x": 9, "y": 2, "m": {"k": 9, "l": 2}})


@pytest.mark.parametrize(
    ("before", "paths", "after"),
    [
        ({"x": 1, "y": 2}, ["x"], {"y": 2}),
        ({"m": {"k": 1, "l": 2}}, ["m.k"], {"m": {"l": 2}}),
        ({"m": {"k": {"z": 1}}}, ["m.k.z"], {"m": {"k": {}}}),
        ({"x": 1}, ["none"], {"x": 1}),
        ({"x": 1}, ["none.deep.er"], {"x": 1}),
        ({"x": 5}, ["x.k"], {"x": 5}),
        ({"x": {"k": 1}}, ["x", "x.k"], {}),
    ],
)
async def test_a_field_in_the_mask_but_not_in_the_document_is_deleted(
    backend: Backend, before: dict[str, object], paths: list[str], after: dict[str, object]
) -> None:
    await backend.seed({"c/a": before})
    await backend.commit(set_(backend.name("c/a"), {}, mask=paths))
    assert await backend.shown("c/a") == shown(after)


@pytest.mark.parametrize("before", [5, None, "text", [1], {}])
async def test_a_nested_field_replaces_whatever_is_in_its_way(backend: Backend, before: object) -> None:
    await backend.seed({"c/a": {"x": before}})
    await backend.commit(set_(backend.name("c/a"), {"x": {"k": {"z": 6}}}, mask=["x.k.z"]))
    assert await backend.shown("c/a") == shown({"x": {"k": {"z": 6}}})


async def test_a_mask_on_a_missing_document_creates_it(backend: Backend) -> None:
    await backend.commit(set_(backend.name("c/a"), {"x": 1, "y": 2}, mask=["x"]))
    assert await backend.shown("c/a") == shown({"x": 1})


async def test_an_empty_mask_creates_an_empty_document_and_changes_no_other(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    before = await backend.update_time("c/a")
    await backend.commit(set_(backend.name("c/a"), {"y": 1}, mask=[]), set_(backend.name("c/b"), {"y": 1}, mask=[]))
    assert await backend.shown("c/a") == shown({"x": 1})
    assert await backend.update_time("c/a") == before
    assert await backend.shown("c/b") == shown({})


async def test_a_masked_write_that_changes_nothing_leaves_the_update_time(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1, "m": {"k": 1}}})
    before = await backend.update_time("c/a")
    await backend.commit(set_(backend.name("c/a"), {"m": {"k": 1}}, mask=["m.k", "none"]))
    assert await backend.update_time("c/a") == before


async def test_quoted_paths_reach_odd_field_names(backend: Backend) -> None:
    odd = {"a.b": 1, "a b": 2, "`": 3, "\\": 4, "1": 5, "é😀": 6}
    await backend.seed({"c/a": dict.fromkeys(odd, 0)})
    paths = ["`a.b`", "`a b`", "`\\``", "`\\\\`", "`1`", "`é😀`"]
    await backend.commit(set_(backend.name("c/a"), odd, mask=paths))
    assert await backend.shown("c/a") == shown(odd)


async def test_a_repeated_or_overlapping_mask_is_taken(backend: Backend) -> None:
    await backend.commit(set_(backend.name("c/a"), {"x": {"k": 1}}, mask=["x", "x", "x.k"]))
    assert await backend.shown("c/a") == shown({"x": {"k": 1}})


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "a.",
        ".a",
        "a..b",
        "a b",
        "`a``b`",
        "`",
        "``",
        "`a",
        "a`b`",
        "1a",
        "é",
        "a-b",
        "*",
        "a/b",
        "a[0]",
    ],
)
async def test_a_malformed_field_path_is_refused(backend: Backend, path: str) -> None:
    with refused("INVALID_ARGUMENT"):
        await backend.commit(set_(backend.name("c/a"), {"a": 1}, mask=[path]))
    with refused("INVALID_ARGUMENT"):
        await backend.commit(set_(backend.name("c/a"), {"a": 1}, transforms=[increment(path, 1)]))


@pytest.mark.parametrize("path", ["__x__", "`__x__`", "a.__x__", "__type__"])
async def test_a_reserved_name_in_a_mask_is_refused(backend: Backend, path: str) -> None:
    with refused("INVALID_ARGUMENT"):
        await backend.commit(set_(backend.name("c/a"), {"a": 1}, mask=[path]))


@pytest.mark.parametrize("path", ["__x", "x__", "_", "__"])
async def test_a_name_that_only_looks_reserved_is_fine(backend: Backend, path: str) -> None:
    await backend.commit(set_(backend.name("c/a"), {path: 1}, mask=[path]))
    assert await backend.shown("c/a") == shown({path: 1})


# --- preconditions


async def test_exists_false_creates_once(backend: Backend) -> None:
    await backend.commit(set_(backend.name("c/a"), {"x": 1}, exists=False))
    with refused("ALREADY_EXISTS"):
        await backend.commit(set_(backend.name("c/a"), {"x": 2}, exists=False))
    with refused("ALREADY_EXISTS"):
        await backend.commit(delete(backend.name("c/a"), exists=False))
    assert await backend.shown("c/a") == shown({"x": 1})


async def test_exists_true_needs_the_document(backend: Backend) -> None:
    for write in (set_(backend.name("c/a"), {}, exists=True), delete(backend.name("c/a"), exists=True)):
        with refused("NOT_FOUND"):
            await backend.commit(write)
    await backend.seed({"c/a": {"x": 1}})
    await backend.commit(set_(backend.name("c/a"), {"x": 2}, exists=True))
    await backend.commit(delete(backend.name("c/a"), exists=True))
    assert not await backend.exists("c/a")


async def test_a_delete_that_needs_the_document_absent_is_fine_when_it_is(backend: Backend) -> None:
    await backend.commit(delete(backend.name("c/a"), exists=False))


async def test_the_right_update_time_lets_a_write_through_once(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    seen = await backend.update_time("c/a")
    await backend.commit(set_(backend.name("c/a"), {"x": 2}, update_time=seen))
    with refused("FAILED_PRECONDITION"):
        await backend.commit(set_(backend.name("c/a"), {"x": 3}, update_time=seen))
    with refused("FAILED_PRECONDITION"):
        await backend.commit(delete(backend.name("c/a"), update_time=seen))
    await backend.commit(delete(backend.name("c/a"), update_time=await backend.update_time("c/a")))
    assert not await backend.exists("c/a")


async def test_an_update_time_outlives_writes_that_change_nothing(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    seen = await backend.update_time("c/a")
    await backend.seed({"c/a": {"x": 1}})
    await backend.commit(set_(backend.name("c/a"), {"x": 2}, update_time=seen))
    assert await backend.shown("c/a") == shown({"x": 2})


async def test_an_update_time_on_a_missing_document_fails(backend: Backend) -> None:
    for write in (
        set_(backend.name("c/a"), {}, update_time=LONG_AGO),
        delete(backend.name("c/a"), update_time=LONG_AGO),
    ):
        with refused("FAILED_PRECONDITION"):
            await backend.commit(write)


async def test_the_update_time_of_a_deleted_document_fails(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    seen = await backend.update_time("c/a")
    await backend.commit(delete(backend.name("c/a")))
    with refused("FAILED_PRECONDITION"):
        await backend.commit(set_(backend.name("c/a"), {"x": 2}, update_time=seen))


async def test_an_update_time_from_the_future_is_refused(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    with refused("INVALID_ARGUMENT"):
        await backend.commit(set_(backend.name("c/a"), {"x": 2}, update_time=FAR_AHEAD))


async def test_an_update_time_finer_than_microseconds_is_refused(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    seen = await backend.update_time("c/a")
    with refused("INVALID_ARGUMENT"):
        await backend.commit(set_(backend.name("c/a"), {"x": 2}, update_time=Stamp(seen.seconds, seen.nanos + 1)))


async def test_an_empty_precondition_is_none(backend: Backend) -> None:
    write = set_(backend.name("c/a"), {"x": 1})
    write.current_document.CopyFrom(Precondition())
    await backend.commit(write)
    assert await backend.shown("c/a") == shown({"x": 1})


async def test_one_failed_precondition_undoes_the_whole_commit(backend: Backend) -> None:
    await backend.seed({"c/b": {"x": 1}})
    with refused("NOT_FOUND"):
        await backend.commit(
            set_(backend.name("c/a"), {"x": 1}),
            delete(backend.name("c/b")),
            set_(backend.name("c/none"), {}, exists=True),
        )
    assert not await backend.exists("c/a")
    assert await backend.shown("c/b") == shown({"x": 1})


# --- several writes to one document in one commit


async def test_writes_to_one_document_apply_in_order_and_share_a_time(backend: Backend) -> None:
    answer = await backend.commit(
        set_(backend.name("c/a"), {"x": 1}),
        set_(backend.name("c/a"), {"y": 2}, mask=["y"]),
        set_(backend.name("c/a"), {}, mask=[], transforms=[increment("x", 5)]),
    )
    assert await backend.shown("c/a") == shown({"x": 6, "y": 2})
    assert {stamp(result.update_time) for result in answer.write_results} == {stamp(answer.commit_time)}


async def test_there_and_back_in_one_commit_changes_nothing(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 4}})
    before = await backend.update_time("c/a")
    answer = await backend.commit(set_(backend.name("c/a"), {"x": 5}), set_(backend.name("c/a"), {"x": 4}))
    assert {stamp(result.update_time) for result in answer.write_results} == {before}
    assert await backend.update_time("c/a") == before


async def test_delete_and_write_in_one_commit_starts_the_document_anew(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 4}})
    answer = await backend.commit(delete(backend.name("c/a")), set_(backend.name("c/a"), {"x": 4}))
    found = await backend.get("c/a")
    assert stamp(found.create_time) == stamp(found.update_time) == stamp(answer.commit_time)


async def test_write_and_delete_in_one_commit_leaves_nothing(backend: Backend) -> None:
    answer = await backend.commit(set_(backend.name("c/a"), {"x": 4}), delete(backend.name("c/a")))
    assert not await backend.exists("c/a")
    assert [result.HasField("update_time") for result in answer.write_results] == [False, False]


KINDS = ("set", "create", "update", "set at", "delete", "delete existing", "delete absent", "delete at")
"""Every kind of write by its precondition; `at` is the update time."""

IMPOSSIBLE = {
    "set": {"create", "delete absent", "set at", "delete at"},
    "create": {"create", "delete absent", "set at", "delete at"},
    "update": {"create", "delete absent", "set at", "delete at"},
    "set at": {"create", "delete absent"},
    "delete": {"update", "delete existing", "set at", "delete at"},
    "delete existing": {"update", "delete existing", "set at", "delete at"},
    "delete absent": {"update", "delete existing", "set at", "delete at"},
    "delete at": {"update", "delete existing", "set at"},
}
"""What can't follow a write to the same document: its precondition contradicts what the first one leaves behind."""


ALONE = {
    "missing": {"update": "NOT_FOUND", "delete existing": "NOT_FOUND"}
    | dict.fromkeys(("set at", "delete at"), "FAILED_PRECONDITION"),
    "existing": dict.fromkeys(("create", "delete absent"), "ALREADY_EXISTS"),
}
"""How each is answered by itself, unless it is fine."""


@pytest.mark.parametrize("start", ["missing", "existing"])
@pytest.mark.parametrize("first", KINDS)
async def test_a_precondition_that_an_earlier_write_contradicts_is_refused_before_any_is_checked(
    backend: Backend, start: str, first: str
) -> None:
    for second in KINDS:
        path = f"c/{second}"
        seen = LONG_AGO
        if start == "existing":
            seen = stamp((await backend.commit(set_(backend.name(path), {"v": 0}))).commit_time)
        both = (_of_kind(backend, first, path, seen), _of_kind(backend, second, path, seen))
        answer = await outcome(backend.commit(*both))
        expected = "INVALID_ARGUMENT" if second in IMPOSSIBLE[first] else ALONE[start].get(first, "OK")
        assert (answer if isinstance(answer, str) else "OK") == expected, f"{first}, then {second}"


def _of_kind(backend: Backend, kind: str, path: str, seen: Stamp) -> Proto:
    name = backend.name(path)
    return {
        "set": set_(name, {"v": 1}),
        "create": set_(name, {"v": 1}, exists=False),
        "update": set_(name, {"v": 1}, exists=True),
        "set at": set_(name, {"v": 1}, update_time=seen),
        "delete": delete(name),
        "delete existing": delete(name, exists=True),
        "delete absent": delete(name, exists=False),
        "delete at": delete(name, update_time=seen),
    }[kind]


# --- malformed writes


async def test_a_write_without_an_operation_is_refused(backend: Backend) -> None:
    with refused("INVALID_ARGUMENT"):
        await backend.commit(Write())


async def test_a_delete_with_a_mask_or_transforms_is_refused(backend: Backend) -> None:
    masked = delete(backend.name("c/a"))
    masked.update_mask.field_paths.append("x")
    transformed = delete(backend.name("c/a"))
    transformed.update_transforms.append(increment("x", 1))
    for write in (masked, transformed):
        with refused("INVALID_ARGUMENT"):
            await backend.commit(write)
