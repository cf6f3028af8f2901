"""Queries: filters alone and together, and what they imply for the order."""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.conformance.backends import Backend, refused
from tests.conformance.wire import (
    Filter,
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

NAN = float("nan")

DOCUMENTS: dict[str, dict[str, Plain]] = {
    "a": {"x": 1, "y": 1, "tags": ["red", "blue"], "m": {"k": 1}},
    "b": {"x": 1, "y": 2, "tags": ["red"], "m": {"k": 2}},
    "c": {"x": 2, "y": 1, "tags": [], "m": 5},
    "d": {"x": 2, "y": 2, "tags": [1, None, NAN, {"k": 1}], "z": 5},
    "e": {"x": 3, "tags": "red"},
    "f": {"y": 3, "tags": [1.0, "red"]},
    "g": {"x": "s", "y": "t"},
    "h": {"x": None, "y": None},
    "i": {"x": NAN},
}


@pytest_asyncio.fixture(loop_scope="session")
async def filled(backend: Backend) -> Backend:
    await backend.seed({f"c/{name}": data for name, data in DOCUMENTS.items()})
    return backend


@pytest.mark.parametrize(
    ("filter_", "found"),
    [
        (None, "a b c d e f g h i"),
        (where("x", "==", 1), "a b"),
        (where("x", "==", 7), ""),
        (where("none", "==", 1), ""),
        (where("x", ">", 1), "c d e"),
        (where("x", ">=", 1), "a b c d e"),
        (where("x", "<", 2), "a b"),
        (where("x", "<=", 2), "a b c d"),
        (where("x", ">", ""), "g"),
        (where("x", "!=", 1), "i c d e g"),
        (where("x", "in", [2, 1]), "a b c d"),
        (where("x", "in", ["s", 3]), "e g"),
        (where("x", "in", [1, 1.0, 1]), "a b"),
        (where("x", "not-in", [1, "s"]), "i c d e"),
        (where("x", "not-in", [None]), ""),
        (where("x", "not-in", [1, None]), ""),
        (where("x", "is-null"), "h"),
        (where("x", "is-nan"), "i"),
        (where("x", "is-not-null"), "i a b c d e g"),
        (where("x", "is-not-nan"), "a b c d e g"),
        (where("m.k", "==", 1), "a"),
        (where("m.k", ">", 0), "a b"),
        (where("`m`.k", "==", 2), "b"),
        (where("m", "==", {"k": 1.0}), "a"),
        (where("tags", "array-contains", "red"), "a b f"),
        (where("tags", "array-contains", 1), "d f"),
        (where("tags", "array-contains", {"k": 1}), "d"),
        (where("tags", "array-contains", None), ""),
        (where("tags", "array-contains", NAN), ""),
        (where("tags", "array-contains-any", ["blue", 1]), "a d f"),
        (where("tags", "array-contains-any", [None, "blue"]), "a"),
        (where("tags", "==", ["red"]), "b"),
        (where("tags", "in", [["red"], []]), "b c"),
    ],
    ids=lambda item: _brief(item) if isinstance(item, Filter) else None,
)
async def test_a_filter_finds_what_it_says_in_its_implied_order(
    filled: Backend, filter_: Proto | None, found: str
) -> None:
    assert await filled.ids("c", filter_) == found


@pytest.mark.parametrize(
    ("filter_", "found"),
    [
        (all_of(), "a b c d e f g h i"),
        (all_of(where("x", "==", 1)), "a b"),
        (all_of(where("x", "==", 1), where("y", "==", 2)), "b"),
        (all_of(all_of(where("x", "==", 1)), where("y", "==", 1)), "a"),
        (all_of(where("x", "==", 1), where("x", "==", 2)), ""),
        (all_of(where("x", ">", 1), where("x", "<", 3)), "c d"),
        (all_of(where("x", ">", 1), where("x", "<", 1)), ""),
        (all_of(where("x", ">", 1), where("x", ">", "a")), ""),
        (all_of(where("x", "==", 1), where("y", ">", 1)), "b"),
        (all_of(where("x", "in", [1, 2]), where("y", "in", [1])), "a c"),
        (all_of(where("x", "in", [1, 2]), where("y", ">=", 1)), "a c b d"),
        (all_of(where("x", ">=", 1), where("y", ">", 1)), "b d"),
        (all_of(where("y", ">=", 1), where("x", ">=", 1)), "a b c d"),
        (all_of(where("x", "!=", 1), where("y", ">", 1)), "d"),
        (all_of(where("tags", "array-contains", "red"), where("x", ">=", 1)), "a b"),
        (all_of(where("tags", "array-contains", "red"), where("x", "in", [1, 3])), "a b"),
        (all_of(where("x", "is-not-null"), where("y", "==", 2)), "b d"),
        (all_of(where("x", "is-nan"), where("x", ">", 1)), ""),
        (any_of(where("x", "==", 1), where("y", "==", 1)), "a b c"),
        (any_of(where("x", "==", 3)), "e"),
        (any_of(where("x", ">", 2), where("y", ">", 1)), "b d"),
        (any_of(all_of(where("x", "==", 1), where("y", "==", 2)), where("x", "==", 3)), "b e"),
        (any_of(where("x", "in", [1, 2]), where("tags", "array-contains", 1)), "a b c d f"),
        (any_of(where("x", "is-null"), where("x", "==", 3)), "e h"),
        (all_of(where("y", ">=", 1), any_of(where("x", "==", 1), where("x", "==", 2))), "a c b d"),
        (
            all_of(any_of(where("x", "==", 1), where("x", "==", 2)), any_of(where("y", "==", 1), where("z", "==", 5))),
            "a c d",
        ),
    ],
    ids=lambda item: _brief(item) if isinstance(item, Filter) else None,
)
async def test_filters_combine(filled: Backend, filter_: Proto, found: str) -> None:
    assert await filled.ids("c", filter_) == found


async def test_a_filter_may_ask_for_names(filled: Backend) -> None:
    def named(operator: str, *ids: str) -> Proto:
        refs = [filled.ref(f"c/{one}") for one in ids]
        return where("__name__", operator, refs if operator in ("in", "not-in") else refs[0])

    assert await filled.ids("c", named("==", "b")) == "b"
    assert await filled.ids("c", named("==", "none")) == ""
    assert await filled.ids("c", named(">", "f")) == "g h i"
    assert await filled.ids("c", named("<=", "b")) == "a b"
    assert await filled.ids("c", named("in", "b", "a", "zz")) == "a b"
    assert await filled.ids("c", named("!=", "b")) == "a c d e f g h i"
    assert await filled.ids("c", named("not-in", "b", "c")) == "a d e f g h i"
    assert await filled.ids("c", all_of(named(">", "a"), where("x", "==", 1))) == "b"
    assert await filled.ids("c", all_of(named(">=", "b"), named("<", "d"))) == "b c"


async def test_a_name_filter_compares_whole_paths(filled: Backend) -> None:
    assert await filled.ids("c", where("__name__", ">", filled.ref("b/z"))) == "a b c d e f g h i"
    assert await filled.ids("c", where("__name__", "<", filled.ref("b/z"))) == ""
    assert await filled.ids("c", where("__name__", ">", filled.ref("c/f/d/1"))) == "g h i"
    assert await filled.ids("c", where("__name__", "==", filled.ref("d/a"))) == ""


@pytest.mark.parametrize(
    "filter_",
    [
        where("__name__", "==", "c/a"),
        where("__name__", "==", None),
        where("__name__", ">", 1),
        where("__name__", "in", ["a"]),
        where("__name__", "is-null"),
        where("__name__", "is-not-null"),
        where("__name__", "array-contains", "a"),
        where("__name__", "==", Ref("projects/another/databases/(default)/documents/c/a")),
        where("__name__", "==", Ref("c/a")),
    ],
    ids=lambda item: " ".join(str(item).split())[:60],
)
async def test_a_name_filter_takes_only_documents_of_this_database(filled: Backend, filter_: Proto) -> None:
    with refused("INVALID_ARGUMENT"):
        await filled.ids("c", filter_)


@pytest.mark.parametrize(
    "filter_",
    [
        where("x", "in", []),
        where("x", "in", 1),
        where("x", "in", list(range(31))),
        where("x", "not-in", []),
        where("x", "not-in", 1),
        where("x", "not-in", list(range(11))),
        where("x", "array-contains-any", []),
        where("x", "array-contains-any", "red"),
        where("x", "array-contains-any", list(range(31))),
        all_of(where("x", "array-contains", 1), where("y", "array-contains", 1)),
        all_of(where("x", "array-contains", 1), where("y", "array-contains-any", [1])),
        all_of(where("x", "in", [1]), where("y", "not-in", [1])),
        all_of(where("x", "array-contains-any", [1]), where("y", "not-in", [1])),
        all_of(where("x", "not-in", [1]), any_of(where("y", "==", 1), where("y", "==", 2))),
        all_of(where("x", "!=", 1), where("y", "!=", 1)),
        all_of(where("x", "!=", 1), where("x", "not-in", [2])),
        all_of(where("x", "is-not-null"), where("x", "!=", 1)),
        all_of(where("x", "is-not-nan"), where("y", "is-not-null")),
        all_of(where("x", "in", list(range(16))), where("y", "in", [1, 2])),
        any_of(),
        Filter(),
        Filter(composite_filter=StructuredQuery.CompositeFilter(filters=[where("x", "==", 1)])),
        Filter(field_filter=StructuredQuery.FieldFilter(field={"field_path": "x"}, value={"integer_value": 1})),
        Filter(unary_filter=StructuredQuery.UnaryFilter(field={"field_path": "x"})),
        where("x", "==", Unset()),
        where("a..b", "==", 1),
        where("", "==", 1),
        where("__x__", "==", 1),
        where("a b", "is-null"),
    ],
    ids=lambda item: " ".join(str(item).split())[:60],
)
async def test_a_filter_that_means_nothing_is_refused(filled: Backend, filter_: Proto) -> None:
    with refused("INVALID_ARGUMENT"):
        await filled.ids("c", filter_)


async def test_thirty_values_are_the_most_that_in_takes(filled: Backend) -> None:
    assert await filled.ids("c", where("x", "in", list(range(2, 32)))) == "c d e"
    assert await filled.ids("c", where("tags", "array-contains-any", list(range(30)))) == "d f"
    assert await filled.ids("c", where("x", "not-in", list(range(10)))) == "i g"


# --- where a query looks


async def test_a_query_sees_one_collection_and_not_what_is_below_it(backend: Backend) -> None:
    await backend.seed({"c/a": {}, "c/a/c/b": {}, "c/a/d/c": {}, "d/e": {}, "cc/f": {}})
    assert await backend.paths(query("c")) == ["c/a"]
    assert await backend.paths(query("c"), parent="c/a") == ["c/a/c/b"]
    assert await backend.paths(query("none")) == []


async def test_a_collection_group_sees_every_collection_of_that_id(backend: Backend) -> None:
    await backend.seed({"s/0": {"x": 0}, "c/a/s/1": {"x": 1}, "c/b/s/2": {"x": 2}, "c/none/s/3": {"x": 3}, "c/a": {}})
    group = query("s", group=True)
    assert await backend.paths(group) == ["c/a/s/1", "c/b/s/2", "c/none/s/3", "s/0"]
    assert await backend.paths(group, parent="c/a") == ["c/a/s/1"]
    assert await backend.paths(group, parent="c/none") == ["c/none/s/3"]
    assert await backend.paths(query("s", order=["-x"], group=True)) == ["c/none/s/3", "c/b/s/2", "c/a/s/1", "s/0"]
    assert await backend.paths(query("s", where("x", ">", 1), group=True)) == ["c/b/s/2", "c/none/s/3"]
    after = where("__name__", ">", backend.ref("c/a/s/1"))
    assert await backend.paths(query("s", after, group=True)) == ["c/b/s/2", "c/none/s/3", "s/0"]


async def test_a_query_without_a_collection_sees_all_directly_below_its_parent(backend: Backend) -> None:
    await backend.seed({"c/a": {}, "c/a/s/1": {}, "d/b": {}})
    for everything in (query(None), query("")):
        assert await backend.paths(everything) == ["c/a", "d/b"]
        assert await backend.paths(everything, parent="c/a") == ["c/a/s/1"]
    assert await backend.paths(query("", group=True)) == ["c/a", "c/a/s/1", "d/b"]


async def test_names_sort_by_segment_with_numbers_first(backend: Backend) -> None:
    ids = ["__id-5__", "__id7__", "__id10__", "10", "7", "A", "Z", "_", "a", "a-", "aa", "b", "é", "\uffff", "😀"]
    await backend.seed({f"c/{one}": {} for one in sorted(ids, key=hash)})
    assert await backend.ids("c") == " ".join(ids)


async def test_a_selector_that_names_no_one_collection_is_refused(backend: Backend) -> None:
    two = query("c")
    two.from_.add(collection_id="d")
    for bad in (two, query("c/a"), query("__x__"), query("."), query(".."), query("c/a/d")):
        with refused("INVALID_ARGUMENT"):
            await backend.run(bad)


async def test_a_parent_is_the_root_or_a_document(backend: Backend) -> None:
    for parent in ("c", "c/a/d", "c/", "c//d", "c/__x__"):
        with refused("INVALID_ARGUMENT"):
            await backend.run(query("c"), parent=parent)


async def test_the_last_answer_of_a_query_is_marked_as_such(filled: Backend) -> None:
    answers = await filled.run(query("c", where("x", "==", 1)))
    assert [answer.done for answer in answers] == [False, True]
    assert all(answer.HasField("read_time") for answer in answers)


async def test_a_query_that_finds_nothing_answers_its_read_time(backend: Backend) -> None:
    [answer] = await backend.run(query("none"))
    assert not answer.HasField("document")
    assert answer.HasField("read_time")
    assert answer.done


def _brief(item: Proto) -> str:
    return " ".join(str(item).split())[:60]


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
    ids=lambda item: _brief(item) if isinstance(item, StructuredQuery) else None,
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
