"""RunQuery and RunAggregationQuery, run or only explained."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from firestore_emulator.calls.aggregate import aggregate, parse_aggregations
from firestore_emulator.calls.explain import Explained, planned
from firestore_emulator.calls.reading import Reading, Readings
from firestore_emulator.documents import protos
from firestore_emulator.documents.names import Location
from firestore_emulator.documents.protos import Proto
from firestore_emulator.documents.times import set_stamp
from firestore_emulator.meters.billing import reads_of_aggregation, reads_of_query
from firestore_emulator.queries.query import Query
from firestore_emulator.queries.structured_query import parse_query
from firestore_emulator.rpc.service import Call
from firestore_emulator.rules.guard import Guard
from firestore_emulator.storage.engine import Engine


class Queries:
    def __init__(self, engine: Engine, readings: Readings, parent: Callable[[str], Location], guard: Guard) -> None:
        """`parent` makes a location of a request's parent, in a database that exists."""
        self._engine = engine
        self._readings = readings
        self._parent = parent
        self._guard = guard

    async def run(self, request: Proto, call: Call) -> AsyncIterator[Proto]:
        parent = self._parent(request.parent)
        query = parse_query(parent, request.structured_query)
        explain = request.explain_options if request.HasField("explain_options") else None
        reading = self._readings.of(request, parent.database)
        is_planned_only = explain is not None and not explain.analyze
        if not is_planned_only:
            await self._readings.query(reading, query)
        self._judge(call, parent, request.structured_query, reading)
        if reading.began and reading.transaction is not None:
            yield protos.RunQueryResponse(transaction=reading.transaction.id)
        if is_planned_only:
            self._engine.check_indexes(query)
            self._bill("RunQuery", query, 1)
            yield protos.RunQueryResponse(explain_metrics=planned(query))
            return
        explained = None if explain is None else Explained(self._engine, query)
        started = asyncio.get_running_loop().time()
        documents, skipped = (self._engine if explained is None else explained.engine).find(query, reading.at_micros)
        if call.is_billed:
            self._bill("RunQuery", query, reads_of_query(len(documents), skipped))
        read_micros = self._readings.micros(reading)
        await self._engine.settled()
        # An empty result is one answer too: it carries the read time.
        answers = [protos.RunQueryResponse(document=document) for document in documents] or [protos.RunQueryResponse()]
        answers[-1].done = True
        if explained is not None:
            elapsed = asyncio.get_running_loop().time() - started
            answers[-1].explain_metrics.CopyFrom(explained.of_documents(len(documents), elapsed))
        for answer in answers:
            set_stamp(answer.read_time, read_micros)
            yield answer

    async def aggregate(self, request: Proto, call: Call) -> AsyncIterator[Proto]:
        parent = self._parent(request.parent)
        asked = request.structured_aggregation_query
        aggregations = parse_aggregations(asked.aggregations)
        fields = frozenset(item.path for item in aggregations if item.path is not None)
        query = parse_query(parent, asked.structured_query, fields)
        explain = request.explain_options if request.HasField("explain_options") else None
        reading = self._readings.of(request, parent.database)
        is_planned_only = explain is not None and not explain.analyze
        if not is_planned_only:
            await self._readings.query(reading, query)
        self._judge(call, parent, asked.structured_query, reading)
        answer = protos.RunAggregationQueryResponse()
        if reading.began and reading.transaction is not None:
            answer.transaction = reading.transaction.id
        if is_planned_only:
            self._engine.check_indexes(query)
            self._bill("RunAggregationQuery", query, 1)
            answer.explain_metrics.CopyFrom(planned(query))
            yield answer
            return
        explained = None if explain is None else Explained(self._engine, query)
        engine = self._engine if explained is None else explained.engine
        started = asyncio.get_running_loop().time()
        values, entries = aggregate(engine, query, aggregations, reading.at_micros)
        self._bill("RunAggregationQuery", query, reads_of_aggregation(entries))
        for alias, value in values.items():
            answer.result.aggregate_fields[alias].CopyFrom(value)
        set_stamp(answer.read_time, self._readings.micros(reading))
        await self._engine.settled()
        if explained is not None:
            answer.explain_metrics.CopyFrom(explained.of_aggregation(asyncio.get_running_loop().time() - started))
        yield answer

    def _bill(self, call: str, query: Query, reads: int) -> None:
        self._engine.billing.add(call, query.parent.database, query.collection_id, reads=reads)

    def _judge(self, call: Call, parent: Location, query: Proto, reading: Reading) -> None:
        """In the step that reads: after whatever the query had to wait for."""
        if (enforcer := self._guard.enforcer(call, parent.database)) is not None:
            enforcer.list(parent, query, reading.at_micros, in_transaction=reading.transaction is not None)
