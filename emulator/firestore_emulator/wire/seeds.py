"""Documents written as plain JSON: `{"words/hello": {"length": 5, "at": {"$timestamp": "2030-01-01T00:00:00Z"}}}`.

JSON has fewer kinds of values than Firestore. An object with one key that begins with `$` is one of the others:
`$timestamp`, `$reference` (a path in the same database), `$bytes` (base64), `$geopoint` ([latitude, longitude]) and
`$vector`.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from google.protobuf import json_format

from firestore_emulator.documents.protos import Proto, Value, Write
from firestore_emulator.rpc.errors import invalid_argument


def writes_of(content: dict[str, Any], root: str) -> list[Proto]:
    """`root` is the name of a database's documents."""
    writes = []
    for path, fields in content.items():
        if not isinstance(fields, dict):
            raise invalid_argument(f'The document "{path}" must be a JSON object.')
        write = Write()
        write.update.name = f"{root}/{path.strip('/')}"
        for name, item in fields.items():
            write.update.fields[name].CopyFrom(_value(item, root, f"{path}: {name}"))
        writes.append(write)
    return writes


def _value(item: Any, root: str, where: str) -> Proto:
    match item:
        case None:
            return Value(null_value=0)
        case bool():
            return Value(boolean_value=item)
        case int():
            if not -(2**63) <= item < 2**63:
                raise invalid_argument(f"{where}: {item} does not fit into 64 bits.")
            return Value(integer_value=item)
        case float():
            return Value(double_value=item)
        case str():
            return Value(string_value=item)
        case list():
            array = Value()
            array.array_value.SetInParent()
            array.array_value.values.extend(_value(one, root, where) for one in item)
            return array
        case dict() if len(item) == 1 and next(iter(item)).startswith("$"):
            [(kind, content)] = item.items()
            return _special(kind, content, root, where)
    made = Value()
    made.map_value.SetInParent()
    for name, one in item.items():
        made.map_value.fields[name].CopyFrom(_value(one, root, where))
    return made


def _special(kind: str, content: Any, root: str, where: str) -> Proto:
    try:
        match kind, content:
            case "$timestamp", str():
                return json_format.ParseDict({"timestampValue": content}, Value())
            case "$reference", str():
                return Value(reference_value=f"{root}/{content.strip('/')}")
            case "$bytes", str():
                return Value(bytes_value=base64.b64decode(content, validate=True))
            case "$geopoint", [latitude, longitude]:
                return json_format.ParseDict({"geoPointValue": {"latitude": latitude, "longitude": longitude}}, Value())
            case "$vector", list():
                return _value({"__type__": "__vector__", "value": [float(one) for one in content]}, root, where)
    except (json_format.ParseError, binascii.Error, ValueError, TypeError) as error:
        raise invalid_argument(f"{where}: {kind} cannot be read: {error}") from None
    raise invalid_argument(f"{where}: {kind} is none of $timestamp, $reference, $bytes, $geopoint and $vector.")
