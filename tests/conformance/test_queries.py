"""Queries: filters alone and together, and what they imply for the order."""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.conformance.backends import Backend, refused
from tests.conformance.query_data import DOCUMENTS, NAN, brief
from tests.conformance.wire import Filter, Proto, Ref, StructuredQuery, Unset, all_of, any_of, query, where


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
    ids=lambda item: brief(item) if isinstance(item, Filter) else None,
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
    ids=lambda item: brief(item) if isinstance(item, Filter) else None,
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
    ids=brief,
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
    ids=brief,
)
async def test_a_filter_that_means_nothing_is_refused(filled: Backend, filter_: Proto) -> None:
    with refused("INVALID_ARGUMENT"):
        await filled.ids("c", filter_)


async def test_thirty_values_are_the_most_that_in_takes(filled: Backend) -> None:
    assert await filled.ids("c", where("x", "in", list(range(2, 32)))) == "c d e"
    assert await filled.ids("c", where("tags", "array-contains-any", list(range(30)))) == "d f"
    assert await filled.ids("c", where("x", "not-in", list(range(10)))) == "i g"


async def test_equal_filters_count_once_and_similar_ones_do_not(filled: Backend) -> None:
    red = where("tags", "array-contains", "red")
    assert await filled.ids("c", all_of(red, red)) == "a b f"
    assert await filled.ids("c", any_of(*[where("x", "==", 1)] * 40)) == "a b"
    for similar in (
        all_of(where("tags", "array-contains", 1), where("tags", "array-contains", 1.0)),
        all_of(red, where("tags", "array-contains-any", ["red"])),
        any_of(*[where("x", "!=", 1)] * 2),
    ):
        with refused("INVALID_ARGUMENT"):
            await filled.ids("c", similar)


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


RED, FIRST = where("tags", "array-contains", "red"), where("x", "==", 1)


@pytest.mark.parametrize(
    ("filter_", "is_served"),
    [
        (all_of(RED, RED), True),
        (all_of(RED, FIRST, RED), True),
        (any_of(RED, all_of(RED, FIRST)), True),
        (all_of(all_of(RED, RED), FIRST), True),
        (all_of(all_of(RED, FIRST), all_of(FIRST, RED)), True),
        (all_of(any_of(RED, FIRST), any_of(FIRST, RED)), True),
        (all_of(RED, all_of(RED, FIRST)), False),
        (all_of(all_of(RED), RED), False),
        (all_of(any_of(RED), RED), False),
        (all_of(RED, any_of(RED, FIRST)), False),
        (any_of(all_of(RED, all_of(RED, FIRST)), FIRST), False),
        (all_of(RED, where("tags", "array-contains", "blue")), False),
    ],
    ids=lambda item: brief(item) if isinstance(item, Filter) else None,
)
async def test_one_array_is_looked_into_once_and_equal_filters_are_one_only_side_by_side(
    filled: Backend, filter_: Proto, is_served: bool
) -> None:
    if is_served:
        assert "a" in await filled.ids("c", filter_)
    else:
        with refused("INVALID_ARGUMENT"):
            await filled.ids("c", filter_)
