"""Random values, documents and queries. Pools are small, so that equal values and ties are common."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.conformance.wire import Geo, Plain, Proto, Ref, Stamp, Vector, all_of, any_of, cursor, query, where
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

# --- documents and queries over few fields with few values

few: st.SearchStrategy[Plain] = st.sampled_from(
    [
        None,
        False,
        True,
        0,
        1,
        1.0,
        2,
        -0.0,
        float("nan"),
        float("inf"),
        "a",
        "b",
        b"a",
        Stamp(1),
        [],
        [1],
        [1, "a"],
        {},
        {"k": 1},
    ]
)
operands: st.SearchStrategy[Plain] = st.one_of(few, st.sampled_from([[2], "", 1.5, Geo(0.0, 0.0), {"k": 2}]))
documents = st.fixed_dictionaries(
    {},
    optional={
        "a": few,
        "b": few,
        "t": st.one_of(few, st.lists(st.sampled_from([1, 1.0, 2, "a", None]), max_size=3)),
        "m": st.fixed_dictionaries({}, optional={"k": few, "l": few}),
    },
)
paths = st.sampled_from(
    ["c/1", "c/2", "c/3", "c/__id7__", "c/é", "d/1", "d/2", "c/1/c/1", "c/1/c/2", "c/9/d/1", "d/1/c/1", "d/1/c/1/c/1"]
)
FIELDS = ["a", "b", "t", "m", "m.k"]
parents = st.sampled_from(["", "", "", "c/1", "d/1", "c/9"])

_names = st.one_of(paths, st.sampled_from(["c/0", "c/1/c/0", "z/z"])).map(lambda path: Ref(name(path)))
_simple = st.one_of(
    st.builds(where, st.sampled_from(FIELDS), st.sampled_from(["==", "<", "<=", ">", ">=", "!="]), operands),
    st.builds(where, st.sampled_from(FIELDS), st.sampled_from(["==", "==", "=="]), operands),
    st.builds(where, st.sampled_from(["t", "a"]), st.just("array-contains"), operands),
    st.builds(
        where,
        st.sampled_from(FIELDS),
        st.sampled_from(["in", "not-in", "array-contains-any"]),
        st.lists(operands, min_size=1, max_size=3),
    ),
    st.builds(where, st.sampled_from(FIELDS), st.sampled_from(["is-null", "is-nan", "is-not-null", "is-not-nan"])),
    st.builds(where, st.just("__name__"), st.sampled_from(["==", "<", "<=", ">", ">=", "!="]), _names),
    st.builds(where, st.just("__name__"), st.just("in"), st.lists(_names, min_size=1, max_size=2)),
)
filters: st.SearchStrategy[Proto] = st.recursive(
    _simple,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: all_of(*parts)),
        st.lists(inner, min_size=2, max_size=2).map(lambda parts: any_of(*parts)),
    ),
    max_leaves=4,
)


@st.composite
def queries(draw: Any) -> Proto:
    """Not all of them are valid; what is not must be refused."""
    order = draw(
        st.lists(st.sampled_from([*FIELDS, "-a", "-b", "-m.k"]), max_size=2, unique_by=lambda path: path.lstrip("-"))
    )
    if draw(st.integers(0, 3)) == 0:
        order = [*order, draw(st.sampled_from(["__name__", "-__name__"]))]

    def bound() -> Proto | None:
        if not order or draw(st.integers(0, 2)):
            return None
        taken = draw(st.integers(0, len(order)))
        picked = [draw(_names if path.endswith("__name__") else operands) for path in order[:taken]]
        return cursor(*picked, before=draw(st.booleans()))

    return query(
        draw(st.sampled_from(["c", "c", "c", "d", None])),
        draw(st.one_of(st.none(), filters)),
        order=order,
        start=bound(),
        end=bound(),
        limit=draw(st.one_of(st.none(), st.integers(0, 4))),
        offset=draw(st.one_of(st.none(), st.integers(0, 2))),
        group=draw(st.booleans()),
    )
