"""Aggregation: count, sum and average over what a query finds."""

from __future__ import annotations

import math

import pytest
import pytest_asyncio

from tests.conformance.backends import Backend, refused
from tests.conformance.wire import REQUESTS, Plain, Proto, cursor, plain, query, shown, where

BIG = 2**63 - 1
INF = float("inf")
NAN = float("nan")


def count(alias: str = "", up_to: int | None = None) -> Proto:
    made = _Aggregation(alias=alias)
    made.count.SetInParent()
    if up_to is not None:
        made.count.up_to.value = up_to
    return made


def total(path: str, alias: str = "") -> Proto:
    return _Aggregation(alias=alias, sum=_Aggregation.Sum(field={"field_path": path}))


def average(path: str, alias: str = "") -> Proto:
    return _Aggregation(alias=alias, avg=_Aggregation.Avg(field={"field_path": path}))


_Request = REQUESTS["RunAggregationQuery"]
_Aggregation: Proto = type(_Request().structured_aggregation_query.aggregations.add())


async def aggregate(backend: Backend, structured_query: Proto, *aggregations: Proto) -> dict[str, Plain]:
    request = _Request(parent=backend.root)
    request.structured_aggregation_query.structured_query.CopyFrom(structured_query)
    request.structured_aggregation_query.aggregations.extend(aggregations)
    [answer] = await backend.call("RunAggregationQuery", request)
    assert answer.HasField("read_time")
    return {alias: plain(item) for alias, item in sorted(answer.result.aggregate_fields.items())}


@pytest_asyncio.fixture(loop_scope="session")
async def filled(backend: Backend) -> Backend:
    documents: dict[str, dict[str, Plain]] = {
        "c/a": {"x": 1, "y": 1},
        "c/b": {"x": 2, "y": 1.5},
        "c/c": {"x": 3, "y": "text"},
        "c/d": {"x": 4},
        "c/e": {"x": 5, "y": None},
    }
    await backend.seed(documents)
    return backend


@pytest.mark.parametrize(
    ("asked", "number"),
    [
        (query("c"), 5),
        (query("none"), 0),
        (query("c", where("x", ">", 2)), 3),
        (query("c", where("x", "in", [1, 4])), 2),
        (query("c", limit=2), 2),
        (query("c", limit=0), 0),
        (query("c", offset=2), 3),
        (query("c", offset=2, limit=1), 1),
        (query("c", order=["y"]), 4),
        (query("c", order=["x"], start=cursor(2, before=False)), 3),
        (query("c", order=["x"], end=cursor(2, before=False)), 2),
        (query("c", select=["x"]), 5),
        (query("c", group=True), 5),
    ],
)
async def test_count_counts_what_the_query_would_find(filled: Backend, asked: Proto, number: int) -> None:
    assert shown(await aggregate(filled, asked, count("n"))) == shown({"n": number})


async def test_count_stops_at_its_bound(filled: Backend) -> None:
    assert await aggregate(filled, query("c"), count("n", up_to=3)) == {"n": 3}
    assert await aggregate(filled, query("c"), count("n", up_to=0)) == {"n": 0}
    with refused("INVALID_ARGUMENT"):
        await aggregate(filled, query("c"), count("n", up_to=-1))


async def test_sum_and_average_take_the_numbers(filled: Backend) -> None:
    assert shown(await aggregate(filled, query("c"), total("x", "s"), average("x", "a"))) == shown({"s": 15, "a": 3.0})
    assert shown(await aggregate(filled, query("c"), total("y", "s"), average("y", "a"))) == shown(
        {"s": 2.5, "a": 1.25}
    )


async def test_sum_of_nothing_is_zero_and_its_average_is_null(filled: Backend) -> None:
    asked = (count("n"), total("none", "s"), average("none", "a"))
    assert shown(await aggregate(filled, query("c"), *asked)) == shown({"n": 0, "s": 0, "a": None})
    assert shown(await aggregate(filled, query("none"), *asked)) == shown({"n": 0, "s": 0, "a": None})


