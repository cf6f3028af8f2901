"""Queries: order, cursors, limit, offset and projection."""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.conformance.backends import Backend, refused
from tests.conformance.wire import Plain, Proto, Unset, all_of, any_of, cursor, fields_of, query, shown, where

NAN = float("nan")
DOCUMENTS: dict[str, dict[str, Plain]] = {
    "a": {"x": 1, "y": 1, "m": {"k": 1, "l": 2}},
    "b": {"x": 1, "y": 2, "m": {"k": 0}},
    "c": {"x": 2, "y": 1},
    "d": {"x": 2, "y": 2, "z": 5},
    "e": {"x": 3},
    "f": {"y": 3},
    "g": {"x": "s", "y": "t"},
}


@pytest_asyncio.fixture(loop_scope="session")
async def filled(backend: Backend) -> Backend:
    await backend.seed({f"c/{name}": data for name, data in DOCUMENTS.items()})
    return backend


# --- order


@pytest.mark.parametrize(
    ("order", "found"),
    [
        (["x"], "a b c d e g"),
        (["-x"], "g e d c b a"),
        (["x", "-__name__"], "b a d c e g"),
        (["-x", "__name__"], "g e c d a b"),
        (["x", "y"], "a b c d g"),
        (["x", "-y"], "b a d c g"),
        (["-x", "y"], "g c d a b"),
        (["y", "x"], "a c b d g"),
        (["m.k"], "b a"),
        (["m"], "b a"),
        (["none"], ""),
        (["__name__"], "a b c d e f g"),
    ],
)
async def test_an_order_leaves_out_documents_without_its_fields(filled: Backend, order: list[str], found: str) -> None:
    assert await filled.ids("c", order=order) == found


@pytest.mark.parametrize(
    ("filter_", "order", "found"),
    [
        (where("x", ">", 1), ["-x"], "e d c"),
        (where("x", ">", 1), ["y"], "c d"),
        (where("x", ">", 0), ["-y"], "d b c a"),
        (where("x", ">", 0), ["-y", "x"], "b d a c"),
        (where("x", "==", 1), ["-x"], "b a"),
        (where("x", "==", 1), ["-__name__"], "b a"),
        (where("x", "==", 1), ["y"], "a b"),
        (where("x", "in", [1, 2]), ["-x"], "d c b a"),
        (where("x", "in", [1, 2]), ["-y", "x"], "b d a c"),
        (where("x", "!=", 1), ["y"], "c d g"),
        (all_of(where("x", ">=", 1), where("y", ">", 1)), ["-y"], "d b"),
        (any_of(where("x", "==", 1), where("y", "==", 1)), ["-y"], "b c a"),
        (any_of(where("x", "==", 1), where("y", "==", 1)), ["-__name__"], "c b a"),
    ],
)
async def test_an_order_goes_with_filters(filled: Backend, filter_: Proto, order: list[str], found: str) -> None:
    assert await filled.ids("c", filter_, order=order) == found


@pytest.mark.parametrize(
    ("filter_", "order"),
    [
        (None, ["x", "x"]),
        (None, ["x", "-x"]),
        (None, ["__name__", "x"]),
        (where("x", ">", 1), ["__name__"]),
        (where("x", "!=", 1), ["-__name__"]),
        (None, ["a..b"]),
        (None, [""]),
        (None, ["__x__"]),
    ],
)
async def test_an_order_that_means_nothing_is_refused(filled: Backend, filter_: Proto | None, order: list[str]) -> None:
    with refused("INVALID_ARGUMENT"):
        await filled.ids("c", filter_, order=order)


async def test_an_order_without_a_direction_ascends(filled: Backend) -> None:
    undirected = query("c", order=["x"])
    undirected.order_by[0].direction = 0
    assert await filled.paths(undirected) == [f"c/{one}" for one in "abcdeg"]


# --- cursors


@pytest.mark.parametrize(
    ("order", "start", "end", "found"),
    [
        (["x"], cursor(2, before=True), None, "c d e g"),
        (["x"], cursor(2, before=False), None, "e g"),
        (["x"], None, cursor(2, before=True), "a b"),
        (["x"], None, cursor(2, before=False), "a b c d"),
        (["x"], cursor(1, before=False), cursor(3, before=True), "c d"),
        (["-x"], cursor(2, before=True), None, "d c b a"),
        (["-x"], cursor(2, before=False), None, "b a"),
        (["-x"], None, cursor(2, before=True), "g e"),
        (["x", "y"], cursor(1, 2, before=True), None, "b c d g"),
        (["x", "y"], cursor(1, before=False), None, "c d g"),
        (["x", "-y"], cursor(1, 1, before=True), None, "a d c g"),
        (["x", "-y"], cursor(1, 2, before=False), cursor(2, 2, before=False), "a d"),
        (["x"], cursor(3, before=True), cursor(1, before=True), ""),
        (["x"], cursor("a", before=True), None, "g"),
        (["x"], cursor(None, before=False), None, "a b c d e g"),
        (["x"], cursor(NAN, before=True), None, "a b c d e g"),
        (["x"], cursor(1.5, before=True), None, "c d e g"),
        (["x"], cursor([1], before=True), None, ""),
        (["x"], cursor({}, before=True), None, ""),
        (["x"], cursor(before=True), None, "a b c d e g"),
        (["x"], cursor(before=False), None, ""),
        (["x"], None, cursor(before=True), ""),
        (["x"], None, cursor(before=False), "a b c d e g"),
    ],
)
async def test_a_cursor_cuts_the_order_at_a_value_of_any_type(
    filled: Backend, order: list[str], start: Proto, end: Proto, found: str
) -> None:
    assert await filled.ids("c", order=order, start=start, end=end) == found


