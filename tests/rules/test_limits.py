"""The limits of the language, and what `request` and `resource` hold: on our emulator and on Google's, over REST."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.rest_project import ALICE, Project


@pytest.mark.parametrize(("documents", "each", "status"), [(1, 10, 200), (1, 11, 403), (2, 10, 200), (3, 7, 403)])
async def test_a_request_may_look_at_ten_documents_for_each_write_and_twenty_in_all(
    project: Project, documents: int, each: int, status: int
) -> None:
    looks = " && ".join(f"!exists(/databases/$(database)/documents/b{number}/$(id))" for number in range(each))
    await project.load(f"match /a/{{id}} {{ allow write: if {looks}; }}")
    writes = [project.write(f"a/{number}") for number in range(documents)]
    assert await project.ask("POST", ":commit", ALICE, {"writes": writes}) == status


async def test_a_thousand_expressions_are_evaluated_and_not_one_more(project: Project) -> None:
    for count, status in ((996, 404), (997, 403)):
        await project.load(f"match /a/{{id}} {{ allow get: if [{', '.join(['1'] * count)}].size() > 0; }}")
        assert await project.ask("GET", "/a/1", ALICE) == status


def functions(depth: int) -> str:
    """A chain of functions: each calls the next one."""
    chain = "".join(f"function f{number}() {{ return f{number + 1}(); }}\n" for number in range(depth))
    return f"{chain}function f{depth}() {{ return true; }}"


def lets(count: int) -> str:
    return " ".join(f"let v{number} = {number};" for number in range(count))


def brackets(depth: int) -> str:
    return f"{'(' * depth}true{')' * depth}"


TOO_MUCH: dict[str, tuple[str, str]] = {
    "calls below each other": (f"{functions(20)} ", f"{functions(21)} "),
    "arguments": (
        "function f(a, b, c, d, e, g, h) { return true; }",
        "function f(a, b, c, d, e, g, h, i) { return true; }",
    ),
    "lets": (f"function f() {{ {lets(11)} return true; }}", f"function f() {{ {lets(12)} return true; }}"),
    "brackets": (
        f"function f() {{ return {'(' * 98}true{')' * 98}; }}",
        f"function f() {{ return {'(' * 99}true{')' * 99}; }}",
    ),
    "recursion": ("function f() { return g(); } function g() { return true; }", "function f() { return f(); }"),
    "a cycle": ("", "function f() { return g(); } function g() { return f(); }"),
}


@pytest.mark.parametrize("what", TOO_MUCH)
async def test_a_file_beyond_a_limit_does_not_compile(project: Project, what: str) -> None:
    within, beyond = TOO_MUCH[what]
    rest = "match /a/{id} { allow get: if true; }"
    assert (await project.load(within + rest)).status_code == 200
    assert (await project.load(beyond + rest)).status_code == 400


ABOUT: dict[str, tuple[str, str, Any]] = {
    "get": ("GET", "/a/there", None),
    "get of a missing document": ("GET", "/a/missing", None),
    "list": ("POST", ":runQuery", {"structuredQuery": {"from": [{"collectionId": "a"}], "limit": 3, "offset": 1}}),
    "list without a limit": ("POST", ":runQuery", {"structuredQuery": {"from": [{"collectionId": "a"}]}}),
    "create": ("PATCH", "/a/new", {"fields": {"v": {"integerValue": "1"}}}),
    "update": ("PATCH", "/a/there?updateMask.fieldPaths=v", {"fields": {"v": {"integerValue": "1"}}}),
    "delete": ("DELETE", "/a/there", None),
}
PATH = "/databases/$(database)/documents/a"


@pytest.mark.parametrize(
    ("request_of", "condition"),
    [
        ("get", "request.method == 'get'"),
        ("get", f"request.path == {PATH}/there"),
        ("get", "request.time is timestamp && request.time > timestamp.date(2020, 1, 1)"),
        ("get", "request.auth.uid == 'alice' && request.auth.token.sub == 'alice'"),
        ("get", f"resource.id == 'there' && resource.__name__ == {PATH}/there"),
        ("get", "resource.data.v == 0"),
        ("get", "!('resource' in request) && !('query' in request)"),
        ("get of a missing document", "resource == null"),
        ("list", "request.method == 'list' && request.query.limit == 3 && request.query.offset == 1"),
        ("list", "!('resource' in request)"),
        ("list without a limit", "request.query.limit == null"),
        ("create", "request.method == 'create' && resource == null && request.resource.data.v == 1"),
        ("create", f"request.resource.id == 'new' && request.resource.__name__ == {PATH}/new"),
        ("create", f"existsAfter({PATH}/new) && !exists({PATH}/new) && getAfter({PATH}/new).data.v == 1"),
        ("update", "request.method == 'update' && resource.data.v == 0 && request.resource.data.v == 1"),
        ("update", "request.resource.data.w == 0"),
        ("update", f"get({PATH}/there).data.v == 0 && getAfter({PATH}/there).data == {{'v': 1, 'w': 0}}"),
        ("delete", "request.method == 'delete' && request.resource == null && resource.data.v == 0"),
        ("delete", f"exists({PATH}/there) && !existsAfter({PATH}/there)"),
    ],
)
async def test_a_condition_sees_the_request(project: Project, request_of: str, condition: str) -> None:
    await project.set("a/there", v=0, w=0)
    method, path, body = ABOUT[request_of]
    for negated in (True, False):
        await project.load(f"match /a/{{id}} {{ allow read, write: if {'!' if negated else ''}({condition}); }}")
        status = await project.ask(method, path, ALICE, body)
        assert (status == 403) is negated, status


async def test_an_anonymous_caller_has_no_auth(project: Project) -> None:
    await project.load("match /a/{id} { allow get: if request.auth == null; }")
    assert await project.ask("GET", "/a/1", {}) == 404
    assert await project.ask("GET", "/a/1", ALICE) == 403
