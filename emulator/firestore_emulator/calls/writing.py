"""The calls that write: each checked, held against the rules, committed, metered, and answered when it is settled."""

from __future__ import annotations

import secrets
import string
from collections.abc import AsyncIterator
from functools import partial
from itertools import count

from google.protobuf import empty_pb2

from firestore_emulator.calls.masks import mask_of, masked
from firestore_emulator.calls.named import Named
from firestore_emulator.calls.write_stream import write_stream
from firestore_emulator.documents import protos
from firestore_emulator.documents.names import check_id
from firestore_emulator.documents.protos import Proto
from firestore_emulator.documents.times import set_stamp
from firestore_emulator.documents.writes import CheckedWrite, check_repeated, check_write
from firestore_emulator.rpc.errors import RpcError, invalid_argument
from firestore_emulator.rpc.service import Call
from firestore_emulator.rules.guard import Guard
from firestore_emulator.storage.engine import Engine
from firestore_emulator.storage.quick_commit import QuickCommits, QuickCommitted
from firestore_emulator.transactions.transactions import Check, Transactions

MAX_REQUEST_BYTES = 10 * 1024 * 1024
_ID_LETTERS = string.ascii_letters + string.digits


class Writing:
    def __init__(self, engine: Engine, transactions: Transactions, named: Named, guard: Guard) -> None:
        self._engine = engine
        self._billing = engine.billing
        self._transactions = transactions
        self._named = named
        self._guard = guard
        self._quick_commits = QuickCommits(engine)
        self._write_streams = count()

    async def commit(self, request: Proto, call: Call) -> Proto:
        return await self._commit(request, call, "Commit")

    async def _commit(self, request: Proto, call: Call, billed_as: str) -> Proto:
        database = self._named.database(request.database)
        if not request.transaction and (quick := self._quick(request, call)):
            for collection, counts in quick.counts.items():
                self._billing.add(billed_as, database, collection, writes=counts[0], deletes=counts[1])
            await self._engine.settled()
            return quick.answer
        _check_size(request)
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
        if not call.is_billed or not self._transactions.is_idle:
            return None
        if self._guard.enforcer(call, request.database) is not None:
            return None
        return self._quick_commits.commit(request.database, request.writes)

    def write(self, requests: AsyncIterator[Proto], call: Call) -> AsyncIterator[Proto]:
        stream_id = str(next(self._write_streams))
        return write_stream(
            stream_id, requests, self._named.database, partial(self._commit, call=call, billed_as="Write")
        )

    async def batch_write(self, request: Proto, call: Call) -> Proto:
        """Not atomic: each write stands alone. What is malformed refuses the whole call."""
        database = self._named.database(request.database)
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
        parent = self._named.parent(request.parent)
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
        location = self._named.document(request.document.name)
        _check_size(request)
        write = protos.Write(update=request.document)
        if request.HasField("update_mask"):
            write.update_mask.CopyFrom(request.update_mask)
        if request.HasField("current_document"):
            write.current_document.CopyFrom(request.current_document)
        return await self._write_one("UpdateDocument", check_write(write, location.database), request, call)

    async def delete_document(self, request: Proto, call: Call) -> Proto:
        location = self._named.document(request.name)
        write = protos.Write(delete=request.name)
        if request.HasField("current_document"):
            write.current_document.CopyFrom(request.current_document)
        checked = check_write(write, location.database)
        await self._transactions.commit(None, [checked], self._check(call, location.database))
        self._billing.committed("DeleteDocument", location.database, [checked])
        await self._engine.settled()
        return empty_pb2.Empty()

    async def _write_one(self, billed_as: str, write: CheckedWrite, request: Proto, call: Call) -> Proto:
        mask = mask_of(request)
        await self._transactions.commit(None, [write], self._check(call, write.location.database))
        self._billing.committed(billed_as, write.location.database, [write])
        document = self._engine.get(write.location)
        await self._engine.settled()
        assert document is not None, "it was written in this step"
        return masked(document, mask)

    def _check(self, call: Call, database: str) -> Check | None:
        """What holds writes against the rules; None where none are to be enforced."""
        enforcer = self._guard.enforcer(call, database)
        return None if enforcer is None else enforcer.writes


def _check_size(request: Proto) -> None:
    if request.ByteSize() > MAX_REQUEST_BYTES:
        raise invalid_argument(f"Request payload size exceeds the limit: {MAX_REQUEST_BYTES} bytes.")
