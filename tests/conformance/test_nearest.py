"""Vector search: flat, every measure, thresholds, the distance as a field, and filters before it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import pytest_asyncio

from tests.conformance.backends import Backend, refused
from tests.conformance.wire import REQUESTS, Plain, Proto, Vector, cursor, fields_of, find_nearest, plain, query, where

EUCLIDEAN, COSINE, DOT_PRODUCT = 1, 2, 3
VECTORS: dict[str, tuple[float, ...]] = {
    "a": (1.0, 0.0),
    "b": (0.0, 1.0),
    "d": (2.0, 2.0),
    "e": (1.0, 2.0, 3.0),
    "h": (-1.0, 0.0),
}


def nearest(
    asked: Proto, vector: Any = (1.0, 0.0), measure: int = EUCLIDEAN, limit: int | None = 10, **more: Any
) -> Proto:
    searched = Vector(vector) if isinstance(vector, tuple) else vector
    asked.find_nearest.CopyFrom(find_nearest("v", searched, measure, limit, **more))
    return asked


@pytest_asyncio.fixture(loop_scope="session")
async def filled(backend: Backend) -> Backend:
    documents: dict[str, dict[str, Plain]] = {
        f"c/{name}": {"v": Vector(vector), "k": 2 if name == "d" else 1} for name, vector in VECTORS.items()
    }
    await backend.seed({**documents, "c/array": {"v": [1.0, 0.0]}, "c/none": {"k": 1}})
    return backend


async def found(backend: Backend, asked: Proto) -> list[tuple[str, Plain]]:
    """Ids with their distances, if they are shown."""
    documents = await backend.documents(asked)
    return [(one.name.rpartition("/")[2], fields_of(one).get("distance")) for one in documents]


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        (EUCLIDEAN, [("a", 0.0), ("b", math.sqrt(2)), ("h", 2.0), ("d", math.sqrt(5))]),
        (COSINE, [("a", 0.0), ("d", 1 - math.sqrt(0.5)), ("b", 1.0), ("h", 2.0)]),
        (DOT_PRODUCT, [("d", 2.0), ("a", 1.0), ("b", 0.0), ("h", -1.0)]),
    ],
)
async def test_the_nearest_come_first_with_their_distance(filled: Backend, measure: int, expected: Any) -> None:
    answer = await found(filled, nearest(query("c"), measure=measure, result="distance"))
    assert [name for name, _ in answer] == [name for name, _ in expected]
    assert [distance for _, distance in answer] == pytest.approx([distance for _, distance in expected])
    first = await found(filled, nearest(query("c"), measure=measure, limit=2))
    assert first == [(name, None) for name, _ in expected[:2]]


async def test_distances_are_rounded_alike_so_that_the_same_vectors_tie(backend: Backend) -> None:
    await backend.seed({"c/a": {"v": Vector((0.5, 2.0))}, "c/b": {"v": Vector((0.1, 0.2, 0.3))}})
    [(_, cosine)] = await found(backend, nearest(query("c"), (0.5, 3.0), COSINE, result="distance"))
    [(_, euclidean)] = await found(backend, nearest(query("c"), (0.7, 0.8, 0.9), EUCLIDEAN, result="distance"))
    [(_, product)] = await found(backend, nearest(query("c"), (0.7, 0.8, 0.9), DOT_PRODUCT, result="distance"))
    assert (cosine, euclidean, product) == (0.003184721463875051, 1.0392304845413265, 0.5)


@pytest.mark.parametrize(
    ("measure", "threshold", "expected"),
    [
        (EUCLIDEAN, 1.5, "a b"),
        (EUCLIDEAN, 2.0, "a b h"),
        (EUCLIDEAN, -1.0, ""),
        (COSINE, 1.0, "a b"),
        (DOT_PRODUCT, 0.0, "a b"),
        (DOT_PRODUCT, -5.0, "a b h"),
    ],
)
async def test_filters_come_before_and_a_threshold_bounds_the_distance(
    filled: Backend, measure: int, threshold: float, expected: str
) -> None:
    asked = nearest(query("c", where("k", "==", 1)), measure=measure, threshold=threshold)
    assert " ".join(name for name, _ in await found(filled, asked)) == expected


async def test_a_projection_shows_what_it_names(filled: Backend) -> None:
    for select, shown in ((["k"], {"k"}), (["k", "distance"], {"k", "distance"}), (["__name__"], set())):
        [document] = await filled.documents(nearest(query("c", select=select), limit=1, result="distance"))
        assert set(fields_of(document)) == shown


async def test_neighbours_are_counted(filled: Backend) -> None:
    request = REQUESTS["RunAggregationQuery"](parent=filled.root)
    request.structured_aggregation_query.structured_query.CopyFrom(nearest(query("c"), limit=3))
    request.structured_aggregation_query.aggregations.add(alias="n").count.SetInParent()
    [answer] = await filled.call("RunAggregationQuery", request)
    assert plain(answer.result.aggregate_fields["n"]) == 3


@pytest.mark.parametrize(
    "asked",
    [
        nearest(query("c"), limit=None),
        nearest(query("c"), limit=0),
        nearest(query("c"), limit=1001),
        nearest(query("c"), measure=0),
        nearest(query("c"), vector=()),
        nearest(query("c"), vector=(1.0,) * 2049),
        nearest(query("c"), vector=[1.0, 0.0]),
        nearest(query("c"), vector={"__type__": "__vector__", "value": [1, 0]}),
        nearest(query("c"), result="__name__"),
        nearest(query("c"), result="__x__"),
        nearest(query("c"), threshold=math.inf),
        nearest(query("c"), threshold=math.nan),
        nearest(query("c", limit=1)),
        nearest(query("c", offset=1)),
        nearest(query("c", order=["k"], start=cursor(1, before=True))),
    ],
)
async def test_a_search_that_means_nothing_is_refused(filled: Backend, asked: Proto) -> None:
    with refused("INVALID_ARGUMENT"):
        await filled.run(asked)
