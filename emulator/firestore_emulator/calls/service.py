"""`google.firestore.v1.Firestore`: each call parsed, handed to the engine, and answered when it is settled."""

from __future__ import annotations

import secrets
import string
from collections.abc import AsyncIterator
from functools import partial
from itertools import count

from google.protobuf import empty_pb2

from firestore_emulator.calls.listing import Listing, guarded_query
from firestore_emulator.calls.partition import partition
from firestore_emulator.calls.reading import Readings
from firestore_emulator.calls.run_query import Queries
from firestore_emulator.calls.write_stream import write_stream
from firestore_emulator.documents import protos
from firestore_emulator.documents.fields import FieldPath, parse_field_path, project
from firestore_emulator.documents.keys import name_key
from firestore_emulator.documents.names import Location, check_id, parse_database, parse_document, parse_parent
from firestore_emulator.documents.protos import Proto
from firestore_emulator.documents.times import set_stamp
from firestore_emulator.documents.writes import CheckedWrite, check_repeated, check_write
from firestore_emulator.listen.stream import listen
from firestore_emulator.meters.billing import reads_of_query
from firestore_emulator.rpc.errors import RpcError, invalid_argument, not_found, unimplemented
from firestore_emulator.rpc.service import BidiStream, Call, Method, ServerStream, Service, Unary, UnaryHandler
from firestore_emulator.rules.guard import Guard
from firestore_emulator.storage.databases import Databases
from firestore_emulator.storage.engine import Engine
from firestore_emulator.storage.quick_commit import QuickCommits, QuickCommitted
from firestore_emulator.transactions.commit_delay import CommitDelay
from firestore_emulator.transactions.transaction import Concurrency
from firestore_emulator.transactions.transactions import Check, Transactions

