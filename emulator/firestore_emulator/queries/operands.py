"""What a filter or a cursor compares with, checked and as a key."""

from __future__ import annotations

from firestore_emulator.documents import keys
from firestore_emulator.documents.fields import NAME_PATH, FieldPath, format_field_path
from firestore_emulator.documents.index_keys import index_key, is_too_large
from firestore_emulator.documents.names import Location, parse_document
from firestore_emulator.documents.protos import Proto, Value
from firestore_emulator.documents.values import check_value
from firestore_emulator.rpc.errors import invalid_argument


def compared_key(path: FieldPath, value: Proto, parent: Location, *, is_element: bool = False) -> bytes:
    """`is_element`: it is compared with the elements of an array."""
    if path != NAME_PATH:
        key = typed_key(value)
        if is_too_large(value):
            shown = format_field_path(path) + ("[*]" if is_element else "")
            raise invalid_argument(f"value for {shown} is too large to be used in a query")
        return key
    if value.WhichOneof("value_type") != "reference_value":
        raise invalid_argument("__key__ filter value must be a Key")
    return reference_key(value.reference_value, parent)


def _copy(value: Proto) -> Proto:
    """Checking cuts a time to microseconds, as stored ones are; compared by itself it keeps its digits."""
    copy = Value()
    copy.CopyFrom(value)
    return copy


def typed_key(value: Proto) -> bytes:
    if value.WhichOneof("value_type") == "array_value":
        # An array of arrays cannot be stored, but may be asked for.
        for element in value.array_value.values:
            check_value(element)
    elif value.WhichOneof("value_type") == "timestamp_value":
        check_value(_copy(value))
    else:
        check_value(value)
    return index_key(value)


def reference_key(name: str, parent: Location) -> bytes:
    location = parse_document(name)
    if location.database != parent.database:
        raise invalid_argument(
            f"The request was for database '{parent.database}' but was attempting to access database "
            f"'{location.database}'"
        )
    return keys.ended(keys.name_key(location))
