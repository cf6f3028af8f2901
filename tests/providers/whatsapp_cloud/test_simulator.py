"""The simulator of Meta's API on its own: it refuses what Meta refuses, in Meta's words, and survives anything."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from firestore_outbox.local.simulators.multipart import BadForm, read_form
from tests.providers.whatsapp_cloud.support import PICTURE, Office

BASE = "/whatsapp_cloud/v23.0/acme"
TOKEN = {"Authorization": "Bearer t"}
TEXT: dict[str, Any] = {"messaging_product": "whatsapp", "to": "491", "type": "text", "text": {"body": "hi"}}


def media(kind: str, **content: Any) -> dict[str, Any]:
    return {"messaging_product": "whatsapp", "to": "491", "type": kind, kind: content}


def template(**content: Any) -> dict[str, Any]:
    return {"messaging_product": "whatsapp", "to": "491", "type": "template", "template": content}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (TEXT | {"messaging_product": None}, 100),
        (TEXT | {"to": ""}, 131008),
        (TEXT | {"type": None}, 131008),
        (TEXT | {"type": "image"}, 131008),
        (TEXT | {"type": "dance", "dance": {}}, 131051),
        (TEXT | {"text": {}}, 131008),
        (TEXT | {"text": {"body": "x" * 4097}}, 100),
        (TEXT | {"biz_opaque_callback_data": "x" * 513}, 131009),
        (template(name="n"), 131008),
        (template(name="n", language={"code": "en"}, components=[7]), 132012),
        (media("image", id="404"), 131053),
        (media("audio", id="404", caption="c"), 100),
        (media("image", id="404", filename="f"), 100),
        ([], 100),
        (7, 100),
    ],
)
async def test_a_malformed_message_is_refused_with_metas_code(acme: Office, body: Any, code: int) -> None:
    answer = await acme.control.post(f"{BASE}/messages", json=body, headers=TOKEN)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, code)
    assert error["message"].startswith(f"(#{code})")
    assert error["error_data"]["messaging_product"] == "whatsapp"
    assert [call["accepted"] for call in await acme.truth()] == [False]


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Basic x"}, {"Authorization": "Bearer"}])
async def test_without_a_token_nothing_else_is_answered(acme: Office, headers: dict[str, str]) -> None:
    for answer in (
        await acme.control.post(f"{BASE}/messages", json={}, headers=headers),
        await acme.control.post(f"{BASE}/media", files={"file": b"x"}, headers=headers),
        await acme.control.get(BASE, headers=headers),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, 190)


async def test_an_accepted_message_is_answered_in_metas_form(acme: Office) -> None:
    answer = await acme.control.post(f"{BASE}/messages", json=TEXT, headers=TOKEN)
    body = answer.json()
    assert answer.status_code == 200
    assert body["contacts"] == [{"input": "491", "wa_id": "491"}]
    assert body["messages"][0]["id"].startswith("wamid.")


async def test_faults_for_some_calls_and_some_accounts_are_kept_to(acme: Office) -> None:
    await acme.order(errorRate=1, apiCode="131026", forCalls=1, accounts=["acme"])
    paths = ["/whatsapp_cloud/v23.0/other", BASE, BASE]
    answers = [await acme.control.post(f"{path}/messages", json=TEXT, headers=TOKEN) for path in paths]
    assert [answer.status_code for answer in answers] == [200, 400, 200]


@pytest.mark.parametrize(
    ("fields", "file", "code"),
    [
        ({"type": "image/png"}, PICTURE, 100),
        ({"messaging_product": "whatsapp", "type": "application/zip"}, PICTURE, 100),
        ({"messaging_product": "whatsapp", "type": "image/webp"}, b"x" * 1_000_001, 131053),
    ],
)
async def test_a_file_that_meta_would_not_take_is_refused(
    acme: Office, fields: dict[str, str], file: bytes, code: int
) -> None:
    answer = await acme.control.post(f"{BASE}/media", data=fields, files={"file": file}, headers=TOKEN)
    assert answer.json()["error"]["code"] == code
    assert [it["accepted"] for it in await acme.truth("media")] == [False]


def test_a_form_is_read_to_the_byte() -> None:
    file = {"file": ('a "b".png', PICTURE + b"\r\n", "image/png")}
    request = httpx.Request("POST", "http://x", data={"type": "image/png"}, files=file)
    fields, found = read_form(request.headers["content-type"], request.read())
    assert fields == {"type": "image/png"}
    assert (found.content, found.mime_type) == (PICTURE + b"\r\n", "image/png")


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("", b""),
        ("application/json", b"{}"),
        ("multipart/form-data", b"--x--"),
        ("multipart/form-data; boundary=x", b""),
        ("multipart/form-data; boundary=x", b"--x--"),
        ("multipart/form-data; boundary=x", b"--x\r\nA: b\r\n\r\nc\r\n--x--"),
        ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nc\r\n--x--'),
        ("multipart/form-data; boundary=x", b"--x\r\n\xff\xfe\r\n--x--"),
    ],
)
def test_a_broken_form_is_refused_in_words(content_type: str, body: bytes) -> None:
    with pytest.raises(BadForm):
        read_form(content_type, body)
