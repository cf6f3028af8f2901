"""The order of values across types, and what a filter takes to be equal, smaller or larger."""

from __future__ import annotations

from collections.abc import Callable
from operator import eq, ge, gt, le, lt, ne

import pytest
import pytest_asyncio

from tests.conformance.backends import Backend
from tests.conformance.wire import Geo, Plain, Ref, Stamp, Vector, where

INF = float("inf")
NAN = float("nan")

RUNGS: list[tuple[str, dict[str, Plain]]] = [
    # Each rung of the ladder holds equal values; the next one's are larger. A type's name ends where a digit starts.
    ("null", {"null": None}),
    ("boolean", {"false": False}),
    ("boolean", {"true": True}),
    ("nan", {"nan": NAN}),
    ("number", {"minus-inf": -INF}),
    ("number", {"int64-min": -(2**63), "int64-min-double": -(2.0**63)}),
    ("number", {"minus-one": -1, "minus-one-double": -1.0}),
    ("number", {"tiny-below": -1e-320}),
    ("number", {"zero": 0, "zero-double": 0.0, "zero-minus": -0.0}),
    ("number", {"tiny": 1e-320}),
    ("number", {"one": 1, "one-double": 1.0}),
    ("number", {"one-and-half": 1.5}),
    ("number", {"two53-less-1": 2**53 - 1, "two53-less-1-double": 2.0**53 - 1}),
    ("number", {"two53": 2**53, "two53-double": 2.0**53}),
    ("number", {"two53-plus-1": 2**53 + 1}),
    ("number", {"two53-plus-2": 2**53 + 2, "two53-plus-2-double": 2.0**53 + 2}),
    ("number", {"int64-less-1024": 2**63 - 1024, "int64-less-1024-double": 2.0**63 - 1024}),
    ("number", {"int64-max": 2**63 - 1}),
    ("number", {"int64-over": 2.0**63}),
    ("number", {"inf": INF}),
    ("timestamp", {"time-first": Stamp(-62_135_596_800)}),
    ("timestamp", {"time-before": Stamp(-1, 999_999_000)}),
    ("timestamp", {"time-epoch": Stamp(0)}),
    ("timestamp", {"time-after": Stamp(0, 1000)}),
    ("string", {"string-empty": ""}),
    ("string", {"string-nul": "\x00"}),
    ("string", {"string-nul-nul": "\x00\x00"}),
    ("string", {"string-nul-1": "\x00\x01"}),
    ("string", {"string-a": "a"}),
    ("string", {"string-a-nul": "a\x00"}),
    ("string", {"string-aa": "aa"}),
    ("string", {"string-b": "b"}),
    ("string", {"string-e-acute": "é"}),
    ("string", {"string-ffff": "\uffff"}),
    ("string", {"string-emoji": "\U0001f600"}),
    ("bytes", {"bytes-empty": b""}),
    ("bytes", {"bytes-00": b"\x00"}),
    ("bytes", {"bytes-00-ff": b"\x00\xff"}),
    ("bytes", {"bytes-01": b"\x01"}),
    ("bytes", {"bytes-ff": b"\xff"}),
    ("bytes", {"bytes-ff-00": b"\xff\x00"}),
    ("reference", {"ref-number": "c/__id-3__"}),
    ("reference", {"ref-number-7": "c/__id7__"}),
    ("reference", {"ref-number-10": "c/__id10__"}),
    ("reference", {"ref-10": "c/10"}),
    ("reference", {"ref-a": "c/a"}),
    ("reference", {"ref-a-below": "c/a/d/e"}),
    ("reference", {"ref-a-minus": "c/a-"}),
    ("reference", {"ref-b": "c/b"}),
    ("reference", {"ref-cc": "cc/a"}),
    ("geopoint", {"geo-south": Geo(-90.0, 0.0)}),
    ("geopoint", {"geo-west": Geo(0.0, -1.0)}),
    ("geopoint", {"geo-zero": Geo(0.0, 0.0)}),
    ("geopoint", {"geo-east": Geo(0.0, 1.0)}),
    ("geopoint", {"geo-north": Geo(1.0, -180.0)}),
    ("array", {"array-empty": []}),
    ("array", {"array-null": [None]}),
    ("array", {"array-null-null": [None, None]}),
    ("array", {"array-one": [1], "array-one-double": [1.0]}),
    ("array", {"array-one-null": [1, None]}),
    ("array", {"array-one-two": [1, 2]}),
    ("array", {"array-two": [2]}),
    ("array", {"array-string": [""]}),
    ("array", {"array-map": [{}]}),
    ("vector", {"vector-one-low": Vector((-1.0,))}),
    ("vector", {"vector-one": Vector((3.0,))}),
    ("vector", {"vector-two": Vector((1.0, 2.0))}),
    ("vector", {"vector-two-more": Vector((1.0, 3.0))}),
    ("map", {"map-empty": {}}),
    ("map", {"map-a-null": {"a": None}}),
    ("map", {"map-a": {"a": 1}, "map-a-double": {"a": 1.0}}),
    ("map", {"map-a-b": {"a": 1, "b": 1}}),
    ("map", {"map-a-2": {"a": 2}}),
    ("map", {"map-aa": {"aa": 0}}),
    ("map", {"map-b": {"b": 0}}),
    ("map", {"map-b-map": {"b": {"c": 0}}}),
]
ALL = [name for _, rung in RUNGS for name in sorted(rung)]


