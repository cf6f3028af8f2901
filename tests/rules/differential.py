"""Random rules and requests on two emulators at once, every decision compared.

A round loads one file of rules into a project of its own on both, with the same documents, and asks both the same
things. Only whether the rules allow is compared: what happens then is another suite's.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx

from firestore_emulator.rules import ast
from firestore_emulator.rules.check import steps
from firestore_emulator.rules.ruleset import compile_rules
from tests.rules.random_rules import UIDS, Conditions, Data, document, listing, wire

UNANSWERED = 599
"""In place of a status, where there was no answer."""
OWNER = {"authorization": "Bearer owner"}
CONDITIONS = 24
"""In one file; each stands there twice, once negated."""
HELPER = "function helper(first, second) { let joined = first + second; return joined.size() > 3 ? first : joined; }"


@dataclass(frozen=True)
class Decision:
    """What was asked of both, for the report of a difference."""

    rule: str
    request: str
    user: str
    kind: str
    """get, list or write"""


@dataclass
class Tally:
    decisions: int = 0
    allows: int = 0
    queries: int = 0
    decisive: Counter[str] = field(default_factory=Counter)
    """How often an operator or method stood where its failing would have refused what was allowed."""
    only_ours_allows: list[Decision] = field(default_factory=list)
    only_theirs_allows: list[Decision] = field(default_factory=list)
    only_theirs_allows_queries: list[Decision] = field(default_factory=list)

    def __str__(self) -> str:
        rare = ", ".join(f"{name} {count}" for name, count in sorted(self.decisive.items(), key=lambda one: one[1])[:8])
        return (
            f"{self.decisions} decisions, {self.allows / max(1, self.decisions):.0%} allowed, "
            f"{self.queries / max(1, self.decisions):.0%} queries; ours allows alone {len(self.only_ours_allows)}, "
            f"Google's allows alone {len(self.only_theirs_allows)}, of queries {len(self.only_theirs_allows_queries)}; "
            f"least often decisive: {rare}"
        )


class Side:
    """One of the two emulators."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._http = client

    async def load(self, project: str, rules: str) -> tuple[int, str]:
        body = {"rules": {"files": [{"name": "security.rules", "content": rules}]}}
        answer = await self._ask("PUT", f"/emulator/v1/projects/{project}:securityRules", body, OWNER)
        return answer.status_code, answer.text

    async def write(self, project: str, documents: dict[str, Data]) -> None:
        root = f"projects/{project}/databases/(default)/documents"
        writes = [{"update": {"name": f"{root}/{path}", "fields": _fields(data)}} for path, data in documents.items()]
        answer = await self._ask("POST", f"/v1/{root}:commit", {"writes": writes}, OWNER)
        assert answer.status_code == 200, answer.text

    async def allows(self, method: str, path: str, body: Any, headers: dict[str, str]) -> bool | None:
        """None: neither allowed nor refused by the rules."""
        answer = await self._ask(method, path, body, headers)
        if answer.status_code == 403:
            return False
        return True if answer.status_code in (200, 404, 409) else None

    async def _ask(self, method: str, path: str, body: Any, headers: dict[str, str]) -> httpx.Response:
        headers = {"content-type": "application/json", **headers}
        return await self._http.request(
            method, path, content=None if body is None else json.dumps(body), headers=headers
        )


def _fields(data: Data) -> dict[str, Any]:
    return {name: wire(value) for name, value in data.items()}


def token(random: Random) -> tuple[str, dict[str, str]]:
    """A user's name for the report, and the headers."""
    if random.random() < 0.1:
        return "no token", {}
    uid = random.choice(UIDS)
    claims: dict[str, Any] = {
        "sub": uid,
        "user_id": uid,
        "level": random.choice((1, 2, 7)),
        "role": random.choice(("a", "abc")),
    }
    claims["numbers"] = random.choice(([1, 2], [7], []))
    return json.dumps(claims), {"authorization": f"Bearer {_encoded({'alg': 'none'})}.{_encoded(claims)}."}


