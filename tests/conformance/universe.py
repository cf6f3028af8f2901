"""The small universe from which random cases are drawn: few names, so that operations meet; every kind of value.

Values come from a fixed list for the same reason. It holds each type's edges, and numbers that are equal in one type
and different in another, or equal only after rounding.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.conformance.operations import (
    Aggregate,
    BatchGet,
    BatchWrite,
    Case,
    Change,
    Commit,
    Condition,
    Cut,
    Either,
    Every,
    Field,
    Get,
    Guard,
    Here,
    ListCollections,
    ListDocuments,
    Put,
    Query,
    Read,
    Reads,
    Remove,
    Transaction,
    Written,
)
from tests.conformance.wire import Geo, Plain, Stamp, Vector

INF = float("inf")
NAN = float("nan")

PATHS = (
    "c/a",
    "c/b",
    "c/é",
    "c/__id7__",
    "c/10",
    "c/a/s/1",
    "c/b/s/2",
    "c/none/s/3",
    "c/a/c/a",
    "d/a",
    "s/0",
)
PARENTS = ("", "", "", "c/a", "c/none", "c/b")
COLLECTIONS = ("c", "c", "c", "s", "d", "none", "")
NUMBERS: tuple[Plain, ...] = (
    *(0, 1, -1, 2, 3, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)),
    *(0.0, -0.0, 1.0, 1.5, -1.0, 1e-320, 2.0**53, 2.0**63, -(2.0**63), 1e308, 0.1, INF, -INF, NAN),
)
SCALARS: tuple[Plain, ...] = (
    None,
    False,
    True,
    *NUMBERS,
    *("", "a", "b", "ab", "é", "\x00", "a\x00", "\uffff", "\U0001f600", "z" * 300),
    *(b"", b"\x00", b"a", b"\xff"),
    *(Stamp(0), Stamp(0, 1000), Stamp(-1, 999_999_000), Stamp(1_000_000_000, 123_456_789), Stamp(253_402_300_799)),
    *(Geo(0.0, 0.0), Geo(0.0, 1.0), Geo(-90.0, 180.0), Geo(1.0, -1.0)),
    *(Here("c/a"), Here("c/b"), Here("c/a/s/1"), Here("c/__id7__"), Here("d/a")),
)
COMPOUNDS: tuple[Plain, ...] = (
    *([], [1], [1.0], [1, 2], [None], ["a", 1], [NAN], [{"k": 1}], [{"k": [1, 2]}], [-0.0, 0]),
    *({}, {"k": 1}, {"k": 1.0}, {"k": 2}, {"k": {"z": 1}}, {"k": None}, {"l": 0}, {"k": [1]}, {"k": 1, "l": "a"}),
    *(Vector((1.0,)), Vector((0.5, 2.0)), Vector((0.5, 3.0))),
)
BAD: tuple[Plain, ...] = (
    *([[1]], {"__x__": 1}, {"": 1}, Geo(91.0, 0.0), Stamp(2**40), {"__type__": "__vector__", "value": [1]}),
)
FIELDS = ("x", "x", "y", "m", "a.b")
FIELD_PATHS = ("x", "x", "x", "y", "y", "m", "m.k", "m.l", "m.k.z", "`a.b`", "none")
BAD_PATHS = ("a..b", "", "__x__")

# Most draws come from plain lists: a strategy that builds values is many times slower than one that picks them.
scalars = st.sampled_from(SCALARS)
numbers = st.sampled_from(NUMBERS)
values: st.SearchStrategy[Plain] = st.one_of(
    numbers, scalars, st.sampled_from(COMPOUNDS), st.integers(-3, 3), st.sampled_from(("a", "b", None))
)
elements = st.sampled_from([item for item in (*SCALARS, *COMPOUNDS) if not isinstance(item, list | Vector)])
field_paths = st.sampled_from(FIELD_PATHS)
paths = st.sampled_from(PATHS)
Draw = Any
"""Hypothesis's draw function."""


