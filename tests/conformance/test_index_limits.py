"""Around 1,500 bytes: what an index keeps of a long value, and what requests may not hold.

An index cuts a value by a size of its own. Two values that differ only behind the cut tie, and go by name.
"""

from __future__ import annotations

import pytest

from tests.conformance.backends import Backend, outcome, refused
from tests.conformance.wire import (
    REQUESTS,
    DocumentMask,
    Geo,
    Plain,
    Proto,
    Stamp,
    Vector,
    cursor,
    query,
    set_,
    where,
)


def s(length: int) -> str:
    return "s" * length


async def compared(backend: Backend, one: Plain, other: Plain) -> str:
    """How an order puts two values: by their names alone if it takes them for equal."""
    first, second = f"c{abs(hash(repr(one)))}", f"d{abs(hash(repr(other)))}"
    await backend.seed({f"{first}/a": {"x": one}, f"{first}/b": {"x": other}})
    await backend.seed({f"{second}/a": {"x": other}, f"{second}/b": {"x": one}})
    found = (await backend.ids(first, order=["x"]), await backend.ids(second, order=["x"]))
    return {("a b", "a b"): "=", ("a b", "b a"): "<", ("b a", "a b"): ">"}[found]


CASES: dict[str, tuple[Plain, Plain, str]] = {
    "strings, the last byte that counts": (s(1498) + "a", s(1498) + "b", "<"),
    "strings, the first that does not": (s(1499) + "a", s(1499) + "b", "="),
    "a string that is not cut and one that is": (s(1499), s(1500), "<"),
    "a character that takes the last byte": (s(1498) + "é", s(1498) + "ê", "<"),
    "the end behind such a character": (s(1498) + "é", s(1498) + "éa", "<"),
    "a character behind the last byte": (s(1499) + "é", s(1499) + "ê", "="),
    "a long character at the last byte": (s(1498) + "\U0001f600", s(1498) + "\U0001f601", "<"),
    "bytes, the last that counts": (b"s" * 1499 + b"a", b"s" * 1499 + b"b", "<"),
    "bytes, the first that does not": (b"s" * 1500 + b"a", b"s" * 1500 + b"b", "="),
    "a number for which a byte is left": ([s(1498), 3], [s(1498), 5], "<"),
    "a number for which none is left": ([s(1499), 3], [s(1499), 5], "="),
    "numbers up to the limit": ([1] * 187 + [3], [1] * 187 + [5], "<"),
    "numbers beyond it": ([1] * 188 + [3], [1] * 188 + [5], "="),
    "an array that is cut and one that ends there": ([1] * 188, [1] * 189, "<"),
    "two arrays that are cut": ([1] * 189, [1] * 190, "="),
    "a type behind the cut": ([s(1499), 1], [s(1499), "z"], "="),
    "nothing behind the cut": ([s(1499)], [s(1499), None], "<"),
    "a string cut to nothing": ([s(1498), "a"], [s(1498), "b"], "="),
    "a string cut to nothing and an empty one": ([s(1498), ""], [s(1498), "b"], "<"),
    "a geo point for which a byte is left": ([s(1498), Geo(1.0, 1.0)], [s(1498), Geo(1.0, 2.0)], "<"),
    "a time for which none is left": ([s(1499), Stamp(1)], [s(1499), Stamp(2)], "="),
    "a value in a map": ({"k": s(1496) + "a"}, {"k": s(1496) + "b"}, "<"),
    "a value in a map, cut": ({"k": s(1497) + "a"}, {"k": s(1497) + "b"}, "="),
    "the second value of a map": ({"k": s(1494), "l": 1}, {"k": s(1494), "l": 2}, "<"),
    "the second value of a map, cut": ({"k": s(1495), "l": 1}, {"k": s(1495), "l": 2}, "="),
    "the second name of a map": ({"k": s(1495), "l": 1}, {"k": s(1495), "m": 1}, "<"),
    "the second name of a map, cut": ({"k": s(1496), "l": 1}, {"k": s(1496), "m": 1}, "="),
    "a map that ends at the cut": ({"k": s(1497)}, {"k": s(1497), "l": 1}, "<"),
    "a map that ends behind it": ({"k": s(1498)}, {"k": s(1498), "l": 1}, "="),
    "a value behind a long name": ({s(1498): False}, {s(1498): True}, "<"),
    "a map in an array in a map": ({"k": [s(1494), {"z": 1}]}, {"k": [s(1494), {"z": 2}]}, "<"),
    "a map in an array in a map, cut": ({"k": [s(1495), {"z": 1}]}, {"k": [s(1495), {"z": 2}]}, "="),
    "a vector": (Vector((1.0,) * 186 + (1.0,)), Vector((1.0,) * 186 + (2.0,)), "<"),
    "a vector, cut": (Vector((1.0,) * 187 + (1.0,)), Vector((1.0,) * 187 + (2.0,)), "="),
}


