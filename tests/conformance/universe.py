"""The small universe from which random cases are drawn: few names, so that operations meet; every kind of value.

Values come from a fixed list for the same reason. It holds each type's edges, and numbers that are equal in one type
and different in another, or equal only after rounding.

Hypothesis draws a case as one string of bytes: a few say how many of each thing, three more seed each operation.
Drawing every part of every operation instead was thirty times slower and gave mostly copies of earlier ones; a failing
case still shrinks by whole steps and operations.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
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
    Snapshot,
    Step,
    Transaction,
    Watch,
    Written,
)
from tests.conformance.wire import Geo, Plain, Stamp, Vector

INF = float("inf")
NAN = float("nan")

IN_C = ("c/a", "c/b", "c/ab", "c/é", "c/__id7__", "c/__id10__", "c/10")
ELSEWHERE = ("c/a/s/1", "c/b/s/2", "c/none/s/3", "c/a/c/a", "d/a", "s/0")
PATHS = (*IN_C, *ELSEWHERE)
PARENTS = (*("",) * 20, "c/a", "c/a", "c/none", "c/b")
COLLECTIONS = (*("c",) * 30, *("s",) * 5, "d", "d", "none", "")
NUMBERS: tuple[Plain, ...] = (
    *(0, 1, -1, 2, 3, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)),
    *(0.0, -0.0, 1.0, 1.5, -1.0, 1e-320, 2.0**53, 2.0**63, -(2.0**63), 1e308, 0.1, INF, -INF, NAN),
)
STRINGS: tuple[Plain, ...] = ("", "a", "b", "ab", "é", "\x00", "a\x00", "\uffff", "\U0001f600", "z" * 300)
LONG: tuple[Plain, ...] = (
    *("z" * 1499, "z" * 1500, "z" * 1501, "z" * 1498 + "é", "z" * 1498 + "éa"),
    *(b"z" * 1500, b"z" * 1501),
    *(["z" * 1498, 1], ["z" * 1498, 2], ["z" * 1499, 1], ["z" * 1499], [1] * 188, [1] * 189),
    *({"k": "z" * 1497}, {"k": "z" * 1497, "l": 1}, {"k": "z" * 1494, "l": 1}, {"k": "z" * 1495, "l": 2}),
    *(Here(f"c/{'z' * 1481}"), Here(f"c/{'z' * 1481}/d/a"), Here(f"c/{'z' * 1482}")),
)
"""Around the 1,500 bytes that an index keeps of a value."""
SCALARS: tuple[Plain, ...] = (
    None,
    False,
    True,
    *NUMBERS,
    *STRINGS,
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
    *([[1]], {"__x__": 1}, Geo(91.0, 0.0), Stamp(2**40), {"__type__": "__vector__", "value": [1]}),
)
FIELDS = ("x", "y", "m", "a.b")
FIELD_PATHS = (*("x",) * 12, *("y",) * 8, *("m.k",) * 4, "m", "m", "m.l", "m.k.z", "`a.b`", "`a.b`", "none")
BAD_PATHS = ("a..b", "", "__x__")

ELEMENTS = tuple(item for item in (*SCALARS, *COMPOUNDS) if not isinstance(item, list | Vector))


class Source(Random):
    """The randomness of one operation, and the case's palette: the values that its operations have in common.

    With values from all of the universe hardly any query would find anything.
    """

    palette: tuple[Plain, ...] = ()


def _rarely(random: Source, one_in: int) -> bool:
    return random.randrange(one_in) == 0


def _any_value(random: Source) -> Plain:
    return random.choice(random.choice((NUMBERS, NUMBERS, SCALARS, COMPOUNDS)))


def _palette(random: Source) -> tuple[Plain, ...]:
    """Some neighbours of one type, and some of any."""
    neighbours = random.choice((NUMBERS, NUMBERS, NUMBERS, STRINGS, SCALARS, COMPOUNDS, LONG))
    return (*(random.choice(neighbours) for _ in range(5)), *(_any_value(random) for _ in range(3)), 1, 2)


def _value(random: Source) -> Plain:
    return random.choice(random.palette) if not _rarely(random, 6) else _any_value(random)


def _several(random: Source, make: Any, least: int, most: int) -> tuple[Any, ...]:
    return tuple(make(random) for _ in range(random.randint(least, most)))


def _field_path(random: Source) -> str:
    return random.choice(FIELD_PATHS) if not _rarely(random, 100) else random.choice(BAD_PATHS)


# --- writes


def _fields(random: Source) -> dict[str, Plain]:
    data = {name: _value(random) for name in FIELDS if not _rarely(random, 5 if name in ("x", "y") else 2)}
    if not _rarely(random, 3):
        data["m"] = {name: _value(random) for name in ("k", "l") if not _rarely(random, 3)}
    return data


def _data(random: Source, mask: tuple[str, ...] | None) -> dict[str, Plain]:
    data = _fields(random)
    # What a mask leaves out is not written, and how much of it is still checked is nobody's promise.
    if _rarely(random, 60) and (mask is None or "x" in mask):
        data["x"] = random.choice(BAD)
    return data


def _element(random: Source) -> Plain:
    item = _value(random)
    return item if not isinstance(item, list | Vector) else random.choice(ELEMENTS)


def _change(random: Source) -> Change:
    path = _field_path(random)
    kind = random.choice(("increment", "maximum", "minimum", "append", "remove", "server_time"))
    if kind in ("append", "remove"):
        return Change(kind, path, list(_several(random, _element, 0, 3)))
    if kind == "server_time":
        return Change(kind, path)
    return Change(kind, path, random.choice(NUMBERS) if not _rarely(random, 40) else random.choice(SCALARS))


def _written(random: Source) -> Written:
    path = _path(random)
    guard = random.choice(tuple(Guard)) if _rarely(random, 3) else Guard.NONE
    if _rarely(random, 6):
        return Remove(path, guard)
    mask = _several(random, _field_path, 0, 3) if _rarely(random, 2) else None
    changes = _several(random, _change, 0, 2) if _rarely(random, 2) else ()
    return Put(path, _data(random, mask), mask, changes, guard)


# --- reads

COMMON = ("==", "==", "<", "<=", "<=", ">", ">=", ">=", "in", "in", "array-contains", "array-contains-any")
COMPARISONS = (*COMMON, "!=", "not-in")
WITH_LISTS = ("in", "not-in", "array-contains-any")
UNARY = ("is-null", "is-nan", "is-not-null", "is-not-nan")
NAMES: tuple[Plain, ...] = (*(Here(path) for path in PATHS), "a", None)
LISTED = ("x", "x desc", "y, x desc", "__name__", "m.k desc, __name__ desc")
AGGREGATIONS = (("count", ""), ("count", ""), *((kind, path) for kind in ("sum", "avg") for path in ("x", "y", "m.k")))


def _name(random: Source) -> Plain:
    return random.choice(NAMES)


def _field(random: Source, *, alone: bool = True) -> Field:
    by_name = _rarely(random, 12)
    path = "__name__" if by_name else _field_path(random)
    operand = _name if by_name else _value
    # Negations are rarely valid beside another filter; they come alone, and now and then beside one anyway.
    alone = alone or _rarely(random, 8)
    if _rarely(random, 8) and not by_name:
        return Field(path, random.choice(UNARY if alone else UNARY[:2]))
    operator = random.choice(COMPARISONS if alone else COMMON)
    if operator in WITH_LISTS:
        return Field(path, operator, list(_several(random, operand, 1, 4)) if not _rarely(random, 40) else 1)
    return Field(path, operator, operand(random))


def _condition(random: Source, depth: int = 0) -> Condition:
    shape = random.choice(("field", "field", "field", "every", "either")) if depth < 2 else "field"
    if shape == "field":
        return _field(random, alone=depth == 0)
    least = 0 if _rarely(random, 20) else 1
    parts = tuple(_condition(random, depth + 1) for _ in range(random.randint(least, 3)))
    return Every(parts) if shape == "every" else Either(parts)


def _order(random: Source) -> tuple[str, ...]:
    paths = list(_several(random, _field_path, 0, 2))
    if not _rarely(random, 20):
        paths = list(dict.fromkeys(paths))
    if _rarely(random, 6):
        paths.append("__name__")
    return tuple(random.choice(("", "-")) + path for path in paths)


def _cut(random: Source, order: tuple[str, ...]) -> Cut | None:
    if not order or not _rarely(random, 3):
        return None
    length = random.randint(0 if _rarely(random, 10) else 1, len(order))
    cut = [_name(random) if path.endswith("__name__") else _value(random) for path in order[:length]]
    if _rarely(random, 40):
        cut.append(_value(random))
    return Cut(tuple(cut), random.choice((True, False)))


def _query(random: Source) -> Query:
    order = _order(random)
    group = _rarely(random, 4)
    return Query(
        collection=random.choice(COLLECTIONS),
        group=group,
        parent=random.choice(PARENTS) if not group or _rarely(random, 8) else "",
        condition=_condition(random) if not _rarely(random, 3) else None,
        order=order,
        start=_cut(random, order),
        end=_cut(random, order),
        limit=random.choice((1, 2, 3, 4, 0, -1)) if _rarely(random, 4) else None,
        offset=random.choice((0, 1, 1, 2, -1)) if _rarely(random, 8) else None,
        select=_several(random, _field_path, 0, 2) if _rarely(random, 6) else None,
        at=_at(random, 8),
    )


def _at(random: Source, one_in: int) -> int | None:
    return random.randrange(10) if _rarely(random, one_in) else None


def _mask(random: Source) -> tuple[str, ...] | None:
    return _several(random, _field_path, 0, 2) if _rarely(random, 4) else None


def _path(random: Source) -> str:
    return random.choice(random.choice((IN_C, IN_C, ELSEWHERE)))


def _read(random: Source) -> Read:
    match random.randrange(11):
        case 0:
            kinds = tuple(random.choice(AGGREGATIONS) for _ in range(random.randint(1, 3)))
            return Aggregate(replace(_query(random), select=None), kinds)
        case 1:
            return Get(_path(random), _mask(random), _at(random, 3))
        case 2:
            return BatchGet(_several(random, _path, 0, 4), _mask(random), _at(random, 4))
        case 3:
            ordered = _rarely(random, 4)
            return ListDocuments(
                collection=random.choice(COLLECTIONS),
                parent=random.choice(PARENTS),
                # Google's emulator cannot go on behind the first page of an ordered list.
                page_size=random.randint(0, 3) if not ordered else 0,
                show_missing=_rarely(random, 2) if not ordered else _rarely(random, 10),
                mask=_mask(random),
                order=random.choice(LISTED) if ordered else "",
                at=_at(random, 4),
            )
        case 4:
            return ListCollections(random.choice(PARENTS), random.randint(0, 2), _at(random, 4))
        case _:
            return _query(random)


def _read_in_transaction(random: Source) -> Read:
    read = _read(random)
    return Get(_path(random)) if isinstance(read, ListCollections) else read


# --- a case

MOST_DOCUMENTS, MOST_TURNS, MOST_WRITES, MOST_READS = 9, 4, 3, 4
TURNS = ("commit", "commit", "batch write", "transaction", "snapshot", "none")
SEED_BYTES = 3


class _Plan:
    """A case's bytes, taken one after the other: how many of each thing, and a seed for each."""

    LENGTH = (
        SEED_BYTES + 1 + MOST_DOCUMENTS * SEED_BYTES + 1 + MOST_TURNS * (3 + (MOST_WRITES + MOST_READS) * SEED_BYTES)
    )

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._next = 0
        self._palette: tuple[Plain, ...] = ()
        [first] = self.sources(1, 1)
        self._palette = _palette(first)

    def number(self, least: int, most: int) -> int:
        self._next += 1
        return least + self._data[self._next - 1] % (most - least + 1)

    def sources(self, count: int, most: int) -> list[Source]:
        """A source of randomness for each of `count` things. The bytes of those not wanted are passed over, so that
        leaving one thing out of a case leaves all the others as they are."""
        made = []
        for start in range(self._next, self._next + count * SEED_BYTES, SEED_BYTES):
            source = Source(self._data[start : start + SEED_BYTES])
            source.palette = self._palette
            made.append(source)
        self._next += most * SEED_BYTES
        return made


