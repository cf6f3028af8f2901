"""Values: every type stored as it was sent, and what can't be stored refused."""

from __future__ import annotations

import pytest

from tests.conformance.backends import Backend, refused
from tests.conformance.wire import Geo, Plain, Ref, Stamp, Unset, Vector, set_, shown

INF = float("inf")
NAN = float("nan")
BIG_STRING = 1_048_487
"""The longest string or bytes value in bytes."""


@pytest.mark.parametrize(
    "stored",
    [
        None,
        True,
        False,
        0,
        -1,
        2**53 + 1,
        2**63 - 1,
        -(2**63),
        0.0,
        -0.0,
        1.0,
        1e-320,
        INF,
        -INF,
        NAN,
        "",
        "text",
        "\U0001f600\uffff\x00\n",
        b"",
        b"\x00\xff",
        Geo(0.0, 0.0),
        Geo(-0.0, 180.0),
        Geo(90.0, -180.0),
        Stamp(0),
        Stamp(1, 123_456_000),
        Stamp(-62_135_596_800),
        Stamp(253_402_300_799, 999_999_000),
        [],
        [1, 1.0, None, "a", {"b": [2]}],
        {},
        {"a.b": 2, "é": {"`": 3, " ": 4}},
    ],
)
async def test_a_value_comes_back_as_it_was_sent(backend: Backend, stored: Plain) -> None:
    await backend.seed({"c/a": {"x": stored}})
    assert await backend.shown("c/a") == shown({"x": stored})


async def test_a_vector_comes_back_as_it_was_sent(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": Vector((1.0, -0.0, INF))}})
    assert await backend.shown("c/a") == shown({"x": {"__type__": "__vector__", "value": [1.0, -0.0, INF]}})


async def test_a_reference_may_point_to_any_project_and_to_nothing(backend: Backend) -> None:
    stored = {
        "own": backend.ref("c/none"),
        "deep": backend.ref("c/a/d/b"),
        "foreign": Ref("projects/another/databases/other/documents/c/a"),
    }
    await backend.seed({"c/a": stored})
    assert await backend.shown("c/a") == shown(stored)


async def test_a_timestamp_is_cut_to_microseconds(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": Stamp(1, 123_456_789), "y": [Stamp(-5, 999_999_999)]}})
    assert await backend.shown("c/a") == shown({"x": Stamp(1, 123_456_000), "y": [Stamp(-5, 999_999_000)]})


@pytest.mark.parametrize("name", ["a.b", "a`b", "a/b", "é😀", " ", "0", "__x", "x__", "__", "x" * 1500])
async def test_a_field_may_have_nearly_any_name(backend: Backend, name: str) -> None:
    await backend.seed({"c/a": {name: 1}})
    assert await backend.shown("c/a") == shown({name: 1})


@pytest.mark.parametrize("name", ["", "__x__", "__name__", "__type__", "__key__", "x" * 1501, "é" * 751])
async def test_a_field_name_that_is_empty_reserved_or_too_long_is_refused(backend: Backend, name: str) -> None:
    for data in ({name: 1}, {"m": {name: 1}}):
        with refused("INVALID_ARGUMENT"):
            await backend.seed({"c/a": data})


@pytest.mark.parametrize(
    "bad",
    [
        Unset(),
        [Unset()],
        {"k": Unset()},
        [[1]],
        [[]],
        {"k": [{"l": [[1]]}]},
        Stamp(253_402_300_800),
        Stamp(-62_135_596_801),
        Stamp(1, -1),
        Stamp(1, 1_000_000_000),
        Geo(90.1, 0.0),
        Geo(0.0, 180.1),
        Geo(0.0, -181.0),
        Geo(NAN, 0.0),
        Geo(0.0, INF),
        Ref(""),
        Ref("c/a"),
        Ref("projects/p/databases/(default)"),
        Ref("projects/p/databases/(default)/documents"),
        Ref("projects/p/databases/(default)/documents/c"),
        Ref("projects/p/databases/(default)/documents/c/__x__"),
        Ref("projects/p/databases/(default)/documents/c/."),
        Ref("projects/p/databases/(default)/documents/c//"),
        {"__type__": "__vector__", "value": [1]},
        {"__type__": "__vector__", "value": ["a"]},
        {"__type__": "__vector__", "value": []},
        {"__type__": "__vector__", "value": [NAN]},
        {"__type__": "__vector__", "value": 1.0},
        {"__type__": "__vector__"},
        {"__type__": "__vector__", "value": [1.0], "more": 1},
        {"__type__": "__vector__", "value": [1.0] * 2049},
        {"__type__": "other", "value": [1.0]},
        {"__type__": 1},
        [Vector((1.0,))],
    ],
    ids=lambda bad: repr(bad)[:40] if not isinstance(bad, Unset) else "unset",
)
async def test_a_value_that_cannot_be_stored_is_refused(backend: Backend, bad: Plain) -> None:
    with refused("INVALID_ARGUMENT"):
        await backend.seed({"c/a": {"x": bad}})
    assert not await backend.exists("c/a")


async def test_a_vector_has_at_most_2048_dimensions(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": Vector((1.0,) * 2048)}})
    assert len((await backend.fields("c/a"))["x"]["value"]) == 2048


@pytest.mark.parametrize("kind", ["maps", "maps and arrays"])
async def test_values_nest_twenty_levels_deep_and_no_deeper(backend: Backend, kind: str) -> None:
    await backend.seed({"c/a": {"x": _nested(kind, 20)}})
    assert await backend.shown("c/a") == shown({"x": _nested(kind, 20)})
    with refused("INVALID_ARGUMENT"):
        await backend.seed({"c/b": {"x": _nested(kind, 21)}})


@pytest.mark.parametrize("kind", ["string", "bytes"])
async def test_a_long_value_is_taken_up_to_its_limit(backend: Backend, kind: str) -> None:
    def long(length: int) -> Plain:
        return "x" * length if kind == "string" else b"x" * length

    await backend.seed({"c/a": {"x": long(BIG_STRING)}})
    assert len((await backend.fields("c/a"))["x"]) == BIG_STRING
    with refused("INVALID_ARGUMENT"):
        await backend.seed({"c/b": {"x": long(BIG_STRING + 1)}})


async def test_a_document_over_one_mebibyte_is_refused(backend: Backend) -> None:
    with refused("INVALID_ARGUMENT"):
        await backend.seed({"c/a": {"x": "x" * 524_288, "y": "y" * 524_288}})
    await backend.seed({"c/b": {"x": "x" * 700_000}})
    with refused("INVALID_ARGUMENT"):
        await backend.commit(set_(backend.name("c/b"), {"y": "y" * 700_000}, mask=["y"]))
    assert list(await backend.fields("c/b")) == ["x"]


def _nested(kind: str, levels: int) -> Plain:
    made: Plain = 1
    for level in range(levels):
        made = {"k": made} if kind == "maps" or level % 2 else [made]
    return made
