"""Security rules over HTTP: load them, read their coverage as on Google's emulator, and read the last refusals.

PUT /emulator/v1/projects/{project}:securityRules    {"rules": {"files": [{"name": ..., "content": ...}]}}
GET /emulator/v1/projects/{project}:securityRules    the same; a project without rules shows rules that allow all
GET /emulator/v1/projects/{project}:ruleCoverage     each expression's values; `.html` for people
GET /emulator/v1/projects/{project}:ruleRefusals     the last refusals with their reasons, oldest first
"""

from __future__ import annotations

import html
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from firestore_emulator.rpc.errors import invalid_argument
from firestore_emulator.rules.guard import Guard
from firestore_emulator.rules.values import printable
from firestore_emulator.wire.rest import read_body
from firestore_emulator.wire.rest_messages import object_of

if TYPE_CHECKING:
    from firestore_emulator.rules.enforce import Loaded
    from firestore_emulator.rules.ruleset import Issue

OPEN = """rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents {
    match /{document=**} {
      allow read, write: if true;
    }
  }
}"""
"""What a project without rules behaves like."""


def rules_routes(guard: Guard, admin: str) -> list[Route]:
    """`admin` is the path of a project."""

    async def load(request: Request) -> Response:
        from firestore_emulator.rules.ruleset import RulesRejected

        name, content = _file(object_of(await read_body(request)))
        try:
            ruleset = guard.load(content, request.path_params["project"])
        except RulesRejected as error:
            raise invalid_argument(str(error)) from None
        return JSONResponse({"issues": [_issue(name, one) for one in ruleset.warnings]} if ruleset.warnings else {})

    async def show(request: Request) -> Response:
        content = printable(_loaded(guard, request).ruleset.source)
        return JSONResponse({"rules": {"files": [{"name": "security.rules", "content": content}]}})

    async def coverage(request: Request) -> Response:
        return JSONResponse(_loaded(guard, request).coverage.report())

    async def coverage_page(request: Request) -> Response:
        return HTMLResponse(_page(_loaded(guard, request).coverage.report()))

    async def refusals(request: Request) -> Response:
        project = request.path_params["project"]
        found = [asdict(one) for one in guard.refusals if one.project == project]
        return JSONResponse({"refusals": found})

    in_database = admin + "/databases/{database}"
    return [
        *(Route(path + ":securityRules", load, methods=["PUT"]) for path in (admin, in_database)),
        *(Route(path + ":securityRules", show) for path in (admin, in_database)),
        *(Route(path + ":ruleCoverage", coverage) for path in (admin, in_database)),
        *(Route(path + ":ruleCoverage.html", coverage_page) for path in (admin, in_database)),
        Route(admin + ":ruleRefusals", refusals),
    ]


def _file(body: dict[str, Any]) -> tuple[str, str]:
    rules = body.get("rules")
    files = rules.get("files") if isinstance(rules, dict) else None
    file = files[0] if isinstance(files, list) and len(files) == 1 else None
    if not isinstance(file, dict) or not isinstance(file.get("content"), str):
        raise invalid_argument('One file is needed: {"rules": {"files": [{"name": "...", "content": "..."}]}}.')
    return str(file.get("name", "security.rules")), file["content"]


def _issue(name: str, issue: Issue) -> dict[str, Any]:
    position = {
        "fileName": name,
        "line": issue.line,
        "column": issue.column,
        "currentOffset": issue.start,
        "endOffset": issue.end,
    }
    return {"sourcePosition": position, "description": issue.message, "severity": "WARNING"}


def _loaded(guard: Guard, request: Request) -> Loaded:
    loaded = guard.loaded(request.path_params["project"])
    if loaded is None:
        from firestore_emulator.rules.enforce import Loaded
        from firestore_emulator.rules.ruleset import compile_rules

        loaded = Loaded(compile_rules(OPEN))
    return loaded


def _page(report: dict[str, Any]) -> str:
    """The source, each line with how often its expressions were evaluated; lines that never were stand out."""
    source = report["rules"]["files"][0]["content"]
    counts: dict[int, int] = {}
    pending = list(report["report"])
    while pending:
        node = pending.pop()
        line = node["sourcePosition"]["line"]
        counts[line] = max(counts.get(line, 0), sum(value["count"] for value in node.get("values", [])))
        pending += node.get("children", [])
    rows = []
    for number, text in enumerate(source.split("\n"), start=1):
        count = counts.get(number)
        color = "" if count is None else ' style="background:#dfd"' if count else ' style="background:#fdd"'
        rows.append(f"<span{color}>{number:5} {'' if count is None else count:>6}  {html.escape(text)}</span>")
    return "<!doctype html><title>Rule coverage</title><pre>" + "\n".join(rows) + "</pre>"
