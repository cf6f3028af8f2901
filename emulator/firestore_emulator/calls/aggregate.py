"""count, sum and average over the result of a query."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from firestore_emulator.documents.fields import NAME_PATH, FieldPath, get_field, parse_field_path
from firestore_emulator.documents.protos import Proto, Value
from firestore_emulator.queries.query import Query
from firestore_emulator.rpc.errors import invalid_argument
from firestore_emulator.storage.engine import Engine

MAX_AGGREGATIONS = 5


@dataclass(frozen=True, slots=True)
class Aggregation:
    alias: str
    kind: str
    """count, sum or avg"""
    path: FieldPath | None
    up_to: int | None


def parse_aggregations(items: Proto) -> list[Aggregation]:
    if not items:
        raise invalid_argument("Aggregations can not be empty.")
    if len(items) > MAX_AGGREGATIONS:
        raise invalid_argument(
            f"The maximum number of aggregations allowed in an aggregation query is {MAX_AGGREGATIONS}."
        )
    found: list[Aggregation] = []
    unnamed = 0
    for item in items:
        alias = item.alias
        if not alias:
            unnamed += 1
            alias = f"field_{unnamed}"
        if alias.startswith("__") and alias.endswith("__"):
            raise invalid_argument(f'The property.name "{alias}" is reserved.')
        if any(other.alias == alias for other in found):
            raise invalid_argument(f"Aggregation aliases contain duplicate alias: {alias}.")
        found.append(_aggregation(item, alias))
    return found


def _aggregation(item: Proto, alias: str) -> Aggregation:
    kind = item.WhichOneof("operator")
    if kind is None:
        raise invalid_argument("Operator field in Aggregation is not set.")
    if kind == "count":
        up_to = item.count.up_to.value if item.count.HasField("up_to") else None
        if up_to is not None and up_to < 0:
            raise invalid_argument("The `up_to` value in a COUNT aggregation must be greater than or equal to zero.")
        return Aggregation(alias, kind, None, up_to)
    path = parse_field_path(getattr(item, kind).field.field_path)
    if path == NAME_PATH:
        raise invalid_argument("Aggregations are not supported for the property: __key__")
    return Aggregation(alias, kind, path, None)


def aggregate(
    engine: Engine, query: Query, aggregations: list[Aggregation], at_micros: int | None
) -> tuple[dict[str, Proto], int]:
    """The values by alias, and the number of index entries that were counted."""
    fields = {item.path for item in aggregations if item.path is not None}
    if not fields:
        counts = {item.alias: engine.count(query, item.up_to, at_micros) for item in aggregations}
        entries = max(counts.values()) + query.offset
        return {alias: Value(integer_value=count) for alias, count in counts.items()}, entries
    documents, skipped = engine.find(replace(query, projection=None), at_micros)
    return {item.alias: _one(item, documents) for item in aggregations}, len(documents) + skipped


def _one(item: Aggregation, documents: list[Proto]) -> Proto:
    if item.path is None:
        count = len(documents)
        return Value(integer_value=count if item.up_to is None else min(count, item.up_to))
    numbers = [number for document in documents if (number := _number(document, item.path)) is not None]
    if item.kind == "sum":
        return _sum(numbers)
    if not numbers:
        return Value(null_value=0)
    total = _sum(numbers)
    return Value(
        double_value=(float(total.integer_value) if total.HasField("integer_value") else total.double_value)
        / len(numbers)
    )


def _number(document: Proto, path: FieldPath) -> float | int | None:
    value = get_field(document.fields, path)
    kind = None if value is None else value.WhichOneof("value_type")
    if value is not None and kind in ("integer_value", "double_value"):
        number: float | int = getattr(value, kind)
        return number
    return None


def _sum(numbers: list[float | int]) -> Proto:
    if all(isinstance(number, int) for number in numbers):
        total = sum(numbers)
        if -(2**63) <= total < 2**63:
            return Value(integer_value=int(total))
        return Value(double_value=float(total))
    # Integers exactly first, rounded once; then with the doubles, rounded once more.
    whole = sum(number for number in numbers if isinstance(number, int))
    numbers = [float(whole), *(number for number in numbers if not isinstance(number, int))]
    special = [float(number) for number in numbers if not math.isfinite(number)]
    if special:
        return Value(double_value=sum(special))
    try:
        return Value(double_value=math.fsum(numbers) + 0.0)
    except OverflowError:
        return Value(double_value=float(sum(float(number) for number in numbers)))
