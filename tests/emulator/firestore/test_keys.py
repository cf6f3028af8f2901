"""The order of keys is Firestore's order of values, as an independent comparison written here defines it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations, permutations, zip_longest
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from firestore_emulator.documents import index_keys, keys
from firestore_emulator.documents.names import Location
from tests.conformance.wire import Geo, Plain, Ref, Stamp, Vector, value
from tests.emulator.firestore import strategies
from tests.emulator.firestore.support import DATABASE, examples

# --- the definition, with nothing of the emulator in it

TYPES: tuple[Any, ...] = (type(None), bool, (int, float), Stamp, str, bytes, Ref, Geo, list, Vector, dict)


def rank(plain: Plain) -> int:
    return next(place for place, kind in enumerate(TYPES) if isinstance(plain, kind))


def compare(a: Plain, b: Plain) -> int:
    """Negative, zero or positive, as Firestore's documentation orders values of all types."""
    if rank(a) != rank(b):
        return rank(a) - rank(b)
    match a:
        case None:
            return 0
        case bool() | str() | bytes():
            return sign(a, b)
        case int() | float():
            if a != a or b != b:
                return int(b != b) - int(a != a)
            return sign(a, b)
        case Stamp():
            return sign(tuple(a), tuple(b))
        case Ref():
            return sign(
                [segment_rank(one) for one in a.name.split("/")], [segment_rank(one) for one in b.name.split("/")]
            )
        case Geo():
            return sign([zero_rank(one) for one in a], [zero_rank(one) for one in b])
        case list():
            return compare_in_turn(a, b)
        case Vector():
            return sign(len(a.elements), len(b.elements)) or compare_in_turn(a.elements, b.elements)
    return compare_in_turn(*(sorted_pairs(one) for one in (a, b)))


def compare_in_turn(a: Iterable[Plain], b: Iterable[Plain]) -> int:
    missing: Any = object()
    for one, other in zip_longest(a, b, fillvalue=missing):
        if one is missing or other is missing:
            return -1 if one is missing else 1
        if order := compare(one, other):
            return order
    return 0


def sorted_pairs(fields: dict[str, Plain]) -> list[Plain]:
    return [part for name in sorted(fields) for part in (name, fields[name])]


def segment_rank(segment: str) -> tuple[int, int, str]:
    if segment.startswith("__id") and segment.endswith("__"):
        return 0, int(segment[4:-2]), ""
    return 1, 0, segment


def zero_rank(number: float) -> tuple[float, float]:
    """In a geo point minus zero comes before zero, unlike in numbers."""
    return number, math.copysign(1, number)


def sign(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


def key(plain: Plain) -> bytes:
    return keys.value_key(value(plain))


# --- values

groups = st.lists(strategies.values, min_size=2, max_size=10)
"""Each example compares every pair in it."""


@given(groups)
@examples(300)
def test_keys_compare_as_their_values_do(group: list[Plain]) -> None:
    for a, b in combinations(group, 2):
        assert sign(key(a), key(b)) == sign(compare(a, b), 0)


@given(st.lists(strategies.numbers, min_size=2, max_size=20))
@examples(300)
def test_integers_and_doubles_compare_exactly(group: list[float]) -> None:
    for a, b in combinations(group, 2):
        assert sign(key(a), key(b)) == sign(compare(a, b), 0)


@given(groups)
@examples(100)
def test_a_flipped_key_turns_the_order_round(group: list[Plain]) -> None:
    for a, b in combinations(group, 2):
        assert sign(keys.flipped(key(a)), keys.flipped(key(b))) == -sign(key(a), key(b))


@given(groups)
@examples(200)
def test_no_key_is_the_beginning_of_another(group: list[Plain]) -> None:
    for a, b in permutations(group, 2):
        assert key(a).startswith(key(b)) == (compare(a, b) == 0)


@given(st.lists(st.tuples(strategies.scalars, strategies.scalars, st.booleans()), max_size=3))
@examples(300)
def test_keys_in_a_row_compare_field_by_field_in_mixed_directions(row: list[tuple[Plain, Plain, bool]]) -> None:
    def joined(side: int) -> bytes:
        return b"".join(keys.flipped(key(pair[side])) if pair[2] else key(pair[side]) for pair in row)

    orders = (compare(a, b) * (-1 if descending else 1) for a, b, descending in row)
    assert sign(joined(0), joined(1)) == sign(next((order for order in orders if order), 0), 0)


@given(groups)
@examples(150)
def test_the_range_comparable_with_a_value_holds_its_type_and_never_nan(group: list[Plain]) -> None:
    for a, b in permutations(group, 2):
        low, high = keys.comparable_with(key(a))
        is_nan = isinstance(b, float) and math.isnan(b)
        assert (low < key(b) < high) == (rank(a) == rank(b) and not is_nan)


@given(groups)
@examples(50)
def test_nothing_stored_after_a_key_reaches_its_end_mark(group: list[Plain]) -> None:
    for plain in group:
        for following in (key(plain), keys.flipped(key(plain))):
            assert key("x") < key("x") + following < key("x") + keys.AFTER


def test_an_index_sees_the_first_1500_bytes_of_a_long_value_and_puts_it_behind_the_short_one() -> None:
    def index_key(plain: Plain) -> bytes:
        return index_keys.index_key(value(plain))

    kinds: list[tuple[Any, Any, int]] = [("x", "\x00", 1499), (b"x", b"\x00", 1500)]
    for one, zero, most in kinds:
        exact, longer, longest = (index_key(one * length) for length in (most, most + 1, 5000))
        assert index_key(one * (most - 1)) < exact < longer == longest
        assert index_key(one * most + zero) == longer
        assert index_key(one * (most - 1) + zero + one) < exact
        assert not longer.startswith(exact)


@given(groups)
@examples(200)
def test_values_that_are_short_enough_are_not_cut_and_no_key_is_shorter_than_its_value(group: list[Plain]) -> None:
    for plain in group:
        size = index_keys.indexed_size(value(plain))
        assert size <= len(key(plain))
        if size <= index_keys.MAX_INDEXED_BYTES:
            assert index_keys.index_key(value(plain)) == key(plain) == index_keys._Cutting().value(value(plain))


# --- names

segments = st.lists(strategies.ids, min_size=1, max_size=4)


@given(segments, segments)
@examples(400)
def test_names_compare_segment_by_segment_and_numeric_ids_come_first(a: list[str], b: list[str]) -> None:
    one, other = (keys.ended(keys.name_key(Location(DATABASE, tuple(parts)))) for parts in (a, b))
    assert sign(one, other) == sign([*map(segment_rank, a)], [*map(segment_rank, b)])
    assert one.startswith(other) == (a == b)


@given(segments)
@examples(100)
def test_the_segments_of_a_name_are_read_back_from_its_key(parts: list[str]) -> None:
    assert keys.split_segments(keys.name_key(Location(DATABASE, tuple(parts)))) == parts
