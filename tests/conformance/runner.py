"""Runs a case on one Firestore and writes its answers so that two servers' answers are comparable.

Times differ between servers, so a time is written as the step that made it: `@3` is the time that the fourth step gave
to this document. What a time *is* never matters to an answer; which write it came from does. A server timestamp in a
field is written the same way. Texts of errors differ as well; their codes don't.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from google.protobuf import json_format

from tests.conformance.backends import NAMED, Backend, Refused
from tests.conformance.http_side import HttpSide
from tests.conformance.messages import Messages
from tests.conformance.operations import (
    AHEAD,
    LONG_AGO,
    Aggregate,
    BatchGet,
    BatchWrite,
    Clear,
    Commit,
    Elsewhere,
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
    Snapshot,
    Step,
    Transaction,
    Verify,
    Where,
    Written,
)
from tests.conformance.wire import (
    REQUESTS,
    DocumentMask,
    Plain,
    Proto,
    Ref,
    Stamp,
    delete,
    fields_of,
    plain,
    set_,
    shown,
    stamp,
    verify,
)

MOST_PAGES = 6


@dataclass(frozen=True)
class Answer:
    """What a step or one of its reads was answered."""

    operation: Step | Read
    text: str
    is_write: bool = False
    """Whether documents may be written differently if this answer differs."""

    @property
    def refused(self) -> bool:
        return _is_code(self.text)


def _is_code(text: str) -> bool:
    return text.isupper()


class Runner:
    """One case on one server: what it has answered so far, and the times in it.

    `http` is for cases that clear databases or commit over REST.
    """

    def __init__(self, backend: Backend, http: HttpSide | None = None) -> None:
        self._backend = backend
        self._messages = Messages(backend)
        self._http = http
        self._elsewhere: dict[Where, Runner] = {}
        self._step = 0
        self._commits: list[Stamp] = []
        self._times: dict[tuple[str, Stamp], str] = {}
        self._answered: dict[str, list[Stamp]] = {}
        self._server_times: dict[Stamp, str] = {}

    async def run(self, step: Step) -> list[Answer]:
        """The answers to one step, as comparable text."""
        match step:
            case Commit():
                work = self._commit_over_rest(step.writes) if step.over_rest else self._commit(step.writes)
                answers = [Answer(step, await self._refusable(work), is_write=True)]
            case BatchWrite():
                answers = [Answer(step, await self._refusable(self._batch_write(step.writes)), is_write=True)]
            case Transaction():
                answers = await self._transaction(step)
            case Snapshot():
                answers = await self._snapshot(step)
            case Reads():
                texts = await asyncio.gather(*(self._refusable(self._read(read)) for read in step.reads))
                answers = [Answer(read, text) for read, text in zip(step.reads, texts, strict=True)]
            case Clear():
                await self._clear(step.where)
                answers = [Answer(step, "cleared")]
            case Elsewhere():
                answers = await self._at(step.where).run(step.step)
        self._step += 1
        return answers

    async def _refusable(self, work: Any) -> str:
        try:
            answer: str = await work
        except Refused as refusal:
            return str(refusal.code)
        return answer

    # --- the databases of a case

    def _at(self, where: Where) -> Runner:
        if where is Where.HERE:
            return self
        if where not in self._elsewhere:
            own = self._backend
            is_same_project = where is Where.OTHER_DATABASE
            project, database = (own.project, NAMED) if is_same_project else (f"{own.project}-other", "(default)")
            self._elsewhere[where] = Runner(Backend(own.place, project, database), self._http)
        return self._elsewhere[where]

    async def _clear(self, where: Where) -> None:
        assert self._http is not None, "this case needs HTTP"
        await self._http.clear(self._at(where)._backend)

    # --- writes

    async def _commit(self, writes: tuple[Written, ...], transaction: bytes = b"") -> str:
        answer = await self._backend.commit(*(self._write(write) for write in writes), transaction=transaction)
        return await self._committed(writes, answer)

    async def _commit_over_rest(self, writes: tuple[Written, ...]) -> str:
        assert self._http is not None, "this case needs HTTP"
        if "-0.0" in repr(writes):  # Google's emulator takes it for 0 in JSON
            return await self._commit(writes)
        try:
            sent = [json_format.MessageToDict(self._write(write)) for write in writes]
        except json_format.Error:  # JSON has no form for it, as for a time beyond the year 9999
            return await self._commit(writes)
        for write, message in zip(writes, sent, strict=True):
            if isinstance(write, Verify):
                message["verify"] = self._backend.name(write.path)
        return await self._committed(writes, await self._http.commit(self._backend, sent))

    async def _committed(self, writes: tuple[Written, ...], answer: Proto) -> str:
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

    async def _transaction(self, step: Transaction) -> list[Answer]:
        transaction = await self._backend.begin()
        answers = await self._reads_in(transaction, step.reads)
        ending = await self._refusable(self._commit(step.writes, transaction))
        if _is_code(ending):
            await self._backend.rollback(transaction)
        return [*answers, Answer(step, ending, is_write=True)]

    async def _snapshot(self, step: Snapshot) -> list[Answer]:
        moment = self._moment(step.at)
        transaction = await self._backend.begin_read_only(moment)
        beside = await self._refusable(self._commit(step.beside))
        if step.clears is not None:
            await self._clear(step.clears)
        answers = await self._reads_in(transaction, step.reads)
        await self._backend.rollback(transaction)
        return [*answers, Answer(step, beside, is_write=True)]

    async def _reads_in(self, transaction: bytes, reads: tuple[Read, ...]) -> list[Answer]:
        return [Answer(read, await self._refusable(self._read(read, transaction))) for read in reads]

    def _result(self, write: Written, result: Proto) -> str:
        transformed = [plain(item) for item in result.transform_results]
        if isinstance(write, Put):
            for change, item in zip(write.changes, transformed, strict=False):
                if change.kind == "server_time":
                    self._server_times.setdefault(item, f"server@{self._step}")
        if isinstance(write, Verify) and write.guard is Guard.ABSENT:
            return "missing"  # whether the result has a time here is in docs/emulator-differences.md
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
        if isinstance(write, Verify):
            return verify(name, **guard)
        return set_(
            name,
            {key: self._messages.value(item) for key, item in write.data.items()},
            mask=write.mask,
            transforms=[self._messages.change(change) for change in write.changes],
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

    # --- reads

    async def _read(self, read: Read, transaction: bytes = b"") -> str:
        match read:
            case Query():
                return await self._query(read, **self._when(read.at, transaction))
            case Aggregate():
                return await self._aggregate(read, **self._when(read.query.at, transaction))
            case Get():
                found = await self._backend.get(read.path, **self._mask(read.mask), **self._when(read.at, transaction))
                return self._document(found)
            case BatchGet():
                return await self._batch_get(read, **self._when(read.at, transaction))
            case ListDocuments():
                return await self._list_documents(read, **self._when(read.at, transaction))
            case ListCollections():
                return await self._list_collections(read, **self._when(read.at, b""))

    async def _query(self, read: Query, **options: Any) -> str:
        answers = await self._backend.run(self._messages.structured(read), parent=read.parent, **options)
        last = answers[-1]
        found = [self._document(answer.document) for answer in answers if answer.HasField("document")]
        return f"{found} done={last.done}"

    async def _aggregate(self, read: Aggregate, **options: Any) -> str:
        request = REQUESTS["RunAggregationQuery"](parent=self._parent(read.query.parent), **options)
        request.structured_aggregation_query.structured_query.CopyFrom(self._messages.structured(read.query))
        for index, (kind, path) in enumerate(read.kinds):
            entry = request.structured_aggregation_query.aggregations.add(alias=f"a{index}")
            if kind == "count":
                entry.count.SetInParent()
            else:
                getattr(entry, kind).field.field_path = path
        [answer] = await self._backend.call("RunAggregationQuery", request)
        return shown({alias: plain(item) for alias, item in answer.result.aggregate_fields.items()})

    async def _batch_get(self, read: BatchGet, **options: Any) -> str:
        request = REQUESTS["BatchGetDocuments"](
            database=self._backend.database,
            documents=[self._backend.name(path) for path in read.paths],
            **self._mask(read.mask),
            **options,
        )
        answers = await self._backend.call("BatchGetDocuments", request)
        # The contract leaves the order of these answers open.
        return str(
            sorted(
                self._document(answer.found) if answer.HasField("found") else self._backend.path(answer.missing)
                for answer in answers
            )
        )

    async def _list_documents(self, read: ListDocuments, **options: Any) -> str:
        request = REQUESTS["ListDocuments"](
            parent=self._parent(read.parent),
            collection_id=read.collection,
            page_size=read.page_size,
            show_missing=read.show_missing,
            order_by=read.order,
            **self._mask(read.mask),
            **options,
        )
        pages = [
            [self._document(item) for item in answer.documents]
            for answer in await self._pages("ListDocuments", request)
        ]
        return str([page for page in pages if page])

    async def _list_collections(self, read: ListCollections, **options: Any) -> str:
        request = REQUESTS["ListCollectionIds"](parent=self._parent(read.parent), page_size=read.page_size, **options)
        pages = [list(answer.collection_ids) for answer in await self._pages("ListCollectionIds", request)]
        return str([page for page in pages if page])

    async def _pages(self, method: str, request: Proto) -> list[Proto]:
        """Page after page. Whether a full last one is followed by an empty one is the server's choice."""
        pages: list[Proto] = []
        while len(pages) < MOST_PAGES and (not pages or pages[-1].next_page_token):
            request.page_token = pages[-1].next_page_token if pages else ""
            pages.append(await self._backend.call(method, request))
        return pages

    def _mask(self, mask: tuple[str, ...] | None) -> dict[str, Any]:
        return {} if mask is None else {"mask": DocumentMask(field_paths=mask)}

    def _when(self, at: int | None, transaction: bytes) -> dict[str, Any]:
        if transaction:
            return {"transaction": transaction}
        moment = self._moment(at)
        return {} if moment is None else {"read_time": moment.proto()}

    def _moment(self, at: int | None) -> Stamp | None:
        times = [known for known in self._commits if known.seconds]
        return times[at % len(times)] if at is not None and times else None

    def _parent(self, path: str) -> str:
        return self._backend.name(path) if path else self._backend.root

    # --- what goes out and what comes back

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