MAX_REQUEST_BYTES = 10 * 1024 * 1024
NAME = "google.firestore.v1.Firestore"
METADATA = "Metadata operations"
_ID_LETTERS = string.ascii_letters + string.digits


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
        self._quick_commits = QuickCommits(engine)
        self._readings = Readings(engine, self._transactions)
        self._queries = Queries(engine, self._readings, self._parent, self._guard)
        self._listing = Listing(engine)
        self._databases = databases or Databases(engine)
        self._write_streams = count()

    def table(self) -> Service:
        methods: dict[str, Method] = {
            "GetDocument": Unary(protos.GetDocumentRequest, self.get_document),
            "ListDocuments": Unary(protos.ListDocumentsRequest, self.list_documents),
            "CreateDocument": Unary(protos.CreateDocumentRequest, self.create_document),
            "UpdateDocument": Unary(protos.UpdateDocumentRequest, self.update_document),
            "DeleteDocument": Unary(protos.DeleteDocumentRequest, self.delete_document),
            "BatchGetDocuments": ServerStream(protos.BatchGetDocumentsRequest, self.batch_get_documents),
            "BeginTransaction": Unary(protos.BeginTransactionRequest, self.begin_transaction),
            "Commit": Unary(protos.CommitRequest, self.commit),
            "Rollback": Unary(protos.RollbackRequest, self.rollback),
            "RunQuery": ServerStream(protos.RunQueryRequest, self._queries.run),
            "RunAggregationQuery": ServerStream(protos.RunAggregationQueryRequest, self._queries.aggregate),
            "Listen": BidiStream(protos.ListenRequest, self.listen),
            "ListCollectionIds": Unary(protos.ListCollectionIdsRequest, self.list_collection_ids),
            "BatchWrite": Unary(protos.BatchWriteRequest, self.batch_write),
            "PartitionQuery": Unary(protos.PartitionQueryRequest, self.partition_query),
            "Write": BidiStream(protos.WriteRequest, self.write),
            "ExecutePipeline": Unary(protos.ExecutePipelineRequest, _unsupported("ExecutePipeline")),
        }
        return Service(NAME, methods)

    # --- reads -------------------------------------------------------------------------------------------------------

    async def get_document(self, request: Proto, call: Call) -> Proto:
        location = self._document(request.name)
        mask = _mask(request)
        reading = self._readings.of(request, location.database)
        await self._readings.documents(reading, [location])
        if (enforcer := self._guard.enforcer(call, location.database)) is not None:
            enforcer.get([location], reading.at_micros, in_transaction=reading.transaction is not None)
        document = self._engine.get(location, reading.at_micros)
        self._billing.read("GetDocument", [location])
        await self._engine.settled()
        if document is None:
            raise not_found(f"Document ({location.name}) not found.")
        return _masked(document, mask)

    async def batch_get_documents(self, request: Proto, call: Call) -> AsyncIterator[Proto]:
        database = self._database(request.database)
        mask = _mask(request)
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
                answer.found.CopyFrom(_masked(document, mask))
                found.append(answer)
        self._billing.read("BatchGetDocuments", locations)
        await self._engine.settled()
        for answer in (*found, *missing):  # by name, the missing ones last, as production answers
            yield answer

    async def partition_query(self, request: Proto, call: Call) -> Proto:
        parent = self._parent(request.parent)
        self._guard.require_admin(call, parent.database, "Partition queries")
        reading = self._readings.of(request, parent.database)
        answer = partition(self._engine, parent, request, reading.at_micros)
        self._billing.add("PartitionQuery", parent.database, None, reads=1)
        await self._engine.settled()
        return answer

    async def list_documents(self, request: Proto, call: Call) -> Proto:
        parent = self._parent(request.parent)
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
        parent = self._parent(request.parent)
        self._guard.require_admin(call, parent.database, METADATA)
        reading = self._readings.of(request, parent.database)
        answer = self._listing.collection_ids(parent, request, reading.at_micros)
        self._billing.add("ListCollectionIds", parent.database, None, reads=1)
        await self._engine.settled()
        return answer

    def listen(self, requests: AsyncIterator[Proto], call: Call) -> AsyncIterator[Proto]:
        return listen(self._engine, requests, self._database, self._guard, call)

    # --- writes ------------------------------------------------------------------------------------------------------

    async def commit(self, request: Proto, call: Call) -> Proto:
        return await self._commit(request, call, "Commit")

    async def _commit(self, request: Proto, call: Call, billed_as: str) -> Proto:
        database = self._database(request.database)
        _check_size(request)
        if not request.transaction and (quick := self._quick(request, call)):
            for collection, count in quick.writes.items():
                self._billing.add(billed_as, database, collection, writes=count)
            await self._engine.settled()
            return quick.answer
        # Found before the writes are checked: even a commit that is refused ends its transaction.
        transaction = self._transactions.find(request.transaction, database) if request.transaction else None
        try:
            writes = [check_write(write, database) for write in request.writes]
            check_repeated(writes)
        except RpcError:
            if transaction is not None and not transaction.read_only:
                self._transactions.rollback(transaction.id)
            raise
        committed = await self._transactions.commit(transaction, writes, self._check(call, database))
        answer = protos.CommitResponse()
        if committed is not None:
            answer.write_results.extend(committed.results)
            set_stamp(answer.commit_time, committed.commit_micros)
            if call.is_billed:
                self._billing.committed(billed_as, database, writes)
        await self._engine.settled()
        return answer

    def _quick(self, request: Proto, call: Call) -> QuickCommitted | None:
        if not self._quick_commits.is_worth_trying(request.writes):
            return None
        if not call.is_billed or not self._transactions.is_idle:
            return None
        if self._guard.enforcer(call, request.database) is not None:
            return None
        return self._quick_commits.commit(request.database, request.writes)

    def write(self, requests: AsyncIterator[Proto], call: Call) -> AsyncIterator[Proto]:
        stream_id = str(next(self._write_streams))
        return write_stream(stream_id, requests, self._database, partial(self._commit, call=call, billed_as="Write"))

    async def batch_write(self, request: Proto, call: Call) -> Proto:
        """Not atomic: each write stands alone. What is malformed refuses the whole call."""
        database = self._database(request.database)
        self._guard.require_admin(call, database, "Batch writes")
        _check_size(request)
        writes = [check_write(write, database) for write in request.writes]
        if len({write.location for write in writes}) < len(writes):
            raise invalid_argument("the same document cannot be written more than once in a single request")
        answer = protos.BatchWriteResponse()
        made: list[CheckedWrite] = []
        for write in writes:
            result, status = answer.write_results.add(), answer.status.add()
            try:
                committed = await self._transactions.commit(None, [write])
            except RpcError as error:
                status.code, status.message = error.code.value[0], error.message
            else:
                assert committed is not None, "one write was given"
                result.CopyFrom(committed.results[0])
                made.append(write)
        self._billing.committed("BatchWrite", database, made)
        await self._engine.settled()
        return answer

    async def create_document(self, request: Proto, call: Call) -> Proto:
        parent = self._parent(request.parent)
        _check_size(request)
        if not request.collection_id:
            raise invalid_argument("collectionId is the empty string.")
        if request.document.name:
            raise invalid_argument("document.name must not be set")
        document_id = request.document_id or "".join(secrets.choice(_ID_LETTERS) for _ in range(20))
        for segment in (request.collection_id, document_id):
            if "/" in segment:
                raise invalid_argument(f'Resource id "{segment}" is invalid because it contains "/".')
            check_id(segment, "Resource")
        write = protos.Write(update=request.document)
        write.update.name = parent.child(request.collection_id, document_id).name
        write.current_document.exists = False
        return await self._write_one("CreateDocument", check_write(write, parent.database), request, call)

    async def update_document(self, request: Proto, call: Call) -> Proto:
        location = self._document(request.document.name)
        _check_size(request)
        write = protos.Write(update=request.document)
        if request.HasField("update_mask"):
            write.update_mask.CopyFrom(request.update_mask)
        if request.HasField("current_document"):
            write.current_document.CopyFrom(request.current_document)
        return await self._write_one("UpdateDocument", check_write(write, location.database), request, call)

    async def delete_document(self, request: Proto, call: Call) -> Proto:
        location = self._document(request.name)
        write = protos.Write(delete=request.name)
        if request.HasField("current_document"):
            write.current_document.CopyFrom(request.current_document)
        checked = check_write(write, location.database)
        await self._transactions.commit(None, [checked], self._check(call, location.database))
        self._billing.committed("DeleteDocument", location.database, [checked])
        await self._engine.settled()
        return empty_pb2.Empty()

    async def _write_one(self, billed_as: str, write: CheckedWrite, request: Proto, call: Call) -> Proto:
        mask = _mask(request)
        await self._transactions.commit(None, [write], self._check(call, write.location.database))
        self._billing.committed(billed_as, write.location.database, [write])
        document = self._engine.get(write.location)
        await self._engine.settled()
        assert document is not None, "it was written in this step"
        return _masked(document, mask)

    def _check(self, call: Call, database: str) -> Check | None:
        """What holds writes against the rules; None where none are to be enforced."""
        enforcer = self._guard.enforcer(call, database)
        return None if enforcer is None else enforcer.writes

    # --- transactions ------------------------------------------------------------------------------------------------

    async def begin_transaction(self, request: Proto, call: Call) -> Proto:
        database = self._database(request.database)
        options = request.options if request.HasField("options") else None
        return protos.BeginTransactionResponse(transaction=self._transactions.begin(database, options).id)

    async def rollback(self, request: Proto, call: Call) -> Proto:
        self._database(request.database)
        self._transactions.rollback(request.transaction)
        return empty_pb2.Empty()

    # --- names -------------------------------------------------------------------------------------------------------

    def _database(self, name: str) -> str:
        database = parse_database(name)
        _, project_id, _, database_id = database.split("/")
        if not self._databases.exists(project_id, database_id):
            raise not_found(f"The database {database_id} does not exist for project {project_id}.")
        return database

    def _document(self, name: str) -> Location:
        location = parse_document(name)
        self._database(location.database)
        return location

    def _parent(self, name: str) -> Location:
        location = parse_parent(name)
        self._database(location.database)
        return location


def _mask(request: Proto) -> list[FieldPath] | None:
    return [parse_field_path(path) for path in request.mask.field_paths] if request.HasField("mask") else None


def _masked(document: Proto, mask: list[FieldPath] | None) -> Proto:
    return document if mask is None else project(document, mask)


def _check_size(request: Proto) -> None:
    if request.ByteSize() > MAX_REQUEST_BYTES:
        raise invalid_argument(f"Request payload size exceeds the limit: {MAX_REQUEST_BYTES} bytes.")


def _unsupported(method: str) -> UnaryHandler:
    async def refuse(request: Proto, call: Call) -> Proto:
        raise unimplemented(f"{method} is not supported by this emulator.")

    return refuse
