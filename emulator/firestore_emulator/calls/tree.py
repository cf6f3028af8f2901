"""The tree of names, now or at an earlier moment: what lies directly below a document or a collection.

A document that does not exist is in the tree if documents lie below it. Children are found by leaps over the stored
keys, however deep the tree is. At an earlier moment the documents that have changed since are passed over, and those of
them that existed then are put back.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from firestore_emulator.documents import keys
from firestore_emulator.documents.names import Location
from firestore_emulator.storage.engine import Engine


def child_collections(engine: Engine, parent: Location, after: bytes, at_micros: int | None) -> Iterator[str]:
    """The ids of the collections below a document or the root, also those that hold only deeper documents.

    `after` is the key of the segment to go on behind.
    """
    yield from _children(engine, parent, after, at_micros)


def child_documents(engine: Engine, collection: Location, after: bytes, at_micros: int | None) -> Iterator[Location]:
    """The documents of a collection in name order, also those that do not exist but have documents below them."""
    for name in _children(engine, collection, after, at_micros):
        yield collection.child(name)


def _children(engine: Engine, above: Location, after: bytes, at_micros: int | None) -> Iterator[str]:
    changed = set() if at_micros is None else _changed_below(engine, above, at_micros)
    depth = len(above.segments)
    put_back = {location.segments[depth] for location in changed if engine.get(location, at_micros) is not None}
    then = sorted(key for key in map(keys.segment_key, put_back) if key > after)
    names = {keys.segment_key(segment): segment for segment in put_back}
    unchanged = _stored_children(engine, above, after, {keys.name_key(location) for location in changed})
    last = b""
    for key, segment in heapq.merge(unchanged, ((key, names[key]) for key in then)):
        if key != last:
            last = key
            yield segment


def _changed_below(engine: Engine, above: Location, at_micros: int) -> set[Location]:
    depth = len(above.segments)
    return {
        location
        for location in engine.history.changed_since(above.database, at_micros)
        if location.segments[:depth] == above.segments and len(location.segments) > depth
    }


def _stored_children(
    engine: Engine, above: Location, after: bytes, passed_over: set[bytes]
) -> Iterator[tuple[bytes, str]]:
    """The children that hold a stored document which is not passed over, each with its key."""
    prefix, depth = keys.name_key(above), len(above.segments)
    lower, upper = prefix + (after + keys.AFTER if after else b"\x00"), prefix + keys.AFTER
    while (found := engine.storage.first_below(lower, upper)) is not None:
        if found in passed_over:
            lower = found + b"\x00"
            continue
        segment = keys.split_segments(found)[depth]
        key = keys.segment_key(segment)
        yield key, segment
        lower = prefix + key + keys.AFTER
