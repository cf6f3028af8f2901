"""What a random operation makes use of, by name, so that it can be counted whether a run has tried everything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from tests.conformance.operations import (
    Aggregate,
    BatchGet,
    BatchWrite,
    Commit,
    Condition,
    Either,
    Every,
    Field,
    Get,
    Guard,
    ListCollections,
    ListDocuments,
    Put,
    Query,
    Read,
    Snapshot,
    Step,
    Transaction,
    Written,
)

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
    }
)


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
            yield from chain.from_iterable(map(_written, operation.writes))
        case Snapshot():
            yield "read-only transaction"
            if operation.at is not None:
                yield "read-only transaction at a read time"
            if operation.beside:
                yield "write beside a read-only transaction"


def _placed(kind: str, at: int | None, where: str | None) -> Iterator[str]:
    if where is not None:
        yield f"{kind} {where}"
    elif at is not None:
        yield f"{kind} at a read time"


def _query(query: Query) -> Iterator[str]:
    if query.condition is not None:
        yield from _condition(query.condition, ())
        unequal = {field.path for field in _fields(query.condition) if field.operator in (*RANGES, "!=", "not-in")}
        if len(unequal - {"__name__"}) > 1:
            yield "inequalities on several fields"
    descending = any(path.startswith("-") for path in query.order)
    for cut, front, back in ((query.start, "start at", "start after"), (query.end, "end before", "end at")):
        if cut is None:
            continue
        yield front if cut.before else back
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
    yield "put" if isinstance(write, Put) else "delete"
    if write.guard is not Guard.NONE:
        yield f"precondition {write.guard.value}"
    if isinstance(write, Put):
        if write.mask is not None:
            yield "put with a mask"
        yield from (f"transform {change.kind}" for change in write.changes)