@pytest_asyncio.fixture(loop_scope="session")
async def ladder(backend: Backend) -> Backend:
    stored = {name: _resolved(backend, kind, item) for kind, rung in RUNGS for name, item in rung.items()}
    shuffled = sorted(stored, key=lambda name: name[::-1])
    await backend.seed({f"o/{name}": {"x": stored[name]} for name in shuffled})
    await backend.seed({"o/without": {"y": 1}})
    return backend


def _resolved(backend: Backend, kind: str, item: Plain) -> Plain:
    return Ref(backend.name(item)) if kind == "reference" else item


async def test_values_of_all_types_have_one_order_and_ties_go_by_name(ladder: Backend) -> None:
    assert await ladder.ids("o", order=["x"]) == " ".join(ALL)


async def test_descending_order_is_the_exact_reverse(ladder: Backend) -> None:
    assert await ladder.ids("o", order=["-x"]) == " ".join(reversed(ALL))


async def test_the_name_may_break_ties_the_other_way(ladder: Backend) -> None:
    expected = [name for _, rung in RUNGS for name in sorted(rung, reverse=True)]
    assert await ladder.ids("o", order=["x", "-__name__"]) == " ".join(expected)


@pytest.mark.parametrize("operator", ["==", "<", "<=", ">", ">=", "!=", "in", "not-in"])
async def test_filters_compare_by_the_same_order_within_a_type(ladder: Backend, operator: str) -> None:
    for index, (kind, rung) in enumerate(RUNGS):
        for item in rung.values():
            operand = _resolved(ladder, kind, item)
            found = await ladder.ids("o", where("x", operator, [operand] if operator in ("in", "not-in") else operand))
            expected = _expected(operator, index, by_name=operator in ("==", "in"))
            assert found == " ".join(expected), f"{operator} {operand!r}"


def _expected(operator: str, index: int, *, by_name: bool) -> list[str]:
    kind = RUNGS[index][0]
    compare: dict[str, Callable[[int, int], bool]] = {
        "==": eq,
        "in": eq,
        "<": lt,
        "<=": le,
        ">": gt,
        ">=": ge,
        "!=": ne,
        "not-in": ne,
    }

    def matches(other: int) -> bool:
        return compare[operator](other, index) or (kind == "nan" and operator in ("!=", "not-in"))

    if operator in ("!=", "not-in"):
        # Null is in no such result, and nothing is unequal to null: IS NOT NULL asks for that.
        rungs = [] if kind == "null" else [n for n in range(len(RUNGS)) if RUNGS[n][0] != "null" and matches(n)]
    else:
        rungs = [n for n in range(len(RUNGS)) if RUNGS[n][0] == kind and kind not in ("null", "nan") and matches(n)]
    found = [name for n in rungs for name in sorted(RUNGS[n][1])]
    return sorted(found) if by_name else found


@pytest.mark.parametrize(
    ("operator", "left_out"),
    [("is-not-null", {"null"}), ("is-not-nan", {"null", "nan"})],
)
async def test_not_null_and_not_nan_are_asked_for_by_name(ladder: Backend, operator: str, left_out: set[str]) -> None:
    assert await ladder.ids("o", where("x", operator)) == " ".join(name for name in ALL if name not in left_out)


async def test_null_and_nan_are_found_only_by_their_own_filters(ladder: Backend) -> None:
    assert await ladder.ids("o", where("x", "is-null")) == "null"
    assert await ladder.ids("o", where("x", "is-nan")) == "nan"
    for operand in (None, NAN):
        for operator in ("==", "<", "<=", ">", ">="):
            assert await ladder.ids("o", where("x", operator, operand)) == ""
        assert await ladder.ids("o", where("x", "in", [operand, 1])) == "one one-double"


async def test_minus_zero_in_a_geopoint_is_a_point_of_its_own(backend: Backend) -> None:
    await backend.seed({"o/minus": {"x": Geo(-0.0, 0.0)}, "o/plus": {"x": Geo(0.0, 0.0)}, "o/p": {"x": Geo(0.0, -0.0)}})
    assert await backend.ids("o", where("x", "==", Geo(0.0, 0.0))) == "plus"
    assert await backend.ids("o", order=["x"]) == "minus p plus"
