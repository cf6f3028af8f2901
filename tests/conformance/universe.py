"""The small universe from which random cases are drawn: few names, so that operations meet; every kind of value.

Values come from fixed lists for the same reason (universe_values.py); cases.py puts operations together.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from tests.conformance.operations import (
    Aggregate,
    BatchGet,
    Change,
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
    Nearest,
    Put,
    Query,
    Read,
    Remove,
    Verify,
    Written,
)
from tests.conformance.universe_values import (
    BAD,
    COMPOUNDS,
    ELEMENTS,
    ELSEWHERE,
    IN_C,
    NUMBERS,
    PATHS,
    SCALARS,
    STRINGS,
    VECTORS,
    around_the_limit,
)
from tests.conformance.wire import Plain, Vector

PARENTS = (*("",) * 20, "c/a", "c/a", "c/none", "c/b")
COLLECTIONS = (*("c",) * 30, *("s",) * 5, "d", "d", "none", "")
FIELDS = ("x", "y", "m", "a.b")
FIELD_PATHS = (*("x",) * 12, *("y",) * 8, *("m.k",) * 4, "m", "m", "m.l", "m.k.z", "`a.b`", "`a.b`", "none")
BAD_PATHS = ("a..b", "", "__x__")


class Source(Random):
    """The randomness of one operation, and the case's palette: the values that its operations have in common.

    With values from all of the universe hardly any query would find anything.
    """

    palette: tuple[Plain, ...] = ()
    seeks_vectors = False
    """Whether the case is about vectors, so that its queries often look for the nearest."""


def rarely(random: Source, one_in: int) -> bool:
    return random.randrange(one_in) == 0


def _any_value(random: Source) -> Plain:
    return random.choice(random.choice((NUMBERS, NUMBERS, SCALARS, COMPOUNDS)))


def draw_palette(random: Source) -> tuple[Plain, ...]:
    """Some neighbours of one kind, and some of any."""
    kind = random.choice((NUMBERS, NUMBERS, NUMBERS, STRINGS, SCALARS, COMPOUNDS, "long", "long", "vectors", "vectors"))
    if kind == "long":
        return (*(around_the_limit(random) for _ in range(7)), _any_value(random), "z", 1)
    if kind == "vectors":
        return (*(random.choice(VECTORS) for _ in range(8)), 1, 2)
    return (*(random.choice(kind) for _ in range(5)), *(_any_value(random) for _ in range(3)), 1, 2)


def _value(random: Source) -> Plain:
    return random.choice(random.palette) if not rarely(random, 6) else _any_value(random)


def _several(random: Source, make: Any, least: int, most: int) -> tuple[Any, ...]:
    return tuple(make(random) for _ in range(random.randint(least, most)))


def _field_path(random: Source) -> str:
    return random.choice(FIELD_PATHS) if not rarely(random, 100) else random.choice(BAD_PATHS)


# --- writes

VERIFIED = (*(Guard.EXISTS, Guard.LATEST) * 4, Guard.ABSENT, Guard.ABSENT, *Guard)
"""Most checks hold, as a commit whose check fails tests nothing else."""


def _fields(random: Source) -> dict[str, Plain]:
    data = {name: _value(random) for name in FIELDS if not rarely(random, 5 if name in ("x", "y") else 2)}
    if not rarely(random, 3):
        data["m"] = {name: _value(random) for name in ("k", "l") if not rarely(random, 3)}
    return data


def _data(random: Source, mask: tuple[str, ...] | None) -> dict[str, Plain]:
    data = _fields(random)
    # What a mask leaves out is not written, and how much of it is still checked is not documented.
    if rarely(random, 60) and (mask is None or "x" in mask):
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
    return Change(kind, path, random.choice(NUMBERS) if not rarely(random, 40) else random.choice(SCALARS))


def draw_write(random: Source) -> Written:
    path = _path(random)
    if rarely(random, 7):
        return Verify(path, random.choice(VERIFIED))
    guard = random.choice(tuple(Guard)) if rarely(random, 3) else Guard.NONE
    if rarely(random, 6):
        return Remove(path, guard)
    mask = _several(random, _field_path, 0, 3) if rarely(random, 2) else None
    changes = _several(random, _change, 0, 2) if rarely(random, 2) else ()
    return Put(path, _data(random, mask), mask, changes, guard)


def draw_document(random: Source) -> Put:
    return Put(_path(random), _fields(random))


# --- reads

COMMON = ("==", "==", "<", "<=", "<=", ">", ">=", ">=", "in", "in", "array-contains", "array-contains-any")
COMPARISONS = (*COMMON, "!=", "not-in")
WITH_LISTS = ("in", "not-in", "array-contains-any")
UNARY = ("is-null", "is-nan", "is-not-null", "is-not-nan")
NAMES: tuple[Plain, ...] = (*(Here(path) for path in PATHS), "a", None)
LISTED = ("x", "x desc", "y, x desc", "__name__", "m.k desc, __name__ desc")
MEASURES = (1, 2, 3)
"""Euclidean distance, cosine, dot product."""
THRESHOLDS = (0.0, 0.5, 1.0, 2.0, 5.0, -1.0, -5.0)
AGGREGATIONS = (("count", ""), ("count", ""), *((kind, path) for kind in ("sum", "avg") for path in ("x", "y", "m.k")))


def _name(random: Source) -> Plain:
    return random.choice(NAMES)


def _field(random: Source, *, alone: bool = True) -> Field:
    by_name = rarely(random, 12)
    path = "__name__" if by_name else _field_path(random)
    operand = _name if by_name else _value
    # Negations are rarely valid beside another filter; they come alone, and now and then beside one anyway.
    alone = alone or rarely(random, 8)
    if rarely(random, 8) and not by_name:
        return Field(path, random.choice(UNARY if alone else UNARY[:2]))
    operator = random.choice(COMPARISONS if alone else COMMON)
    if operator in WITH_LISTS:
        return Field(path, operator, list(_several(random, operand, 1, 4)) if not rarely(random, 40) else 1)
    return Field(path, operator, operand(random))


def _condition(random: Source, depth: int = 0) -> Condition:
    shape = random.choice(("field", "field", "field", "every", "either")) if depth < 2 else "field"
    if shape == "field":
        return _field(random, alone=depth == 0)
    least = 0 if rarely(random, 20) else 1
    parts = tuple(_condition(random, depth + 1) for _ in range(random.randint(least, 3)))
    return Every(parts) if shape == "every" else Either(parts)


def _order(random: Source) -> tuple[str, ...]:
    paths = list(_several(random, _field_path, 0, 2))
    if not rarely(random, 20):
        paths = list(dict.fromkeys(paths))
    if rarely(random, 6):
        paths.append("__name__")
    return tuple(random.choice(("", "-")) + path for path in paths)


def _cut(random: Source, order: tuple[str, ...]) -> Cut | None:
    if not order or not rarely(random, 3):
        return None
    length = random.randint(0 if rarely(random, 10) else 1, len(order))
    cut = [_name(random) if path.endswith("__name__") else _value(random) for path in order[:length]]
    if rarely(random, 40):
        cut.append(_value(random))
    return Cut(tuple(cut), random.choice((True, False)))


def draw_query(random: Source) -> Query:
    order = _order(random)
    group = rarely(random, 4)
    return Query(
        collection=random.choice(COLLECTIONS),
        group=group,
        parent=random.choice(PARENTS) if not group or rarely(random, 8) else "",
        condition=_condition(random) if not rarely(random, 3) else None,
        order=order,
        start=_cut(random, order),
        end=_cut(random, order),
        limit=random.choice((1, 2, 3, 4, 0, -1)) if rarely(random, 4) else None,
        offset=random.choice((0, 1, 1, 2, -1)) if rarely(random, 8) else None,
        select=_several(random, _field_path, 0, 2) if rarely(random, 6) else None,
        at=draw_time(random, 8),
    )


def _search(random: Source) -> Query:
    """A vector search: without what it does not go together with, except now and then."""
    query = draw_query(random)
    if not rarely(random, 8):
        query = replace(query, start=None, end=None, limit=None, offset=None)
    if not rarely(random, 8):
        query = replace(query, order=(), collection="c", parent="")
    vector = random.choice([item for item in random.palette if isinstance(item, Vector)] or VECTORS)
    return replace(
        query,
        nearest=Nearest(
            path=random.choice(("x", "x", "x", "y")) if not rarely(random, 30) else _field_path(random),
            vector=vector if not rarely(random, 40) else _value(random),
            measure=random.choice(MEASURES) if not rarely(random, 40) else 0,
            limit=random.choice((1, 2, 3, 10, 1000)) if not rarely(random, 30) else random.choice((0, -1, 1001, None)),
            threshold=random.choice(THRESHOLDS) if rarely(random, 3) else None,
            result=random.choice(("distance", "distance", "x")) if rarely(random, 2) else "",
        ),
    )


def draw_time(random: Source, one_in: int) -> int | None:
    return random.randrange(10) if rarely(random, one_in) else None


def _mask(random: Source) -> tuple[str, ...] | None:
    return _several(random, _field_path, 0, 2) if rarely(random, 4) else None


def _path(random: Source) -> str:
    return random.choice(random.choice((IN_C, IN_C, ELSEWHERE)))


def draw_read(random: Source) -> Read:
    if random.seeks_vectors and rarely(random, 2):
        query = _search(random)
        return query if not rarely(random, 6) else Aggregate(replace(query, select=None), (("count", ""),))
    match random.randrange(11):
        case 0:
            kinds = tuple(random.choice(AGGREGATIONS) for _ in range(random.randint(1, 3)))
            return Aggregate(replace(draw_query(random), select=None), kinds)
        case 1:
            return Get(_path(random), _mask(random), draw_time(random, 3))
        case 2:
            return BatchGet(_several(random, _path, 0, 4), _mask(random), draw_time(random, 4))
        case 3:
            ordered = rarely(random, 4)
            return ListDocuments(
                collection=random.choice(COLLECTIONS),
                parent=random.choice(PARENTS),
                # Google's emulator cannot go on behind the first page of an ordered list.
                page_size=random.randint(0, 3) if not ordered else 0,
                show_missing=rarely(random, 2) if not ordered else rarely(random, 10),
                mask=_mask(random),
                order=random.choice(LISTED) if ordered else "",
                at=draw_time(random, 4),
            )
        case 4:
            return ListCollections(random.choice(PARENTS), random.randint(0, 2), draw_time(random, 4))
        case _:
            return draw_query(random)


def draw_read_in_transaction(random: Source) -> Read:
    read = draw_read(random)
    return Get(_path(random)) if isinstance(read, ListCollections) else read
