"""The size of a document, by the examples of Google's documentation ("Storage size calculations")."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from google.cloud.firestore_v1 import types

from firestore_outbox.firestore.size import WIRE_FACTOR, document_size
from firestore_outbox.firestore.values import to_proto

TASK = "users/jeff/tasks/my_task_id"
NAME = 44
OTHERS = 32


def fields(data: dict[str, Any]) -> Any:
    return to_proto(data).map_value.fields


def test_the_documented_example_has_147_bytes() -> None:
    task = {"type": "Personal", "done": False, "priority": 1, "description": "Learn Cloud Firestore"}
    assert document_size(TASK, fields(task)) == NAME + 71 + OTHERS == 147


def test_an_empty_document_has_the_size_of_its_name_and_32_bytes() -> None:
    assert document_size(TASK, fields({})) == 6 + 5 + 6 + 11 + 16 + 32


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("Personal", 9),
        ("é", 3),
        ("", 1),
        (False, 1),
        (None, 1),
        (1, 8),
        (1.5, 8),
        (datetime(2026, 1, 1, tzinfo=UTC), 8),
        (b"abc", 3),
        ([1, "a", None], 8 + 2 + 1),
        ({"done": True}, 5 + 1),
    ],
)
def test_each_kind_of_value_has_its_documented_size(value: object, size: int) -> None:
    assert document_size(TASK, fields({"done": value})) == NAME + OTHERS + 5 + size


def test_references_and_points_have_their_documented_sizes() -> None:
    reference, point = types.Value.pb()(), types.Value.pb()()
    reference.reference_value = f"projects/p/databases/(default)/documents/{TASK}"
    point.geo_point_value.SetInParent()
    for value, size in ((reference, NAME), (point, 16)):
        document = types.Document.pb()()
        document.fields["done"].CopyFrom(value)
        assert document_size(TASK, document.fields) == NAME + OTHERS + 5 + size


@pytest.mark.parametrize("value", [1, "", None, "x" * 50, {"": 0}])
def test_no_fields_count_more_than_four_times_their_bytes_on_the_wire(value: object) -> None:
    document = types.Document.pb()()
    to_proto([value] * 100, document.fields["f"])
    assert document_size(TASK, document.fields) - NAME - OTHERS <= WIRE_FACTOR * document.ByteSize()
