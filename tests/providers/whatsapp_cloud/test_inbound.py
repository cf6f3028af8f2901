"""What people write to the account, in all the forms that Meta has for it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from firestore_outbox.messages.limits import MAX_PARTS, MAX_TEXT
from firestore_outbox.messages.model import MediaPart, TextPart
from firestore_outbox.providers.protocol import InboundMessage, Unrecognised
from firestore_outbox.providers.whatsapp_cloud.webhook import events_in
from tests.providers.support import START
from tests.providers.whatsapp_cloud.bodies import envelope, inbound, only, read
from tests.providers.whatsapp_cloud.support import NAME, SECRETS, Office


def test_a_text_is_a_text() -> None:
    event = only(envelope({"contacts": [{"wa_id": "491"}], "messages": [inbound("text", {"body": "good day"})]}))
    assert event == InboundMessage(
        provider_message_id="wamid.2",
        sender="491",
        at=datetime(2026, 3, 1, 12, tzinfo=UTC),
        parts=(TextPart(type="text", text="good day"),),
    )


@pytest.mark.parametrize("kind", ["image", "video", "audio", "voice", "document", "sticker"])
def test_a_file_is_a_media_part_with_metas_id_marked_as_metas(kind: str) -> None:
    content = {"id": "1013859600285441", "mime_type": "audio/ogg; codecs=opus", "sha256": "x", "caption": "look"}
    (part,) = read(inbound(kind, content | {"filename": "a/b.ogg", "voice": True}))
    assert part == MediaPart(
        type="media",
        mediaId="whatsapp_cloud:1013859600285441",
        mimeType="audio/ogg; codecs=opus",
        caption="look",
        filename="a/b.ogg",
    )


def test_a_file_without_a_type_is_some_file_and_one_without_an_id_is_none() -> None:
    (part,) = read(inbound("image", {"id": "7"}))
    assert part.mimeType == "application/octet-stream"
    for content in ({}, {"id": ""}, {"id": "a/b"}, {"id": 7}, None, "x", {"id": "7", "mime_type": "nonsense"}):
        assert isinstance(only(envelope({"messages": [inbound("image", content)]})), Unrecognised)


@pytest.mark.parametrize(
    ("kind", "content", "words"),
    [
        ("button", {"text": "Yes, please", "payload": "YES"}, "Yes, please"),
        ("interactive", {"type": "button_reply", "button_reply": {"id": "1", "title": "Tomorrow"}}, "Tomorrow"),
        ("interactive", {"type": "list_reply", "list_reply": {"id": "1", "title": "10:30"}}, "10:30"),
        ("reaction", {"message_id": "wamid.1", "emoji": "👍"}, "👍"),
        ("location", {"latitude": 52.5, "longitude": 13.4, "name": "Office"}, "Office\n52.5, 13.4"),
        (
            "contacts",
            [{"name": {"formatted_name": "Ann"}, "phones": [{"phone": "+49 1"}]}, {"name": {}}],
            "Ann +49 1",
        ),
    ],
)
def test_what_is_neither_text_nor_media_becomes_the_text_that_a_person_would_see(
    kind: str, content: Any, words: str
) -> None:
    (part,) = read(inbound(kind, content))
    assert part.text == words


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("unsupported", {"type": "poll"}),
        ("system", {"body": "changed the number"}),
        ("order", {}),
        ("reaction", {"message_id": "wamid.1"}),
        ("text", {"body": ""}),
        ("text", {"body": "  "}),
        ("text", None),
        ("interactive", {"type": "nfm_reply", "nfm_reply": {"response_json": "{}"}}),
        ("interactive", [1]),
        ("location", {"latitude": "x"}),
        ("contacts", {}),
        ("secret kind!", {}),
    ],
)
def test_what_cannot_be_shown_is_unrecognised_and_nothing_of_it_is_quoted(kind: str, content: Any) -> None:
    event = only(envelope({"messages": [inbound(kind, content)]}))
    assert isinstance(event, Unrecognised)
    assert "secret" not in event.detail
    assert "changed" not in event.detail


def test_a_long_text_takes_several_parts_and_an_endless_one_is_cut() -> None:
    parts = read(inbound("text", {"body": "x" * (MAX_TEXT + 1)}))
    assert [len(part.text) for part in parts] == [MAX_TEXT, 1]
    assert len(read(inbound("text", {"body": "x" * (MAX_TEXT * 20)}))) == MAX_PARTS


@pytest.mark.parametrize("fields", [{"from": "a b"}, {"from": ""}, {"from": "a/b"}, {"id": ""}, {"type": 7}])
def test_an_inbound_message_with_a_broken_head_is_unrecognised(fields: dict[str, Any]) -> None:
    message = inbound("text", {"body": "hi"}) | fields
    assert isinstance(only(envelope({"messages": [message]})), Unrecognised)


# --- from the simulator


async def test_what_is_ordered_from_the_simulator_comes_signed_and_in_metas_form(acme: Office) -> None:
    acme.takes_webhooks = False
    parts = [
        {"type": "text", "text": "hi"},
        {"type": "media", "mediaId": "77", "mimeType": "image/png", "caption": "look"},
        {"type": "button", "button": {"text": "Yes", "payload": "YES"}},
        {"type": "unsupported"},
    ]
    order = {"accountId": "acme", "from": "4917", "provider": NAME, "parts": parts}
    assert (await acme.control.post("/_sim/inbound", json=order)).status_code == 202
    await acme.simulator.webhooks.drained()
    (call,) = acme.webhooks
    assert acme.providers[NAME].verify(call.headers, call.body, SECRETS["webhookSecret"], now=START)
    events = events_in(call.body)
    assert [type(event).__name__ for event in events] == ["InboundMessage"] * 3 + ["Unrecognised"]
    shown = [part for event in events if isinstance(event, InboundMessage) for part in event.parts]
    assert [(part.type, getattr(part, "text", None)) for part in shown] == [
        ("text", "hi"),
        ("media", None),
        ("text", "Yes"),
    ]
    assert len({event.provider_message_id for event in events if isinstance(event, InboundMessage)}) == 3
