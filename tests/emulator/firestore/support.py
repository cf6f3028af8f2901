"""What these tests share: one database's names, an engine and its documents, and how many random examples to try."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, settings

from firestore_emulator.documents.names import Location, location_of, parse_parent
from firestore_emulator.documents.writes import check_write
from firestore_emulator.queries.query import Query
from firestore_emulator.queries.structured_query import parse_query
from firestore_emulator.storage.engine import Committed, Engine
from tests.conformance.wire import Plain, Proto, delete, set_

DATABASE = "projects/p/databases/(default)"
ROOT = f"{DATABASE}/documents"
START = datetime(2030, 1, 1, tzinfo=UTC)

FACTOR = int(os.environ.get("OUTBOX_EXAMPLES", "1"))
"""1: the same examples in every run. More: that many times as many, and other ones each time."""


def examples(count: int) -> settings:
    return settings(
        max_examples=count * FACTOR,
        derandomize=FACTOR == 1,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )


class SteppingClock:
    """A clock that moves when the test says so."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def step(self, **duration: float) -> None:
        self.now += timedelta(**duration)


def name(path: str) -> str:
    return f"{ROOT}/{path}"


def place(path: str) -> Location:
    return Location(DATABASE, tuple(path.split("/")))


def commit(engine: Engine, *writes: Proto) -> Committed:
    return engine.store(engine.draft([check_write(write, DATABASE) for write in writes]))


def put(engine: Engine, path: str, data: Mapping[str, Plain], mask: Iterable[str] | None = None) -> Committed:
    return commit(engine, set_(name(path), data, mask=mask))


def drop(engine: Engine, path: str) -> Committed:
    return commit(engine, delete(name(path)))


def parsed(query: Proto, parent: str = "") -> Query:
    return parse_query(parse_parent(name(parent) if parent else ROOT), query)


def paths(documents: list[Any]) -> list[str]:
    return ["/".join(location_of(document).segments) for document in documents]


def everything(engine: Engine) -> dict[Location, Any]:
    """Each stored document, read from the documents' own table and not through any index."""
    from firestore_emulator.documents.protos import Document

    found = [Document.FromString(data) for (data,) in engine.storage.database.rows("SELECT data FROM documents")]
    return {location_of(document): document for document in found}


def by_scanning(documents: Mapping[Location, Any], query: Query) -> list[Any]:
    """What a query finds by its definition: every document looked at, then sorted, then cut."""
    matching = [
        (query.position(location, document) or b"", document)
        for location, document in documents.items()
        if query.matches(location, document)
    ]
    ordered = [document for _, document in sorted(matching, key=lambda item: item[0])]
    return ordered[query.offset :][: query.limit]
