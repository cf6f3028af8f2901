"""Which calls and callers the rules restrict: on our emulator and on Google's, over REST.

test_rules.py covers gRPC; test_unit_testing.py and tests/client cover the streams of browsers.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.rest_project import ALICE, OWNER, Project, user

CLOSED = "match /{path=**} { allow read, write: if false; }"
OPEN = "match /{path=**} { allow read, write: if true; }"

ANYTHING: dict[str, tuple[str, str, Any]] = {
    "a get": ("GET", "/a/1", None),
    "a listing": ("GET", "/a", None),
    "a write": ("PATCH", "/a/1", {}),
    "a delete": ("DELETE", "/a/1", None),
    "a query": ("POST", ":runQuery", {"structuredQuery": {"from": [{"collectionId": "a"}]}}),
    "a commit": ("POST", ":commit", {"writes": []}),
}


@pytest.mark.parametrize("call", [name for name in ANYTHING if name != "a commit"])
async def test_a_closed_project_refuses_everybody_but_an_administrator(project: Project, call: str) -> None:
    await project.put("a/1")
    await project.load(CLOSED)
    for caller in ({}, ALICE):
        assert await project.ask(*ANYTHING[call][:2], caller, ANYTHING[call][2]) == 403
    assert await project.ask(*ANYTHING[call][:2], OWNER, ANYTHING[call][2]) == 200


async def test_a_project_without_rules_is_open(project: Project) -> None:
    for method, path, body in ANYTHING.values():
        assert await project.ask(method, path, {}, body) in (200, 404)


@pytest.mark.parametrize("token", ["garbage", "a.b.c", "e30.e30", "e30.e30.x.y", "e30.W10."])
async def test_a_token_that_cannot_be_read_is_a_bad_request(project: Project, token: str) -> None:
    await project.load(OPEN)
    assert await project.ask("GET", "/a/1", {"authorization": f"Bearer {token}"}) == 400


@pytest.mark.parametrize(
    ("claims", "condition"),
    [
        ({"sub": "alice"}, "request.auth.uid == 'alice'"),
        ({"sub": "alice", "role": "clerk"}, "request.auth.token.role == 'clerk'"),
        ({"user_id": "alice"}, "request.auth.uid == null"),
        ({"sub": "alice", "exp": 1}, "request.auth.token.exp == 1"),
        (
            {"sub": "a", "groups": ["x"], "f": {"g": 1.5}},
            "request.auth.token.groups[0] == 'x' && request.auth.token.f.g > 1",
        ),
    ],
)
async def test_a_token_is_believed(project: Project, claims: dict[str, Any], condition: str) -> None:
    await project.load(f"match /a/{{id}} {{ allow get: if {condition}; }}")
    assert await project.ask("GET", "/a/1", user(**claims)) == 404


async def test_what_tools_ask_for_needs_an_administrator(project: Project) -> None:
    await project.load(OPEN)
    for caller, status in ((ALICE, 403), (OWNER, 200)):
        assert await project.ask("POST", ":listCollectionIds", caller, {}) == status
        assert await project.ask("GET", "/a?showMissing=true", caller) == status
        assert await project.ask("POST", ":batchWrite", caller, {"writes": []}) == status


async def test_one_refused_document_refuses_a_whole_batch(project: Project) -> None:
    await project.put("a/mine", "a/other")
    await project.load("match /a/{id} { allow get, write: if id == 'mine'; }")
    names = [f"{project.root}/a/{name}" for name in ("mine", "other")]
    assert await project.ask("POST", ":batchGet", ALICE, {"documents": names[:1]}) == 200
    assert await project.ask("POST", ":batchGet", ALICE, {"documents": names}) == 403
    assert await project.ask("POST", ":commit", ALICE, {"writes": [project.write("a/mine")]}) == 200
    both = [project.write("a/mine", v=1), project.write("a/other")]
    assert await project.ask("POST", ":commit", ALICE, {"writes": both}) == 403


async def test_rules_come_before_preconditions(project: Project) -> None:
    await project.put("a/there")
    await project.load("match /a/{id} { allow create: if true; } match /b/{id} { allow update: if true; }")
    assert await project.ask("PATCH", "/a/there?currentDocument.exists=false", ALICE, {}) == 409
    assert await project.ask("PATCH", "/a/there?currentDocument.exists=true", ALICE, {}) == 403
    assert await project.ask("PATCH", "/b/missing?currentDocument.exists=true", ALICE, {}) == 404
    assert await project.ask("PATCH", "/b/missing?currentDocument.exists=false", ALICE, {}) == 403


async def test_a_document_that_is_written_twice_is_judged_by_what_it_becomes(project: Project) -> None:
    await project.load("match /a/{id} { allow create: if request.resource.data.v == 2; }")
    twice = [project.write("a/n", v=1), project.write("a/n", v=2)]
    assert await project.ask("POST", ":commit", ALICE, {"writes": twice[::-1]}) == 403
    assert await project.ask("POST", ":commit", ALICE, {"writes": twice}) == 200


async def test_rules_that_do_not_compile_leave_the_earlier_ones_in_force(project: Project) -> None:
    assert (await project.load("match /a/{id} { allow get: if true; }")).status_code == 200
    refused = await project.load("match /a/{id} { allow get: if ; }")
    assert refused.status_code == 400
    assert "Error compiling rules:\nL3:31" in refused.json()["error"]["message"]
    assert await project.ask("GET", "/a/1", ALICE) == 404


async def test_a_query_is_refused_with_403_if_the_rule_compares_fields_that_it_only_bounds(project: Project) -> None:
    await project.put("a/1")
    await project.load("match /a/{id} { allow list: if resource.data.diff({'x': 'abc'}) == 7; }")
    field = {"fieldPath": "x"}
    where = {"fieldFilter": {"field": field, "op": "LESS_THAN_OR_EQUAL", "value": {"stringValue": "abd"}}}
    query = {"structuredQuery": {"from": [{"collectionId": "a"}], "where": where}}
    assert await project.ask("POST", ":runQuery", ALICE, query) == 403
