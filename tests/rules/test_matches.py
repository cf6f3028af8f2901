"""Match blocks cover the paths that they cover for Google's emulator.

`matches.json` was recorded on Google's emulator: for each file of rules, the requests that it allows; null for a file
that does not compile. A query is written as its collection, with a star if it goes over the group of that name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from firestore_emulator.documents.names import Location, parse_parent
from firestore_emulator.documents.protos import StructuredQuery
from firestore_emulator.rpc.errors import RpcError
from firestore_emulator.rpc.service import Call
from firestore_emulator.rules import RulesRejected
from firestore_emulator.rules.guard import Guard
from firestore_emulator.storage.engine import Engine

RECORDED: dict[str, list[str] | None] = json.loads((Path(__file__).parent / "matches.json").read_text(encoding="utf-8"))
DATABASE = "projects/p/databases/(default)"
REQUESTS = (
    *("get t0/d", "get t0/d/e/f", "get e/f", "get t0/d/e/f/g/h"),
    *("list t0", "list t0*", "list e*", "list t0/d/e"),
)


@pytest.fixture(scope="module")
def guard() -> Iterator[Guard]:
    engine = Engine()
    yield Guard(engine)
    engine.close()


def is_allowed(guard: Guard, request: str) -> bool:
    enforcer = guard.enforcer(Call(metadata={}), DATABASE)
    assert enforcer is not None
    kind, _, path = request.partition(" ")
    try:
        if kind == "get":
            enforcer.get([Location(DATABASE, tuple(path.split("/")))])
        else:
            parent, _, collection = path.rpartition("/")
            selector = StructuredQuery.CollectionSelector(
                collection_id=collection.removesuffix("*"), all_descendants=collection.endswith("*")
            )
            query = StructuredQuery()
            query.from_.append(selector)
            enforcer.list(parse_parent(f"{DATABASE}/documents/{parent}".removesuffix("/")), query)
    except RpcError:
        return False
    return True


@pytest.mark.parametrize("rules", RECORDED)
def test_a_match_block_covers_the_paths_that_google_covers(guard: Guard, rules: str) -> None:
    try:
        guard.load(rules)
    except RulesRejected:
        assert RECORDED[rules] is None
        return
    assert [request for request in REQUESTS if is_allowed(guard, request)] == RECORDED[rules]
