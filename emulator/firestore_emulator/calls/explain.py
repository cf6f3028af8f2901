"""What a query would read, and what it has read: the answers to `explain_options`.

The plan names each index range as production names its indexes: the equal fields, then the ordered ones in the
direction in which they are read. What was read is counted where it is read, by a storage that stands before the real
one for this query alone: a query without `explain` pays nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import cast

from firestore_emulator.documents.fields import NAME_PATH, format_field_path
from firestore_emulator.documents.protos import ExplainMetrics, Proto
from firestore_emulator.meters.billing import reads_of_aggregation, reads_of_query
from firestore_emulator.queries import plan
from firestore_emulator.queries.query import Query
from firestore_emulator.storage.engine import Engine
from firestore_emulator.storage.entries import Entries
from firestore_emulator.storage.tables import Storage


def planned(query: Query) -> Proto:
    """The metrics of a query that is not run."""
    metrics = ExplainMetrics()
    metrics.plan_summary.SetInParent()
    scope = "Collection group" if query.descendants else "Collection"
    for properties in dict.fromkeys(map(_properties, plan.scans(query))):
        metrics.plan_summary.indexes_used.add().update({"query_scope": scope, "properties": properties})
    return metrics


def _properties(scan: plan.Scan) -> str:
    """A shape is stored so that names ascend; read backwards, each of its directions is the other one."""
    upwards, downwards = ("DESC", "ASC") if scan.backwards else ("ASC", "DESC")
    words = {plan.EQUAL: "ASC", plan.CONTAINS: "CONTAINS", plan.ASCENDING: upwards, plan.DESCENDING: downwards}
    parts = [f"{format_field_path(path)} {words[kind]}" for path, kind in scan.shape.parts]
    return f"({', '.join([*parts, f'{format_field_path(NAME_PATH)} {upwards}'])})"


class Explained:
    """One query, run on `engine` so that its cost is known afterwards."""

    def __init__(self, engine: Engine, query: Query) -> None:
        self._query = query
        self._counted = _CountedStorage(engine.storage)
        self.engine = copy.copy(engine)
        self.engine.storage = cast(Storage, self._counted)

    def of_documents(self, returned: int, seconds: float) -> Proto:
        """Each document that was returned or skipped is a read, and a query is one at least."""
        skipped = min(self._query.offset, max(0, self._counted.documents_read - returned))
        billable = returned + skipped
        return self._metrics(returned, reads_of_query(returned, skipped), seconds, billable, 0)

    def of_aggregation(self, seconds: float) -> Proto:
        entries = self._counted.entries.read
        return self._metrics(1, reads_of_aggregation(entries), seconds, 0, entries)

    def _metrics(
        self, returned: int, reads: int, seconds: float, billable_documents: int, billable_entries: int
    ) -> Proto:
        metrics = planned(self._query)
        stats = metrics.execution_stats
        stats.results_returned = returned
        stats.read_operations = reads
        stats.execution_duration.FromNanoseconds(round(seconds * 1e9))
        least = 0 if billable_documents or billable_entries else 1
        stats.debug_stats.update(
            {
                "index_entries_scanned": str(self._counted.entries.read),
                "documents_scanned": str(self._counted.documents_read),
                "billing_details": {
                    "documents_billable": str(billable_documents),
                    "index_entries_billable": str(billable_entries),
                    "min_query_cost": str(least),
                },
            }
        )
        return metrics


class _CountedStorage:
    """The parts of a storage that reads use."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.entries = _CountedEntries(storage.entries)
        self._documents = 0

    @property
    def documents_read(self) -> int:
        return self._documents + self.entries.documents_read

    def get(self, key: bytes) -> bytes | None:
        self._documents += 1
        return self._storage.get(key)


class _CountedEntries:
    """The parts of the index entries that reads use."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self.read = 0
        self.documents_read = 0

    def scan(self, scan: plan.Scan, limit: int | None) -> Iterator[tuple[bytes, bytes]]:
        for found in self._entries.scan(scan, limit):
            self.read += 1
            self.documents_read += 1
            yield found

    def count(self, scan: plan.Scan, limit: int | None) -> int:
        counted = self._entries.count(scan, limit)
        self.read += counted
        return counted
