"""The documents that the tests of queries ask for."""

from __future__ import annotations

from tests.conformance.wire import Plain, Proto

NAN = float("nan")

DOCUMENTS: dict[str, dict[str, Plain]] = {
    "a": {"x": 1, "y": 1, "tags": ["red", "blue"], "m": {"k": 1}},
    "b": {"x": 1, "y": 2, "tags": ["red"], "m": {"k": 2}},
    "c": {"x": 2, "y": 1, "tags": [], "m": 5},
    "d": {"x": 2, "y": 2, "tags": [1, None, NAN, {"k": 1}], "z": 5},
    "e": {"x": 3, "tags": "red"},
    "f": {"y": 3, "tags": [1.0, "red"]},
    "g": {"x": "s", "y": "t"},
    "h": {"x": None, "y": None},
    "i": {"x": NAN},
}


def brief(item: Proto) -> str:
    """A filter or a query as the name of a test."""
    return " ".join(str(item).split())[:60]