async def test_a_cursor_names_the_document_where_the_order_does(filled: Backend) -> None:
    by_x = ["x", "__name__"]
    assert await filled.ids("c", order=by_x, start=cursor(1, filled.ref("c/b"), before=True)) == "b c d e g"
    assert await filled.ids("c", order=by_x, start=cursor(1, filled.ref("c/b"), before=False)) == "c d e g"
    assert await filled.ids("c", order=["__name__"], start=cursor(filled.ref("c/e"), before=True)) == "e f g"
    assert await filled.ids("c", order=["__name__"], end=cursor(filled.ref("c/b"), before=False)) == "a b"
    descending = ["-x", "-__name__"]
    assert await filled.ids("c", order=descending, start=cursor(2, filled.ref("c/c"), before=False)) == "b a"


async def test_a_cursor_goes_with_filters_limit_and_offset(filled: Backend) -> None:
    assert await filled.ids("c", where("x", ">=", 1), order=["x"], start=cursor(1, before=False)) == "c d e"
    assert await filled.ids("c", where("x", ">", 1), order=["x"], start=cursor(0, before=True)) == "c d e"
    assert await filled.ids("c", where("y", "==", 1), order=["x"], start=cursor(1, before=False)) == "c"
    assert await filled.ids("c", order=["x"], start=cursor(1, before=False), offset=1, limit=2) == "d e"


async def test_pages_by_cursor_meet_without_a_gap(backend: Backend) -> None:
    await backend.seed({f"c/{number:02}": {"x": number // 3} for number in range(20)})
    seen: list[str] = []
    start = None
    while page := await backend.documents(query("c", order=["x", "__name__"], start=start, limit=4)):
        seen += [backend.path(item.name) for item in page]
        start = cursor(fields_of(page[-1])["x"], backend.ref(seen[-1]), before=False)
    assert seen == [f"c/{number:02}" for number in range(20)]


@pytest.mark.parametrize(
    ("order", "start"),
    [
        ([], cursor(1, before=True)),
        (["x"], cursor(1, 2, before=True)),
        (["x"], cursor(Unset(), before=True)),
        (["__name__"], cursor("c/a", before=True)),
        (["__name__"], cursor(1, before=True)),
    ],
)
async def test_a_cursor_that_does_not_fit_the_order_is_refused(filled: Backend, order: list[str], start: Proto) -> None:
    with refused("INVALID_ARGUMENT"):
        await filled.ids("c", order=order, start=start)
    with refused("INVALID_ARGUMENT"):
        await filled.ids("c", order=order, end=start)


async def test_the_implied_order_of_an_inequality_takes_no_cursor(filled: Backend) -> None:
    with refused("INVALID_ARGUMENT"):
        await filled.ids("c", where("x", ">", 1), start=cursor(2, before=True))


# --- limit and offset


@pytest.mark.parametrize(
    ("limit", "offset", "found"),
    [
        (2, None, "a b"),
        (100, None, "a b c d e f g"),
        (0, None, ""),
        (None, 5, "f g"),
        (None, 100, ""),
        (2, 2, "c d"),
        (0, 2, ""),
    ],
)
async def test_limit_and_offset_cut_the_result(
    filled: Backend, limit: int | None, offset: int | None, found: str
) -> None:
    assert await filled.ids("c", limit=limit, offset=offset) == found


async def test_a_negative_limit_or_offset_is_refused(filled: Backend) -> None:
    with refused("INVALID_ARGUMENT"):
        await filled.ids("c", limit=-1)
    with refused("INVALID_ARGUMENT"):
        await filled.ids("c", offset=-1)


# --- projection


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ([], {}),
        (["__name__"], {}),
        (["x"], {"x": 1}),
        (["x", "x", "none"], {"x": 1}),
        (["m.k"], {"m": {"k": 1}}),
        (["m.k", "m"], {"m": {"k": 1, "l": 2}}),
        (["`m`.`l`", "y"], {"m": {"l": 2}, "y": 1}),
        (["m.none", "x.k"], {}),
    ],
)
async def test_a_projection_answers_only_those_fields(
    filled: Backend, select: list[str], expected: dict[str, Plain]
) -> None:
    [found] = await filled.documents(query("c", select=select, limit=1))
    assert shown(fields_of(found)) == shown(expected)
    assert found.HasField("create_time")
    assert found.HasField("update_time")


async def test_a_projection_of_a_malformed_path_is_refused(filled: Backend) -> None:
    for path in ("a..b", "", "__x__"):
        with refused("INVALID_ARGUMENT"):
            await filled.ids("c", select=[path])
    with refused("INVALID_ARGUMENT"):  # also where the query could not be run for another reason
        await filled.ids("c", order=["-__name__"], select=["a..b"])
