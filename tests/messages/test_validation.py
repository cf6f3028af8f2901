from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.api_core.datetime_helpers import DatetimeWithNanoseconds
from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.messages import faults
from firestore_outbox.messages.model import MediaPart, OutboxMessage, TemplatePart, TextPart
from firestore_outbox.messages.outbox_document import error_fields
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.validation import InvalidMessage, parse_message
from firestore_outbox.providers.outcome import ErrorCode
from tests.builders import NOW, raw

TEMPLATE = {"type": "template", "name": "t", "language": "en", "params": []}


def parsed(**fields: Any) -> OutboxMessage | InvalidMessage:
    return parse_message("request-1", raw(**fields))


def fault(**fields: Any) -> str:
    result = parsed(**fields)
    assert isinstance(result, InvalidMessage)
    return result.sentence


def test_what_a_client_writes_becomes_a_message() -> None:
    message = parsed()
    assert isinstance(message, OutboxMessage)
    assert (message.request_id, message.thread_id, message.status) == (
        "request-1",
        "acme__491701234567",
        OutboxStatus.QUEUED,
    )
    assert message.parts == (TextPart(type="text", text="hello"),)


def test_all_kinds_of_parts_are_understood() -> None:
    message = parsed(
        parts=[
            {"type": "text", "text": "x" * 4096},
            {"type": "media", "mediaId": "m1", "mimeType": "image/png", "caption": "a cat", "filename": "cat.png"},
            {"type": "template", "name": "hello", "language": "en_US", "params": ["Ann", ""]},
        ]
    )
    assert isinstance(message, OutboxMessage)
    assert [type(part) for part in message.parts] == [TextPart, MediaPart, TemplatePart]


def test_firestores_own_datetimes_are_accepted() -> None:
    stamp = DatetimeWithNanoseconds(2026, 3, 2, 9, 0, nanosecond=123456789, tzinfo=UTC)
    assert isinstance(parsed(createdAt=stamp, nextAttemptAt=stamp, sendBy=stamp), OutboxMessage)


def test_what_the_worker_wrote_is_read_back() -> None:
    message = parsed(
        status="uncertain",
        nextAttemptAt=None,
        attempts=3,
        failures=2,
        partsSent=1,
        lastError={"code": "outcome_unknown", "message": "no answer", "retryable": True, "at": NOW},
    )
    assert isinstance(message, OutboxMessage)
    assert (message.attempts, message.failures, message.parts_sent, message.next_attempt_at) == (3, 2, 1, None)
    assert message.maybe_sent


def test_an_error_code_of_a_later_version_neither_stops_a_message_nor_is_lost() -> None:
    later = {"code": "of_a_later_version", "message": "moved to tomorrow", "retryable": True, "at": NOW}
    message = parsed(lastError=later)
    assert isinstance(message, OutboxMessage)
    assert message.last_error is not None
    assert message.last_error.code not in set(ErrorCode)
    assert error_fields(message.last_error) == later


def test_fields_of_others_are_left_alone() -> None:
    assert isinstance(parsed(traceparent="00-abc"), OutboxMessage)