def _rarely(draw: Draw, one_in: int) -> bool:
    """True once in so many draws. The simplest draw is the common one, so what fails shrinks towards it."""
    return bool(draw(st.integers(0, one_in - 1)) == one_in - 1)


def _some(draw: Draw, strategy: st.SearchStrategy[Any], least: int, most: int) -> tuple[Any, ...]:
    return tuple(draw(strategy) for _ in range(draw(st.integers(least, most))))


# --- writes


def _data(draw: Draw) -> dict[str, Plain]:
    data = {draw(st.sampled_from(FIELDS)): draw(values) for _ in range(draw(st.integers(0, 3)))}
    if _rarely(draw, 60):
        data["x"] = draw(st.sampled_from(BAD))
    return data


def _change(draw: Draw) -> Change:
    path = draw(field_paths) if not _rarely(draw, 60) else draw(st.sampled_from(BAD_PATHS))
    kind = draw(st.sampled_from(("increment", "maximum", "minimum", "append", "remove", "server_time")))
    if kind in ("append", "remove"):
        return Change(kind, path, list(_some(draw, elements, 0, 3)))
    if kind == "server_time":
        return Change(kind, path)
    return Change(kind, path, draw(numbers) if not _rarely(draw, 40) else draw(scalars))


GUARDS = (*(Guard.NONE,) * 10, *Guard)


def _write(draw: Draw) -> Written:
    path = draw(paths)
    guard = draw(st.sampled_from(GUARDS))
    if _rarely(draw, 6):
        return Remove(path, guard)
    mask = None
    if _rarely(draw, 2):
        mask = _some(draw, field_paths, 0, 3)
        if _rarely(draw, 60):
            mask += (draw(st.sampled_from(BAD_PATHS)),)
    changes = tuple(_change(draw) for _ in range(draw(st.sampled_from((0, 0, 0, 1, 1, 2)))))
    return Put(path, _data(draw), mask, changes, guard)


def _writes(draw: Draw, most: int) -> tuple[Written, ...]:
    return tuple(_write(draw) for _ in range(draw(st.integers(1, most))))


def _seed(draw: Draw) -> Commit:
    """Documents to begin with: without them most queries would find nothing."""
    chosen = draw(st.lists(paths, min_size=3, max_size=8, unique=True))
    return Commit(tuple(Put(path, _data(draw)) for path in chosen))


# --- reads

COMPARISONS = ("==", "==", "<", "<=", ">", ">=", "!=", "in", "not-in", "array-contains", "array-contains-any")
UNARY = ("is-null", "is-nan", "is-not-null", "is-not-nan")


def _field(draw: Draw) -> Field:
    if _rarely(draw, 10):
        operand: Plain = draw(st.sampled_from((Here("c/a"), Here("c/b"), Here("c/a/s/1"), Here("d/a"), "a", None)))
        operator = draw(st.sampled_from(COMPARISONS))
        return Field("__name__", operator, [operand] if operator.endswith(("in", "any")) else operand)
    path = draw(field_paths) if not _rarely(draw, 80) else draw(st.sampled_from(BAD_PATHS))
    if _rarely(draw, 8):
        return Field(path, draw(st.sampled_from(UNARY)))
    operator = draw(st.sampled_from(COMPARISONS))
    if operator in ("in", "not-in", "array-contains-any"):
        return Field(path, operator, list(_some(draw, values, 1, 4)) if not _rarely(draw, 40) else draw(values))
    return Field(path, operator, draw(values))


def _condition(draw: Draw, depth: int = 0) -> Condition:
    shape = draw(st.sampled_from(("field", "field", "field", "every", "every", "either"))) if depth < 2 else "field"
    if shape == "field":
        return _field(draw)
    parts = tuple(_condition(draw, depth + 1) for _ in range(draw(st.integers(0 if _rarely(draw, 20) else 1, 3))))
    return Every(parts) if shape == "every" else Either(parts)


