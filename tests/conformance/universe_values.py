"""The values of random cases: each type's edges, numbers that are equal in one type and different in another or equal
only after rounding, values around the 1,500 bytes that an index keeps, and vectors that tie."""

from __future__ import annotations

from random import Random

from tests.conformance.operations import Here
from tests.conformance.wire import Geo, Plain, Stamp, Vector

INF = float("inf")
NAN = float("nan")

IN_C = ("c/a", "c/b", "c/ab", "c/é", "c/__id7__", "c/__id10__", "c/10")
ELSEWHERE = ("c/a/s/1", "c/b/s/2", "c/none/s/3", "c/a/c/a", "d/a", "s/0")
PATHS = (*IN_C, *ELSEWHERE)

NUMBERS: tuple[Plain, ...] = (
    *(0, 1, -1, 2, 3, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)),
    *(0.0, -0.0, 1.0, 1.5, -1.0, 1e-320, 2.0**53, 2.0**63, -(2.0**63), 1e308, 0.1, INF, -INF, NAN),
)
STRINGS: tuple[Plain, ...] = ("", "a", "b", "ab", "é", "\x00", "a\x00", "\uffff", "\U0001f600", "z" * 300)
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
VECTORS: tuple[Vector, ...] = (
    *(Vector((1.0, 0.0)), Vector((0.0, 1.0)), Vector((-1.0, 0.0)), Vector((2.0, 0.0)), Vector((0.0, 0.0))),
    *(Vector((3.0, 4.0)), Vector((-3.0, 4.0)), Vector((4.0, -3.0)), Vector((0.5, 2.0)), Vector((0.5, 3.0))),
    *(Vector((1.0,)), Vector((-2.0,)), Vector((1.0, 2.0, 2.0)), Vector((2.0, 1.0, -2.0))),
)
COMPOUNDS: tuple[Plain, ...] = (
    *([], [1], [1.0], [1, 2], [None], ["a", 1], [NAN], [{"k": 1}], [{"k": [1, 2]}], [-0.0, 0]),
    *({}, {"k": 1}, {"k": 1.0}, {"k": 2}, {"k": {"z": 1}}, {"k": None}, {"l": 0}, {"k": [1]}, {"k": 1, "l": "a"}),
    *(Vector((1.0,)), Vector((0.5, 2.0)), Vector((0.5, 3.0))),
)
BAD: tuple[Plain, ...] = (
    *([[1]], {"__x__": 1}, Geo(91.0, 0.0), Stamp(2**40), {"__type__": "__vector__", "value": [1]}),
)
ELEMENTS = tuple(item for item in (*SCALARS, *COMPOUNDS) if not isinstance(item, list | Vector))


INDEXED_BYTES = 1_500
"""What an index keeps of a value, by a size of its own: a string is its UTF-8 and 1, a number 8, a reference 16 and its
segments with 1 each."""
LONGEST_REFERENCE = 1_490
"""An id has 1,500 bytes at most, and when a reference to a longer one is refused is not compared."""
ENDS = ("", "a", "b", "é", "\U0001f600")


def around_the_limit(random: Random) -> Plain:
    """A value whose size is up to three bytes below or above what an index keeps, or far above it."""
    size = INDEXED_BYTES + random.choice((-3, -2, -1, 0, 1, 2, 3, 100))
    end = random.choice(ENDS)
    match random.randrange(9):
        case 0 | 1:
            return "z" * (size - 1 - len(end.encode())) + end
        case 2:
            return b"z" * (size - 1) + random.choice((b"", b"a", b"\xff"))
        case 3:
            return ["z" * (size - 9 - len(end)) + end, random.choice((1, 2, 1.0, None, Stamp(1)))]
        case 4:
            return [1] * (size // 8) + random.choice(([], [1], [2], ["a"]))
        case 5:
            return {"k": "z" * (size - 3 - len(end.encode())) + end}
        case 6:
            return {
                "k": "z" * (size - 13 - len(end)) + end,
                random.choice(("l", "m")): random.choice((1, 2, "a", True)),
            }
        case 7:
            return Here(f"c/{'z' * (size - 19 - len(end.encode()))}{end}"[:LONGEST_REFERENCE])
        case _:
            below = random.choice(("/d/a", "/d/b", "/e/a", "/d/__id7__"))
            return Here(f"c/{'z' * (min(size, INDEXED_BYTES + 3) - 23)}{below}")


def is_around_the_limit(value: Plain) -> bool:
    """Whether a value, or a part of it, has about as many bytes as an index keeps."""
    match value:
        case str() | bytes():
            return len(value) > INDEXED_BYTES - 30
        case Here():
            return len(value.path) > INDEXED_BYTES - 40
        case list():
            return len(value) > INDEXED_BYTES // 8 - 3 or any(map(is_around_the_limit, value))
        case dict():
            return any(map(is_around_the_limit, value.values()))
    return False
