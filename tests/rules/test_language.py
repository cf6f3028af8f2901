"""Each expression has the value that Google's emulator gave it, and each query is proven as it proved it.

`verdicts.json` and `proofs.json` were recorded on Google's emulator: T is true, F false, E an error, X a file that does
not compile. No emulator is needed to compare with them; the differential test asks the living one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format

from firestore_emulator.documents.names import parse_parent
from firestore_emulator.documents.protos import StructuredQuery, Write
from firestore_emulator.documents.writes import check_write
from firestore_emulator.pytest_plugin import unsigned_token
from firestore_emulator.rpc.errors import RpcError
from firestore_emulator.rpc.service import Call
from firestore_emulator.rules import Allowed, Question, RulesRejected, compile_rules, decide
from firestore_emulator.rules.guard import Guard
from firestore_emulator.rules.values import LatLng, Timestamp, Value
from firestore_emulator.rules.values import Path as RulesPath
from firestore_emulator.storage.engine import Engine

HERE = Path(__file__).parent
VERDICTS: dict[str, str] = json.loads((HERE / "verdicts.json").read_text(encoding="utf-8"))
PROOFS: list[dict[str, Any]] = json.loads((HERE / "proofs.json").read_text(encoding="utf-8"))
DATABASE = "projects/p/databases/(default)"
NAMES = {(True, False): "T", (False, True): "F", (False, False): "E"}


def path(*segments: str) -> RulesPath:
    return RulesPath(("databases", "(default)", "documents", *segments))


DATA: dict[str, Value] = {
    "s": "abc",
    "i": 7,
    "f": 1.5,
    "b": True,
    "n": None,
    "l": [1, 2, 3],
    "m": {"a": 1, "b": {"c": 2}},
    "by": b"\x01\x02",
    "t": Timestamp(1_709_210_096_789_123_000),
    "g": LatLng(10.0, 20.0),
    "e": "",
    "r": path("x", "y"),
}


class Documents:
    def document(self, segments: tuple[str, ...], *, after: bool) -> dict[str, Value] | None:
        if segments[0] in ("t0", "f0") and segments[1:] == ("d",):
            return {"__name__": path(*segments), "data": DATA, "id": "d"}
        return None


def source(condition: str, method: str = "get") -> str:
    return (
        "rules_version = '2';\nservice cloud.firestore { match /databases/{database}/documents {\n"
        f"match /t0/{{x}} {{ allow {method}: if {condition}; }}\n"
        f"match /f0/{{x}} {{ allow {method}: if !({condition}); }}\n}}}}"
    ).replace("{x}", "{id}" if method == "list" else "{x}")


def verdict(condition: str) -> str:
    try:
        ruleset = compile_rules(source(condition))
    except RulesRejected:
        return "X"

    def allows(collection: str) -> bool:
        request: dict[str, Value] = {
            "auth": {"token": {"sub": "alice", "user_id": "alice"}, "uid": "alice"},
            "fields": None,
            "headers": {},
            "inTransaction": False,
            "method": "get",
            "path": path(collection, "d"),
            "time": Timestamp(1_795_000_000_123_000_000),
        }
        question = Question(
            method="get",
            database="(default)",
            path=(collection, "d"),
            request=request,
            resource=Documents().document((collection, "d"), after=False),
            documents=Documents(),
        )
        return isinstance(decide(ruleset, question), Allowed)

    return NAMES[allows("t0"), allows("f0")]


@pytest.mark.parametrize("condition", VERDICTS)
def test_an_expression_has_the_value_that_google_gives_it(condition: str) -> None:
    assert verdict(condition) == VERDICTS[condition]


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: f"{proof['condition']} given {proof['query']}"[:120])
def test_a_query_proves_what_it_proves_for_google(proof: dict[str, Any]) -> None:
    engine = Engine()
    try:
        for name in ("z", "y"):
            write = json_format.ParseDict({"update": {"name": f"{DATABASE}/documents/z/{name}"}}, Write())
            engine.store(engine.draft([check_write(write, DATABASE)]))
        guard = Guard(engine)
        guard.load(source(proof["condition"], "list"))
        assert NAMES[allowed(guard, "t0", proof["query"]), allowed(guard, "f0", proof["query"])] == proof["verdict"]
    finally:
        engine.close()


def allowed(guard: Guard, collection: str, query: dict[str, Any]) -> bool:
    body: dict[str, Any] = {"from": [{"collectionId": collection}]}
    body |= {name: query[name] for name in ("where", "limit", "offset") if query.get(name) is not None}
    if "order" in query:
        body["orderBy"] = [{"field": {"fieldPath": name}, "direction": way} for name, way in query["order"]]
    text = json.dumps(body).replace("@ROOT@", f"{DATABASE}/documents/{collection}")
    call = Call(metadata={"authorization": f"Bearer {unsigned_token({'sub': 'alice', 'user_id': 'alice'})}"})
    enforcer = guard.enforcer(call, DATABASE)
    assert enforcer is not None
    try:
        enforcer.list(parse_parent(f"{DATABASE}/documents"), json_format.ParseDict(json.loads(text), StructuredQuery()))
    except RpcError:
        return False
    return True
