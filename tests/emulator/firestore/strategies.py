"""Random values of every type. Pools are small, so that equal values and ties are common."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.conformance.wire import Geo, Plain, Ref, Stamp, Vector
from tests.emulator.firestore.support import name

INT64 = (-(2**63), 2**63 - 1)
EDGE_NUMBERS: list[float | int] = [
    0,
    -0.0,
    1,
    1.0,
    -1,
    0.5,
    2**53,
    2**53 + 1,
    float(2**53),
    2**63 - 1,
    -(2**63),
    float(2**63),
    float("inf"),
    float("-inf"),
    float("nan"),
    5e-324,
    1.7976931348623157e308,
]

numbers = st.one_of(
    st.sampled_from(EDGE_NUMBERS),
    st.integers(*INT64),
    st.floats(),
    st.integers(2**53 - 3, 2**53 + 3),
    st.integers(2**62 - 3, 2**62 + 3).map(float),
)
texts = st.one_of(
    st.sampled_from(["", "a", "b", "ab", "a\x00", "a\x00b", "\x00", "\x01", "\uffff", "😀"]), st.text(max_size=4)
)
raw = st.one_of(st.sampled_from([b"", b"\x00", b"\x00\xff", b"\xff", b"\x00\x01"]), st.binary(max_size=4))
stamps = st.builds(
    Stamp, st.sampled_from([-62_135_596_800, -1, 0, 1, 253_402_300_799]), st.sampled_from([0, 1000, 999_999_000])
)
ids = st.sampled_from(["a", "b", "ab", "a b", "é", "__id7__", "__id10__", "__id-3__", "7", "\x01"])
references = st.builds(
    lambda parts: Ref(name("/".join(parts))),
    st.lists(ids, min_size=2, max_size=4).filter(
        lambda parts: not len(parts) % 2 and "__id" not in parts[0] + parts[-2]
    ),
)
geo_points = st.builds(
    Geo, st.sampled_from([-90.0, -0.0, 0.0, 1.5, 90.0]), st.sampled_from([-180.0, -0.0, 0.0, 1.5, 180.0])
)
finite = st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0, float("inf")])
vectors = st.builds(lambda elements: Vector(tuple(elements)), st.lists(finite, min_size=1, max_size=3))

scalars: st.SearchStrategy[Plain] = st.one_of(
    st.none(), st.booleans(), numbers, stamps, texts, raw, references, geo_points
)
field_names = st.sampled_from(["a", "b", "ab", "c", "é", "x y", "\x00"])


def _maps(inner: st.SearchStrategy[Plain]) -> st.SearchStrategy[Plain]:
    return st.dictionaries(field_names, inner, max_size=3)


elements: st.SearchStrategy[Plain] = st.one_of(scalars, _maps(st.one_of(scalars, st.lists(scalars, max_size=2))))
values: st.SearchStrategy[Plain] = st.one_of(
    scalars, vectors, st.lists(elements, max_size=3), _maps(st.one_of(scalars, vectors, st.lists(elements, max_size=2)))
)
"""Everything that a document may hold."""
