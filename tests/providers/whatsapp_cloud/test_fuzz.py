"""Anything at all in a webhook's body: it is read without an error, and what is read can be stored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.providers.protocol import InboundMessage, Unrecognised, WebhookEvent
from firestore_outbox.providers.whatsapp_cloud.webhook import events_in
from tests.providers.whatsapp_cloud.bodies import envelope, inbound, only, read, status

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
SOUND = json.loads(
    envelope(
        {"statuses": [status(), status("failed", errors=[{"code": 131026, "title": "t"}])]},
        {"messages": [inbound("text", {"body": "hi"}), inbound("image", {"id": "7", "mime_type": "image/png"})]},
        {"messages": [inbound("contacts", [{"name": {"formatted_name": "A"}, "phones": [{"phone": "1"}]}])]},
    )
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


PLACES = places(SOUND)[1:]


def can_be_stored(event: WebhookEvent) -> bool:
    """Firestore takes nothing that is not Unicode."""
    str(event).encode()
    if isinstance(event, InboundMessage):
        parts = [part.model_dump(mode="json") for part in event.parts]
        json.dumps([event.provider_message_id, event.sender, parts], ensure_ascii=False).encode()
    return True


@given(data=st.data())
def test_any_value_in_any_place_is_read_without_an_error(data: st.DataObject) -> None:
    body = json.loads(json.dumps(SOUND))
    for place in data.draw(st.lists(st.sampled_from(PLACES), min_size=1, max_size=3)):
        target = body
        try:
            for key in place[:-1]:
                target = target[key]
            target[place[-1]] = data.draw(JSON)
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
    assert all(can_be_stored(event) for event in events_in(json.dumps(body).encode()))


@given(st.data())
def test_any_bytes_in_a_sound_body_are_read_without_an_error(data: st.DataObject) -> None:
    body = bytearray(json.dumps(SOUND).encode())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    assert all(can_be_stored(event) for event in events_in(bytes(body)))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_an_error(body: bytes) -> None:
    assert all(isinstance(event, Unrecognised) for event in events_in(body))


def test_a_body_that_is_no_envelope_is_unrecognised() -> None:
    small = (b"", b"{", b"[]", b"7", b"null", b"\xff", b"{}", b'{"entry": 7}')
    for body in (*small, b"[" * 100_000, b'{"entry":' * 9_999):
        assert isinstance(only(body), Unrecognised)


def test_a_deep_nest_inside_of_an_event_hides_no_other() -> None:
    deep: Any = "x"
    for _ in range(300):
        deep = {"deep": deep}
    events = events_in(envelope({"statuses": [status(pricing=deep), status(id=deep), status()]}))
    assert [type(event).__name__ for event in events] == ["PartReceipt", "Unrecognised", "PartReceipt"]


@pytest.mark.parametrize("place", ["id", "from"])
def test_half_a_character_in_a_name_is_unrecognised_because_no_document_can_have_it(place: str) -> None:
    message = inbound("text", {"body": "hi"}) | {place: "\ud800"}
    assert isinstance(only(envelope({"messages": [message]})), Unrecognised)


def test_half_a_character_in_a_text_costs_that_character_and_no_more() -> None:
    (part,) = read(inbound("text", {"body": "hi\ud800!"}))
    assert part.text == "hi?!"
