"""Whether what was read at a moment is still as it was: the question that decides an optimistic commit.

What has changed since is in the history, which keeps everything that an open transaction may need.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from firestore_emulator.documents.names import Location
from firestore_emulator.queries.query import Query
from firestore_emulator.storage.engine import Engine


def still_holds(
    engine: Engine, database: str, at_micros: int, documents: Set[Location], queries: Sequence[Query]
) -> bool:
    for location in engine.history.changed_since(database, at_micros):
        if location in documents:
            return False
        asked = [query for query in queries if query.covers(location)]
        if not asked:
            continue
        for state in (engine.get(location, at_micros), engine.get(location)):
            if state is not None and any(query.matches(location, state) for query in asked):
                return False
    return True