@pytest.mark.parametrize("case", CASES)
async def test_an_index_cuts_values(backend: Backend, case: str) -> None:
    one, other, expected = CASES[case]
    assert await compared(backend, one, other) == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (f"c/{s(1480)}a", f"c/{s(1480)}b", "<"),
        (f"c/{s(1481)}a", f"c/{s(1481)}b", "="),
        (f"c/{s(1477)}/d/a", f"c/{s(1477)}/d/b", "<"),
        (f"c/{s(1478)}/d/a", f"c/{s(1478)}/d/b", "="),
        (f"c/{s(1479)}/d/a", f"c/{s(1479)}/e/a", "<"),
        (f"c/{s(1480)}/d/a", f"c/{s(1480)}/e/a", "="),
        (f"c/{s(1478)}/d/__id7__", f"c/{s(1478)}/d/__id8__", "<"),
        (f"c/{s(1479)}/d/__id7__", f"c/{s(1479)}/d/__id8__", "="),
        (f"c/{s(1481)}", f"c/{s(1481)}/d/a", "<"),
        (f"c/{s(1482)}", f"c/{s(1482)}/d/a", "="),
    ],
)
async def test_an_index_cuts_references(backend: Backend, one: str, other: str, expected: str) -> None:
    assert await compared(backend, backend.ref(one), backend.ref(other)) == expected


