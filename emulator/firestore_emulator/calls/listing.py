"""ListDocuments and ListCollectionIds: pages in a stable order, now or at an earlier moment."""

from __future__ import annotations

import base64
import binascii
from dataclasses import replace

from firestore_emulator.calls.tree import child_collections, child_documents
from firestore_emulator.documents import keys
from firestore_emulator.documents.fields import NAME_PATH, parse_field_path, project
from firestore_emulator.documents.names import Location, check_id, location_of, unescaped
from firestore_emulator.documents.protos import (
    Document,
    ListCollectionIdsResponse,
    ListDocumentsResponse,
    Proto,
    StructuredQuery,
)
from firestore_emulator.queries.query import Bound, Order, Query
from firestore_emulator.queries.structured_query import DESCENDING, parse_query
from firestore_emulator.rpc.errors import RpcError, invalid_argument
from firestore_emulator.storage.engine import Engine


class Listing:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def query(self, parent: Location, request: Proto) -> Query:
        """What the answer depends on, all of its pages together."""
        if not request.show_missing:
            return _query(parent, request)
        # A document that does not exist is shown for what lies below it, so all of that is part of the answer.
        collection = parent.child(request.collection_id)
        return Query(
            parent=collection,
            collection_id=None,
            descendants=True,
            alternatives=((),),
            orders=(Order(NAME_PATH, descending=False),),
            explicit_orders=0,
            start=None,
            end=None,
            offset=0,
            limit=None,
            projection=None,
        )

    def documents(self, parent: Location, request: Proto, at_micros: int | None) -> Proto:
        if request.page_size < 0:
            raise invalid_argument("Page size must be nonnegative.")
        if request.show_missing and request.order_by:
            raise invalid_argument("cannot specify an order when show_missing is true")
        if request.show_missing:
            found, positions = self._with_missing(parent, request, at_micros)
        else:
            found, positions = self._existing(parent, request, at_micros)
        answer = ListDocumentsResponse()
        mask = [parse_field_path(path) for path in request.mask.field_paths] if request.HasField("mask") else None
        for document in found:
            answer.documents.append(document if mask is None else project(document, mask))
        if request.page_size and len(found) == request.page_size:
            answer.next_page_token = _token(positions[-1])
        return answer

    def _existing(self, parent: Location, request: Proto, at_micros: int | None) -> tuple[list[Proto], list[bytes]]:
        query = _query(parent, request)
        if request.page_token:
            query = replace(query, start=Bound(_read_token(request.page_token), behind=True))
        documents = self._engine.run(query, at_micros)
        return documents, [query.position(location_of(one), one) or b"" for one in documents[-1:]]

    def _with_missing(self, parent: Location, request: Proto, at_micros: int | None) -> tuple[list[Proto], list[bytes]]:
        if not request.collection_id:
            raise invalid_argument("collection id must be set when show_missing is true")
        check_id(request.collection_id, "Collection")
        collection = parent.child(request.collection_id)
        found: list[Proto] = []
        after = _read_token(request.page_token) if request.page_token else b""
        for location in child_documents(self._engine, collection, after, at_micros):
            found.append(self._engine.get(location, at_micros) or Document(name=location.name))
            if len(found) == request.page_size:
                break
        return found, [keys.segment_key(found[-1].name.rsplit("/", 1)[-1])] if found else []

    def collection_ids(self, parent: Location, request: Proto, at_micros: int | None) -> Proto:
        if request.page_size < 0:
            raise invalid_argument("page_size must be greater than or equal to zero.")
        after = _read_token(request.page_token) if request.page_token else b""
        answer = ListCollectionIdsResponse()
        for collection_id in child_collections(self._engine, parent, after, at_micros):
            answer.collection_ids.append(unescaped(collection_id))
            if len(answer.collection_ids) == request.page_size:
                answer.next_page_token = _token(keys.segment_key(collection_id))
                break
        return answer


PAGE_SIZE_UNDER_RULES = 30
"""What rules see as the limit of a request that names none, as in Google's emulator."""


def guarded_query(request: Proto) -> Proto:
    """The query that a listing is, as security rules see it."""
    query = _structured(request)
    query.limit.value = request.page_size or PAGE_SIZE_UNDER_RULES
    return query


def _query(parent: Location, request: Proto) -> Query:
    query = _structured(request)
    if request.page_size:
        query.limit.value = request.page_size
    return parse_query(parent, query)


def _structured(request: Proto) -> Proto:
    query = StructuredQuery()
    query.from_.add().collection_id = request.collection_id
    for clause in filter(None, (part.strip() for part in request.order_by.split(","))):
        words = clause.split()
        if len(words) > 2 or (len(words) == 2 and words[1].lower() not in ("asc", "desc")):
            raise invalid_argument(f'Invalid order by clause "{clause}".')
        order = query.order_by.add()
        order.field.field_path = words[0]
        if words[-1].lower() == "desc" and len(words) == 2:
            order.direction = DESCENDING
    return query


def _token(position: bytes) -> str:
    return base64.urlsafe_b64encode(position).decode()


def _read_token(token: str) -> bytes:
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _bad_token() from None


def _bad_token() -> RpcError:
    return invalid_argument("invalid page token")
