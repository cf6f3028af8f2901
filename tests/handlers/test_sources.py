"""Events by HTTP: how calls prove themselves, which key they have, and how many one address may make."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from datetime import timedelta
from typing import Any

import pytest

from firestore_outbox.handlers.context import Context
from firestore_outbox.handlers.registration import Registration
from firestore_outbox.handlers.sources import Hmac, SharedSecret, id_of, is_signed, key_in, pointed, sources
from firestore_outbox.web.events_api import BadEventSource, EventsApi
from firestore_outbox.web.input_rate import InputRate
from tests.builders import NOW, at
from tests.calm import Calm, simulate

SECRET = "an event secret"
BODY = b'{"id": 17, "data": {"assignee": "ann"}}'
SIGNATURE = hmac.new(SECRET.encode(), BODY, "sha256").digest()


def test_the_setting_names_a_scheme_for_each_kind() -> None:
    found = sources(
        '{"nextup": {"scheme": "hmac", "header": "X-S", "key": "/a"}, "b": {"scheme": "secret", "header": "T"}}'
    )
    assert found == {
        "nextup": Hmac(scheme="hmac", header="X-S", key="/a"),
        "b": SharedSecret(scheme="secret", header="T"),
    }
    assert sources("") == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "must be JSON"),
        ('{"a": {"scheme": "none"}}', "a"),
        ('{"a": {"scheme": "hmac"}}', "header"),
        ('{"a": {"scheme": "secret", "header": "X", "key": "no-slash"}}', "key"),
        ('{"a": {"scheme": "secret", "header": "X", "colour": 1}}', "colour"),
        ('{"a": {"scheme": "oidc", "audience": "x"}}', "email"),
    ],
)
def test_a_setting_that_cannot_be_used_says_where(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        sources(text)


@pytest.mark.parametrize(
    ("source", "header", "is_good"),
    [
        ({}, SIGNATURE.hex(), True),
        ({}, SIGNATURE.hex().upper(), True),
        ({"prefix": "sha256="}, f"sha256={SIGNATURE.hex()}", True),
        ({"prefix": "sha256="}, SIGNATURE.hex(), False),
        ({"encoding": "base64"}, base64.b64encode(SIGNATURE).decode(), True),
        ({"encoding": "base64"}, SIGNATURE.hex(), False),
        ({}, SIGNATURE.hex()[:-2], False),
        ({}, "not hexadecimal", False),
        ({}, "", False),
        ({}, None, False),
    ],
)
def test_a_signature_is_that_of_the_body(source: dict[str, Any], header: str | None, is_good: bool) -> None:
    made = Hmac(scheme="hmac", header="X-S", **source)
    assert is_signed(made, SECRET, header, BODY) is is_good
    assert not is_signed(made, SECRET, header, BODY + b" ")


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/data/assignee", "ann"),
        ("/list/1/id", 2),
        ("/list/7", None),
        ("/list/x", None),
        ("/a~1b/~0", "escaped"),
        ("/missing/deeper", None),
        ("", "the whole"),
    ],
)
def test_a_json_pointer_finds_a_value_or_nothing(pointer: str, value: object) -> None:
    event = {"data": {"assignee": "ann"}, "list": [{"id": 1}, {"id": 2}], "a/b": {"~": "escaped"}}
    assert pointed(event, pointer) == (event if value == "the whole" else value)


def test_the_id_of_an_event_is_at_its_pointer_or_a_hash_of_the_body() -> None:
    event = json.loads(BODY)
    named = SharedSecret(scheme="secret", header="X", id="/id")
    unnamed = SharedSecret(scheme="secret", header="X")
    assert id_of(named, event, BODY) == "17"
    assert id_of(unnamed, event, BODY) == id_of(unnamed, event, BODY) != id_of(unnamed, event, BODY + b" ")
    assert key_in(SharedSecret(scheme="secret", header="X", key="/data"), event) is None


def test_one_address_may_call_so_often_and_others_are_not_affected() -> None:
    rate = InputRate()
    answers = [rate.wait("nextup", "1.2.3.4", 60, NOW) for _ in range(12)]
    assert answers[:10] == [None] * 10
    assert answers[10] == timedelta(seconds=1)
    assert rate.wait("nextup", "5.6.7.8", 60, NOW) is None
    assert rate.wait("other", "1.2.3.4", 60, NOW) is None
    assert rate.wait("nextup", "1.2.3.4", 60, at(1)) is None


# --- one call


def api(**options: Any) -> EventsApi:
    configured = {"nextup": {"scheme": "secret", "header": "x-token", "key": "/data/assignee", "id": "/id", **options}}
    return EventsApi(json.dumps(configured), {"OUTBOX_EVENT_SECRET_NEXTUP": SECRET}, lambda: NOW, "http://127.0.0.1")


def test_a_kind_whose_secret_is_missing_is_an_error_that_names_the_variable() -> None:
    with pytest.raises(BadEventSource, match="OUTBOX_EVENT_SECRET_NEXT_UP"):
        EventsApi('{"next-up": {"scheme": "secret", "header": "T"}}', {}, lambda: NOW, "")


def test_a_file_that_cannot_be_read_is_an_error_that_names_it() -> None:
    with pytest.raises(BadEventSource, match=r"nowhere\.json"):
        EventsApi("nowhere.json", {}, lambda: NOW, "")


@pytest.mark.parametrize(
    ("kind", "headers", "status"),
    [("nextup", {"x-token": SECRET}, None), ("nextup", {"x-token": "x"}, 401), ("nextup", {}, 401), ("other", {}, 404)],
)
async def test_a_call_proves_itself_before_its_body_is_read(
    kind: str, headers: dict[str, str], status: int | None
) -> None:
    answer = await api().admit(kind, headers, "1.2.3.4")
    assert (answer and answer.status) == status


async def test_an_address_that_calls_too_often_learns_when_to_come_back() -> None:
    one = api(perMinute=1)
    assert await one.admit("nextup", {"x-token": SECRET}, "1.2.3.4") is None
    answer = await one.admit("nextup", {"x-token": SECRET}, "1.2.3.4")
    assert answer is not None
    assert (answer.status, answer.body["retryAfterSeconds"]) == (429, 60)


def posting(bodies: list[bytes]) -> tuple[list[tuple[int, dict[str, Any]]], list[tuple[str, list[Any]]]]:
    """What each call is answered, and the runs that follow."""
    runs: list[tuple[str, list[Any]]] = []

    async def handler(context: Context) -> None:
        runs.append((context.key, [event.data.get("n") for event in await context.events()]))

    async def body(calm: Calm) -> list[tuple[int, dict[str, Any]]]:
        one = api()
        ingest = calm.world.functions[0].system.events
        answers = [await one.post(ingest, "nextup", {}, sent) for sent in bodies]
        await asyncio.sleep(60)
        return [(answer.status, answer.body) for answer in answers]

    made = {"nextup": Registration(kind="nextup", function=handler)}
    return simulate(body, handlers=made), runs


def event(number: int, assignee: object, **fields: object) -> bytes:
    return json.dumps({"id": number, "n": number, "data": {"assignee": assignee}, **fields}).encode()


def test_a_burst_of_events_is_one_run_and_a_repeated_event_is_stored_once() -> None:
    answers, runs = posting([event(1, "ann"), event(2, "ann"), event(1, "ann"), event(3, "bob")])
    assert [answer for answer, _ in answers] == [202] * 4
    assert [body["isNew"] for _, body in answers] == [True, True, False, True]
    assert sorted(runs) == [("ann", [1, 2]), ("bob", [3])]


def test_an_event_without_a_key_is_skipped() -> None:
    answers, runs = posting([event(1, None), event(2, {"no": "text"}), event(3, "ann")])
    assert answers[:2] == [(200, {"skipped": True})] * 2
    assert runs == [("ann", [3])]


@pytest.mark.parametrize(
    "sent", [b"", b"[]", b"{", b'"text"', b'{"a": NaN}', b"\xff", b'{"a": "\\ud800"}', b"[" * 100_000]
)
def test_a_body_that_is_no_json_object_is_refused(sent: bytes) -> None:
    answers, runs = posting([sent])
    assert answers[0][0] == 400
    assert runs == []


def test_a_key_that_cannot_be_used_is_refused_with_a_sentence() -> None:
    answers, _ = posting([event(1, "a/b"), event(2, "x" * 701)])
    assert [status for status, _ in answers] == [400, 400]
    assert "slashes" in answers[0][1]["error"]
