"""One table of messages, judged by the JavaScript client, the Python client and the worker.

The two clients agree. What they take, the worker takes too: no message is accepted that then fails
for its form. They may be stricter than the worker, which forgives what it does not need.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from firestore_outbox.backend.message import InvalidMessage, checked
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.validation import parse_message
from tests.client.node import HERE

NOW = datetime.now(UTC)
GOOD: dict[str, Any] = {
    "requestId": "0123456789abcdef",
    "accountId": "shop",
    "to": "+491511234567",
    "uid": "u1",
    "text": "Hello",
}
IMAGE = {"type": "media", "mediaId": "m-1", "mimeType": "image/png"}
TEMPLATE = {"type": "template", "name": "reminder", "language": "en", "params": ["Ada"]}


def with_parts(*parts: Any) -> dict[str, Any]:
    return {**{name: value for name, value in GOOD.items() if name != "text"}, "parts": list(parts)}


def days(count: float) -> str:
    return (NOW + timedelta(days=count)).isoformat()


TAKEN: dict[str, dict[str, Any]] = {
    "a text": GOOD,
    "the longest text": {**GOOD, "text": "x" * 4096},
    "a text of one emoji": {**GOOD, "text": "🙂"},
    "blanks and line ends in a text": {**GOOD, "text": " a\nb "},
    "the shortest id": {**GOOD, "requestId": "abc_-123"},
    "the longest id": {**GOOD, "requestId": "x" * 128},
    "an account with an underscore": {**GOOD, "accountId": "my_shop_"},
    "a group's address": {**GOOD, "to": "1203630@g.us"},
    "an address with underscores inside": {**GOOD, "to": "a__b_"},
    "a picture": with_parts(IMAGE),
    "a picture with everything": with_parts({**IMAGE, "caption": "Look", "filename": "a.png"}),
    "a type with a parameter": with_parts({**IMAGE, "mimeType": "text/plain; charset=utf-8"}),
    "a template": with_parts(TEMPLATE),
    "a template without values": with_parts({**TEMPLATE, "params": []}),
    "a template with an empty value": with_parts({**TEMPLATE, "params": [""]}),
    "a template with 100 values": with_parts({**TEMPLATE, "params": [""] * 100}),
    "a template with the longest value": with_parts({**TEMPLATE, "params": ["é" * 1024]}),
    "a template with values of 32 KiB": with_parts({**TEMPLATE, "params": ["é" * 1024] * 16}),
    "a template with values for header, body and buttons": with_parts(
        {**TEMPLATE, "params": {"header": ["Ada"], "body": ["a", ""], "buttons": ["t-1"]}}
    ),
    "a template with a file in its header": with_parts({**TEMPLATE, "params": {"header": {"image": "https://a.b/c"}}}),
    "a template with values for nothing": with_parts({**TEMPLATE, "params": {}}),
    "ten parts": with_parts(*[IMAGE] * 10),
    "ten of the longest texts": with_parts(*[{"type": "text", "text": "ह" * 4096}] * 10),
    "seven of the largest templates": with_parts(*[{**TEMPLATE, "params": ["x" * 1024] * 32}] * 7),
    "a time": {**GOOD, "at": days(1)},
    "a year ahead": {**GOOD, "at": days(364.99)},
    "a deadline": {**GOOD, "sendBy": days(1)},
    "an urgent one": {**GOOD, "priority": "urgent"},
    "a normal one": {**GOOD, "priority": "normal"},
    "one that lets others go first": {**GOOD, "priority": "bulk"},
    "a time and a later deadline": {**GOOD, "at": days(1), "sendBy": days(2)},
}

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no id": ({**GOOD, "requestId": None}, "requestId must be a text"),
    "a short id": ({**GOOD, "requestId": "abc1234"}, "8 to 128"),
    "a long id": ({**GOOD, "requestId": "x" * 129}, "8 to 128"),
    "an id with a slash": ({**GOOD, "requestId": "abcd/efgh"}, "8 to 128"),
    "an id with a line end": ({**GOOD, "requestId": "abcdefgh\n"}, "8 to 128"),
    "an id that Firestore keeps for itself": ({**GOOD, "requestId": "__abcd__"}, "two underscores"),
    "an empty account": ({**GOOD, "accountId": ""}, "accountId must be 1 to 128"),
    "an account with a slash": ({**GOOD, "accountId": "a/b"}, "accountId must be 1 to 128"),
    "an account with two underscores": ({**GOOD, "accountId": "a__b"}, "accountId must be 1 to 128"),
    "a long account": ({**GOOD, "accountId": "x" * 129}, "accountId must be 1 to 128"),
    "an account that is a star": ({**GOOD, "accountId": "*"}, "accountId must be 1 to 128"),
    "an account that is two dots": ({**GOOD, "accountId": ".."}, "accountId must be 1 to 128"),
    "an empty address": ({**GOOD, "to": ""}, "to must be 1 to 256"),
    "a number for an address": ({**GOOD, "to": 491511234567}, "to must be a text"),
    "an address with a blank": ({**GOOD, "to": "+49 151"}, "without slashes and blanks"),
    "an address with a slash": ({**GOOD, "to": "a/b"}, "without slashes"),
    "an address with an underscore in front": ({**GOOD, "to": "_a"}, "no underscore in front"),
    "no user": ({**GOOD, "uid": ""}, "uid is empty"),
    "an empty text": ({**GOOD, "text": ""}, "text is empty"),
    "a long text": ({**GOOD, "text": "x" * 4097}, "text has 4,097 characters; at most 4,096"),
    "text and parts": ({**with_parts(IMAGE), "text": "Hello"}, "either text or parts"),
    "neither text nor parts": ({k: v for k, v in GOOD.items() if k != "text"}, "either text or parts"),
    "no parts": (with_parts(), "1 to 10 parts"),
    "eleven parts": (with_parts(*[IMAGE] * 11), "1 to 10 parts"),
    "parts that are a text": ({**with_parts(), "parts": "Hello"}, "1 to 10 parts"),
    "a part that is a text": (with_parts("Hello"), "text, media, template or sealed"),
    "a part that is nothing": (with_parts(None), "text, media, template or sealed"),
    "a part without a type": (with_parts({"text": "Hello"}), "text, media, template or sealed"),
    "a part of an unknown type": (with_parts({"type": "poll"}), "text, media, template or sealed"),
    "a part of a type that every object has": (with_parts({"type": "constructor"}), "text, media, template or sealed"),
    "a part with another's field": (with_parts({"type": "text", "text": "a", "caption": "b"}), r"parts\[0\].caption"),
    "a part with an unknown field": (with_parts({**IMAGE, "size": 3}), r"parts\[0\].size is no field of a media"),
    "values on a text": (with_parts({"type": "text", "text": "a", "params": []}), r"parts\[0\].params is no field"),
    "a picture without its id": (with_parts({"type": "media", "mimeType": "image/png"}), r"parts\[0\].mediaId"),
    "a picture with a path": (
        with_parts({**IMAGE, "mediaId": "a/b"}),
        "mediaId must be 1 to 512 characters without a slash",
    ),
    "a picture of no media type": (with_parts({**IMAGE, "mimeType": "png"}), "must be a media type such as"),
    "an empty caption": (with_parts({**IMAGE, "caption": ""}), "caption is empty"),
    "the second part": (with_parts(IMAGE, {**IMAGE, "caption": "x" * 4097}), r"parts\[1\].caption has 4,097"),
    "a template without values' list": (with_parts({**TEMPLATE, "params": None}), "params must be a list"),
    "a template with a text for a list": (with_parts({**TEMPLATE, "params": "Ada"}), "params must be a list"),
    "a template with a number": (with_parts({**TEMPLATE, "params": ["a", 3]}), r"params\[1\] must be a text"),
    "a template with 101 values": (
        with_parts({**TEMPLATE, "params": [""] * 101}),
        r"params has 101 entries; at most 100",
    ),
    "a template with a long value": (
        with_parts({**TEMPLATE, "params": ["", "x" * 1025]}),
        r"params\[1\] has 1,025 characters; at most 1,024",
    ),
    "a template with values above 32 KiB": (
        with_parts({**TEMPLATE, "params": ["é" * 1024] * 16 + ["x"]}),
        r"params has 32,769 bytes of text; at most 32,768",
    ),
    "more than the worker takes": (
        with_parts(*[{**TEMPLATE, "params": ["x" * 1024] * 32}] * 8),
        "parts has 262,[0-9]{3} bytes of text; at most 245,760",
    ),
    "a template with a short language": (with_parts({**TEMPLATE, "language": "e"}), "language is too short"),
    "more than a year ahead": ({**GOOD, "at": days(365.01)}, "365 days"),
    "an unknown priority": ({**GOOD, "priority": "high"}, "priority must be urgent, normal or bulk"),
    "a priority that is a number": ({**GOOD, "priority": 1}, "priority must be urgent, normal or bulk"),
    "a deadline before the time": ({**GOOD, "at": days(2), "sendBy": days(1)}, "the message could never be sent"),
}

ALL = [*TAKEN.values(), *(message for message, _ in REFUSED.values())]


@pytest.fixture(scope="module")
def javascript() -> list[str | None]:
    """The verdict on each of ALL."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node: install nodejs (20 or newer) and npm")
    said = subprocess.run(
        [node, str(HERE / "verdicts.mjs")], input=json.dumps(ALL), capture_output=True, text=True, check=True
    )
    verdicts: list[str | None] = json.loads(said.stdout)
    return verdicts


