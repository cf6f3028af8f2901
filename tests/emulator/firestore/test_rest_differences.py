"""Where the HTTP side of ours and of Google's emulator differ on purpose, each with both answers.

The table in docs/emulator-differences.md says why.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from tests.conformance.backends import Place
from tests.emulator.firestore.rest_story import Ask, Teller
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.asyncio(loop_scope="session")

DOCUMENT = Ask("PATCH", "/c/a", {"fields": {"n": {"integerValue": 1}}})
ADMIN = "//emulator/v1/projects/<project>"


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def http() -> AsyncIterator[httpx.AsyncClient]:
    """No connection is used twice: Google's emulator closes one after some of its answers, without saying so."""
    not_kept = httpx.Limits(max_keepalive_connections=0)
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS, limits=not_kept) as client:
        yield client


def teller(http: httpx.AsyncClient, place: Place) -> Teller:
    assert place.address is not None
    return Teller(http, place.address, f"p-{secrets.token_hex(6)}")


def created(fields: Any) -> Ask:
    return Ask("POST", "/c", fields if isinstance(fields, str | bytes) else {"fields": fields})


DIFFERENT: dict[str, tuple[Ask, int, int]] = {
    "a query parameter that does not exist": (Ask("GET", "/c/a?nonsense=1"), 200, 400),
    "a misspelt condition": (Ask("DELETE", "/c/a?currentDocument.exist=false"), 200, 400),
    "a condition that is neither true nor false": (Ask("PATCH", "/c/a?currentDocument.exists=maybe", {}), 409, 400),
    "a message as query parameter": (Ask("GET", "/c/a?mask=n"), 200, 400),
    "an update time in the query": (Ask("PATCH", "/c/a?currentDocument.updateTime=<time>", {}), 400, 200),
    "a read time in the query": (Ask("GET", "/c/a?readTime=<time>"), 400, 200),
    "a call on a document with a colon in its name": (Ask("POST", "/c/a:b:listCollectionIds", {}), 400, 200),
    "a number where a string belongs": (created({"a": {"stringValue": 5}}), 200, 400),
    "a string where a boolean belongs": (created({"a": {"booleanValue": "true"}}), 200, 400),
    "a bare NaN": (created('{"fields": {"a": {"doubleValue": NaN}}}'), 200, 400),
    "something behind the JSON": (created("{} {}"), 200, 400),
    "bytes that are no UTF-8": (created(b'{"fields": {"a": {"stringValue": "\xff"}}}'), 200, 400),
    "half a surrogate pair": (created('{"fields": {"a": {"stringValue": "\\ud800"}}}'), 200, 400),
    "an escape in the path that is no UTF-8": (Ask("PATCH", "/c/%ff", {}), 200, 400),
    "a database that was not created": (
        Ask("GET", "//v1/projects/<project>/databases/other/documents/c"),
        200,
        404,
    ),
    "the partitions of a query": (
        Ask(
            "POST",
            ":partitionQuery",
            {
                "structuredQuery": {
                    "from": [{"collectionId": "c", "allDescendants": True}],
                    "orderBy": [{"field": {"fieldPath": "__name__"}}],
                },
                "partitionCount": "2",
            },
        ),
        501,
        200,
    ),
    "a pipeline": (Ask("POST", ":executePipeline", {}), 500, 501),
    "an import": (Ask("POST", ADMIN + ":import", {"exportDirectory": "none"}), 400, 501),
    "an export": (Ask("POST", ADMIN + ":export", {"exportDirectory": "none"}), 400, 501),
    "a trigger of the first generation": (
        Ask(
            "PUT",
            ADMIN + "/triggers/t",
            {
                "eventTrigger": {
                    "resource": "projects/<project>/databases/(default)/documents/c/{id}",
                    "eventType": "providers/cloud.firestore/eventTypes/document.create",
                    "service": "firestore.googleapis.com",
                }
            },
        ),
        200,
        501,
    ),
    "a trigger that says nothing": (Ask("POST", ADMIN + "/eventarcTrigger?eventarcTriggerId=t", {}), 500, 400),
}
"""The request, the status of Google's emulator, and ours."""

UNANSWERED = {
    "a page size that is no number": Ask("GET", "/c?pageSize=x"),
    "a transaction in the query": Ask("GET", "/c/a?transaction=AAAA"),
    "a name in the body that is not the path's": Ask("PATCH", "/c/a", {"name": "<root>/c/b"}),
    "a database in the body that is not the path's": Ask(
        "POST", ":commit", {"database": "projects/x/databases/(default)"}
    ),
}


@pytest.mark.parametrize("case", DIFFERENT)
async def test_both_answer_as_the_table_says(
    http: httpx.AsyncClient, grpc_place: Place, official_place: Place, case: str
) -> None:
    ask, googles, ours = DIFFERENT[case]
    answers = await asyncio.gather(
        *(teller(http, place).tell([DOCUMENT, ask]) for place in (official_place, grpc_place))
    )
    assert [answer[1].status for answer in answers] == [googles, ours]


