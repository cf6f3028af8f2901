"""Random documents and queries from one seed: few paths, few fields, few values, so that many queries find something.

A seed cannot be made smaller as drawn values can, but it makes stories dense enough to be worth comparing.
"""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from tests.conformance.wire import Geo, Plain, Proto, Ref, Stamp, all_of, any_of, cursor, query, where
from tests.emulator.firestore.support import name

randomness: st.SearchStrategy[Random] = st.integers(0, 2**64 - 1).map(Random)

PATHS = [
    *("c/1", "c/2", "c/3", "c/4", "c/5", "c/6", "c/__id7__", "c/é"),
    *("d/1", "d/2", "c/1/c/1", "c/1/c/2", "c/9/d/1", "d/1/c/1"),
]
FIELDS = ["a", "b", "t", "m", "m.k"]
_COMMON: list[Plain] = [1, 1.0, 2, 2, 3, "a"]
_RARE: list[Plain] = [
    None,
    0,
    False,
    True,
    -0.0,
    1.5,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    "b",
    b"a",
    Stamp(1),
    Geo(0.0, 0.0),
    [],
    [1],
    [1, "a"],
    {},
    {"k": 1},
    {"k": 2},
]
_COMPARISONS = ["<", "<=", ">", ">=", "!="]
_UNARY = ["is-null", "is-nan", "is-not-null", "is-not-nan"]

Commit = list[tuple[str, dict[str, Plain] | None]]
"""What each document becomes; None: it is deleted."""


def value(rng: Random) -> Plain:
    return rng.choice(_COMMON if rng.random() < 0.85 else _RARE)


def fields(rng: Random) -> dict[str, Plain]:
    """Of a document: now and then one is missing, of another type, or too long to be indexed whole."""
    found: dict[str, Plain] = {
        "a": value(rng) if rng.random() < 0.97 else "x" * rng.choice([1500, 1501, 1502]),
        "b": value(rng),
        "t": rng.choices([1, 1.0, 2, "a", None], k=rng.randrange(4)) if rng.random() < 0.8 else value(rng),
        "m": {"k": value(rng), "l": value(rng)} if rng.random() < 0.8 else value(rng),
    }
    return {key: found[key] for key in found if rng.random() < 0.9}


def commit(rng: Random, most: int = 4) -> Commit:
    chosen = rng.sample(PATHS, rng.randint(1, most))
    return [(path, None if rng.random() < 0.2 else fields(rng)) for path in chosen]


def parent(rng: Random) -> str:
    return rng.choice(["c/1", "d/1", "c/9"]) if rng.random() < 0.15 else ""


def _reference(rng: Random) -> Ref:
    return Ref(name(rng.choice([*PATHS, "c/0", "z/z"])))


def _simple(rng: Random) -> Proto:
    path = rng.choice(FIELDS)
    match rng.choices(["equal", "compare", "list", "contains", "unary", "name"], [6, 6, 3, 3, 1, 2])[0]:
        case "equal":
            return where(path, "==", value(rng))
        case "compare":
            return where(path, rng.choice(_COMPARISONS), value(rng))
        case "list":
            operator = rng.choice(["in", "in", "not-in", "array-contains-any"])
            return where("t" if "array" in operator else path, operator, [value(rng) for _ in range(rng.randint(1, 3))])
        case "contains":
            return where("t", "array-contains", value(rng))
        case "unary":
            return where(path, rng.choice(_UNARY))
    operator = rng.choice(["==", *_COMPARISONS, "in"])
    return where("__name__", operator, [_reference(rng)] if operator == "in" else _reference(rng))


def _filter(rng: Random, depth: int = 2) -> Proto:
    if depth == 0 or rng.random() < 0.5:
        return _simple(rng)
    combine = all_of if rng.random() < 0.5 else any_of
    return combine(*(_filter(rng, depth - 1) for _ in range(2)))


def _bound(rng: Random, order: list[str]) -> Proto | None:
    if not order or rng.random() < 0.7:
        return None
    taken = order[: rng.randint(0, len(order))]
    values = [_reference(rng) if path.endswith("__name__") else value(rng) for path in taken]
    return cursor(*values, before=rng.random() < 0.5)


def structured_query(rng: Random) -> Proto:
    """Not all of them are valid; what is not must be refused."""
    order = [rng.choice(["", "-"]) + path for path in rng.sample(FIELDS, rng.choice([0, 0, 1, 1, 2]))]
    if rng.random() < 0.2:
        order.append(rng.choice(["__name__", "-__name__"]))
    return query(
        rng.choice(["c", "c", "c", "c", "c", "c", "c", "d", None]),
        _filter(rng) if rng.random() < 0.75 else None,
        order=order,
        start=_bound(rng, order),
        end=_bound(rng, order),
        limit=rng.choice([None, None, None, None, None, 0, 1, 2, 4]),
        offset=rng.choice([None, None, None, None, None, 1, 2]),
        group=rng.random() < 0.3,
    )