async def test_a_summed_field_leaves_documents_without_it_out_of_every_aggregation(filled: Backend) -> None:
    assert shown(await aggregate(filled, query("c"), count("n"), total("y", "y"), total("x", "x"))) == shown(
        {"n": 4, "y": 2.5, "x": 11}
    )


@pytest.mark.parametrize("group", [True, False])
async def test_summed_fields_are_ordered_by_also_over_all_collections(backend: Backend, group: bool) -> None:
    """Which shows in what an offset passes over and where a limit stops."""
    await backend.seed({"c/a": {"y": 5}, "c/b": {"y": 3}, "d/a": {"y": 1}, "e/a": {"y": "s"}, "e/b": {"x": 1}})
    asked = query("", group=group, offset=1, limit=2)
    assert shown(await aggregate(backend, asked, count("n"), total("y", "s"))) == shown({"n": 2, "s": 8})


@pytest.mark.parametrize(
    ("numbers", "sum_", "mean"),
    [
        ([1, 2], 3, 1.5),
        ([1, 2.0], 3.0, 1.5),
        ([BIG, 1], 2.0**63, 2.0**62),
        ([BIG, BIG, -BIG, -BIG, 1], 1, 0.2),
        ([2**53 + 1, 2**53 + 1], 2**54 + 2, 2.0**53),
        ([2**53, 1.0, 1.0], 2.0**53 + 2, (2.0**53 + 2) / 3),
        ([0.1, 0.2, 0.3], 0.6, 0.6 / 3),
        ([-0.0, -0.0], 0.0, 0.0),
        ([1, NAN], NAN, NAN),
        ([INF, 1], INF, INF),
        ([INF, -INF], NAN, NAN),
        ([1e308, 1e308], INF, INF),
        ([True, "1", None, [1]], 0, None),
    ],
)
async def test_sums_are_exact_where_integers_are_and_doubles_otherwise(
    backend: Backend, numbers: list[Plain], sum_: Plain, mean: Plain
) -> None:
    await backend.seed({f"c/{index}": {"x": number} for index, number in enumerate(numbers)})
    found = await aggregate(backend, query("c"), total("x", "s"), average("x", "a"))
    assert shown(found["s"]) == shown(sum_)
    if isinstance(mean, float) and math.isfinite(mean):
        assert math.isclose(found["a"], mean, rel_tol=1e-15)
    else:
        assert shown(found["a"]) == shown(mean)


async def test_aggregations_without_an_alias_are_numbered(filled: Backend) -> None:
    assert shown(await aggregate(filled, query("c"), count(), total("x", "s"), average("x"))) == shown(
        {"field_1": 5, "s": 15, "field_2": 3.0}
    )


async def test_an_alias_may_be_nearly_any_text(filled: Backend) -> None:
    assert await aggregate(filled, query("c"), count("1 a")) == {"1 a": 5}


async def test_five_aggregations_are_the_most(filled: Backend) -> None:
    assert len(await aggregate(filled, query("c"), *(count(f"n{number}") for number in range(5)))) == 5
    # Google's emulator fails without a status of its own here.
    with refused("UNKNOWN" if filled.is_official else "INVALID_ARGUMENT"):
        await aggregate(filled, query("c"), *(count(f"n{number}") for number in range(6)))


@pytest.mark.parametrize(
    "aggregations",
    [
        [],
        [_Aggregation(alias="n")],
        [count("n"), total("x", "n")],
        [count("__x__")],
        [total("a..b", "s")],
        [total("", "s")],
        [average("__name__", "s")],
    ],
    ids=["none", "no operator", "repeated alias", "reserved alias", "bad path", "empty path", "name"],
)
async def test_an_aggregation_that_means_nothing_is_refused(filled: Backend, aggregations: list[Proto]) -> None:
    with refused("INVALID_ARGUMENT"):
        await aggregate(filled, query("c"), *aggregations)


@pytest.mark.parametrize("bad", [query("c", where("x", "in", [])), query("c", limit=-1), query("c/d")])
async def test_an_aggregation_of_a_malformed_query_is_refused(filled: Backend, bad: Proto) -> None:
    with refused("INVALID_ARGUMENT"):
        await aggregate(filled, bad, count("n"))
