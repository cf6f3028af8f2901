"""Rules and requests that were cut, doubled, reversed and filled with pieces of syntax."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from random import Random
from types import TracebackType
from typing import Any

from google.protobuf import json_format

from firestore_emulator.documents.names import Location, parse_parent
from firestore_emulator.documents.protos import StructuredQuery, Write
from firestore_emulator.documents.writes import check_write
from firestore_emulator.rpc.errors import RpcError
from firestore_emulator.rpc.service import Call
from firestore_emulator.rules import Issue, RulesRejected
from firestore_emulator.rules.guard import Guard
from firestore_emulator.storage.engine import Engine
from tests.rules.random_documents import document, wire
from tests.rules.random_queries import listing
from tests.rules.random_rules import Conditions

DATABASE = "projects/p/databases/(default)"
PIECES = (
    *("&&", "||", "!", "==", "!=", "<", ">=", "+", "-", "/", "%", "*", "in", "is", "?", ":", ";", ",", ".", "=", "$"),
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "/a",
        "/{x}",
        "/{x=**}",
        "/$(",
        "'",
        '"',
        "\\",
        "//",
        "/*",
        "*/",
        "\n",
        "é",
        "\x00",
    ),
    *("true", "null", "1", "1.5", "'a'", "b'\\xff'", "request", "resource", "get(", "let a = 1;", "function f() {"),
    *("return", "match", "allow", "if", "9223372036854775808", "(((((", ")))))", "!!!!!!", "matches('(a+)+$')"),
)


def mutated(random: Random, source: str) -> str:
    for _ in range(random.randint(1, 4)):
        at, end = sorted((random.randint(0, len(source)), random.randint(0, len(source))))
        end = min(end, at + random.choice((0, 1, 3, 10, 40)))
        piece = random.choice((random.choice(PIECES), source[at:end] * 2, "", source[at:end][::-1]))
        source = source[:at] + piece + source[end:]
    return source


def small(random: Random) -> str:
    """A file of a few lines, so that most mutations change its meaning."""
    condition = Conditions(random).condition()
    return (
        "rules_version = '2';\nservice cloud.firestore {\n  match /databases/{database}/documents {\n"
        "    function helper(first, second) { let joined = first + second; return joined; }\n"
        f"    match /t0/{{id}} {{\n      allow read, write: if {condition};\n    }}\n  }}\n}}\n"
    )


@dataclass
class Asked:
    files: int = 0
    allowed: int = 0
    refused: int = 0

    def __str__(self) -> str:
        return f"{self.files} compile, and decide {self.allowed + self.refused} requests, {self.allowed} allowed"


class InProcess:
    """Our rules over a database in memory, without a server around them."""

    def __enter__(self) -> InProcess:
        self._engine = Engine()
        self._guard = Guard(self._engine)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.close()

    def load(self, source: str) -> list[Issue] | None:
        """Load the rules, or return the issues that refuse them."""
        try:
            self._guard.load(source)
        except RulesRejected as error:
            return error.issues
        return None

    def ask(self, random: Random, asked: Asked) -> None:
        """A get, a query, a write and a delete. Anything raised except a refusal is the test's failure."""
        claims = {"sub": random.choice(("alice", "bob")), "level": 7, "role": "a", "numbers": [1, 2]}
        call = Call(metadata={} if random.random() < 0.2 else {"authorization": f"Bearer {_token(claims)}"})
        location = Location(DATABASE, ("t0", "d"))
        fields = {name: wire(value) for name, value in document(random).items()}
        named = {"name": location.name, "fields": fields}
        query = {"from": [{"collectionId": "t0"}], **listing(random).query}
        written = check_write(json_format.ParseDict({"update": named}, Write()), DATABASE)
        deleted = check_write(json_format.ParseDict({"delete": location.name}, Write()), DATABASE)
        self._engine.store(self._engine.draft([written]))
        asked.files += 1
        for number in range(4):
            enforcer = self._guard.enforcer(call, DATABASE)
            assert enforcer is not None
            try:
                if number == 0:
                    enforcer.get([location])
                elif number == 1:
                    parent = parse_parent(f"{DATABASE}/documents")
                    enforcer.list(parent, json_format.ParseDict(query, StructuredQuery()))
                else:
                    enforcer.writes([written if number == 2 else deleted], self._engine.now_micros())
            except RpcError:
                asked.refused += 1
            else:
                asked.allowed += 1


def _token(claims: dict[str, Any]) -> str:
    parts = (json.dumps({"alg": "none"}), json.dumps(claims))
    return ".".join(base64.urlsafe_b64encode(part.encode()).rstrip(b"=").decode() for part in parts) + "."


class RequestMaker:
    """Requests of one project. Half of them are mutated: in the path, the body or the token."""

    project = "mutated"

    def __init__(self, random: Random) -> None:
        self._random = random

    def rules(self) -> str:
        """Half of the files allow everything, so that requests get past the rules."""
        return small(self._random) if self._random.random() < 0.5 else _OPEN

    def request(self) -> tuple[str, str, Any, dict[str, str]]:
        random = self._random
        body: Any
        root = f"/v1/projects/{self.project}/databases/(default)/documents"
        named = f"{root.removeprefix('/v1/')}/t0/d"
        fields = {name: wire(value) for name, value in document(random).items()}
        query = {"from": [{"collectionId": "t0"}], **listing(random).query}
        method, path, body = random.choice(
            (
                ("GET", f"{root}/t0/d", None),
                ("GET", f"{root}/t0?pageSize=3&orderBy=s", None),
                ("POST", f"{root}:runQuery", {"structuredQuery": query}),
                ("POST", f"{root}:commit", {"writes": [{"update": {"name": named, "fields": fields}}]}),
                ("POST", f"{root}:batchGet", {"documents": [named]}),
                ("PATCH", f"{root}/t0/d?currentDocument.exists=true&updateMask.fieldPaths=s", {"fields": fields}),
                ("DELETE", f"{root}/t0/d", None),
            )
        )
        token = _token({"sub": "alice", "level": 7, "role": "a", "numbers": [1, 2]})
        match random.randrange(6):
            case 0:
                path = root + mutated(random, path.removeprefix(root))
            case 1 if body is not None:
                body = mutated(random, json.dumps(body)).encode(errors="replace")
            case 2:
                token = mutated(random, token)
        printable = "".join(letter for letter in token if letter.isascii() and letter.isprintable())
        return method, path, body, {"authorization": f"Bearer {printable}"}


_OPEN = "service cloud.firestore { match /{path=**} { allow read, write: if true; } }"
