"""Field transforms: server time, increment, maximum, minimum, array union and array remove."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from firestore_emulator.documents import keys
from firestore_emulator.documents.fields import NAME_PATH, FieldPath, get_field, parse_field_path, set_field
from firestore_emulator.documents.protos import DocumentTransform, Proto, Value
from firestore_emulator.documents.values import MAX_DEPTH, check_value, too_deep
from firestore_emulator.rpc.errors import invalid_argument

REQUEST_TIME = DocumentTransform.FieldTransform.ServerValue.Value("REQUEST_TIME")
MAX_TRANSFORMS_A_DOCUMENT = 500
_MIN_INTEGER, _MAX_INTEGER = -(2**63), 2**63 - 1


def check_transforms(transforms: Sequence[Proto]) -> None:
    if len(transforms) > MAX_TRANSFORMS_A_DOCUMENT:
        raise invalid_argument(f"A write may have at most {MAX_TRANSFORMS_A_DOCUMENT} field transforms.")
    paths: set[FieldPath] = set()
    for transform in transforms:
        path = parse_field_path(transform.field_path)
        if path == NAME_PATH:
            raise invalid_argument("Cannot transform the name of a document.")
        paths.add(path)
        _check_operation(transform, depth=len(path))
    for path in paths:
        for length in range(1, len(path)):
            if path[:length] in paths:
                outer = ".".join(path[:length])
                raise invalid_argument(f"Cannot transform property {outer} and its nested property at the same time.")


def _check_operation(transform: Proto, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise too_deep()
    kind = transform.WhichOneof("transform_type")
    match kind:
        case None:
            raise invalid_argument("Operation type must be specified for field transformation.")
        case "set_to_server_value":
            if transform.set_to_server_value != REQUEST_TIME:
                raise invalid_argument("ServerValue type must be specified for set_to_server_value transformation.")
        case "increment" | "maximum" | "minimum":
            if getattr(transform, kind).WhichOneof("value_type") not in ("integer_value", "double_value"):
                raise invalid_argument("Input must be int64 or double.")
        case _:
            for element in getattr(transform, kind).values:
                check_value(element, depth=depth + 1, in_array=True)


def apply_transforms(fields: Proto, transforms: Iterable[Proto], request_time_micros: int) -> list[Proto]:
    """Changes `fields` in place; returns what each transform answers."""
    return [_apply(fields, transform, request_time_micros) for transform in transforms]


def _apply(fields: Proto, transform: Proto, request_time_micros: int) -> Proto:
    path = parse_field_path(transform.field_path)
    old = get_field(fields, path)
    kind = transform.WhichOneof("transform_type")
    match kind:
        case "set_to_server_value":
            # Server time has millisecond precision, though the commit's own time has microseconds.
            new = answer = Value()
            stamp = new.timestamp_value
            millis = request_time_micros // 1000
            stamp.seconds, stamp.nanos = millis // 1000, millis % 1000 * 1_000_000
        case "increment":
            new = answer = _incremented(old, transform.increment)
        case "maximum":
            new = answer = _extreme(old, transform.maximum, larger=True)
        case "minimum":
            new = answer = _extreme(old, transform.minimum, larger=False)
        case "append_missing_elements":
            new, answer = _united(old, transform.append_missing_elements.values), Value(null_value=0)
        case _:
            new, answer = _without(old, transform.remove_all_from_array.values), Value(null_value=0)
    if new is not old:
        copy = Value()
        copy.CopyFrom(new)
        set_field(fields, path, copy)
    result = Value()
    result.CopyFrom(answer)
    return result


def _number(value: Proto | None) -> float | int | None:
    match value.WhichOneof("value_type") if value is not None else None:
        case "integer_value":
            integer: int = value.integer_value  # type: ignore[union-attr]  # the match proved that it is there
            return integer
        case "double_value":
            double: float = value.double_value  # type: ignore[union-attr]  # the match proved that it is there
            return double
    return None


def _incremented(old: Proto | None, operand: Proto) -> Proto:
    stored, by = _number(old), _number(operand)
    assert by is not None, "checked before"
    if stored is None:
        return operand
    if isinstance(stored, int) and isinstance(by, int):
        return Value(integer_value=min(max(stored + by, _MIN_INTEGER), _MAX_INTEGER))
    return Value(double_value=float(stored) + float(by))


def _extreme(old: Proto | None, operand: Proto, *, larger: bool) -> Proto:
    stored, other = _number(old), _number(operand)
    assert other is not None, "checked before"
    if stored is None:
        return operand
    if math.isnan(other):
        return operand
    if math.isnan(stored):
        return old
    return operand if (other > stored if larger else other < stored) else old


def _elements(old: Proto | None) -> list[Proto]:
    if old is not None and old.WhichOneof("value_type") == "array_value":
        return list(old.array_value.values)
    return []


def _array(elements: Iterable[Proto]) -> Proto:
    array = Value()
    array.array_value.SetInParent()
    array.array_value.values.extend(elements)
    return array


def _united(old: Proto | None, operands: Iterable[Proto]) -> Proto:
    elements = _elements(old)
    seen = {keys.value_key(element) for element in elements}
    for operand in operands:
        key = keys.value_key(operand)
        if key not in seen:
            seen.add(key)
            elements.append(operand)
    return _array(elements)


def _without(old: Proto | None, operands: Iterable[Proto]) -> Proto:
    removed = {keys.value_key(operand) for operand in operands}
    return _array(element for element in _elements(old) if keys.value_key(element) not in removed)
