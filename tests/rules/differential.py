"""Random rules and requests on two emulators at once, every decision compared.

A round loads one file of rules into a project of its own on both emulators, with the same documents, and asks both the
same things. Only the decision of the rules is compared; other suites compare what follows from it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Any

import httpx

from tests.rules import random_commits, random_paths
from tests.rules.decisive import decisive
from tests.rules.random_documents import UIDS, Data, document, wire
from tests.rules.random_queries import listing
from tests.rules.random_rules import HELPER, Conditions

ATTEMPTS = 5
"""Of a request whose connection breaks before an answer."""
OWNER = {"authorization": "Bearer owner"}
CONDITIONS = 24
"""In one file; each stands there twice, once negated."""


class Verdict(Enum):
    ALLOWED = "allowed"
    DENIED = "denied"
    INVALID = "invalid"
    """Refused before the rules: the request itself is wrong."""
    BROKEN = "broken"
    """An internal error."""


@dataclass(frozen=True)
class Decision:
    """What both emulators were asked, for the report of a difference."""

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
    """How often an operator or method stood where its failure would have refused what both allowed."""
    broken: int = 0
    """Requests that Google's emulator answered with an internal error: there is no decision to compare with."""
    only_ours_allows: list[Decision] = field(default_factory=list)
    only_theirs_allows: list[Decision] = field(default_factory=list)
    only_theirs_allows_queries: list[Decision] = field(default_factory=list)
    otherwise: list[tuple[Decision, Verdict, Verdict]] = field(default_factory=list)
    """Requests that one side decided and the other found invalid, or on which ours broke: ours, Google's."""

    def __str__(self) -> str:
        rare = ", ".join(f"{name} {count}" for name, count in sorted(self.decisive.items(), key=lambda one: one[1])[:8])
        return (
            f"{self.decisions} decisions, {self.allows / max(1, self.decisions):.0%} allowed, "
            f"{self.queries / max(1, self.decisions):.0%} queries; ours allows alone {len(self.only_ours_allows)}, "
            f"Google's allows alone {len(self.only_theirs_allows)}, of queries {len(self.only_theirs_allows_queries)}; "
            f"otherwise different {len(self.otherwise)}; Google's breaks {self.broken}; "
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
        await self.commit(project, writes)

    async def commit(self, project: str, writes: list[dict[str, Any]]) -> None:
        """As an administrator."""
        root = f"projects/{project}/databases/(default)/documents"
        answer = await self._ask("POST", f"/v1/{root}:commit", {"writes": writes}, OWNER)
        assert answer.status_code == 200, answer.text

    async def verdict(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Verdict:
        status = (await self._ask(method, path, body, headers)).status_code
        if status == 403:
            return Verdict.DENIED
        if status in (200, 404, 409):
            return Verdict.ALLOWED
        return Verdict.BROKEN if status >= 500 else Verdict.INVALID

    async def _ask(self, method: str, path: str, body: Any, headers: dict[str, str]) -> httpx.Response:
        """Ask again only if the connection breaks. An answer, whatever it says, is final, and so is a timeout."""
        headers = {"content-type": "application/json", **headers}
        content = body if body is None or isinstance(body, bytes) else json.dumps(body)
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._http.request(method, path, content=content, headers=headers)
            except (httpx.NetworkError, httpx.RemoteProtocolError):
                continue
        return await self._http.request(method, path, content=content, headers=headers)


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
            verdicts = await asyncio.gather(
                ours.verdict(method, path, body, headers), theirs.verdict(method, path, body, headers)
            )
            condition = question.condition if which == "t" else f"!({question.condition})"
            decision = Decision(
                condition, f"{method} {path} {json.dumps(body)} on {question.document}", user, question.kind
            )
            _count(tally, decision, *verdicts, condition=condition)


async def compare_file(random: Random, rules: str, ours: Side, theirs: Side, tally: Tally) -> bool:
    """Ask both a get, a query and two writes under a file of rules. False: Google's emulator does not compile it."""
    project = f"m-{secrets.token_hex(5)}"
    mine, google = await asyncio.gather(ours.load(project, rules), theirs.load(project, rules))
    if google[0] != 200:
        return False  # ours compiles more than Google's: no such rules can be deployed
    assert mine[0] == 200, mine
    stored = document(random)
    documents = {"t0/d": stored, "a/there": document(random)}
    await asyncio.gather(ours.write(project, documents), theirs.write(project, documents))
    for kind, method in (("get", ""), ("list", ""), ("write", "set"), ("write", "delete")):
        user, headers = token(random)
        question = _Question(kind, "", stored, document(random), {}, method)
        verb, path, body = _request(project, "t0", question)
        verdicts = await asyncio.gather(
            ours.verdict(verb, path, body, headers), theirs.verdict(verb, path, body, headers)
        )
        _count(tally, Decision(rules, f"{verb} {path} {json.dumps(body)} on {stored}", user, kind), *verdicts)
    return True


async def match_paths(random: Random, ours: Side, theirs: Side, tally: Tally) -> None:
    """Ask both for some paths under random match blocks. Both must refuse the same files."""
    project = f"p-{secrets.token_hex(5)}"
    rules = random_paths.blocks(random)
    mine, google = await asyncio.gather(ours.load(project, rules), theirs.load(project, rules))
    assert mine[0] == google[0], f"ours {mine}\n\nGoogle's {google}\n\n{rules}"
    if google[0] != 200:
        return
    for _ in range(8):
        method, path, body = random_paths.request(random)
        path = f"/v1/projects/{project}/databases/(default)/documents{path}"
        verdicts = await asyncio.gather(ours.verdict(method, path, body, {}), theirs.verdict(method, path, body, {}))
        kind = "get" if body is None else "list"
        _count(tally, Decision(rules, f"{method} {path} {json.dumps(body)}", "no token", kind), *verdicts)


async def commits(random: Random, ours: Side, theirs: Side, tally: Tally) -> None:
    """Some commits of several writes under one condition. Refused ones leave the documents as they were."""
    project = f"c-{secrets.token_hex(5)}"
    rules = random_commits.rules(random)
    mine, google = await asyncio.gather(ours.load(project, rules), theirs.load(project, rules))
    assert mine[0] == google[0] == 200, f"ours {mine}\n\nGoogle's {google}\n\n{rules}"
    root = f"projects/{project}/databases/(default)/documents"
    for _ in range(6):
        documents = random_commits.stored(random)
        gone = [{"delete": f"{root}/a/{one}"} for one in random_commits.IDS]
        await asyncio.gather(ours.commit(project, gone), theirs.commit(project, gone))
        await asyncio.gather(ours.write(project, documents), theirs.write(project, documents))
        body = {"writes": random_commits.writes(random, root, wire)}
        path = f"/v1/{root}:commit"
        verdicts = await asyncio.gather(ours.verdict("POST", path, body, {}), theirs.verdict("POST", path, body, {}))
        decision = Decision(rules, f"{json.dumps(body)} on {documents}", "no token", "write")
        _count(tally, decision, *verdicts)


def _count(tally: Tally, decision: Decision, ours: Verdict, theirs: Verdict, condition: str | None = None) -> None:
    """`condition` is the condition that decided, if there is only one."""
    if theirs is Verdict.BROKEN and ours is not Verdict.BROKEN:
        tally.broken += 1
        return
    if Verdict.INVALID in (ours, theirs) or ours is Verdict.BROKEN:
        if ours is not theirs or ours is Verdict.BROKEN:
            tally.otherwise.append((decision, ours, theirs))
        return
    allowed = theirs is Verdict.ALLOWED
    tally.decisions += 1
    tally.allows += allowed
    tally.queries += decision.kind == "list"
    if allowed and ours is Verdict.DENIED:
        tally.only_theirs_allows.append(decision)
        if decision.kind == "list":
            tally.only_theirs_allows_queries.append(decision)
    elif ours is Verdict.ALLOWED and not allowed:
        tally.only_ours_allows.append(decision)
    elif allowed and condition is not None:
        tally.decisive.update(decisive(condition))


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
