"""Field transforms: what the server computes from the field it finds."""

from __future__ import annotations

import pytest

from tests.conformance.backends import Backend, refused
from tests.conformance.wire import (
    FieldTransform,
    Plain,
    Proto,
    append_missing,
    increment,
    maximum,
    minimum,
    plain,
    remove_all,
    server_time,
    set_,
    shown,
    stamp,
    transform,
)

BIG = 2**63 - 1
SMALL = -(2**63)
INF = float("inf")
NAN = float("nan")
MISSING = object()


async def apply(backend: Backend, before: Plain, *transforms: Proto) -> tuple[str, str]:
    """The results of the transforms, and the field `x` that they leave behind."""
    await backend.seed({"c/a": {} if before is MISSING else {"x": before}})
    answer = await backend.commit(set_(backend.name("c/a"), mask=[], transforms=transforms))
    results = [plain(result) for result in answer.write_results[0].transform_results]
    return shown(results), shown((await backend.fields("c/a")).get("x", "absent"))


@pytest.mark.parametrize(
    ("before", "by", "after"),
    [
        (1, 2, 3),
        (1, 2.5, 3.5),
        (1.5, 2, 3.5),
        (1, 0.0, 1.0),
        (BIG, 1, BIG),
        (SMALL, -1, SMALL),
        (BIG, 1.0, 2.0**63),
        (2**53, 1.0, 2.0**53),
        (NAN, 1, NAN),
        (1, NAN, NAN),
        (INF, -INF, NAN),
        (1e308, 1e308, INF),
        (-0.0, 0, 0.0),
        (-0.0, -0.0, -0.0),
        (0, -0.0, 0.0),
        (MISSING, 5, 5),
        (MISSING, -0.0, -0.0),
        (None, 2, 2),
        (True, 2, 2),
        ("1", 2, 2),
        ([1], 2, 2),
        ({"a": 1}, 2, 2),
    ],
)
async def test_increment_adds_saturates_and_replaces_what_is_no_number(
    backend: Backend, before: Plain, by: Plain, after: Plain
) -> None:
    assert await apply(backend, before, increment("x", by)) == (shown([after]), shown(after))


@pytest.mark.parametrize(
    ("before", "with_", "largest", "smallest"),
    [
        (1, 2, 2, 1),
        (2, 1.5, 2, 1.5),
        (1, 1.0, 1, 1),
        (1.0, 1, 1.0, 1.0),
        (0, -0.0, 0, 0),
        (-0.0, 0, -0.0, -0.0),
        (0.0, -0.0, 0.0, 0.0),
        (-0.0, 0.0, -0.0, -0.0),
        (NAN, 1, NAN, NAN),
        (1, NAN, NAN, NAN),
        (BIG, 9.3e18, 9.3e18, BIG),
        (2**53 + 1, 2.0**53, 2**53 + 1, 2.0**53),
        (INF, 1, INF, 1),
        (MISSING, 5.0, 5.0, 5.0),
        (None, 5, 5, 5),
        ("9", 5, 5, 5),
        (True, 0, 0, 0),
    ],
)
async def test_maximum_and_minimum_compare_exactly_and_keep_the_stored_of_two_equals(
    backend: Backend, before: Plain, with_: Plain, largest: Plain, smallest: Plain
) -> None:
    assert await apply(backend, before, maximum("x", with_)) == (shown([largest]), shown(largest))
    assert await apply(backend, before, minimum("x", with_)) == (shown([smallest]), shown(smallest))


@pytest.mark.parametrize("operand", ["1", None, True, [1], {"a": 1}])
async def test_a_numeric_transform_takes_only_numbers(backend: Backend, operand: Plain) -> None:
    for made in (increment("x", operand), maximum("x", operand), minimum("x", operand)):
        with refused("INVALID_ARGUMENT"):
            await apply(backend, 1, made)


@pytest.mark.parametrize(
    ("before", "items", "after"),
    [
        ([1, 2], [2, 3, 3], [1, 2, 3]),
        ([1], [1.0], [1]),
        ([1.0], [1], [1.0]),
        ([0], [-0.0, 0.0], [0]),
        ([NAN], [NAN], [NAN]),
        ([None], [None, "a"], [None, "a"]),
        ([{"a": 1}], [{"a": 1.0}, {"a": 2}], [{"a": 1}, {"a": 2}]),
        ([1, 1], [2], [1, 1, 2]),
        ([1], [], [1]),
        ([1], [{"a": [1]}], [1, {"a": [1]}]),
        (MISSING, [1, 1.0, True], [1, True]),
        (MISSING, [], []),
        (5, [1], [1]),
        (None, [], []),
        ({"a": 1}, [1], [1]),
    ],
)
async def test_append_adds_what_is_not_there_by_value(
    backend: Backend, before: Plain, items: list[Plain], after: Plain
) -> None:
    assert await apply(backend, before, append_missing("x", *items)) == (shown([None]), shown(after))


