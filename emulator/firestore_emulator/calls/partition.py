"""PartitionQuery: the names at which the result of a collection group falls into parts of about equal size.

A split point is the name of the first document of a part, so that `end_at A`, `start_at A end_at B` and `start_at B`
are the whole and share nothing. All pages of one answer are of one moment: the token carries it.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterable

from google.protobuf.timestamp_pb2 import Timestamp

from firestore_emulator.documents.fields import NAME_PATH
from firestore_emulator.documents.names import Location
from firestore_emulator.documents.protos import PartitionQueryResponse, Proto
from firestore_emulator.documents.times import set_stamp
from firestore_emulator.queries.query import Query
from firestore_emulator.queries.structured_query import parse_query
from firestore_emulator.rpc.errors import invalid_argument
from firestore_emulator.storage.engine import Engine

_TOKEN = struct.Struct(">QI")
"""The moment in microseconds, and the number of the next split point."""


def partition(engine: Engine, parent: Location, request: Proto, at_micros: int | None) -> Proto:
    query = _checked(parent, request)
    first = 0
    if request.page_token:
        token_micros, first = _read_token(request.page_token)
        if at_micros is None:
            at_micros = _checked_moment(engine, parent.database, token_micros)
    if at_micros is None:
        at_micros = engine.moment()
    names = [document.name for document in engine.run(query, at_micros)]
    points = list(split_points(len(names), request.partition_count))
    last = first + request.page_size if request.page_size else len(points)
    answer = PartitionQueryResponse()
    for point in points[first:last]:
        cursor = answer.partitions.add(before=True)
        cursor.values.add().reference_value = names[point]
    if last < len(points):
        answer.next_page_token = base64.urlsafe_b64encode(_TOKEN.pack(at_micros, last)).decode()
    return answer


def split_points(count: int, most: int) -> Iterable[int]:
    """The indices at which new parts begin: at most `most`, and no part is empty."""
    parts = min(most + 1, count)
    return (number * count // parts for number in range(1, parts))


def _checked(parent: Location, request: Proto) -> Query:
    if parent.segments:
        raise invalid_argument("Only the database is allowed as the parent of a PartitionQuery.")
    if request.partition_count <= 0:
        raise invalid_argument("partition_count must be positive.")
    if request.page_size < 0:
        raise invalid_argument("page_size must not be negative.")
    query = parse_query(parent, request.structured_query)
    if query.collection_id is None or not query.descendants:
        raise invalid_argument("PartitionQuery needs a collection with all descendants.")
    [first, *others] = query.orders
    if not query.explicit_orders or first.path != NAME_PATH or first.descending or others:
        raise invalid_argument("PartitionQuery needs a query that is ordered by __name__ ascending.")
    asked = request.structured_query
    if any(asked.HasField(name) for name in ("where", "limit", "start_at", "end_at")) or asked.offset:
        raise invalid_argument("PartitionQuery allows no filter, limit, offset or cursor.")
    return query


def _checked_moment(engine: Engine, database: str, micros: int) -> int:
    stamp = Timestamp()
    set_stamp(stamp, micros)
    return engine.check_read_time(stamp, database)


def _read_token(token: str) -> tuple[int, int]:
    try:
        micros, number = _TOKEN.unpack(base64.b64decode(token, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, struct.error):
        raise invalid_argument("invalid page token") from None
    return micros, number