def build_case(data: bytes) -> Case:
    """Documents to begin with, as most queries would find nothing without, then turns of a write and some reads."""
    plan = _Plan(data)
    steps: list[Step] = [Commit(tuple(map(_first, plan.sources(plan.number(4, MOST_DOCUMENTS), MOST_DOCUMENTS))))]
    for _ in range(plan.number(1, MOST_TURNS)):
        kind = TURNS[plan.number(0, len(TURNS) - 1)]
        write_count, read_count = plan.number(0, MOST_WRITES), plan.number(1, MOST_READS)
        writes = tuple(map(_written, plan.sources(write_count, MOST_WRITES)))
        reads = plan.sources(read_count, MOST_READS)
        match kind:
            case "commit":
                steps.append(Commit(writes))
            case "batch write":
                steps.append(BatchWrite(writes))
            case "transaction":
                steps.append(Transaction(tuple(map(_read_in_transaction, reads[:2])), writes))
            case "snapshot":
                steps.append(Snapshot(_at(reads[0], 2), writes, tuple(map(_read, reads[:2]))))
            case _:
                pass
        steps.append(Reads(tuple(map(_read, reads))))
    return tuple(steps)


def _first(random: Source) -> Put:
    return Put(_path(random), _fields(random))


def _build_watch(data: bytes) -> Watch:
    plan = _Plan(data)
    first = Commit(tuple(map(_first, plan.sources(plan.number(4, MOST_DOCUMENTS), MOST_DOCUMENTS))))
    [asked] = plan.sources(1, 1)
    commits = []
    for _ in range(plan.number(1, MOST_TURNS)):
        commits.append(Commit(tuple(map(_written, plan.sources(plan.number(1, MOST_WRITES), MOST_WRITES)))))
    query = _query(asked)
    # Google's emulator does not notice changes to a watched query that names no collection.
    return Watch(replace(query, collection=query.collection or "c", parent="", at=None), (first, *commits))


CASE_BYTES = _Plan.LENGTH
_bytes = st.binary(min_size=CASE_BYTES, max_size=CASE_BYTES)
cases: st.SearchStrategy[Case] = _bytes.map(build_case)
watches: st.SearchStrategy[Watch] = _bytes.map(_build_watch)
