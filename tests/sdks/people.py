"""What the queries of both Python clients are asked about, and what each operator must find."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter
from google.cloud.firestore_v1.vector import Vector

PEOPLE: dict[str, dict[str, Any]] = {
    "ada": {"born": 1815, "tags": ["maths", "code"], "city": "London", "score": 1.5},
    "alan": {"born": 1912, "tags": ["code"], "city": "London", "score": math.nan},
    "emmy": {"born": 1882, "tags": ["maths"], "city": "Erlangen", "score": None},
    "grace": {"born": 1906, "tags": ["code", "navy"], "city": "New York"},
}

OPERATORS: list[tuple[str, str, Any, str]] = [
    ("born", "==", 1882, "emmy"),
    ("born", "!=", 1882, "ada grace alan"),
    ("born", "<", 1906, "ada emmy"),
    ("born", "<=", 1906, "ada emmy grace"),
    ("born", ">", 1906, "alan"),
    ("born", ">=", 1906, "grace alan"),
    ("born", "in", [1815, 1906, 7], "ada grace"),
    ("born", "not-in", [1815, 1906], "emmy alan"),
    ("tags", "array_contains", "maths", "ada emmy"),
    ("tags", "array_contains_any", ["maths", "navy"], "ada emmy grace"),
    ("score", "==", None, "emmy"),
    ("score", "==", math.nan, "alan"),
    ("score", "!=", None, "alan ada"),
    ("score", "!=", math.nan, "ada"),
]


def where(field: str, operator: str, value: Any) -> Any:
    return FieldFilter(field, operator, value)


def every_type(reference: Any) -> dict[str, Any]:
    """A value of each type. NaN is not among them: it equals nothing, so that a comparison would fail."""
    return {
        "null": None,
        "booleans": [True, False],
        "integers": [0, 2**53 + 1, -(2**63), 2**63 - 1],
        "doubles": [0.0, -1.5, 5e-324, 1.7976931348623157e308, math.inf, -math.inf],
        "times": [
            datetime(2024, 2, 29, 12, 0, 0, 123456, tzinfo=UTC),
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        ],
        "strings": ["", "é😀\0", "x" * 10_000],
        "bytes": [b"", b"\x00\xff\x80"],
        "reference": reference,
        "points": [firestore.GeoPoint(1.5, -2.5), firestore.GeoPoint(90, 180), firestore.GeoPoint(-90, -180)],
        "nested": {"list": [1, "a", None, {"deep": [{"deeper": {"deepest": []}}]}, {}], "a.b": {"`": 1}},
        "vector": Vector([1.0, -2.5, 3.0]),
    }
