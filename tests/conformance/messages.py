"""The messages that operations become for one database: queries, transforms and values."""

from __future__ import annotations

from tests.conformance.backends import Backend
from tests.conformance.operations import Change, Condition, Cut, Either, Every, Field, Here, Nearest, Query
from tests.conformance.wire import (
    Plain,
    Proto,
    all_of,
    any_of,
    append_missing,
    cursor,
    find_nearest,
    increment,
    maximum,
    minimum,
    query,
    remove_all,
    server_time,
    where,
)


class Messages:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def change(self, change: Change) -> Proto:
        match change.kind:
            case "increment":
                return increment(change.path, self.value(change.operand))
            case "maximum":
                return maximum(change.path, self.value(change.operand))
            case "minimum":
                return minimum(change.path, self.value(change.operand))
            case "append":
                return append_missing(change.path, *map(self.value, change.operand))
            case "remove":
                return remove_all(change.path, *map(self.value, change.operand))
            case _:
                return server_time(change.path)

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
            nearest=self._nearest(read.nearest) if read.nearest is not None else None,
        )

    def _nearest(self, search: Nearest) -> Proto:
        vector = self.value(search.vector)
        return find_nearest(
            search.path, vector, search.measure, search.limit, threshold=search.threshold, result=search.result
        )

    def _condition(self, condition: Condition) -> Proto:
        match condition:
            case Field():
                return where(condition.path, condition.operator, self.value(condition.operand))
            case Every():
                return all_of(*map(self._condition, condition.filters))
            case Either():
                return any_of(*map(self._condition, condition.filters))

    def _cut(self, cut: Cut | None) -> Proto | None:
        return cursor(*map(self.value, cut.values), before=cut.before) if cut is not None else None

    def value(self, item: Plain) -> Plain:
        match item:
            case Here():
                return self._backend.ref(item.path)
            case list():
                return [self.value(part) for part in item]
            case dict():
                return {key: self.value(part) for key, part in item.items()}
            case _:
                return item
