"""Runs a case on one Firestore and writes its answers so that two servers' answers are comparable.

Times differ between servers, so a time is written as the step that made it: `@3` is the time that the fourth step gave
to this document. What a time *is* never matters to an answer; which write it came from does. A server timestamp in a
field is written the same way. Texts of errors differ as well; their codes don't.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from tests.conformance.backends import Backend, Refused
from tests.conformance.operations import (
    AHEAD,
    LONG_AGO,
    Aggregate,
    BatchGet,
    BatchWrite,
    Change,
    Commit,
    Condition,
    Cut,
    Either,
    Every,
    Field,
    Get,
    Guard,
    Here,
    ListCollections,
    ListDocuments,
    Put,
    Query,
    Read,
    Reads,
    Remove,
    Step,
    Transaction,
    Written,
)
from tests.conformance.wire import (
    REQUESTS,
    DocumentMask,
    Plain,
    Proto,
    Ref,
    Stamp,
    all_of,
    any_of,
    append_missing,
    cursor,
    delete,
    fields_of,
    increment,
    maximum,
    minimum,
    plain,
    query,
    remove_all,
    server_time,
    set_,
    shown,
    stamp,
    where,
)

MOST_PAGES = 6


class Runner:
    """One case on one server: what it has answered so far, and the times in it."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._step = 0
        self._commits: list[Stamp] = []
        self._times: dict[tuple[str, Stamp], str] = {}
        self._answered: dict[str, list[Stamp]] = {}
        self._server_times: dict[Stamp, str] = {}

    async def run(self, step: Step) -> list[str]:
        """The answers to one step, as comparable text."""
        match step:
            case Commit():
                answers = [await self._refusable(self._commit(step.writes))]
            case BatchWrite():
                answers = [await self._refusable(self._batch_write(step.writes))]
            case Transaction():
                answers = [await self._refusable(self._transaction(step))]
            case Reads():
                answers = list(await asyncio.gather(*(self._refusable(self._read(read)) for read in step.reads)))
        self._step += 1
        return answers

    async def _refusable(self, work: Any) -> str:
        try:
            answer: str = await work
        except Refused as refusal:
            return str(refusal.code)
        return answer

    # --- writes

    async def _commit(self, writes: tuple[Written, ...], transaction: bytes = b"") -> str:
        answer = await self._backend.commit(*(self._write(write) for write in writes), transaction=transaction)
        self._commits.append(stamp(answer.commit_time))
        shown_results = [
            self._result(write, result) for write, result in zip(writes, answer.write_results, strict=True)
        ]
        await self._let_the_clock_move(writes)
        return "; ".join(shown_results)

    async def _batch_write(self, writes: tuple[Written, ...]) -> str:
        request = REQUESTS["BatchWrite"](
            database=self._backend.database, writes=[self._write(write) for write in writes]
        )
        answer = await self._backend.call("BatchWrite", request)
        shown_results = [
            self._result(write, result) if status.code == 0 else f"status {status.code}"
            for write, status, result in zip(writes, answer.status, answer.write_results, strict=True)
        ]
        await self._let_the_clock_move(writes)
        return "; ".join(shown_results)

    async def _transaction(self, step: Transaction) -> str:
        backend = self._backend
        transaction = await backend.begin()
        found = []
        for path in step.reads:
            found.append(await self._refusable(self._get(path, None, transaction=transaction)))
        try:
            return f"{found} {await self._commit(step.writes, transaction)}"
        except Refused:
            await backend.rollback(transaction)
            raise

    def _result(self, write: Written, result: Proto) -> str:
        transformed = [plain(item) for item in result.transform_results]
        if isinstance(write, Put):
            for change, item in zip(write.changes, transformed, strict=False):
                if change.kind == "server_time":
                    self._server_times.setdefault(item, f"server@{self._step}")
        if not result.HasField("update_time"):
            return "no time"
        updated = stamp(result.update_time)
        self._times.setdefault((write.path, updated), f"@{self._step}")
        self._answered.setdefault(write.path, []).append(updated)
        return f"{self._time(write.path, updated)} {self._text(transformed)}"

    async def _let_the_clock_move(self, writes: tuple[Written, ...]) -> None:
        """Server timestamps have milliseconds: two steps in the same one would be equal on one server only."""
        if any(isinstance(write, Put) and any(c.kind == "server_time" for c in write.changes) for write in writes):
            now_ms = time.time_ns() // 1_000_000
            while time.time_ns() // 1_000_000 <= now_ms:  # noqa: ASYNC110 - the clock gives no signal
                await asyncio.sleep(0)

    def _write(self, write: Written) -> Proto:
        name = self._backend.name(write.path)
        guard = self._guard(write)
        if isinstance(write, Remove):
            return delete(name, **guard)
        return set_(
            name,
            {key: self._value(item) for key, item in write.data.items()},
            mask=write.mask,
            transforms=[self._change(change) for change in write.changes],
            **guard,
        )

    def _guard(self, write: Written) -> dict[str, Any]:
        answered = self._answered.get(write.path) or [LONG_AGO]
        match write.guard:
            case Guard.NONE:
                return {}
            case Guard.EXISTS:
                return {"exists": True}
            case Guard.ABSENT:
                return {"exists": False}
            case Guard.LATEST:
                return {"update_time": answered[-1]}
            case Guard.FIRST:
                return {"update_time": answered[0]}
            case Guard.LONG_AGO:
                return {"update_time": LONG_AGO}
            case Guard.AHEAD:
                return {"update_time": AHEAD}

    def _change(self, change: Change) -> Proto:
        match change.kind:
            case "increment":
                return increment(change.path, self._value(change.operand))
            case "maximum":
                return maximum(change.path, self._value(change.operand))
            case "minimum":
                return minimum(change.path, self._value(change.operand))
            case "append":
                return append_missing(change.path, *map(self._value, change.operand))
            case "remove":
                return remove_all(change.path, *map(self._value, change.operand))
            case _:
                return server_time(change.path)

    # --- reads

    async def _read(self, read: Read) -> str:
        match read:
            case Query():
                return await self._query(read)
            case Aggregate():
                return await self._aggregate(read)
            case Get():
                return await self._get(read.path, read.mask, **self._at(read.at))
            case BatchGet():
                return await self._batch_get(read)
            case ListDocuments():
                return await self._list_documents(read)
            case ListCollections():
                request = REQUESTS["ListCollectionIds"](parent=self._parent(read.parent))
                return str(list((await self._backend.call("ListCollectionIds", request)).collection_ids))

    async def _query(self, read: Query) -> str:
        answers = await self._backend.run(self.structured(read), parent=read.parent, **self._at(read.at))
        last = answers[-1]
        found = [self._document(answer.document) for answer in answers if answer.HasField("document")]
        return f"{found} done={last.done}"

    async def _aggregate(self, read: Aggregate) -> str:
        request = REQUESTS["RunAggregationQuery"](parent=self._parent(read.query.parent))
        request.structured_aggregation_query.structured_query.CopyFrom(self.structured(read.query))
        for index, (kind, path) in enumerate(read.kinds):
            entry = request.structured_aggregation_query.aggregations.add(alias=f"a{index}")
            if kind == "count":
                entry.count.SetInParent()
            else:
                getattr(entry, kind).field.field_path = path
        [answer] = await self._backend.call("RunAggregationQuery", request)
        return shown({alias: plain(item) for alias, item in answer.result.aggregate_fields.items()})

    async def _get(self, path: str, mask: tuple[str, ...] | None, **options: Any) -> str:
        return self._document(await self._backend.get(path, **self._mask(mask), **options))

    async def _batch_get(self, read: BatchGet) -> str:
        request = REQUESTS["BatchGetDocuments"](
            database=self._backend.database,
            documents=[self._backend.name(path) for path in read.paths],
            **self._mask(read.mask),
        )
        answers = await self._backend.call("BatchGetDocuments", request)
        # The contract leaves the order of these answers open.
        return str(
            sorted(
                self._document(answer.found) if answer.HasField("found") else self._backend.path(answer.missing)
                for answer in answers
            )
        )

    async def _list_documents(self, read: ListDocuments) -> str:
        pages: list[list[str]] = []
        token = ""
        while len(pages) < MOST_PAGES:
            request = REQUESTS["ListDocuments"](
                parent=self._parent(read.parent),
                collection_id=read.collection,
                page_size=read.page_size,
                page_token=token,
                show_missing=read.show_missing,
                **self._mask(read.mask),
            )
            answer = await self._backend.call("ListDocuments", request)
            pages.append([self._document(item) for item in answer.documents])
            token = answer.next_page_token
            if not token:
                break
        # Whether a full last page is followed by an empty one is the server's choice.
        return str([page for page in pages if page])

    def structured(self, read: Query) -> Proto:
        return query(
            read.collection,
            self._condition(read.condition) if read.condition is not None else None,
            group=read.group,
            order=read.order,
            start=self._cut(read.start),
            end=self._cut(read.end),
            limit=read.limit,
            offset=read.offset,
            select=read.select,
        )

    def _condition(self, condition: Condition) -> Proto:
        match condition:
            case Field():
                return where(condition.path, condition.operator, self._value(condition.operand))
            case Every():
                return all_of(*map(self._condition, condition.filters))
            case Either():
                return any_of(*map(self._condition, condition.filters))

    def _cut(self, cut: Cut | None) -> Proto | None:
        return cursor(*map(self._value, cut.values), before=cut.before) if cut is not None else None

    def _mask(self, mask: tuple[str, ...] | None) -> dict[str, Any]:
        return {} if mask is None else {"mask": DocumentMask(field_paths=mask)}

    def _at(self, at: int | None) -> dict[str, Any]:
        times = [known for known in self._commits if known.seconds]
        return {"read_time": times[at % len(times)].proto()} if at is not None and times else {}

    def _parent(self, path: str) -> str:
        return self._backend.name(path) if path else self._backend.root

    # --- what goes out and what comes back

    def _value(self, item: Plain) -> Plain:
        match item:
            case Here():
                return self._backend.ref(item.path)
            case list():
                return [self._value(part) for part in item]
            case dict():
                return {key: self._value(part) for key, part in item.items()}
            case _:
                return item

    def _document(self, message: Proto) -> str:
        path = self._backend.path(message.name)
        if not message.HasField("update_time"):
            return f"{path} (no document)"
        created, updated = stamp(message.create_time), stamp(message.update_time)
        times = f"{self._time(path, created)} {self._time(path, updated)}"
        return f"{path} {times} {self._text(fields_of(message))}"

    def _time(self, path: str, moment: Stamp) -> str:
        return self._times.get((path, moment), "an unknown time")

    def _text(self, data: Plain) -> str:
        return shown(self._symbolic(data))

    def _symbolic(self, data: Plain) -> Plain:
        match data:
            case Stamp():
                return self._server_times.get(data, data)
            case Ref():
                return Here(self._backend.path(data.name))
            case list():
                return [self._symbolic(item) for item in data]
            case dict():
                return {key: self._symbolic(item) for key, item in data.items()}
            case _:
                return data
