"""Which index entries a change writes in production, by the range that they fall into.

Every field has an index of its own unless an override takes it away, and composite indexes come from the index file. A
range is one value's place in an index: behind equal values of the fields before it. In an index of `status` and
`createdAt`, the documents with `status = queued` are a range of `createdAt`. Document ids are a range of each
collection.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from firestore_emulator.documents import keys
from firestore_emulator.documents.fields import FieldPath, format_field_path, get_field
from firestore_emulator.documents.index_keys import index_key
from firestore_emulator.documents.names import Location
from firestore_emulator.documents.protos import Proto
from firestore_emulator.queries.indexes import CONTAINS, CompositeIndex, IndexRules

NAME = "__name__"
_CAN_GROW = frozenset({keys.NUMBER, keys.TIMESTAMP, keys.STRING})
"""The types whose values may follow time. Others are not looked at."""


class IndexRange(NamedTuple):
    database: str
    collection: str
    """Its path below the database; its id alone, if the index spans all collections of that id."""
    is_group: bool
    fields: tuple[str, ...]
    """All fields of the index."""
    position: int
    """Which of them the range is of."""
    prefix: tuple[bytes, ...]
    """The keys of the values before it."""


class IndexEntry(NamedTuple):
    range: IndexRange
    key: bytes


def written_entries(
    location: Location, old: Proto | None, new: Proto, rules: IndexRules | None
) -> Iterator[IndexEntry]:
    """The entries that are new with the change. Those that a document loses are not counted: they are spread by age."""
    collection = "/".join(location.segments[:-1])
    if old is None:
        range_ = IndexRange(location.database, collection, False, (NAME,), 0, ())
        yield IndexEntry(range_, keys.segment_key(location.segments[-1]))
    for path, key in _leaves(new.fields, ()):
        if old is not None and _key(old, path) == key:
            continue
        field = (format_field_path(path),)
        for is_group in _scopes(location.collection_id, path, rules):
            scope = location.collection_id if is_group else collection
            yield IndexEntry(IndexRange(location.database, scope, is_group, field, 0, ()), key)
    if rules is not None:
        for index in rules.composites_of(location.collection_id):
            yield from _composite(index, location, old, new)


def _leaves(fields: Proto, above: FieldPath) -> Iterator[tuple[FieldPath, bytes]]:
    for name in fields:
        value = fields[name]
        path = (*above, name)
        kind = value.WhichOneof("value_type")
        if kind == "map_value":
            if not keys.is_vector(value.map_value.fields):
                yield from _leaves(value.map_value.fields, path)
            continue
        key = index_key(value) if kind != "array_value" else b""
        if key and key[0] in _CAN_GROW:
            yield path, key


def _scopes(collection_id: str, path: FieldPath, rules: IndexRules | None) -> set[bool]:
    """Whether the field's ordered indexes span a collection, a collection group, both or neither."""
    if rules is None:
        return {False}
    return {is_group for kind, is_group in rules.singles(collection_id, path) if kind != CONTAINS}


def _composite(index: CompositeIndex, location: Location, old: Proto | None, new: Proto) -> Iterator[IndexEntry]:
    parts = index.parts[:-1]  # the name is the last
    after = [_keys_of(new, path, kind) for path, kind in parts]
    if not all(after) or (old is not None and after == [_keys_of(old, path, kind) for path, kind in parts]):
        return
    scope = location.collection_id if index.group_scope else "/".join(location.segments[:-1])
    fields = tuple(format_field_path(path) for path, _ in parts)
    prefixes: list[tuple[bytes, ...]] = [()]
    for position, found in enumerate(after):
        for prefix in prefixes:
            range_ = IndexRange(location.database, scope, index.group_scope, fields, position, prefix)
            yield from (IndexEntry(range_, key) for key in found if key[0] in _CAN_GROW)
        prefixes = [(*prefix, key) for prefix in prefixes for key in found]


def _keys_of(document: Proto, path: FieldPath, kind: str) -> tuple[bytes, ...]:
    """Several for an array that is indexed by its elements; none if the document has no entry in the index."""
    value = get_field(document.fields, path)
    if value is None:
        return ()
    if kind == CONTAINS:
        return tuple(dict.fromkeys(map(index_key, value.array_value.values)))
    return (index_key(value),)


def _key(document: Proto, path: FieldPath) -> bytes | None:
    value = get_field(document.fields, path)
    return None if value is None else index_key(value)
