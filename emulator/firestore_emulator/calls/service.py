"""`google.firestore.v1.Firestore`: each call parsed, handed to the engine, and answered when it is settled."""

from __future__ import annotations

from collections.abc import AsyncIterator

from google.protobuf import empty_pb2

from firestore_emulator.calls.listing import Listing, guarded_query
from firestore_emulator.calls.masks import mask_of, masked
from firestore_emulator.calls.named import Named
from firestore_emulator.calls.partition import partition
from firestore_emulator.calls.reading import Readings
from firestore_emulator.calls.run_query import Queries
from firestore_emulator.calls.writing import Writing
from firestore_emulator.documents import protos
from firestore_emulator.documents.keys import name_key
from firestore_emulator.documents.names import parse_document
from firestore_emulator.documents.protos import Proto
from firestore_emulator.documents.times import set_stamp
from firestore_emulator.listen.stream import listen
from firestore_emulator.meters.billing import reads_of_query
from firestore_emulator.rpc.errors import invalid_argument, not_found, unimplemented
from firestore_emulator.rpc.service import BidiStream, Call, Method, ServerStream, Service, Unary, UnaryHandler
from firestore_emulator.rules.guard import Guard
from firestore_emulator.storage.databases import Databases
from firestore_emulator.storage.engine import Engine
from firestore_emulator.transactions.commit_delay import CommitDelay
from firestore_emulator.transactions.transaction import Concurrency
from firestore_emulator.transactions.transactions import Transactions

NAME = "google.firestore.v1.Firestore"
METADATA = "Metadata operations"


