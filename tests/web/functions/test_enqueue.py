"""`POST /v1/messages`: what apps without a Firestore SDK call. Tokens are unsigned here, as in `outbox dev`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import functions_framework.aio
import httpx
import pytest

import firestore_outbox.web.functions
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import update
from firestore_outbox.web.messages_api import MAX_BODY_BYTES
from tests.messages.shared_faults import SHARED
from tests.web.functions.calling import built, member, prepared
from tests.web.functions.firebase import Google, id_token, now, unsigned_token
from tests.web.service.support import Service

TEXT = {"type": "text", "text": "Hello!"}


@pytest.fixture
async def instance(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    return await prepared(service, monkeypatch)


def body(**changes: Any) -> dict[str, Any]:
    """A good one; None takes a field away."""
    fields = {"requestId": "request-1", "accountId": "shop", "to": "+491701", "parts": [TEXT], **changes}
    return {name: value for name, value in fields.items() if value is not None}


async def post(content: Any, *, uid: str = "ann", path: str = "/v1/messages", **request: Any) -> httpx.Response:
    """Through functions-framework, as in production."""
    app = functions_framework.aio.create_asgi_app_from_module(
        "enqueue", "main.py", None, firestore_outbox.web.functions, None
    )
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    headers = {"authorization": f"Bearer {unsigned_token(uid)}", **request.pop("headers", {})}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://functions") as client:
        return await client.request(request.pop("method", "POST"), path, content=raw, headers=headers)


async def documents(service: Service) -> dict[str, dict[str, Any]]:
    """All that a message may have made."""
    find = service.system.gateway.find
    found = [await find(Find(collection=name)) for name in (paths.THREADS, paths.OUTBOX)]
    found.append(await find(Find(collection=paths.MESSAGES, group=True)))
    return {snapshot.path: snapshot.data for snapshots in found for snapshot in snapshots}


# --- a message


async def test_a_member_enqueues_a_message_as_the_sdk_would(instance: Service) -> None:
    answer = await post(body())
    assert answer.status_code == 201
    assert answer.json() == {
        "requestId": "request-1",
        "threadId": "shop__+491701",
        "message": "threads/shop__+491701/messages/request-1",
        "status": "queued",
    }
    stored = await documents(instance)
    outbox = stored["outbox/request-1"]
    assert outbox.pop("createdAt") == outbox.pop("nextAttemptAt")
    assert outbox == {
        "requestId": "request-1",
        "accountId": "shop",
        "threadId": "shop__+491701",
        "to": "+491701",
        "parts": [TEXT],
        "status": "queued",
        "createdBy": "ann",
        "attempts": 0,
    }
    assert stored["threads/shop__+491701"]["lastMessageText"] == "Hello!"
    assert stored["threads/shop__+491701/messages/request-1"]["status"] == "queued"


async def test_it_is_sent_by_the_worker(instance: Service) -> None:
    await post(body())
    await instance.system.trigger.created("request-1", (await documents(instance))["outbox/request-1"])
    await instance.post("/tasks/lane", {"kind": "outbox", "key": "shop"})
    assert instance.called == ["request-1"]


async def test_a_message_for_later_waits_until_then(instance: Service) -> None:
    at, by = now() + timedelta(days=3), now() + timedelta(days=4)
    assert (await post(body(sendAt=at.isoformat(), sendBy=by.isoformat()))).status_code == 201
    outbox = (await documents(instance))["outbox/request-1"]
    assert (outbox["nextAttemptAt"], outbox["sendBy"]) == (at, by)


async def test_an_urgent_message_is_stored_as_one(instance: Service) -> None:
    assert (await post(body(priority="urgent"))).status_code == 201
    assert (await documents(instance))["outbox/request-1"]["priority"] == "urgent"


async def test_each_kind_of_part_is_taken(instance: Service) -> None:
    parts = [
        TEXT,
        {"type": "media", "mediaId": "m1", "mimeType": "image/png", "caption": "a cat", "filename": "cat.png"},
        {"type": "template", "name": "hello", "language": "en", "params": ["Ann"]},
    ]
    assert (await post(body(parts=parts))).status_code == 201
    assert (await documents(instance))["outbox/request-1"]["parts"] == parts


# --- once


async def test_the_same_call_again_answers_the_same_and_writes_nothing(instance: Service) -> None:
    first = await post(body())
    before = await documents(instance)
    for _ in range(3):
        again = await post(body())
        assert (again.status_code, again.json()) == (200, first.json())
    assert await documents(instance) == before


async def test_twenty_calls_at_once_are_one_message(instance: Service) -> None:
    answers = await asyncio.gather(*(post(body()) for _ in range(20)))
    assert sorted(answer.status_code for answer in answers) == [200] * 19 + [201]
    assert len(await documents(instance)) == 3


AT, BY = (now() + timedelta(days=1)).isoformat(), (now() + timedelta(days=2)).isoformat()

OTHER_BODIES: dict[str, dict[str, Any]] = {
    "another text": {"parts": [{"type": "text", "text": "Bye!"}]},
    "one part more": {"parts": [TEXT, TEXT]},
    "another recipient": {"to": "+491702"},
    "another account": {"accountId": "branch"},
    "another time": {"sendAt": (now() + timedelta(hours=5)).isoformat()},
    "no time": {"sendAt": None},
    "another deadline": {"sendBy": (now() + timedelta(days=3)).isoformat()},
    "no deadline": {"sendBy": None},
    "another priority": {"priority": "urgent"},
}


@pytest.mark.parametrize("case", OTHER_BODIES)
@pytest.mark.parametrize("moment", ["queued", "moved", "sent"])
async def test_another_body_under_the_same_request_id_is_refused_also_later(
    instance: Service, case: str, moment: str
) -> None:
    await member(instance, "ann", "agent", "branch")
    first = body(sendAt=AT, sendBy=BY)
    assert (await post(first)).status_code == 201
    if moment != "queued":  # as the worker does: a hold or a retry moves the time, and the status goes on
        change = {"nextAttemptAt": now() + timedelta(hours=5), "status": "queued" if moment == "moved" else "sent"}
        await instance.system.gateway.commit([update(paths.outbox("request-1"), change, version=None)])
    before = await documents(instance)
    answer = await post(body(**{**first, **OTHER_BODIES[case]}))
    assert (answer.status_code, answer.json()["code"]) == (409, "request-id-taken")
    assert "request-1" in answer.json()["error"]
    assert await documents(instance) == before
    assert (await post(first)).status_code == 200, "the first call itself may still be repeated"


@pytest.mark.parametrize("at", ["2000-01-01T00:00:00Z", "1970-01-01T00:00:00+00:00"])
async def test_a_time_to_send_at_that_has_passed_means_now(instance: Service, at: str) -> None:
    assert (await post(body(sendAt=at))).status_code == 201
    stored = (await documents(instance))[paths.outbox("request-1")]
    assert stored["nextAttemptAt"] == stored["createdAt"], "the server's time of the commit"
    assert (await post(body(sendAt=at))).status_code == 200, "the same call again"
    assert (await post(body())).status_code == 409, "another call"


@pytest.mark.parametrize(
    "owner", [{"accountId": "stranger"}, {"runId": "rem-20260302T010000Z"}], ids=["another account", "a run"]
)
async def test_an_id_that_another_account_or_a_run_has_is_taken(instance: Service, owner: dict[str, str]) -> None:
    assert (await post(body())).status_code == 201
    await instance.system.gateway.commit([update(paths.outbox("request-1"), owner, version=None)])
    before = await documents(instance)
    answer = await post(body())
    assert (answer.status_code, answer.json()["code"]) == (409, "request-id-taken")
    assert await documents(instance) == before


async def test_a_time_written_another_way_is_the_same_time(instance: Service) -> None:
    assert (await post(body(sendAt="2026-12-01T10:00:00Z"))).status_code == 201
    assert (await post(body(sendAt="2026-12-01T11:00:00.000+01:00"))).status_code == 200


async def test_a_call_repeated_when_the_outbox_document_has_expired_answers_the_same(instance: Service) -> None:
    first = await post(body())
    await instance.system.gateway._client.document(paths.outbox("request-1")).delete()
    again = await post(body())
    assert (again.status_code, again.json()) == (200, first.json())
    assert (await post(body(parts=[{"type": "text", "text": "Bye!"}]))).status_code == 409


# --- who may


@pytest.mark.parametrize(("uid", "status"), [("olga", 201), ("ann", 201), ("vic", 403), ("stranger", 403)])
async def test_only_owners_and_agents_send(instance: Service, uid: str, status: int) -> None:
    assert (await post(body(), uid=uid)).status_code == status
    assert bool(await documents(instance)) is (status == 201)


@pytest.mark.parametrize("role", ["", "Owner", "admin", None, 7, ["owner"], {"owner": True}])
async def test_an_unknown_role_allows_nothing(instance: Service, role: Any) -> None:
    await member(instance, "eve", role)
    assert (await post(body(), uid="eve")).status_code == 403
    assert await documents(instance) == {}


async def test_a_member_of_one_account_does_not_send_from_another(instance: Service) -> None:
    await member(instance, "bob", "owner", "branch")
    refused = await post(body(), uid="bob")
    unknown = await post(body(accountId="no-such-account"), uid="bob")
    assert (refused.status_code, unknown.status_code) == (403, 403)
    assert refused.json() == unknown.json(), "no caller learns which accounts there are"
    assert await documents(instance) == {}


@pytest.mark.parametrize("uid", ["a/b", "a/b/c", ".", "..", "__x__", "x" * 128])
async def test_a_user_of_an_odd_name_is_no_member(instance: Service, uid: str) -> None:
    assert (await post(body(), uid=uid)).status_code == 403


async def test_a_stranger_learns_nothing_of_what_is_wrong_with_the_message(instance: Service) -> None:
    assert (await post(body(parts=[]), uid="stranger")).status_code == 403


async def test_a_signed_token_is_verified_and_an_unsigned_one_refused(
    google: Google, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path of production: firebase-admin with certificates."""
    await built(service, monkeypatch)
    signed = {"authorization": f"Bearer {id_token('ann')}"}
    assert (await post(body())).status_code == 401
    assert await documents(service) == {}
    assert (await post(body(), headers=signed)).status_code == 201
    firestore_outbox.web.functions._users.cache_clear()
    google.is_down = True
    assert (await post(body(), headers=signed)).status_code == 503


