"""Queries: operands at the edge of what a field holds, and orders that no index has."""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.conformance.backends import Backend, refused
from tests.conformance.query_data import DOCUMENTS, NAN, brief
from tests.conformance.wire import (
    Geo,
    Plain,
    Proto,
    Ref,
    Stamp,
    StructuredQuery,
    Unset,
    Vector,
    all_of,
    any_of,
    cursor,
    fields_of,
    query,
    set_,
    where,
)


@pytest_asyncio.fixture(loop_scope="session")
async def filled(backend: Backend) -> Backend:
    await backend.seed({f"c/{name}": data for name, data in DOCUMENTS.items()})
    return backend


# --- the edges of values in queries


@pytest.mark.parametrize(
    "operand",
    [
        Geo(91.0, 0.0),
        Stamp(2**40),
        Stamp(0, -1),
        Ref("c/a"),
        Ref("projects/p/databases/(default)/documents/c"),
        {"__x__": 1},
        {"__type__": "__vector__", "value": [1]},
        Unset(),
        [Unset()],
        "x" * 1501,
        b"x" * 1501,
    ],
    ids=lambda operand: repr(operand)[:30] if not isinstance(operand, Unset) else "unset",
)
@pytest.mark.parametrize("operator", ["==", ">=", "in"])
async def test_an_operand_that_no_field_could_hold_is_refused(filled: Backend, operator: str, operand: Plain) -> None:
    with refused("INVALID_ARGUMENT"):
        await filled.ids("c", where("x", operator, [operand] if operator == "in" else operand))


async def test_an_operand_of_nearly_1500_bytes_is_taken(filled: Backend) -> None:
    assert await filled.ids("c", where("x", "==", "x" * 1499)) == ""
    assert await filled.ids("c", where("x", "<", "é" * 749)) == "g"
    assert await filled.ids("c", where("x", "<", b"x" * 1500)) == ""


async def test_a_cursor_may_be_longer(filled: Backend) -> None:
    assert await filled.ids("c", order=["x"], start=cursor("a" * 2000, before=True)) == "g"


async def test_long_values_sort_by_their_first_1500_bytes(backend: Backend) -> None:
    long = "x" * 1600
    await backend.seed({"c/1": {"x": long + "b"}, "c/2": {"x": long + "a"}, "c/3": {"x": long}, "c/4": {"x": "x"}})
    assert await backend.ids("c", order=["x"]) == "4 1 2 3"
    assert await backend.ids("c", where("x", ">", "x")) == "1 2 3"


async def test_a_time_is_compared_with_all_its_digits_unless_it_is_in_a_list(backend: Backend) -> None:
    fine = Stamp(1, 1999)
    await backend.seed({"c/a": {"x": Stamp(1, 1000), "l": [Stamp(1, 1000)]}, "c/b": {"x": Stamp(1, 2000), "l": [1]}})
    for operator, found in (("==", ""), ("!=", "a b"), ("<", "a"), ("<=", "a"), (">", "b"), (">=", "b")):
        assert await backend.ids("c", where("x", operator, fine)) == found
    assert await backend.ids("c", where("l", "array-contains", fine)) == ""
    assert await backend.ids("c", order=["x"], start=cursor(fine, before=True)) == "b"
    assert await backend.ids("c", where("x", "in", [fine])) == "a"
    assert await backend.ids("c", where("x", "not-in", [fine])) == "b"
    assert await backend.ids("c", where("l", "array-contains-any", [fine])) == "a"
    assert await backend.ids("c", where("l", "==", [fine])) == "a"


async def test_the_inside_of_a_vector_is_no_field(backend: Backend) -> None:
    await backend.seed({"c/a": {"m": Vector((1.0, 2.0))}, "c/b": {"m": {"value": [1.0]}}})
    assert await backend.ids("c", where("m.value", "is-not-null")) == "b"
    assert await backend.ids("c", where("m.value", "array-contains", 1.0)) == "b"
    assert await backend.ids("c", order=["m.value"]) == "b"
    assert [fields_of(item) for item in await backend.documents(query("c", select=["m.value"]))] == [
        {},
        {"m": {"value": [1.0]}},
    ]
    await backend.commit(set_(backend.name("c/a"), mask=["m.value"]))
    assert (await backend.fields("c/a"))["m"]["__type__"] == "__vector__"
    await backend.commit(set_(backend.name("c/a"), {"m": {"value": 1}}, mask=["m.value"]))
    assert await backend.fields("c/a") == {"m": {"value": 1}}


# --- which orders a query may have


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (query("c", order=["-__name__"]), "FAILED_PRECONDITION"),
        (query("c", order=["-__name__"], limit=1), "FAILED_PRECONDITION"),
        (query("c", order=["-__name__"], group=True), "FAILED_PRECONDITION"),
        (query("", where("x", "==", 1)), "INVALID_ARGUMENT"),
        (query("", order=["x"]), "INVALID_ARGUMENT"),
        (query("", order=["-__name__"]), "INVALID_ARGUMENT"),
    ],
    ids=lambda item: brief(item) if isinstance(item, StructuredQuery) else None,
)
async def test_an_order_that_no_index_has_is_refused(filled: Backend, asked: Proto, code: str) -> None:
    with refused(code):
        await filled.run(asked)


async def test_a_name_does_not_equal_and_another_field_compare(filled: Backend) -> None:
    positive = where("x", ">", 0)
    for named in (where("__name__", "==", filled.ref("c/a")), where("__name__", "in", [filled.ref("c/a")])):
        for order in ([], ["x"]):
            with refused("INVALID_ARGUMENT"):
                await filled.ids("c", all_of(named, positive), order=order)
        assert await filled.ids("c", all_of(named, where("x", "==", 1))) == "a"
        assert await filled.ids("c", named, order=["x"]) == "a"
        with refused("FAILED_PRECONDITION"):
            await filled.ids("c", named, order=["-__name__"])


async def test_a_name_and_another_field_may_both_be_compared(filled: Backend) -> None:
    positive = where("x", ">", 0)
    for named in (where("__name__", ">=", filled.ref("c/b")), where("__name__", "!=", filled.ref("c/a"))):
        assert await filled.ids("c", all_of(named, positive)) == "b c d e"
        assert await filled.ids("c", all_of(named, positive), order=["-x"]) == "e d c b"


async def test_a_collection_group_below_a_document_is_only_scanned_by_name(backend: Backend) -> None:
    await backend.seed({"c/a/s/1": {"x": 1}, "c/b/s/2": {"x": 1}})
    assert await backend.paths(query("s", order=["__name__"], group=True), parent="c/a") == ["c/a/s/1"]
    for asked in (query("s", where("x", "==", 1), group=True), query("s", order=["x"], group=True)):
        with refused("INVALID_ARGUMENT"):
            await backend.run(asked, parent="c/a")


async def test_a_comparison_with_null_or_nan_is_false_before_it_asks_for_an_order(filled: Backend) -> None:
    for operand in (None, NAN):
        for operator in ("<", "<=", ">", ">="):
            assert await filled.ids("c", where("x", operator, operand), order=["__name__"]) == ""
            either = any_of(where("y", "==", 1), where("x", operator, operand))
            assert await filled.ids("c", either, order=["__name__"]) == "a c"