async def test_a_value_that_is_cut_equals_no_other(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": s(1600)}, "c/b": {"x": s(1499)}, "c/d": {"x": [s(1600)]}, "c/e": {"x": [s(1499)]}})
    assert await backend.ids("c", where("x", "==", s(1499))) == "b"
    assert await backend.ids("c", where("x", ">", s(1499))) == "a"
    assert await backend.ids("c", where("x", "array-contains", s(1499))) == "e"
    assert await backend.ids("c", order=["x"], start=cursor(s(1700), before=True)) == "a e d"
    assert await backend.ids("c", order=["x"], start=cursor(s(1700), before=False)) == "e d"


async def test_a_cursor_is_cut_and_refused_only_if_it_is_too_large_without_being_cut(backend: Backend) -> None:
    for taken in (s(1499), s(1600), [s(1499), 1], [1] * 187, [1] * 189, {"k": s(1600)}, b"s" * 1600):
        await backend.run(query("c", order=["x"], start=cursor(taken, before=True)))
    for too_large in (s(1498) + "é", [s(1498), 1], [1] * 188, {"k": s(1494), "l": 1}):
        with refused("INVALID_ARGUMENT"):
            await backend.run(query("c", order=["x"], start=cursor(too_large, before=True)))


TOO_LARGE: tuple[tuple[Plain, Plain], ...] = (
    (s(1499), s(1500)),
    (b"s" * 1500, b"s" * 1501),
    ([1] * 187, [1] * 188),
    ([s(1491), 1], [s(1492), 1]),
    ({"k": s(1497)}, {"k": s(1498)}),
)


@pytest.mark.parametrize("operator", ["==", "<", ">=", "!=", "in", "not-in", "array-contains", "array-contains-any"])
async def test_a_filter_compares_with_1500_bytes_at_most(backend: Backend, operator: str) -> None:
    is_listed = operator in ("in", "not-in", "array-contains-any")
    for fits, too_large in TOO_LARGE:
        if isinstance(fits, list) and (is_listed or operator == "array-contains"):
            continue  # arrays do not nest
        await backend.run(query("c", where("x", operator, [fits] if is_listed else fits)))
        with refused("INVALID_ARGUMENT") as refusals:
            await backend.run(query("c", where("x", operator, [too_large] if is_listed else too_large)))
        path = "x[*]" if operator.startswith("array") else "x"
        assert refusals[0].message == f"value for {path} is too large to be used in a query"


# --- field paths


def asked_with(path: str, backend: Backend) -> list[tuple[str, Proto]]:
    """Requests that name a field."""
    commit = REQUESTS["Commit"](database=backend.database, writes=[set_(backend.name("c/a"), {}, mask=[path])])
    queries = [query("c", where(path, "==", 1)), query("c", order=[path]), query("c", select=[path])]
    asked = [REQUESTS["RunQuery"](parent=backend.root, structured_query=one) for one in queries]
    get = REQUESTS["GetDocument"](name=backend.name("c/a"), mask=DocumentMask(field_paths=[path]))
    return [("Commit", commit), ("GetDocument", get), *(("RunQuery", one) for one in asked)]


@pytest.mark.parametrize(
    ("path", "is_taken"),
    [
        (s(1499), True),
        (s(1500), False),
        (f"{s(700)}.{s(798)}", True),
        (f"{s(700)}.{s(799)}", False),
        (f"`{s(1499)}`", True),
        (f"`{'é' * 749}`", True),
        (f"`{'é' * 750}`", False),
        (".".join("a" * 20), True),
        (".".join("a" * 21), False),
    ],
)
async def test_a_field_path_has_a_longest_form(backend: Backend, path: str, is_taken: bool) -> None:
    await backend.seed({"c/a": {}})
    for method, request in asked_with(path, backend):
        answer = await outcome(backend.call(method, request))
        assert (answer != "INVALID_ARGUMENT") == is_taken, method


async def test_the_type_of_a_vector_may_be_asked_for_and_not_written_or_shown(backend: Backend) -> None:
    await backend.seed({"c/a": {"v": Vector((1.0,)), "m": {"k": 1}}})
    assert await backend.ids("c", where("m.__type__", "==", 1)) == ""
    assert await backend.ids("c", order=["m.__type__"]) == ""
    for path in ("__type__", "`__type__`", "__type__.a", "m.__x__"):
        for asked in (query("c", where(path, "==", 1)), query("c", order=[path])):
            with refused("INVALID_ARGUMENT"):
                await backend.run(asked)
    for path in ("__type__", "m.__type__"):
        for method, request in asked_with(path, backend):
            if method != "RunQuery" or request.structured_query.HasField("select"):
                assert await outcome(backend.call(method, request)) == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    ("data", "is_taken"),
    [
        ({s(1500): 1}, True),
        ({s(1501): 1}, False),
        ({s(1498): {"b": 1}}, True),
        ({s(1499): {"b": 1}}, False),
        ({"m": {s(1400): {s(97): 1}}}, True),
        ({"m": {s(1400): {s(98): 1}}}, False),
        ({"m": [{s(1400): {s(97): 1}}]}, True),
        ({"m": [{s(1400): {s(98): 1}}]}, False),
    ],
)
async def test_the_path_of_a_stored_field_has_1500_bytes(backend: Backend, data: Plain, is_taken: bool) -> None:
    answer = await outcome(backend.commit(set_(backend.name("c/a"), data)))
    assert (answer != "INVALID_ARGUMENT") == is_taken