def _encoded(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@dataclass(frozen=True)
class _Question:
    kind: str
    condition: str
    document: Data
    written: Data
    query: dict[str, Any]
    method: str


def _question(random: Random) -> _Question:
    kind = random.choices(("get", "list", "write"), (32, 34, 34))[0]
    stored, written = document(random), document(random)
    if kind == "list":
        asked = listing(random)
        return _Question(kind, asked.condition, stored, {}, asked.query, "")
    if kind == "get":
        return _Question(kind, Conditions(random).condition(), stored, {}, {}, "")
    method = random.choice(("create", "update", "set", "delete"))
    root = "request.resource.data" if method != "delete" and random.random() < 0.7 else "resource.data"
    return _Question(kind, Conditions(random, root).condition(), stored, written, {}, method)


async def play(random: Random, ours: Side, theirs: Side, tally: Tally) -> None:
    """One round."""
    questions = [_question(random) for _ in range(CONDITIONS)]
    rules = _rules(questions)
    project = f"r-{secrets.token_hex(5)}"
    mine, google = await asyncio.gather(ours.load(project, rules), theirs.load(project, rules))
    assert mine[0] == google[0], f"ours {mine}\n\nGoogle's {google}\n\n{rules}"
    if google[0] != 200:
        return  # a number with a method behind its dot does not parse, on either
    documents = {"a/there": document(random), "a/alice": document(random), "a/d": document(random)}
    for number, question in enumerate(questions):
        if question.kind != "write" or question.method != "create":
            documents |= {f"{which}{number}/d": question.document for which in "tf"}
    await asyncio.gather(ours.write(project, documents), theirs.write(project, documents))
    for number, question in enumerate(questions):
        user, headers = token(random)
        for which in "tf":
            method, path, body = _request(project, f"{which}{number}", question)
            mine_allows, google_allows = await asyncio.gather(
                ours.allows(method, path, body, headers), theirs.allows(method, path, body, headers)
            )
            if google_allows is None or mine_allows is None:
                continue  # a request that is refused for another reason, or on which Google's emulator breaks
            condition = question.condition if which == "t" else f"!({question.condition})"
            decision = Decision(
                condition, f"{method} {path} {json.dumps(body)} on {question.document}", user, question.kind
            )
            _count(tally, decision, mine_allows, google_allows)


async def compare_file(random: Random, rules: str, ours: Side, theirs: Side, tally: Tally) -> None:
    """A get, a query and a write under a file of rules, if Google's emulator compiles it."""
    project = f"m-{secrets.token_hex(5)}"
    mine, google = await asyncio.gather(ours.load(project, rules), theirs.load(project, rules))
    if google[0] != 200:
        return  # we compile more than Google's: no rules that anybody could deploy
    assert mine[0] == 200, mine
    stored = document(random)
    documents = {"t0/d": stored, "a/there": document(random)}
    await asyncio.gather(ours.write(project, documents), theirs.write(project, documents))
    for kind, method in (("get", ""), ("list", ""), ("write", "set"), ("write", "delete")):
        user, headers = token(random)
        question = _Question(kind, "", stored, document(random), {}, method)
        verb, path, body = _request(project, "t0", question)
        mine_allows, google_allows = await asyncio.gather(
            ours.allows(verb, path, body, headers), theirs.allows(verb, path, body, headers)
        )
        if mine_allows is None or google_allows is None:
            continue
        tally.decisions += 1
        if mine_allows and not google_allows:
            request = f"{verb} {path} {json.dumps(body)} on {stored}"
            tally.only_ours_allows.append(Decision(rules, request, user, kind))


def _count(tally: Tally, decision: Decision, ours: bool, theirs: bool) -> None:
    tally.decisions += 1
    tally.allows += theirs
    tally.queries += decision.kind == "list"
    if ours and not theirs:
        tally.only_ours_allows.append(decision)
    elif theirs and not ours:
        tally.only_theirs_allows.append(decision)
        if decision.kind == "list":
            tally.only_theirs_allows_queries.append(decision)
    elif ours:
        tally.decisive.update(set(_decisive(decision.rule)))


def _rules(questions: list[_Question]) -> str:
    lines = ["rules_version = '2';", "service cloud.firestore { match /databases/{database}/documents {", HELPER]
    for number, question in enumerate(questions):
        kind = {"get": "get", "list": "list", "write": "write"}[question.kind]
        lines.append(f"match /t{number}/{{id}} {{ allow {kind}: if {question.condition}; }}")
        lines.append(f"match /f{number}/{{id}} {{ allow {kind}: if !({question.condition}); }}")
    return "\n".join([*lines, "}}"])


def _request(project: str, collection: str, question: _Question) -> tuple[str, str, Any]:
    root = f"/v1/projects/{project}/databases/(default)/documents"
    document_path = f"{root}/{collection}/d"
    if question.kind == "get":
        return "GET", document_path, None
    if question.kind == "list":
        query = {"from": [{"collectionId": collection}], **question.query}
        return "POST", f"{root}:runQuery", {"structuredQuery": query}
    if question.method == "delete":
        return "DELETE", document_path, None
    options = {"create": "?currentDocument.exists=false", "update": "?currentDocument.exists=true"}
    mask = "".join(f"&updateMask.fieldPaths={name}" for name in question.written) if question.method == "update" else ""
    return "PATCH", document_path + options.get(question.method, "") + mask, {"fields": _fields(question.written)}


def _decisive(condition: str) -> Iterator[str]:
    """Operators and methods whose failing would make the whole condition fail."""
    source = f"service cloud.firestore {{ match /a/{{id}} {{ {HELPER} allow get: if {condition}; }} }}"
    allow = compile_rules(source).file.services[0].matches[0].allows[0]
    assert allow.condition is not None
    yield from _walk(allow.condition)


def _walk(node: ast.Expression) -> Iterator[str]:
    match node:
        case ast.Binary():
            yield node.operator
            if node.operator == "||":
                return
        case ast.Unary():
            yield f"unary {node.operator}"
        case ast.TypeTest():
            yield f"is {node.type_name}"
        case ast.MethodCall():
            owner = node.target.name if isinstance(node.target, ast.Name) else ""
            yield (
                f"{owner}.{node.name}"
                if owner in ("math", "duration", "timestamp", "latlng", "hashing")
                else f".{node.name}"
            )
        case ast.Call():
            yield f"{node.name}()"
        case ast.Conditional():
            yield "?:"
            yield from _walk(node.condition)
            return
        case ast.Index() | ast.Slice():
            yield "[]"
    for child, _ in steps(node):
        yield from _walk(child)