class FirestoreService:
    def __init__(
        self,
        engine: Engine,
        databases: Databases | None = None,
        concurrency: Concurrency = Concurrency.PESSIMISTIC,
        commit_delay: CommitDelay | None = None,
        guard: Guard | None = None,
    ) -> None:
        self._engine = engine
        self._billing = engine.billing
        self._guard = guard or Guard(engine)
        self._transactions = Transactions(engine, concurrency, commit_delay)
        self._named = Named(databases or Databases(engine))
        self._readings = Readings(engine, self._transactions)
        self._queries = Queries(engine, self._readings, self._named.parent, self._guard)
        self._listing = Listing(engine)
        self._writing = Writing(engine, self._transactions, self._named, self._guard)

    def table(self) -> Service:
        methods: dict[str, Method] = {
            "GetDocument": Unary(protos.GetDocumentRequest, self.get_document),
            "ListDocuments": Unary(protos.ListDocumentsRequest, self.list_documents),
            "CreateDocument": Unary(protos.CreateDocumentRequest, self._writing.create_document),
            "UpdateDocument": Unary(protos.UpdateDocumentRequest, self._writing.update_document),
            "DeleteDocument": Unary(protos.DeleteDocumentRequest, self._writing.delete_document),
            "BatchGetDocuments": ServerStream(protos.BatchGetDocumentsRequest, self.batch_get_documents),
            "BeginTransaction": Unary(protos.BeginTransactionRequest, self.begin_transaction),
            "Commit": Unary(protos.CommitRequest, self._writing.commit),
            "Rollback": Unary(protos.RollbackRequest, self.rollback),
            "RunQuery": ServerStream(protos.RunQueryRequest, self._queries.run),
            "RunAggregationQuery": ServerStream(protos.RunAggregationQueryRequest, self._queries.aggregate),
            "Listen": BidiStream(protos.ListenRequest, self.listen),
            "ListCollectionIds": Unary(protos.ListCollectionIdsRequest, self.list_collection_ids),
            "BatchWrite": Unary(protos.BatchWriteRequest, self._writing.batch_write),
            "PartitionQuery": Unary(protos.PartitionQueryRequest, self.partition_query),
            "Write": BidiStream(protos.WriteRequest, self._writing.write),
            "ExecutePipeline": Unary(protos.ExecutePipelineRequest, _unsupported("ExecutePipeline")),
        }
        return Service(NAME, methods)

    # --- reads -------------------------------------------------------------------------------------------------------

    async def get_document(self, request: Proto, call: Call) -> Proto:
        location = self._named.document(request.name)
        mask = mask_of(request)
        reading = self._readings.of(request, location.database)
        await self._readings.documents(reading, [location])
        if (enforcer := self._guard.enforcer(call, location.database)) is not None:
            enforcer.get([location], reading.at_micros, in_transaction=reading.transaction is not None)
        document = self._engine.get(location, reading.at_micros)
        self._billing.read("GetDocument", [location])
        await self._engine.settled()
        if document is None:
            raise not_found(f"Document ({location.name}) not found.")
        return masked(document, mask)

    async def batch_get_documents(self, request: Proto, call: Call) -> AsyncIterator[Proto]:
        database = self._named.database(request.database)
        mask = mask_of(request)
        locations = list(dict.fromkeys(map(parse_document, request.documents)))
        for location in locations:
            if location.database != database:
                raise invalid_argument(f'The document "{location.name}" is not in the database of the request.')
        reading = self._readings.of(request, database)
        await self._readings.documents(reading, locations)
        if (enforcer := self._guard.enforcer(call, database)) is not None:
            enforcer.get(locations, reading.at_micros, in_transaction=reading.transaction is not None)
        if reading.began and reading.transaction is not None:
            yield protos.BatchGetDocumentsResponse(transaction=reading.transaction.id)
        found, missing = [], []
        read_micros = self._readings.micros(reading)
        for location in sorted(locations, key=name_key):
            answer = protos.BatchGetDocumentsResponse()
            set_stamp(answer.read_time, read_micros)
            document = self._engine.get(location, reading.at_micros)
            if document is None:
                answer.missing = location.name
                missing.append(answer)
            else:
                answer.found.CopyFrom(masked(document, mask))
                found.append(answer)
        self._billing.read("BatchGetDocuments", locations)
        await self._engine.settled()
        for answer in (*found, *missing):  # by name, the missing ones last, as production answers
            yield answer

    async def partition_query(self, request: Proto, call: Call) -> Proto:
        parent = self._named.parent(request.parent)
        self._guard.require_admin(call, parent.database, "Partition queries")
        reading = self._readings.of(request, parent.database)
        answer = partition(self._engine, parent, request, reading.at_micros)
        self._billing.add("PartitionQuery", parent.database, None, reads=1)
        await self._engine.settled()
        return answer

    async def list_documents(self, request: Proto, call: Call) -> Proto:
        parent = self._named.parent(request.parent)
        reading = self._readings.of(request, parent.database)
        if request.show_missing:
            self._guard.require_admin(call, parent.database, METADATA)
        await self._readings.query(reading, self._listing.query(parent, request))
        if (enforcer := self._guard.enforcer(call, parent.database)) is not None:
            asked = guarded_query(request)
            enforcer.list(parent, asked, reading.at_micros, in_transaction=reading.transaction is not None)
        answer = self._listing.documents(parent, request, reading.at_micros)
        reads = reads_of_query(len(answer.documents), skipped=0)
        self._billing.add("ListDocuments", parent.database, request.collection_id, reads=reads)
        await self._engine.settled()
        return answer

    async def list_collection_ids(self, request: Proto, call: Call) -> Proto:
        parent = self._named.parent(request.parent)
        self._guard.require_admin(call, parent.database, METADATA)
        reading = self._readings.of(request, parent.database)
        answer = self._listing.collection_ids(parent, request, reading.at_micros)
        self._billing.add("ListCollectionIds", parent.database, None, reads=1)
        await self._engine.settled()
        return answer

    def listen(self, requests: AsyncIterator[Proto], call: Call) -> AsyncIterator[Proto]:
        return listen(self._engine, requests, self._named.database, self._guard, call)

    # --- transactions ------------------------------------------------------------------------------------------------

    async def begin_transaction(self, request: Proto, call: Call) -> Proto:
        database = self._named.database(request.database)
        options = request.options if request.HasField("options") else None
        return protos.BeginTransactionResponse(transaction=self._transactions.begin(database, options).id)

    async def rollback(self, request: Proto, call: Call) -> Proto:
        self._named.database(request.database)
        self._transactions.rollback(request.transaction)
        return empty_pb2.Empty()


def _unsupported(method: str) -> UnaryHandler:
    async def refuse(request: Proto, call: Call) -> Proto:
        raise unimplemented(f"{method} is not supported by this emulator.")

    return refuse