@pytest.mark.parametrize("case", UNANSWERED)
async def test_what_googles_emulator_never_answers_is_a_bad_request(
    http: httpx.AsyncClient, grpc_place: Place, case: str
) -> None:
    """Google's is not asked: waiting for nothing proves nothing."""
    _, answer = await teller(http, grpc_place).tell([DOCUMENT, UNANSWERED[case]])
    assert answer.body == "400 INVALID_ARGUMENT"


async def test_rules_without_a_file_are_refused_with_what_is_needed(http: httpx.AsyncClient, grpc_place: Place) -> None:
    answer = await teller(http, grpc_place).send(Ask("PUT", ADMIN + ":securityRules", {"rules": {}}))
    assert answer.json()["error"]["status"] == "INVALID_ARGUMENT"
    assert "One file is needed" in answer.json()["error"]["message"]


async def test_a_plus_in_the_query_is_a_space(
    http: httpx.AsyncClient, grpc_place: Place, official_place: Place
) -> None:
    """Python's and JavaScript's own ways of writing a query say so; Google's emulator keeps the plus."""
    ask = Ask("POST", "/c?documentId=a+b", {})
    googles, ours = [await teller(http, place).ask(ask) for place in (official_place, grpc_place)]
    assert (googles.body["name"], ours.body["name"]) == ("<root>/c/a+b", "<root>/c/a b")


async def test_calls_for_administrators_need_no_token(http: httpx.AsyncClient, grpc_place: Place) -> None:
    """There are no rules to get past."""
    url = f"http://{grpc_place.address}/v1/projects/p-{secrets.token_hex(6)}/databases/(default)/documents"
    assert (await http.post(f"{url}:listCollectionIds")).status_code == 200


async def test_a_form_is_refused_with_what_to_send_instead(
    http: httpx.AsyncClient, grpc_place: Place, official_place: Place
) -> None:
    """It is what `curl -d` sends."""

    async def post(place: Place) -> httpx.Response:
        url = f"http://{place.address}/v1/projects/p-{secrets.token_hex(6)}/databases/(default)/documents:commit"
        form = {"content-type": "application/x-www-form-urlencoded"}
        return await http.post(url, content='{"writes": []}', headers=form)

    ours = await post(grpc_place)
    assert ((await post(official_place)).status_code, ours.status_code) == (404, 400)
    assert "content-type: application/json" in ours.json()["error"]["message"]


# --- what is the same, and is no body


CROSS_ORIGIN = [
    ("OPTIONS", "/v1/projects/p/databases/(default)/documents/c/a", True),
    ("OPTIONS", "/emulator/v1/projects/p/databases/(default)/documents", True),
    ("OPTIONS", "/v1/projects/p/databases/(default)/documents/c/a", False),
    ("GET", "/v1/projects/p/databases/(default)/documents/c/none", True),
    ("GET", "/", True),
    ("GET", "/nonsense", True),
    ("GET", "/", False),
]


@pytest.mark.parametrize(("verb", "path", "is_from_a_page"), CROSS_ORIGIN)
async def test_pages_of_any_origin_are_let_in_as_by_googles_emulator(
    http: httpx.AsyncClient, grpc_place: Place, official_place: Place, verb: str, path: str, is_from_a_page: bool
) -> None:
    asked = {"access-control-request-method": "PATCH", "access-control-request-headers": "content-type,authorization"}
    headers = ({"origin": "http://localhost:5000"} if is_from_a_page else {}) | (asked if verb == "OPTIONS" else {})
    seen = []
    for place in (official_place, grpc_place):
        response = await http.request(verb, f"http://{place.address}{path}", headers=headers)
        allowed = {key: value for key, value in response.headers.items() if key.startswith("access-control-")}
        seen.append((response.status_code, allowed))
    assert seen[0] == seen[1]
    assert bool(seen[1][1]) == is_from_a_page


async def test_answers_are_laid_out_for_people_unless_asked_not_to(http: httpx.AsyncClient, grpc_place: Place) -> None:
    told = teller(http, grpc_place)
    await told.ask(DOCUMENT)
    long, short = [await told.send(Ask("GET", f"/c/a?{query}")) for query in ("", "prettyPrint=false")]
    assert long.json() == short.json()
    assert long.text.count("\n") > 5
    assert short.text.count("\n") == 1
    assert long.headers["content-type"] == "application/json"


async def test_an_answer_in_another_form_than_json_is_refused(http: httpx.AsyncClient, grpc_place: Place) -> None:
    told = teller(http, grpc_place)
    statuses = [
        (await told.send(Ask("GET", f"/c?{alt}"))).status_code for alt in ("alt=proto", "$alt=json;enum-encoding=int")
    ]
    assert statuses == [400, 200]