@pytest.mark.parametrize(
    ("before", "items", "after"),
    [
        ([1, 2, 1, 1.0, 3], [1], [2, 3]),
        ([1, 2], [1.0], [2]),
        ([0, 0.0, -0.0, 1], [-0.0], [1]),
        ([NAN, 1], [NAN], [1]),
        ([None, 1], [None], [1]),
        ([{"a": 1}, {"a": 1.0}, {"a": 2}], [{"a": 1}], [{"a": 2}]),
        ([1], [7], [1]),
        ([1], [], [1]),
        (MISSING, [1], []),
        (5, [1], []),
        (None, [], []),
    ],
)
async def test_remove_takes_every_equal_element_out(
    backend: Backend, before: Plain, items: list[Plain], after: Plain
) -> None:
    assert await apply(backend, before, remove_all("x", *items)) == (shown([None]), shown(after))


async def test_server_time_is_one_for_the_commit_in_milliseconds(backend: Backend) -> None:
    answer = await backend.commit(
        set_(backend.name("c/a"), {"x": 1}, transforms=[server_time("t"), server_time("m.u")]),
        set_(backend.name("c/b"), transforms=[server_time("t")]),
    )
    first, second = await backend.fields("c/a"), await backend.fields("c/b")
    assert first["t"] == first["m"]["u"] == second["t"]
    assert first["t"].nanos % 1_000_000 == 0
    assert first["t"] <= stamp(answer.commit_time)
    assert [plain(result) for result in answer.write_results[0].transform_results] == [first["t"], first["t"]]


async def test_transforms_follow_the_write_they_come_with(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1, "y": 2}})
    await backend.commit(set_(backend.name("c/a"), {"x": 10}, transforms=[increment("x", 1), increment("z", 1)]))
    assert await backend.shown("c/a") == shown({"x": 11, "z": 1})
    await backend.commit(set_(backend.name("c/a"), {"x": 20}, mask=["x", "z"], transforms=[increment("x", 1)]))
    assert await backend.shown("c/a") == shown({"x": 21})


async def test_several_transforms_of_one_field_apply_in_order(backend: Backend) -> None:
    assert await apply(backend, 1, increment("x", 1), increment("x", 1.5), maximum("x", 2)) == (
        shown([2, 3.5, 3.5]),
        shown(3.5),
    )


async def test_a_transform_reaches_a_nested_field_and_makes_its_way(backend: Backend) -> None:
    assert (await apply(backend, {"k": 1}, increment("x.k", 1)))[1] == shown({"k": 2})
    assert (await apply(backend, {}, increment("x.k.z", 1)))[1] == shown({"k": {"z": 1}})
    assert (await apply(backend, 5, increment("x.k", 1)))[1] == shown({"k": 1})


async def test_a_field_and_a_part_of_it_are_not_both_transformed(backend: Backend) -> None:
    with refused("INVALID_ARGUMENT"):
        await apply(backend, 1, increment("x", 1), increment("x.k", 1))


async def test_a_transform_that_changes_nothing_leaves_the_update_time(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1, "l": [1]}})
    before = await backend.update_time("c/a")
    await backend.commit(
        set_(backend.name("c/a"), mask=[], transforms=[increment("x", 0), append_missing("l", 1.0), maximum("x", 0)])
    )
    assert await backend.update_time("c/a") == before


async def test_a_transform_creates_a_missing_document_unless_it_must_exist(backend: Backend) -> None:
    await backend.commit(set_(backend.name("c/a"), mask=[], transforms=[increment("x", 1)]))
    assert await backend.shown("c/a") == shown({"x": 1})
    with refused("NOT_FOUND"):
        await backend.commit(set_(backend.name("c/b"), mask=[], transforms=[increment("x", 1)], exists=True))


async def test_a_transform_may_be_a_write_of_its_own(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    answer = await backend.commit(
        transform(backend.name("c/a"), increment("x", 1)), transform(backend.name("c/b"), increment("x", 1))
    )
    assert [plain(result.transform_results[0]) for result in answer.write_results] == [2, 1]
    assert await backend.shown("c/a") == shown({"x": 2})
    assert await backend.shown("c/b") == shown({"x": 1})
    with refused("NOT_FOUND"):
        await backend.commit(transform(backend.name("c/none"), increment("x", 1), exists=True))


async def test_a_transform_write_needs_transforms_and_takes_no_mask(backend: Backend) -> None:
    masked = transform(backend.name("c/a"), increment("x", 1))
    masked.update_mask.field_paths.append("x")
    for write in (transform(backend.name("c/a")), masked):
        with refused("INVALID_ARGUMENT"):
            await backend.commit(write)


async def test_a_transform_of_no_kind_is_refused(backend: Backend) -> None:
    for made in (FieldTransform(field_path="x"), FieldTransform(field_path="x", set_to_server_value=0)):
        with refused("INVALID_ARGUMENT"):
            await apply(backend, 1, made)


async def test_a_transform_of_a_reserved_field_is_refused(backend: Backend) -> None:
    with refused("INVALID_ARGUMENT"):
        await apply(backend, 1, increment("__x__", 1))


async def test_racing_increments_all_count(backend: Backend) -> None:
    import asyncio

    one_more = set_(backend.name("c/a"), mask=[], transforms=[increment("x", 1)])
    await asyncio.gather(*(backend.commit(one_more) for _ in range(20)))
    assert await backend.shown("c/a") == shown({"x": 20})
