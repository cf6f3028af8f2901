"""The account's own receiver: what it is sent, and what each of its answers means."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET
from firestore_outbox.messages.model import MediaPart, Part, TemplatePart
from firestore_outbox.providers.outcome import (
    AuthFailed,
    ErrorCode,
    Outcome,
    Rejected,
    Retryable,
    Scope,
    Sent,
    Throttled,
    Unknown,
)
from firestore_outbox.providers.protocol import MediaMode
from firestore_outbox.providers.signature import is_genuine
from firestore_outbox.providers.signed_webhook.adapter import CODES, KEY_HEADER, NAME, SIGNATURE_HEADER
from tests.providers.answering import Answering
from tests.providers.linked import Link, linked
from tests.providers.support import message, providers_at, text

MEDIA = MediaPart(type="media", mediaId="m-1", mimeType="image/png", caption="look", filename="me.png")
TEMPLATE = TemplatePart(type="template", name="reminder", language="en", params=("Asha",))


@pytest.fixture
async def link() -> AsyncIterator[Link]:
    async with linked(NAME) as it:
        yield it


# --- what it is sent


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (text("hi"), {"type": "text", "text": "hi"}),
        (TEMPLATE, {"type": "template", "name": "reminder", "language": "en", "params": ["Asha"]}),
        (
            MEDIA,
            {
                "type": "media",
                "mediaId": "m-1",
                "mimeType": "image/png",
                "caption": "look",
                "filename": "me.png",
                "url": "https://files.example/m-1?signature=s3cret",
            },
        ),
    ],
)
async def test_a_part_is_posted_as_json_signed_and_with_its_key(part: Part, shown: dict[str, Any]) -> None:
    async with Answering(200, {"id": "r-1"}) as receiver, linked(NAME, url=receiver.url) as link:
        assert await link.send(message(parts=(part,))) == Sent(provider_message_id="r-1")
    (call,) = receiver.calls
    assert (call.method, call.target) == ("POST", "/signed_webhook")
    assert call.headers["content-type"] == "application/json"
    assert call.headers[KEY_HEADER.lower()] == "request-1:0"
    assert is_genuine(call.headers[SIGNATURE_HEADER.lower()], call.body, DEFAULT_SECRET, datetime.now(UTC))
    assert json.loads(call.body) == {
        "accountId": "acme",
        "requestId": "request-1",
        "to": "4915112345",
        "part": shown,
        "partIndex": 0,
        "partCount": 1,
        "echo": "request-1:0:1",
    }


async def test_each_part_has_a_key_of_its_own_and_each_attempt_the_same(link: Link) -> None:
    for _ in range(2):
        assert isinstance(await link.send(message(parts=(text("one"), text("two")))), Sent)
    keys = [(call.idempotency_key, call.delivered) for call in link.simulator.core.record.calls()]
    assert keys == [("request-1:0", 1), ("request-1:1", 1), ("request-1:0", 0), ("request-1:1", 0)]


@pytest.mark.parametrize("part", [text(), MEDIA, TEMPLATE])
async def test_the_simulated_receiver_accepts_every_kind_of_part(link: Link, part: Part) -> None:
    outcome = await link.send(message(parts=(part,)))
    assert isinstance(outcome, Sent)
    assert outcome.provider_message_id.startswith("received-")
    assert [call["accepted"] for call in await link.calls()] == [True]


async def test_a_receiver_that_has_the_key_already_says_so_and_the_message_is_sent(link: Link) -> None:
    first = await link.send(message())
    assert await link.send(message()) == first
    assert [call["delivered"] for call in await link.calls()] == [1, 0]


async def test_a_lost_answer_is_unknown_and_the_next_attempt_finds_the_message_delivered(link: Link) -> None:
    await link.order(lostResponseRate=1, forCalls=1)
    assert isinstance(await link.send(message()), Unknown)
    assert isinstance(await link.send(message()), Sent)
    assert [call["delivered"] for call in await link.calls()] == [1, 0]


async def test_a_call_with_a_foreign_signature_is_refused_and_the_account_parked() -> None:
    async with linked(NAME, signingSecret="another") as link:
        assert isinstance(await link.send(message()), AuthFailed)
        assert [call["accepted"] for call in await link.calls()] == [False]


def test_its_profile_promises_deduplication_and_echoes() -> None:
    profile = providers_at("http://nowhere")[NAME].profile
    assert (profile.capability.resend_safe, profile.capability.echoes_request_id) == (True, True)
    assert profile.media is MediaMode.LINK
    assert [(secret.name, secret.required, secret.hidden) for secret in profile.secrets] == [
        ("url", True, False),
        ("signingSecret", True, True),
        ("webhookSecret", False, True),
    ]


# --- what its answers mean


def error(code: str = "", **fields: str) -> dict[str, Any]:
    return {"error": {"code": code, **fields}}


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, {"id": "r-1"}, Sent(provider_message_id="r-1")),
        (201, {"id": "r-1"}, Sent(provider_message_id="r-1")),
        (202, {"id": "r-1"}, Sent(provider_message_id="r-1")),
        (204, None, Sent(provider_message_id="request-1:0")),
        (200, "ok", Sent(provider_message_id="request-1:0")),
        (200, {"id": 7}, Sent(provider_message_id="request-1:0")),
        (200, {"id": ""}, Sent(provider_message_id="request-1:0")),
        (200, {"id": "x" * 513}, Sent(provider_message_id="request-1:0")),
        (409, {"id": "r-1"}, Sent(provider_message_id="r-1")),
        (409, {}, Unknown),
        (409, None, Unknown),
        (429, {}, Throttled),
        (401, {}, AuthFailed),
        (403, error("recipient_invalid"), AuthFailed),
        (301, {}, AuthFailed),
        (308, {}, AuthFailed),
        (404, {}, AuthFailed),
        (405, {}, AuthFailed),
        (410, {}, AuthFailed),
        (404, error("recipient_invalid"), Rejected),
        (302, {}, Unknown),
        (400, {}, Rejected),
        (413, {}, Rejected),
        (422, {}, Rejected),
        (408, {}, Unknown),
        (425, {}, Unknown),
        (500, {}, Unknown),
        (500, error("rejected"), Unknown),
        (502, None, Unknown),
        (503, {}, Unknown),
        (504, {}, Unknown),
    ],
)
async def test_each_answer_is_one_outcome(status: int, body: object, expected: Outcome | type[Outcome]) -> None:
    async with Answering(status, body) as receiver, linked(NAME, url=receiver.url) as link:
        outcome = await link.send(message())
    if isinstance(expected, type):
        assert isinstance(outcome, expected), outcome
    else:
        assert outcome == expected


@pytest.mark.parametrize("code", [*CODES, "something else", ""])
async def test_a_refusal_may_name_one_of_our_codes(code: str) -> None:
    async with Answering(422, error(code, message="why")) as receiver, linked(NAME, url=receiver.url) as link:
        outcome = await link.send(message())
    assert isinstance(outcome, Rejected)
    assert outcome.code is CODES.get(code, ErrorCode.REJECTED)
    assert outcome.detail == (f"422 {code}: why" if code in CODES else "422 why")


@pytest.mark.parametrize("body", [{"error": "no"}, {"error": ["no"]}, {"error": {"code": 7, "message": []}}, []])
async def test_a_refusal_in_any_other_form_is_a_refusal_all_the_same(body: object) -> None:
    async with Answering(400, body) as receiver, linked(NAME, url=receiver.url) as link:
        assert await link.send(message()) == Rejected(code=ErrorCode.REJECTED, detail="400")


async def test_a_receiver_that_says_when_to_come_back_processed_nothing() -> None:
    async with Answering(503, {}, {"Retry-After": "7"}) as receiver, linked(NAME, url=receiver.url) as link:
        outcome = await link.send(message())
    assert outcome == Retryable(
        code=ErrorCode.PROVIDER_UNAVAILABLE, detail="503", retry_after=timedelta(seconds=7), parts_sent=0
    )


@pytest.mark.parametrize(
    ("scope", "meant"),
    [("recipient", Scope.RECIPIENT), ("account", Scope.ACCOUNT), ("app", Scope.ACCOUNT), ("x", Scope.ACCOUNT)],
)
async def test_a_throttle_may_be_for_one_recipient_only(scope: str, meant: Scope) -> None:
    body = {"error": {"scope": scope}}
    async with Answering(429, body, {"Retry-After": "7"}) as receiver, linked(NAME, url=receiver.url) as link:
        outcome = await link.send(message())
    assert isinstance(outcome, Throttled)
    assert (outcome.scope, outcome.retry_after) == (meant, timedelta(seconds=7))


@pytest.mark.parametrize(
    ("order", "outcome"),
    [
        ({"throttleRate": 1}, Throttled),
        ({"errorRate": 1, "errorCode": "overloaded"}, Retryable),
        ({"errorRate": 1, "errorCode": "internal"}, Unknown),
        ({"errorRate": 1, "errorCode": "window_closed"}, Rejected),
        ({"errorRate": 1, "errorCode": "rejected", "apiCode": "404"}, Rejected),
        ({"errorRate": 1, "errorCode": "internal", "apiCode": "404"}, AuthFailed),
        ({"acceptedErrorRate": 1}, Unknown),
        ({"lostResponseRate": 1}, Unknown),
    ],
)
async def test_the_simulated_receiver_fails_as_ordered(
    link: Link, order: dict[str, Any], outcome: type[Outcome]
) -> None:
    await link.order(**order)
    assert isinstance(await link.send(message()), outcome)


async def test_an_error_quotes_neither_secrets_nor_the_message() -> None:
    said = "Dear Asha, your appointment is on Friday"
    body = error("rejected", message=f"no {said} for 4915112345, signed {DEFAULT_SECRET}")
    async with Answering(400, body) as receiver, linked(NAME, url=receiver.url) as link:
        outcome = await link.send(message(parts=(text(said),)))
    assert isinstance(outcome, Rejected)
    assert outcome.detail == "400 rejected: no … for …, signed …"


# --- the account's address


@pytest.mark.parametrize(
    ("secrets", "words"),
    [
        ({"url": ""}, "needs url"),
        ({"signingSecret": ""}, "needs url and signingSecret"),
        ({"url": "http://receiver.example/in"}, "must begin with https"),
        ({"url": "ftp://receiver.example/in"}, "must begin with https"),
        ({"url": "receiver.example/in"}, "must begin with https"),
        ({"url": "https://"}, "no address"),
        ({"url": "https://[bad"}, "no address"),
        ({"url": "https://receiver.example:port/in"}, "no address"),
    ],
)
async def test_an_account_without_a_proper_address_is_parked_and_told_why(secrets: dict[str, str], words: str) -> None:
    async with linked(NAME, url="http://127.0.0.1:9", **{"signingSecret": "s"} | _renamed(secrets)) as link:
        outcome = await link.send(message())
        checked = await link.check(**{"url": "https://x.example", "signingSecret": "s"} | secrets)
    assert isinstance(outcome, AuthFailed)
    assert words in outcome.detail
    assert (checked.works, words in checked.detail) == (False, True)


def _renamed(secrets: dict[str, str]) -> dict[str, str]:
    return {("receiver" if name == "url" else name): value for name, value in secrets.items()}


# --- checking an account


async def test_a_receiver_that_takes_our_signature_works_and_gets_no_message(link: Link) -> None:
    checked = await link.check(url=f"{link.simulator.url}/signed_webhook", signingSecret=DEFAULT_SECRET)
    assert (checked.works, checked.detail) == (True, "the receiver accepts our signature")
    assert await link.calls() == []


async def test_a_check_has_no_key_and_no_message() -> None:
    async with Answering(204) as receiver, linked(NAME, url=receiver.url) as link:
        await link.check(url=receiver.url, signingSecret="s3cret")
    (call,) = receiver.calls
    assert json.loads(call.body) == {"check": True, "accountId": "acme"}
    assert KEY_HEADER.lower() not in call.headers
    assert is_genuine(call.headers[SIGNATURE_HEADER.lower()], call.body, "s3cret", datetime.now(UTC))


async def test_a_wrong_secret_is_reported_with_what_to_do(link: Link) -> None:
    checked = await link.check(url=f"{link.simulator.url}/signed_webhook", signingSecret="another")
    assert not checked.works
    assert "same signingSecret" in checked.detail


@pytest.mark.parametrize(("status", "words"), [(404, "is the url right?"), (500, "where 2xx was expected")])
async def test_a_receiver_that_answers_otherwise_does_not_work(status: int, words: str) -> None:
    async with Answering(status) as receiver, linked(NAME, url=receiver.url) as link:
        checked = await link.check(url=receiver.url, signingSecret="s3cret")
    assert not checked.works
    assert words in checked.detail


async def test_a_receiver_out_of_reach_cannot_be_checked() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with linked(NAME, url=url) as link:
            checked = await link.check(url=url, signingSecret="s")
    assert not checked.works
    assert "could not be asked" in checked.detail
