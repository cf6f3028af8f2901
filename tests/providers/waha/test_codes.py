"""WAHA's refusals, line by line: what its answer says, and what becomes of the message."""

from __future__ import annotations

from typing import Any

import pytest

from firestore_outbox.providers.outcome import AuthFailed, ErrorCode, NotConnected, Rejected, Throttled, Unknown
from firestore_outbox.providers.protocol import SessionState
from firestore_outbox.providers.waha.codes import SESSION_STATES, STATUSES, WHATSAPP_ERRORS, Trouble, trouble_in
from tests.providers.support import LIMIT, message
from tests.providers.waha.support import Answering, adapter, credentials


def not_working(status: str) -> dict[str, Any]:
    return {"error": "Session status is not as expected.", "session": "x", "status": status, "expected": ["WORKING"]}


def failed(words: str) -> dict[str, Any]:
    return {"statusCode": 500, "exception": {"message": f"2 UNKNOWN: {words}", "details": words}, "request": {}}


LINES: list[tuple[int, Any, Trouble]] = [
    (400, {"statusCode": 400, "message": ["chatId must be a string"], "error": "Bad Request"}, Trouble.INVALID),
    (401, {"statusCode": 401, "message": "Unauthorized"}, Trouble.AUTH),
    (403, {}, Trouble.AUTH),
    (404, {"statusCode": 404, "message": "We didn't find a session with name 'x'.\nPlease …"}, Trouble.SESSION_DOWN),
    (404, {"statusCode": 404, "message": "Cannot POST /api/sendText"}, Trouble.WRONG_ADDRESS),
    (404, {}, Trouble.WRONG_ADDRESS),
    (405, {}, Trouble.WRONG_ADDRESS),
    (413, {}, Trouble.TOO_LARGE),
    (422, not_working("STOPPED"), Trouble.SESSION_DOWN),
    (422, not_working("STARTING"), Trouble.SESSION_DOWN),
    (422, not_working("FAILED"), Trouble.SESSION_DOWN),
    (422, not_working("WORKING"), Trouble.SESSION_DOWN),
    (422, not_working("SCAN_QR_CODE"), Trouble.NEEDS_PAIRING),
    (422, not_working("PASSKEY_REQUIRED"), Trouble.NEEDS_PAIRING),
    (422, not_working("PASSKEY_CONFIRMATION_REQUIRED"), Trouble.NEEDS_PAIRING),
    (422, {"message": "The session under FAILED status. Please try to restart it."}, Trouble.SESSION_DOWN),
    (422, {"message": "The feature is available only in Plus version"}, Trouble.NOT_OFFERED),
    (422, not_working("SOMETHING_NEW"), Trouble.NOT_OFFERED),
    (422, {"status": ["FAILED"]}, Trouble.NOT_OFFERED),
    (429, {}, Trouble.THROTTLED),
    (500, failed("server returned error 463"), Trouble.REACH_OUT_LOCK),
    (500, {"exception": {"message": "2 UNKNOWN: server returned error 463"}}, Trouble.REACH_OUT_LOCK),
    (500, failed("server returned error 479"), Trouble.UNKNOWN),
    (500, failed("server returned error 4630"), Trouble.UNKNOWN),
    (500, {"request": {"body": {"text": "server returned error 463"}}}, Trouble.UNKNOWN),
    (500, {"exception": "server returned error 463"}, Trouble.UNKNOWN),
    (500, {}, Trouble.UNKNOWN),
    (501, {}, Trouble.NOT_OFFERED),
    (502, {}, Trouble.UNKNOWN),
    (503, {}, Trouble.UNKNOWN),
    (504, {}, Trouble.UNKNOWN),
    (408, {}, Trouble.UNKNOWN),
    (302, {}, Trouble.UNKNOWN),
]


@pytest.mark.parametrize(("status", "body", "trouble"), LINES)
def test_an_answer_is_one_trouble(status: int, body: dict[str, Any], trouble: Trouble) -> None:
    assert trouble_in(status, body) is trouble


def test_every_line_of_every_table_is_tested() -> None:
    assert {status for status, _, _ in LINES} >= STATUSES.keys()
    assert {trouble for _, _, trouble in LINES} == set(Trouble)
    assert {body["status"] for _, body, _ in LINES if isinstance(body.get("status"), str)} >= SESSION_STATES.keys()
    assert WHATSAPP_ERRORS == {463: Trouble.REACH_OUT_LOCK}


BECOMES: dict[Trouble, tuple[type, ErrorCode | None]] = {
    Trouble.SESSION_DOWN: (NotConnected, None),
    Trouble.NEEDS_PAIRING: (NotConnected, None),
    Trouble.AUTH: (AuthFailed, None),
    Trouble.WRONG_ADDRESS: (AuthFailed, None),
    Trouble.INVALID: (Rejected, ErrorCode.INVALID_MESSAGE),
    Trouble.TOO_LARGE: (Rejected, ErrorCode.REJECTED),
    Trouble.NOT_OFFERED: (Rejected, ErrorCode.REJECTED),
    Trouble.REACH_OUT_LOCK: (Rejected, ErrorCode.REJECTED),
    Trouble.THROTTLED: (Throttled, None),
    Trouble.UNKNOWN: (Unknown, None),
}


@pytest.mark.parametrize(("status", "body", "trouble"), LINES)
async def test_a_trouble_becomes_one_outcome_and_its_detail_is_ours(
    status: int, body: dict[str, Any], trouble: Trouble
) -> None:
    outcome = await adapter(Answering(status, body)).send(message(), credentials(), limit=LIMIT)
    kind, code = BECOMES[trouble]
    assert isinstance(outcome, kind)
    assert not isinstance(outcome, Rejected) or outcome.code is code
    assert not hasattr(outcome, "detail") or outcome.detail == f"{status}: {trouble.value}"


@pytest.mark.parametrize(
    ("named", "state"),
    [
        ("STOPPED", SessionState.DOWN),
        ("STARTING", SessionState.STARTING),
        ("SCAN_QR_CODE", SessionState.NEEDS_PAIRING),
        ("PASSKEY_REQUIRED", SessionState.NEEDS_PAIRING),
        ("PASSKEY_CONFIRMATION_REQUIRED", SessionState.NEEDS_PAIRING),
        ("WORKING", SessionState.UP),
        ("FAILED", SessionState.BROKEN),
    ],
)
def test_a_sessions_status_is_one_state(named: str, state: SessionState) -> None:
    assert SESSION_STATES[named] is state
