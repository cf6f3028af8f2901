"""Whatever comes in, ours answers with a status that says what is wrong, and lives on.

Requests are made at random from the protocol's own definition: any field may be missing, empty, of the wrong kind or
at the edge of its type. INTERNAL and UNKNOWN are what a failure of the server would look like. Google's emulator gives
those, so it takes no part.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conformance.backends import Backend, Place, outcome
from tests.conformance.wire import CONVERSATIONS, REQUESTS, Proto, query

CASES = int(os.environ.get("OUTBOX_DIFFERENTIAL_CASES", "300")) // 10
FAILURES = {"INTERNAL", "UNKNOWN", "DATA_LOSS", "UNAVAILABLE", "DEADLINE_EXCEEDED"}
MOST_DEPTH = 5

NEEDED = {"database", "parent", "name", "document", "collection_id", "structured_query", "writes", "update", "value"}
STOPPERS = {"transaction", "new_transaction", "read_time", "page_token", "current_document", "explain_options"}
INTEGERS = (0, 1, -1, 2, 5, 2**31 - 1, -(2**31))
LONGS = (*INTEGERS, 2**53, 2**63 - 1, -(2**63))
TEXTS = ("", "x", "c", "c/a", "a.b", "a..b", "`", "__x__", "__name__", "é😀", "\x00", ".", "x desc", "z" * 2000)


def fill(random: Random, message: Proto, backend: Backend, depth: int = 0) -> Proto:
    for field in message.DESCRIPTOR.fields:
        if random.random() < (0.1 if field.name in NEEDED else 0.8 if field.name in STOPPERS else 0.5):
            continue
        if field.is_repeated:
            for _ in range(random.randint(0, 2)):
                _add(random, message, field, backend, depth)
        elif field.message_type is not None:
            if depth < MOST_DEPTH:
                getattr(message, field.name).SetInParent()
                fill(random, getattr(message, field.name), backend, depth + 1)
        else:
            setattr(message, field.name, _scalar(random, field, backend))
    return message


def _add(random: Random, message: Proto, field: Any, backend: Backend, depth: int) -> None:
    container = getattr(message, field.name)
    if field.message_type is None:
        container.append(_scalar(random, field, backend))
    elif depth < MOST_DEPTH and field.message_type.GetOptions().map_entry:
        if field.message_type.fields_by_name["value"].message_type is not None:
            fill(random, container[random.choice(TEXTS)], backend, depth + 1)
    elif depth < MOST_DEPTH:
        fill(random, container.add(), backend, depth + 1)


def _scalar(random: Random, field: Any, backend: Backend) -> Any:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_BYTES:
            return random.choice((b"", b"x", b"\xff" * 20))
        case FieldDescriptor.CPPTYPE_STRING:
            return _text(random, field.name, backend)
        case FieldDescriptor.CPPTYPE_BOOL:
            return random.choice((True, False))
        case FieldDescriptor.CPPTYPE_ENUM:
            return random.choice([item.number for item in field.enum_type.values] + [99])
        case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
            return random.choice((0.0, -0.0, 1.5, 91.0, float("inf"), float("nan")))
        case FieldDescriptor.CPPTYPE_INT64:
            return random.choice(LONGS)
        case _:
            return random.choice(INTEGERS)


def _text(random: Random, field: str, backend: Backend) -> str:
    """Mostly what belongs into this field, so that a request gets past its first check."""
    fitting = {
        "database": backend.database,
        "parent": backend.root,
        "collection_id": "c",
        "document_id": "a",
        "field_path": random.choice(("x", "m.k", "__name__")),
        "field_paths": random.choice(("x", "m.k")),
        "order_by": "x desc, __name__",
    } | dict.fromkeys(("name", "document", "documents", "delete", "reference_value"), backend.name("c/a"))
    if field in fitting and random.random() < 0.9:
        return fitting[field]
    return random.choice((*TEXTS, backend.database, backend.root, backend.name("c"), f"{backend.root}/"))


@pytest.mark.parametrize("method", list(REQUESTS))
@settings(
    max_examples=CASES,
    deadline=None,
    derandomize="CI" in os.environ,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
@given(seed=st.binary(min_size=4, max_size=4))
async def test_no_request_makes_the_server_fail(inprocess_place: Place, method: str, seed: bytes) -> None:
    backend = Backend(inprocess_place)
    request = fill(Random(seed), REQUESTS[method](), backend)
    answer = await outcome(
        _converse(backend, method, request) if method in CONVERSATIONS else backend.call(method, request)
    )
    assert not isinstance(answer, str) or answer not in FAILURES, f"{answer}\n{request}"
    await backend.run(query("c"))


async def _converse(backend: Backend, method: str, request: Proto) -> None:
    conversation = backend.converse(method)
    await conversation.send(request)
    await conversation.finish()
    while await conversation.read() is not None:
        pass