def python(message: dict[str, Any]) -> str | None:
    """The verdict, with the names of fields as the contract writes them."""
    given: dict[str, Any] = {"text": None, "parts": None, "at": None, "sendBy": None, "priority": None, **message}
    at, send_by = (None if value is None else datetime.fromisoformat(value) for value in (given["at"], given["sendBy"]))
    try:
        checked(
            request_id=given["requestId"],
            account_id=given["accountId"],
            to=given["to"],
            uid=given["uid"],
            text=given["text"],
            parts=given["parts"],
            at=at,
            send_by=send_by,
            priority=given["priority"],
            now=NOW,
        )
    except InvalidMessage as error:
        names = {"request_id": "requestId", "account_id": "accountId", "send_by": "sendBy"}
        sentence = str(error)
        for ours, contract in names.items():
            sentence = sentence.replace(ours, contract)
        return sentence
    return None


@pytest.mark.parametrize("case", TAKEN)
def test_both_clients_take(javascript: list[str | None], case: str) -> None:
    assert python(TAKEN[case]) is None
    assert javascript[ALL.index(TAKEN[case])] is None


@pytest.mark.parametrize("case", REFUSED)
def test_both_clients_refuse_in_the_same_words(javascript: list[str | None], case: str) -> None:
    message, words = REFUSED[case]
    sentence = python(message)
    assert sentence is not None
    assert re.search(words, sentence)
    assert javascript[ALL.index(message)] == sentence


@pytest.mark.parametrize("case", TAKEN)
def test_the_worker_takes_what_the_clients_take(case: str) -> None:
    message = TAKEN[case]
    times = {name: datetime.fromisoformat(message[name]) for name in ("at", "sendBy") if name in message}
    new = checked(
        request_id=message["requestId"],
        account_id=message["accountId"],
        to=message["to"],
        uid=message["uid"],
        text=message.get("text"),
        parts=message.get("parts"),
        at=times.get("at"),
        send_by=times.get("sendBy"),
        priority=message.get("priority"),
        now=NOW,
    )
    stored = {**new.outbox_fields, "createdAt": NOW, "nextAttemptAt": new.at or NOW}
    parsed = parse_message(new.request_id, stored)
    assert isinstance(parsed, OutboxMessage), parsed
    assert parsed.thread_id == new.thread_id
    assert parsed.send_by == new.send_by
    assert parsed.priority == message.get("priority", "normal")
