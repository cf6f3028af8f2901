"""Field paths, and reading, writing and masking the fields of a document.

A path is a tuple of names: `address.city` is `("address", "city")`, and names that are no identifiers stand in
backquotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from firestore_emulator.documents import keys
from firestore_emulator.documents.protos import Document, Proto
from firestore_emulator.rpc.errors import invalid_argument

FieldPath = tuple[str, ...]

NAME_PATH: FieldPath = ("__name__",)
"""The document's own name, in filters, orders and projections."""

MAX_FIELD_NAME_BYTES = 1_500
MAX_FIELD_PATH_BYTES = 1_499
"""Of a path in a request, with its dots. Google documents 1,500, and production refuses 1,500 in these words."""
MAX_PATH_ELEMENTS = 20
VECTOR_TYPE = "__type__"

_SEGMENT = re.compile(r"([a-zA-Z_][a-zA-Z_0-9]*)|`((?:[^`\\]|\\.)+)`", re.DOTALL)
_RESERVED = re.compile(r"__.*__", re.DOTALL)


@lru_cache(maxsize=4_096)
def parse_field_path(text: str, *, is_asked: bool = False) -> FieldPath:
    """`is_asked`: in a filter or an order, where a path may lead to a vector's `__type__`, though it finds nothing."""
    if not text:
        raise invalid_argument("Invalid empty property path string.")
    path: list[str] = []
    position = 0
    while True:
        match = _SEGMENT.match(text, position)
        if match is None:
            raise _malformed(text)
        name = match[1] if match[1] is not None else re.sub(r"\\(.)", r"\1", match[2], flags=re.DOTALL)
        path.append(name)
        position = match.end()
        if position == len(text):
            break
        if text[position] != ".":
            raise _malformed(text)
        position += 1
    found = tuple(path)
    if len(found) > MAX_PATH_ELEMENTS:
        raise invalid_argument(f"paths must have at most {MAX_PATH_ELEMENTS} elements")
    if len(text) > MAX_FIELD_PATH_BYTES // 4 and path_bytes(found) > MAX_FIELD_PATH_BYTES:
        raise invalid_argument("property path is longer than 1500 bytes.")
    if found != NAME_PATH:
        for position, name in enumerate(found):
            if is_asked and position and name == VECTOR_TYPE:
                continue
            if _RESERVED.fullmatch(name):
                raise invalid_argument(f"Invalid reserved name in field path {name}")
    return found


def path_bytes(path: FieldPath) -> int:
    return sum(len(name.encode()) for name in path) + len(path) - 1


def format_field_path(path: FieldPath) -> str:
    return ".".join(
        name
        if re.fullmatch(r"[a-zA-Z_][a-zA-Z_0-9]*", name)
        else "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"
        for name in path
    )


def get_field(fields: Proto, path: FieldPath) -> Proto | None:
    """The value at a path, or None where there is none. `fields` is the map of a document or of a map value."""
    for name in path[:-1]:
        if name not in fields:
            return None
        value = fields[name]
        if not _is_map(value):
            return None
        fields = value.map_value.fields
    return fields.get(path[-1])


def _is_map(value: Proto) -> bool:
    """A vector is stored as a map, but no path leads into it."""
    return value.WhichOneof("value_type") == "map_value" and not keys.is_vector(value.map_value.fields)


def set_field(fields: Proto, path: FieldPath, value: Proto) -> None:
    """Puts a value at a path. What stands in the way and is no map gives place to one."""
    for name in path[:-1]:
        inner = fields[name]
        if not _is_map(inner):
            inner.Clear()
            inner.map_value.SetInParent()
        fields = inner.map_value.fields
    fields[path[-1]].CopyFrom(value)


def delete_field(fields: Proto, path: FieldPath) -> None:
    for name in path[:-1]:
        if name not in fields or not _is_map(fields[name]):
            return
        fields = fields[name].map_value.fields
    if path[-1] in fields:
        del fields[path[-1]]


def merge_masked(target: Proto, source: Proto, mask: Iterable[FieldPath]) -> None:
    """Copies each masked field of `source`; a masked field that `source` has not is deleted."""
    for path in mask:
        if path == NAME_PATH:
            continue
        if len(path) == 1:
            (name,) = path
            if name in source:
                target[name].CopyFrom(source[name])
            elif name in target:
                del target[name]
            continue
        value = get_field(source, path)
        if value is None:
            delete_field(target, path)
        else:
            set_field(target, path, value)


def project(document: Proto, mask: Iterable[FieldPath]) -> Proto:
    """The document with only the masked fields."""
    shown = Document(name=document.name)
    if document.HasField("update_time"):  # a missing document, listed for what is below it, has no times
        shown.create_time.CopyFrom(document.create_time)
        shown.update_time.CopyFrom(document.update_time)
    for path in mask:
        value = get_field(document.fields, path)
        if value is not None:
            set_field(shown.fields, path, value)
    return shown


def _malformed(text: str) -> Exception:
    return invalid_argument(
        f'Invalid property path "{text}". Unquoted property paths must match regex ([a-zA-Z_][a-zA-Z_0-9]*), '
        "and quoted property paths must match regex (`(?:[^`\\\\]|(?:\\\\.))+`)"
    )
