"""What a random operation makes use of, by name, so that a run can count whether it has tried everything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from tests.conformance.operations import (
    Aggregate,
    BatchGet,
    BatchWrite,
    Case,
    Clear,
    Commit,
    Condition,
    Either,
    Elsewhere,
    Every,
    Field,
    Get,
    Guard,
    ListCollections,
    ListDocuments,
    Nearest,
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
from tests.conformance.universe_values import is_around_the_limit
from tests.conformance.wire import Vector

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "in", "not-in", "array-contains", "array-contains-any")
UNARY = ("is-null", "is-nan", "is-not-null", "is-not-nan")
RANGES = ("<", "<=", ">", ">=")
TRANSFORMS = ("increment", "maximum", "minimum", "append", "remove", "server_time")

EVERYTHING = frozenset(
    {
        *(f"filter {operator}" for operator in (*COMPARISONS, *UNARY)),
        *("AND", "OR", "OR in AND", "AND in OR", "inequalities on several fields", "filter by name"),
        *("offset", "limit", "last ones: a descending order with a limit", "projection"),
        *("start at", "start after", "end at", "end before", "cursor on a descending order", "cursor on two fields"),
        *("collection group", "subcollection", "query at a read time"),
        *("count", "sum", "avg", "aggregation at a read time"),
        *("get", "get at a read time", "get with a mask", "batch get", "batch get at a read time"),
        *("list in pages", "list in an order", "list with missing", "list with missing at a read time"),
        *("list at a read time", "list collections", "list collections in pages", "list collections at a read time"),
        *("commit", "batch write", "put", "put with a mask", "delete"),
        *(f"transform {kind}" for kind in TRANSFORMS),
        *(f"precondition {guard.value}" for guard in Guard if guard is not Guard.NONE),
        *("transaction", "read-only transaction", "read-only transaction at a read time"),
        *("query in a transaction", "aggregation in a transaction", "list in a transaction"),
        *("query in a read-only transaction at a read time", "write beside a read-only transaction"),
        *("read-only transaction beside a clearing", "clearing", "commit over REST", "verify"),
        *(
            "find nearest",
            "find nearest with a filter",
            "find nearest within a threshold",
            "find nearest, the distance",
        ),
        *(f"find nearest by measure {measure}" for measure in (1, 2, 3)),
        *("count of the nearest", "value around the limit in a filter", "value around the limit in a cursor"),
    }
)


class Subject(StrEnum):
    """What a case is about, besides plain reads and writes; the closing lines count cases by it."""

    LIMITS = "values around 1,500 bytes"
    LIMITS_ASKED = "such values in filters and cursors"
    CLEARS = "clears"
    OTHER_CLEARS = "clears of another project"
    CLEARS_IN_SNAPSHOTS = "clears while a read-only transaction is open"
    VERIFY = "verify"
    VERIFY_OVER_REST = "verify over REST"
    VECTORS = "vectors"
    NEAREST = "find_nearest"
    DATABASES = "several databases"
    PROJECTS = "several projects"


def subjects(case: Case) -> set[Subject]:
    found: set[Subject] = set()
    for step in case:
        found.update(_subjects_of(step))
    return found


def _subjects_of(step: Step) -> Iterator[Subject]:
    match step:
        case Elsewhere():
            yield Subject.DATABASES if step.where is Where.OTHER_DATABASE else Subject.PROJECTS
            yield from _subjects_of(step.step)
        case Clear():
            yield Subject.CLEARS
            if step.where is Where.OTHER_PROJECT:
                yield Subject.OTHER_CLEARS
        case Snapshot(clears=cleared) if cleared is not None:
            yield from (Subject.CLEARS, Subject.CLEARS_IN_SNAPSHOTS)
            if cleared is Where.OTHER_PROJECT:
                yield Subject.OTHER_CLEARS
    for write in writes_of(step):
        if isinstance(write, Verify):
            yield Subject.VERIFY
            if isinstance(step, Commit) and step.over_rest:
                yield Subject.VERIFY_OVER_REST
        elif isinstance(write, Put):
            if is_around_the_limit(write.data):
                yield Subject.LIMITS
            if any(isinstance(value, Vector) for value in write.data.values()):
                yield Subject.VECTORS
    for read in reads_of(step):
        query = read.query if isinstance(read, Aggregate) else read
        if isinstance(query, Query):
            if query.nearest is not None:
                yield Subject.NEAREST
            if _asks_around_the_limit(query):
                yield Subject.LIMITS_ASKED


def writes_of(step: Step) -> tuple[Written, ...]:
    match step:
        case Commit() | BatchWrite() | Transaction():
            return step.writes
        case Snapshot():
            return step.beside
    return ()


def reads_of(step: Step) -> tuple[Read, ...]:
    match step:
        case Reads() | Transaction() | Snapshot():
            return step.reads
    return ()


def _asks_around_the_limit(query: Query) -> bool:
    operands = [one.operand for one in _fields(query.condition)] if query.condition is not None else []
    cuts = [value for cut in (query.start, query.end) if cut is not None for value in cut.values]
    return any(map(is_around_the_limit, (*operands, *cuts)))


@dataclass(frozen=True)
class Around:
    """The step that an operation belongs to."""

    step: Step

    @property
    def named(self) -> str | None:
        match self.step:
            case Transaction():
                return "in a transaction"
            case Snapshot(at=at) if at is not None:
                return "in a read-only transaction at a read time"
        return None


def features(operation: Step | Read, step: Step) -> Iterator[str]:
    """Of one operation; `step` is the operation itself or the step that it is a read of."""
    where = Around(step).named
    match operation:
        case Query():
            yield from _query(operation)
            yield from _placed("query", operation.at, where)
        case Aggregate():
            yield from (kind for kind, _ in operation.kinds)
            if operation.query.nearest is not None:
                yield "count of the nearest"
            yield from _placed("aggregation", operation.query.at, where)
        case Get() | BatchGet():
            kind = "get" if isinstance(operation, Get) else "batch get"
            yield kind
            yield from _placed(kind, operation.at, where)
            if operation.mask is not None:
                yield f"{kind} with a mask"
        case ListDocuments():
            yield from _list(operation, where)
        case ListCollections():
            yield "list collections"
            yield from _placed("list collections", operation.at, None)
            if operation.page_size:
                yield "list collections in pages"
        case Commit() | BatchWrite() | Transaction():
            names: dict[type[Step], str] = {Commit: "commit", BatchWrite: "batch write", Transaction: "transaction"}
            yield names[type(operation)]
            if isinstance(operation, Commit) and operation.over_rest:
                yield "commit over REST"
            yield from chain.from_iterable(map(_written, operation.writes))
        case Snapshot():
            yield "read-only transaction"
            if operation.at is not None:
                yield "read-only transaction at a read time"
            if operation.beside:
                yield "write beside a read-only transaction"
            if operation.clears is not None:
                yield "read-only transaction beside a clearing"
        case Clear():
            yield "clearing"


def _placed(kind: str, at: int | None, where: str | None) -> Iterator[str]:
    if where is not None:
        yield f"{kind} {where}"
    elif at is not None:
        yield f"{kind} at a read time"


def _query(query: Query) -> Iterator[str]:
    if query.nearest is not None:
        yield from _nearest(query.nearest, is_filtered=query.condition is not None)
    if query.condition is not None:
        yield from _condition(query.condition, ())
        if any(is_around_the_limit(one.operand) for one in _fields(query.condition)):
            yield "value around the limit in a filter"
        unequal = {field.path for field in _fields(query.condition) if field.operator in (*RANGES, "!=", "not-in")}
        if len(unequal - {"__name__"}) > 1:
            yield "inequalities on several fields"
    descending = any(path.startswith("-") for path in query.order)
    for cut, front, back in ((query.start, "start at", "start after"), (query.end, "end before", "end at")):
        if cut is None:
            continue
        yield front if cut.before else back
        if any(map(is_around_the_limit, cut.values)):
            yield "value around the limit in a cursor"
        if descending:
            yield "cursor on a descending order"
        if len(cut.values) > 1:
            yield "cursor on two fields"
    wanted = {
        "offset": query.offset,
        "limit": query.limit,
        "last ones: a descending order with a limit": query.limit and descending,
        "projection": query.select is not None,
        "collection group": query.group and query.collection,
        "subcollection": query.parent,
    }
    yield from (name for name, used in wanted.items() if used)


def _nearest(search: Nearest, *, is_filtered: bool) -> Iterator[str]:
    yield "find nearest"
    yield f"find nearest by measure {search.measure}"
    if is_filtered:
        yield "find nearest with a filter"
    if search.threshold is not None:
        yield "find nearest within a threshold"
    if search.result:
        yield "find nearest, the distance"


def _condition(condition: Condition, above: tuple[str, ...]) -> Iterator[str]:
    match condition:
        case Field():
            yield f"filter {condition.operator}"
            if condition.path == "__name__":
                yield "filter by name"
        case Every() | Either():
            name = "AND" if isinstance(condition, Every) else "OR"
            yield name
            if above and above[-1] != name:
                yield f"{name} in {above[-1]}"
            for part in condition.filters:
                yield from _condition(part, (*above, name))


def _fields(condition: Condition) -> Iterator[Field]:
    if isinstance(condition, Field):
        yield condition
    else:
        for part in condition.filters:
            yield from _fields(part)


def _list(read: ListDocuments, where: str | None) -> Iterator[str]:
    yield from _placed("list", read.at, where)
    if read.page_size:
        yield "list in pages"
    if read.order:
        yield "list in an order"
    if read.show_missing:
        yield "list with missing"
        yield from _placed("list with missing", read.at, where)


def _written(write: Written) -> Iterator[str]:
    names: dict[type[Written], str] = {Put: "put", Remove: "delete", Verify: "verify"}
    yield names[type(write)]
    if write.guard is not Guard.NONE:
        yield f"precondition {write.guard.value}"
    if isinstance(write, Put):
        if write.mask is not None:
            yield "put with a mask"
        yield from (f"transform {change.kind}" for change in write.changes)