@pytest.mark.parametrize(
    ("stored", "means"), [("urgent", "urgent"), ("bulk", "bulk"), ("later", "normal"), (5, "normal")]
)
def test_a_priority_that_is_not_known_counts_as_none(stored: Any, means: str) -> None:
    message = parsed(priority=stored)
    assert isinstance(message, OutboxMessage)
    assert message.priority.value == means


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"threadId": "other__491701234567"},
            "threadId is 'other__491701234567'; for this account and recipient it must be 'acme__491701234567'.",
        ),
        ({"requestId": "request-2"}, "requestId is 'request-2', but the document is outbox/request-1."),
        ({"requestId": "a/b"}, f"requestId {faults.REQUEST_ID}."),
        ({"requestId": 7}, "requestId must be a text."),
        (
            {"accountId": "a__b", "threadId": "a__b__491701234567"},
            f"accountId {faults.ACCOUNT_ID}.",
        ),
        ({"to": ""}, f"to {faults.ADDRESS}."),
        ({"to": "../secret"}, f"to {faults.ADDRESS}."),
        ({"parts": []}, "parts must be a list of 1 to 10 parts."),
        ({"parts": "hello"}, "parts must be a list of 1 to 10 parts."),
        ({"parts": [{"type": "text", "text": "x"}] * 11}, "parts must be a list of 1 to 10 parts."),
        (
            {"parts": [{**TEMPLATE, "params": [""] * 101}]},
            "parts[0].params has 101 entries; at most 100 are allowed.",
        ),
        (
            {"parts": [{**TEMPLATE, "params": ["", "x" * 1025]}]},
            "parts[0].params[1] has 1,025 characters; at most 1,024 are allowed.",
        ),
        (
            {"parts": [{**TEMPLATE, "params": ["é" * 1024] * 16 + ["x"]}]},
            "parts[0].params has 32,769 bytes of text; at most 32,768 are allowed.",
        ),
        (
            {"parts": [{**TEMPLATE, "params": ["x" * 1024] * 32}] * 8},
            "parts has 262,232 bytes of text; at most 245,760 are allowed.",
        ),
        (
            {"parts": [7] * 100_000},
            "parts[0].type must be text, media, template or sealed.",
        ),
        (
            {"parts": [{"type": "text", "text": "x" * 5000}]},
            "parts[0].text has 5,000 characters; at most 4,096 are allowed.",
        ),
        ({"parts": [{"type": "text", "text": ""}]}, "parts[0].text is empty."),
        ({"parts": [{"type": "text"}]}, "parts[0].text is missing."),
        (
            {"parts": [{"type": "text", "text": "x"}, {"type": "carrier-pigeon"}]},
            "parts[1].type must be text, media, template or sealed.",
        ),
        ({"parts": [{"text": "x"}]}, "parts[0].type must be text, media, template or sealed."),
        (
            {"parts": [{"type": "media", "mediaId": "m", "mimeType": "picture"}]},
            "parts[0].mimeType must be a media type such as image/png.",
        ),
        ({"nextAttemptAt": None}, "nextAttemptAt is missing."),
        ({"nextAttemptAt": "tomorrow"}, f"nextAttemptAt {faults.NO_TIME}."),
        ({"nextAttemptAt": NOW + timedelta(days=400)}, "nextAttemptAt is more than 365 days ahead."),
        ({"createdAt": datetime(2026, 1, 1)}, f"createdAt {faults.NO_TIME}."),  # noqa: DTZ001  # the point
        ({"attempts": True}, "attempts is True: input should be a valid integer."),
        ({"attempts": -1}, "attempts is -1: input should be greater than or equal to 0."),
        ({"partsSent": 2}, "partsSent is 2, but there are 1 parts."),
        ({"cancelRequested": "yes"}, "cancelRequested is 'yes': input should be a valid boolean."),
    ],
)
def test_each_fault_is_reported_in_words(fields: Mapping[str, Any], sentence: str) -> None:
    assert fault(**fields) == sentence


def test_many_faults_are_counted() -> None:
    result = parse_message("request-1", {})
    assert isinstance(result, InvalidMessage)
    assert result.sentence == "requestId is missing (6 more faults)."


def test_a_huge_value_is_not_repeated_in_the_sentence() -> None:
    assert len(fault(requestId="x" * 100_000)) < 200


def test_a_message_a_year_ahead_is_accepted() -> None:
    assert isinstance(parsed(nextAttemptAt=NOW + timedelta(days=365)), OutboxMessage)


def test_an_invalid_message_ends_with_the_code_of_the_contract() -> None:
    error = InvalidMessage(request_id="request-1", sentence="It is wrong.").error(NOW)
    assert (error.code, error.message, error.retryable) == (ErrorCode.INVALID_MESSAGE, "It is wrong.", False)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.datetimes() | st.just(NOW),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(changes=st.dictionaries(st.sampled_from([*raw(), "lastError", "sendBy", "leaseUntil", "runId"]), values))
def test_no_document_whatever_raises(changes: dict[str, Any]) -> None:
    result = parse_message("request-1", {**raw(), **changes})
    if isinstance(result, InvalidMessage):
        assert result.request_id == "request-1"
        assert result.sentence.endswith(".")
        result.sentence.encode()


@pytest.mark.parametrize("nonsense", [None, [], [1], "text", 7])
def test_what_is_no_document_at_all_does_not_raise_either(nonsense: Any) -> None:
    assert isinstance(parse_message("request-1", nonsense), InvalidMessage)


def test_deep_nesting_does_not_raise() -> None:
    nested: Any = {}
    for _ in range(5000):
        nested = {"parts": nested}
    assert isinstance(parsed(parts=[nested]), InvalidMessage)
