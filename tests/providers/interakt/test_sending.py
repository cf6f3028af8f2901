"""What Interakt is asked for, and what its answers mean: over sockets, with only the base URL replaced."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from firestore_outbox.local.simulators import interakt as simulator_side
from firestore_outbox.local.simulators.own import ERRORS
from firestore_outbox.messages.model import MediaPart, OutboxMessage, Part, TemplatePart
from firestore_outbox.providers.interakt.adapter import NAME
from firestore_outbox.providers.interakt.codes import SENTENCES, refusal
from firestore_outbox.providers.outcome import (
    AuthFailed,
    ErrorCode,
    Outcome,
    Rejected,
    Scope,
    Sent,
    Throttled,
    Unknown,
)
from firestore_outbox.providers.protocol import MediaMode
from tests.providers.answering import Answering
from tests.providers.linked import Link, linked
from tests.providers.support import message, providers_at, text

TO = "+919999999999"
TEMPLATE = TemplatePart(type="template", name="reminder", language="en", params=("Asha", "10:00"))

VALUES = TemplatePart.model_validate(
    {
        "type": "template",
        "name": "reminder",
        "language": "en",
        "params": {"header": {"image": "https://example.com/a.png"}, "body": ["10:00"], "buttons": ["", "t-1"]},
    }
)
BY_ID = TemplatePart.model_validate({**TEMPLATE.model_dump(), "params": {"header": {"video": "4711"}}})


def image(mime_type: str = "image/png", **fields: str) -> MediaPart:
    return MediaPart(type="media", mediaId="m-1", mimeType=mime_type, **fields)


def to_send(*parts: Part, to: str = TO) -> OutboxMessage:
    return message(to=to, parts=parts or (text(),))


@pytest.fixture
async def link() -> AsyncIterator[Link]:
    async with linked(NAME) as it:
        yield it


# --- what is asked for


@pytest.mark.parametrize(
    ("part", "asked"),
    [
        (text("hi"), {"type": "Text", "data": {"message": "hi"}}),
        (
            TEMPLATE,
            {
                "type": "Template",
                "template": {"name": "reminder", "languageCode": "en", "bodyValues": ["Asha", "10:00"]},
            },
        ),
        (
            VALUES,
            {
                "type": "Template",
                "template": {
                    "name": "reminder",
                    "languageCode": "en",
                    "headerValues": ["https://example.com/a.png"],
                    "bodyValues": ["10:00"],
                    "buttonValues": {"1": ["t-1"]},
                },
            },
        ),
        (image(), {"type": "Image", "data": {"mediaUrl": "https://files.example/m-1?signature=s3cret"}}),
        (
            image(caption="look", filename="me.png"),
            {
                "type": "Image",
                "data": {
                    "mediaUrl": "https://files.example/m-1?signature=s3cret",
                    "message": "look",
                    "fileName": "me.png",
                },
            },
        ),
    ],
)
async def test_a_part_is_asked_for_in_interakts_own_words(part: Part, asked: dict[str, object]) -> None:
    async with Answering(200, {"result": True, "id": "i-1"}) as receiver, linked(NAME, url=receiver.url) as link:
        assert await link.send(to_send(part)) == Sent(provider_message_id="i-1")
    (call,) = receiver.calls
    assert (call.method, call.target) == ("POST", "/interakt/acme/v1/public/message/")
    assert call.headers["authorization"] == "Basic k3y-as-given"  # not encoded again
    own = {"countryCode": "+91", "phoneNumber": "9999999999", "callbackData": "request-1:0:1"}
    assert json.loads(call.body) == own | asked


@pytest.mark.parametrize(
    ("mime_type", "kind"),
    [
        ("image/jpeg", "Image"),
        ("video/mp4", "Video"),
        ("audio/ogg; codecs=opus", "Audio"),
        ("application/pdf", "Document"),
        ("text/csv", "Document"),
    ],
)
async def test_a_file_is_sent_as_what_its_type_says(mime_type: str, kind: str) -> None:
    async with Answering(200, {"result": True, "id": "i-1"}) as receiver, linked(NAME, url=receiver.url) as link:
        await link.send(to_send(image(mime_type)))
    assert json.loads(receiver.calls[0].body)["type"] == kind


async def test_a_header_by_a_files_id_is_refused_before_anything_is_sent(link: Link) -> None:
    outcome = await link.send(to_send(BY_ID))
    assert isinstance(outcome, Rejected)
    assert (outcome.code, "https link" in outcome.detail) == (ErrorCode.INVALID_MESSAGE, True)
    assert await link.calls() == []


@pytest.mark.parametrize("part", [text(), image(caption="look"), TEMPLATE, VALUES])
async def test_the_simulated_api_accepts_every_kind_of_part(link: Link, part: Part) -> None:
    outcome = await link.send(to_send(part))
    assert isinstance(outcome, Sent)
    (call,) = await link.calls()
    shown = {"requestId": "request-1", "accountId": "acme", "to": TO, "accepted": True, "part": 0, "delivered": 1}
    assert {name: call[name] for name in shown} == shown


async def test_several_parts_are_several_calls_and_the_last_ones_id_is_kept(link: Link) -> None:
    outcome = await link.send(to_send(text("one"), image(), TEMPLATE))
    assert isinstance(outcome, Sent)
    calls = link.simulator.core.record.calls()
    assert [call.part for call in calls] == [0, 1, 2]
    assert calls[-1].provider_message_id == outcome.provider_message_id


@pytest.mark.parametrize("to", ["9999999999", "919999999999", "+9999999999", "1234@g.us"])
async def test_a_recipient_that_is_no_international_number_is_rejected_without_a_call(link: Link, to: str) -> None:
    outcome = await link.send(to_send(to=to))
    assert isinstance(outcome, Rejected)
    assert outcome.code is ErrorCode.RECIPIENT_INVALID
    assert "+919999999999" in outcome.detail  # tells how to write it
    assert await link.calls() == []


def test_its_profile_promises_echoes_and_no_deduplication() -> None:
    profile = providers_at("http://nowhere")[NAME].profile
    assert (profile.capability.resend_safe, profile.capability.echoes_request_id) == (False, True)
    assert profile.media is MediaMode.LINK
    assert [secret.name for secret in profile.secrets] == ["apiKey", "webhookSecret"]


# --- what its answers mean


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, {"result": True, "message": "queued", "id": "i-1"}, Sent(provider_message_id="i-1")),
        (201, {"result": True, "id": "i-1"}, Sent(provider_message_id="i-1")),
        (200, {"result": True}, Unknown),
        (200, {"result": True, "id": 7}, Unknown),
        (200, {}, Unknown),
        (200, [], Unknown),
        (200, "not an object", Unknown),
        (200, {"result": False, "message": "no"}, Rejected),
        (200, {"result": False, "message": "no", "id": "i-1"}, Rejected),
        (302, {}, Unknown),
        (400, {"result": False, "message": "no"}, Rejected),
        (404, {}, Rejected),
        (422, {"message": ["a", "list"]}, Rejected),
        (401, {}, AuthFailed),
        (403, {"message": "Public APIs are not part of your plan"}, AuthFailed),
        (408, {}, Unknown),
        (409, {}, Unknown),
        (429, {"message": "Rate limit exceeded for this resource"}, Throttled),
        (500, {"result": False, "message": "no"}, Unknown),
        (502, None, Unknown),
        (503, {}, Unknown),
        (504, {}, Unknown),
    ],
)
async def test_each_answer_is_one_outcome(status: int, body: object, expected: Outcome | type[Outcome]) -> None:
    async with Answering(status, body) as receiver, linked(NAME, url=receiver.url) as link:
        outcome = await link.send(to_send())
    if isinstance(expected, type):
        assert isinstance(outcome, expected)
    else:
        assert outcome == expected


async def test_a_throttle_is_the_accounts_and_says_how_long_to_wait(link: Link) -> None:
    await link.order(throttleRate=1, retryAfterSeconds=7)
    outcome = await link.send(to_send())
    assert isinstance(outcome, Throttled)
    assert (outcome.scope, outcome.retry_after) == (Scope.ACCOUNT, timedelta(seconds=7))
    assert "Rate limit exceeded" in outcome.detail


@pytest.mark.parametrize("status", ["200", "400", "422"])
@pytest.mark.parametrize("code", ["rejected", "invalid_message", "recipient_invalid", "media_missing", "window_closed"])
async def test_a_refusal_is_understood_by_its_sentence_under_any_status(link: Link, code: str, status: str) -> None:
    await link.order(errorRate=1, errorCode=code, apiCode=status)
    outcome = await link.send(to_send())
    assert isinstance(outcome, Rejected)
    assert outcome.code == code
    assert outcome.detail.startswith(f"{status} Please correct")
    assert [call["accepted"] for call in await link.calls()] == [False]


@pytest.mark.parametrize(
    ("sentence", "code"),
    [
        ("Customer has not messaged within last 24 hours", ErrorCode.WINDOW_CLOSED),
        ("Customer is not available for the organization", ErrorCode.WINDOW_CLOSED),
        ("Phone number is invalid", ErrorCode.RECIPIENT_INVALID),
        ("Country code is missing", ErrorCode.RECIPIENT_INVALID),
        ("countryCode: wrong format", ErrorCode.RECIPIENT_INVALID),
        ("Media url cannot be downloaded", ErrorCode.MEDIA_MISSING),
        ("Template does not exist", ErrorCode.INVALID_MESSAGE),
        ("This field is required", ErrorCode.INVALID_MESSAGE),
        ("something else", ErrorCode.REJECTED),
        ("", ErrorCode.REJECTED),
    ],
)
def test_each_sentence_has_its_code(sentence: str, code: ErrorCode) -> None:
    assert refusal(sentence) is code


def test_no_line_of_the_table_is_hidden_by_one_before_it() -> None:
    assert [code for part, code in SENTENCES if refusal(part) is not code] == []


@pytest.mark.parametrize("code", ["unauthorized", "account_blocked"])
async def test_a_refused_key_is_an_auth_failure(link: Link, code: str) -> None:
    await link.order(errorRate=1, errorCode=code)
    assert isinstance(await link.send(to_send()), AuthFailed)


@pytest.mark.parametrize("fault", ["acceptedErrorRate", "lostResponseRate"])
async def test_what_was_accepted_is_never_taken_for_unprocessed(link: Link, fault: str) -> None:
    await link.order(**{fault: 1})
    assert isinstance(await link.send(to_send()), Unknown)


async def test_a_message_in_doubt_after_its_first_part_says_so(link: Link) -> None:
    first = await link.send(to_send(text("one")))
    assert isinstance(first, Sent)
    await link.order(lostResponseRate=1)
    outcome = await link.send(message(to=TO, parts=(text("one"), text("two")), parts_sent=1))
    assert isinstance(outcome, Unknown)
    assert link.simulator.core.record.calls()[-1].part == 1


async def test_an_error_quotes_neither_the_key_nor_the_message() -> None:
    said = "Dear Asha, your appointment is on Friday"
    words = {"result": False, "message": f"cannot send {said} to 9999999999 with k3y-as-given"}
    async with Answering(400, words) as receiver, linked(NAME, url=receiver.url) as link:
        outcome = await link.send(to_send(text(said)))
    assert isinstance(outcome, Rejected)
    assert outcome.detail == "400 cannot send … to … with …"


async def test_a_malformed_call_is_refused_by_the_simulated_api_in_words(link: Link) -> None:
    answer = await link.control.post(
        "/interakt/acme/v1/public/message/", json={"type": "Text"}, headers={"Authorization": "Basic k"}
    )
    assert answer.status_code == 400
    assert answer.json()["result"] is False


def test_every_error_that_can_be_ordered_has_a_sentence() -> None:
    assert set(simulator_side.SENTENCES) == set(ERRORS)


# --- checking an account


async def test_a_key_that_works_is_reported_without_a_message_being_sent(link: Link) -> None:
    checked = await link.check(apiKey="k3y")
    assert (checked.works, checked.detail) == (True, "Interakt accepts the key")
    assert await link.calls() == []


async def test_the_check_asks_for_no_customer() -> None:
    async with Answering(200, {"result": True, "data": {}}) as receiver, linked(NAME, url=receiver.url) as link:
        await link.check(apiKey="k3y")
    (call,) = receiver.calls
    assert call.target == "/interakt/acme/v1/public/apis/users/?offset=0&limit=1"
    assert json.loads(call.body)["filters"][0]["val"].startswith("2999")


async def test_a_key_that_is_refused_is_reported_with_what_to_do(link: Link) -> None:
    await link.revoke()
    checked = await link.check(apiKey="k3y")
    assert not checked.works
    assert "copy it again" in checked.detail


async def test_a_missing_key_is_reported_without_a_call(link: Link) -> None:
    assert not (await link.check()).works


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, {}),
        (429, {}),
        (200, {"result": False, "message": "no k3y-s3cret"}),
        (200, {}),
        (200, "a page"),
        (404, None),
    ],
)
async def test_an_answer_that_proves_nothing_is_no_working_key_and_quotes_no_secret(status: int, body: object) -> None:
    async with Answering(status, body) as receiver, linked(NAME, url=receiver.url) as link:
        checked = await link.check(apiKey="k3y-s3cret")
    assert not checked.works
    assert str(status) in checked.detail
    assert "s3cret" not in checked.detail


async def test_an_interakt_out_of_reach_cannot_be_checked() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with linked(NAME, url=f"http://127.0.0.1:{taken.getsockname()[1]}") as link:
            checked = await link.check(apiKey="k3y")
    assert not checked.works
    assert "could not be asked" in checked.detail