def _order(draw: Draw) -> tuple[str, ...]:
    order = [f"{draw(st.sampled_from(('', '-')))}{path}" for path in _some(draw, field_paths, 0, 2)]
    if _rarely(draw, 4):
        order.append(draw(st.sampled_from(("__name__", "-__name__"))))
    return tuple(order)


def _cut(draw: Draw, order: tuple[str, ...]) -> Cut | None:
    if not order or not _rarely(draw, 3):
        return None
    entries = [
        draw(values) if not path.endswith("__name__") else Here(draw(paths)) if not _rarely(draw, 10) else draw(values)
        for path in order[: draw(st.integers(0 if _rarely(draw, 10) else 1, len(order)))]
    ]
    if _rarely(draw, 40):
        entries.append(draw(values))
    return Cut(tuple(entries), draw(st.booleans()))


def _query(draw: Draw, *, plain: bool = False) -> Query:
    order = _order(draw)
    return Query(
        collection=draw(st.sampled_from(COLLECTIONS)),
        group=_rarely(draw, 4),
        parent=draw(st.sampled_from(PARENTS)),
        condition=_condition(draw) if not _rarely(draw, 4) else None,
        order=order,
        start=_cut(draw, order),
        end=_cut(draw, order),
        limit=draw(st.sampled_from((None, None, None, 1, 2, 3, 0))) if not _rarely(draw, 60) else -1,
        offset=draw(st.sampled_from((None, None, None, 1, 2))) if not _rarely(draw, 60) else -1,
        select=_some(draw, field_paths, 0, 2) if not plain and _rarely(draw, 6) else None,
        at=draw(st.integers(0, 9)) if not plain and _rarely(draw, 8) else None,
    )


def _aggregate(draw: Draw) -> Aggregate:
    kinds = _some(draw, st.sampled_from(AGGREGATIONS), 1, 3)
    return Aggregate(_query(draw, plain=True), kinds)


AGGREGATIONS = (("count", ""), ("count", ""), *((kind, path) for kind in ("sum", "avg") for path in ("x", "y", "m.k")))


def _mask(draw: Draw) -> tuple[str, ...] | None:
    return _some(draw, field_paths, 0, 2) if _rarely(draw, 4) else None


def _read(draw: Draw) -> Read:
    match draw(st.sampled_from(("query",) * 6 + ("aggregate", "get", "batch get", "list", "collections"))):
        case "query":
            return _query(draw)
        case "aggregate":
            return _aggregate(draw)
        case "get":
            return Get(draw(paths), _mask(draw), draw(st.integers(0, 9)) if _rarely(draw, 3) else None)
        case "batch get":
            return BatchGet(_some(draw, paths, 0, 4), _mask(draw))
        case "list":
            return ListDocuments(
                collection=draw(st.sampled_from(COLLECTIONS)),
                parent=draw(st.sampled_from(PARENTS)),
                page_size=draw(st.integers(0, 3)),
                show_missing=draw(st.booleans()),
                mask=_mask(draw),
            )
        case _:
            return ListCollections(draw(st.sampled_from(PARENTS)))


# --- a case


@st.composite
def cases(draw: Draw) -> Case:
    steps: list[Any] = [_seed(draw)]
    for _ in range(draw(st.integers(1, 4))):
        match draw(st.sampled_from(("reads",) * 3 + ("commit",) * 3 + ("batch write", "transaction"))):
            case "commit":
                steps.append(Commit(_writes(draw, 3)))
            case "batch write":
                steps.append(BatchWrite(_writes(draw, 3)))
            case "transaction":
                steps.append(Transaction(_some(draw, paths, 0, 3), _writes(draw, 2)))
            case _:
                pass
        steps.append(Reads(tuple(_read(draw) for _ in range(draw(st.integers(1, 4))))))
    return tuple(steps)