# --- what is wrong, in words


def later(**of: float) -> str:
    return (now() + timedelta(**of)).isoformat()


BAD_BODIES: dict[str, tuple[Any, str]] = {
    "nothing": (b"", "not JSON"),
    "no JSON": (b"{", "not JSON"),
    "not a number": (b'{"requestId": NaN}', "not JSON"),
    "nested too deeply": (b"[" * 100_000, "not JSON"),
    "not UTF-8": (b'{"requestId": "\xff"}', "UTF-8"),
    "half a character": (b'{"requestId": "request-1\\ud800"}', "surrogate"),
    "a list": ([], "must be a JSON object"),
    "no account": (body(accountId=None), "accountId is missing"),
    "no request id": (body(requestId=None), "requestId is missing"),
    "no recipient": (body(to=None), "to is missing"),
    "no parts": (body(parts=None), "parts is missing"),
    "an unknown field": (body(send_at=later(days=1)), "'send_at' is unknown; known are requestId"),
    "a field of the worker": (body(status="sent"), "'status' is unknown"),
    "another user's name": (body(createdBy="olga"), "'createdBy' is unknown"),
    "an account that is a path": (body(accountId="shop/members/ann"), "accountId must be"),
    "an account that is a number": (body(accountId=7), "accountId must be"),
    "an account that is a dot": (body(accountId="."), "accountId must be"),
    "a request id that is a number": (body(requestId=12345678), "requestId must be a text"),
    "a short request id": (body(requestId="x"), "8 to 128"),
    "a request id that Firestore keeps for itself": (body(requestId="__abcdef__"), "two underscores"),
    "a request id that is a path": (body(requestId="a/b/c/d/e"), "8 to 128"),
    "a recipient that is a number": (body(to=491701), "to must be a text"),
    "a recipient that is a path": (body(to="a/b"), "without slashes and blanks"),
    "parts that are none": (body(parts=[]), "1 to 10 parts"),
    "too many parts": (body(parts=[TEXT] * 11), "1 to 10 parts"),
    "parts that are text": (body(parts="Hello!"), "parts must be a list of 1 to 10 parts"),
    "a part that is text": (body(parts=["Hello!"]), "parts[0].type must be"),
    "a part without a type": (body(parts=[{"text": "Hello!"}]), "parts[0].type must be"),
    "a part of an unknown type": (body(parts=[{"type": "smell"}]), "parts[0].type must be"),
    "a part with a list for a type": (body(parts=[{"type": ["text"]}]), "parts[0]"),
    "a part with more in it": (body(parts=[{**TEXT, "bold": True}]), "parts[0].bold is no field of a text part"),
    "an empty text": (body(parts=[{"type": "text", "text": ""}]), "parts[0].text is empty"),
    "a long text": (body(parts=[{"type": "text", "text": "x" * 4097}]), "at most 4,096"),
    "a time in words": (body(sendAt="tomorrow"), "sendAt must be a time with an offset"),
    "a time without an offset": (body(sendAt="2030-01-31T09:00:00"), "sendAt must be a time with an offset"),
    "a time that is a number": (body(sendAt=1893456000), "sendAt must be a time"),
    "a time before all times": (body(sendBy="0001-01-01T00:00:00+14:00"), "sendBy must be a time"),
    "a time too far ahead": (body(sendAt=later(days=367)), "sendAt is more than 365 days ahead"),
    "an unknown priority": (body(priority="high"), "priority must be urgent, normal or bulk"),
    "a deadline before the time": (body(sendAt=later(days=2), sendBy=later(days=1)), "sendBy is before sendAt"),
}


