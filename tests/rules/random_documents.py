"""Random documents, and their form in the protocol."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from random import Random
from typing import Any

UIDS = ("alice", "bob", "x")
Data = dict[str, Any]
"""A document as plain values: `Wire` holds what JSON cannot say."""


@dataclass(frozen=True)
class Wire:
    """A value in the protocol's own JSON."""

    value: dict[str, Any]


STRINGS = ("", "a", "abc", "ABC", "a b ", "x", "alice", "é😀", "1", "1.5", "a,b,,c,", "2024", "z", "～")
INTS = (0, 1, 2, 3, 7, -1, -7, 100, 2**53 + 1, 2**63 - 1)
FLOATS = (0.0, 0.5, 1.0, 1.5, 2.5, -2.5, 100.25, 7.0)
MOMENTS = ("2024-02-29T12:34:56.789123Z", "1970-01-01T00:00:00Z", "2030-12-31T23:59:59Z")


def document(random: Random) -> Data:
    """Fields are named after their type, and each is missing now and then."""
    full: Data = {
        "s": random.choice(STRINGS),
        "u": random.choice(UIDS),
        "i": random.choice(INTS),
        "j": random.choice(INTS),
        "f": random.choice(FLOATS),
        "b": random.random() < 0.5,
        "n": None,
        "l": random.choices(INTS[:5], k=random.randint(0, 3)),
        "ls": random.choices(STRINGS[1:7], k=random.randint(0, 3)),
        "m": {"a": random.choice(INTS), "b": {"c": random.choice(STRINGS)}},
        "y": random.choice((b"", b"abc", b"\xff\x00")),
        "t": Wire({"timestampValue": random.choice(MOMENTS)}),
        "g": Wire({"geoPointValue": {"latitude": random.choice((0, 10.5, -33)), "longitude": 20.25}}),
    }
    return {name: value for name, value in full.items() if random.random() > 0.04}


def wire(value: Any) -> dict[str, Any]:
    """A plain value in the protocol's JSON."""
    if isinstance(value, Wire):
        return value.value
    if value is None:
        return {"nullValue": None}
    if isinstance(value, bool):
        return {"booleanValue": value}
    if isinstance(value, int):
        return {"integerValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, bytes):
        return {"bytesValue": base64.b64encode(value).decode()}
    if isinstance(value, list):
        return {"arrayValue": {"values": [wire(item) for item in value]}}
    return {"mapValue": {"fields": {name: wire(item) for name, item in value.items()}}}