@pytest.mark.parametrize("case", BAD_BODIES)
async def test_a_body_at_fault_is_refused_in_words_and_writes_nothing(instance: Service, case: str) -> None:
    content, words = BAD_BODIES[case]
    answer = await post(content)
    assert answer.status_code == 400
    assert words in answer.json()["error"]
    assert await documents(instance) == {}


async def test_the_largest_message_there_can_be_is_taken_and_more_is_refused(instance: Service) -> None:
    """Ten texts of characters that JSON writes in six bytes each."""
    assert (await post(body(parts=[{"type": "text", "text": "ä" * 4096}] * 10))).status_code == 201
    huge = body(requestId="request-2", parts=[{"type": "text", "text": "x" * MAX_BODY_BYTES}])
    assert (await post(huge)).status_code == 413
    assert "outbox/request-2" not in await documents(instance)


async def test_a_body_that_is_too_large_is_not_read_to_its_end(instance: Service) -> None:
    chunks = iter([b"x" * 100_000] * 40)

    async def endless() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    app = functions_framework.aio.create_asgi_app_from_module(
        "enqueue", "main.py", None, firestore_outbox.web.functions, None
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://functions") as client:
        headers = {"authorization": f"Bearer {unsigned_token('ann')}"}
        assert (await client.post("/v1/messages", content=endless(), headers=headers)).status_code == 413
    assert len(list(chunks)) > 20, "it was read on"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/messages", 405),
        ("DELETE", "/v1/messages", 405),
        ("POST", "/", 404),
        ("POST", "/v1", 404),
        ("POST", "/v2/messages", 404),
        ("POST", "/v1/messages/request-1", 404),
    ],
)
async def test_there_is_nothing_else(instance: Service, method: str, path: str, status: int) -> None:
    assert (await post(body(), method=method, path=path)).status_code == status
    assert await documents(instance) == {}


async def test_a_call_is_to_be_repeated_when_firestore_is_out_of_reach(instance: Service) -> None:
    instance.store.is_down = True
    assert (await post(body())).status_code == 503
    instance.store.is_down = False
    assert (await post(body())).status_code == 201
    assert isinstance((await documents(instance))["outbox/request-1"]["createdAt"], datetime)


@pytest.mark.parametrize("case", SHARED)
async def test_the_api_says_what_a_backend_and_the_worker_say(instance: Service, case: str) -> None:
    changes, sentence = SHARED[case]
    answer = await post(body(**changes))
    assert (answer.status_code, answer.json()["error"].removesuffix(".")) == (400, sentence)
