"""Meta's codes, line by line: in the answer to a call, and in the receipt of a message that was accepted.

The table here is written from Meta's, and not from ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.providers.built_in import ProviderSettings, providers
from firestore_outbox.providers.credentials import FixedCredentials
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
from firestore_outbox.providers.protocol import PartReceipt
from firestore_outbox.providers.whatsapp_cloud.codes import MEANINGS, Kind, failure, meaning
from firestore_outbox.receipts.rules import Bounced
from tests.providers.support import LIMIT, message, text
from tests.providers.whatsapp_cloud.support import NAME, SECRETS, TOKEN, Office, media

Check = Callable[[Any], bool]


def auth(it: Any) -> bool:
    return isinstance(it, AuthFailed)


def throttled(scope: Scope) -> Check:
    return lambda it: isinstance(it, Throttled) and it.scope is scope


def passing(it: Any) -> bool:
    return isinstance(it, Retryable) and (it.code, it.retry_after) == (ErrorCode.PROVIDER_UNAVAILABLE, None)


def tomorrow(it: Any) -> bool:
    return isinstance(it, Retryable) and (it.code, it.retry_after) == (ErrorCode.RATE_LIMITED, timedelta(days=1))


def rejected(code: ErrorCode) -> Check:
    return lambda it: isinstance(it, Rejected) and it.code is code


_E = ErrorCode
ROWS: list[tuple[list[int], Check, ErrorCode, bool]] = [
    # codes, the outcome of a call, the error of a receipt, whether it could succeed later
    ([0, 190, 3, 10, 131005], auth, _E.AUTH, True),
    ([200, 219, 250, 294, 299], auth, _E.AUTH, True),
    ([130429], throttled(Scope.ACCOUNT), _E.RATE_LIMITED, True),
    ([131056], throttled(Scope.RECIPIENT), _E.RATE_LIMITED, True),
    ([4], throttled(Scope.APP), _E.RATE_LIMITED, True),
    ([80007], throttled(Scope.ACCOUNT), _E.RATE_LIMITED, True),
    ([131048, 131064], auth, _E.RATE_LIMITED, True),
    ([368, 131031, 130497, 131042, 131045, 131037], auth, _E.AUTH, True),
    ([1, 2, 131000, 131016, 131057, 135000], passing, _E.PROVIDER_UNAVAILABLE, True),
    (
        [131026, 131021, 131030, 131050, 130472, 131062],
        rejected(_E.RECIPIENT_INVALID),
        _E.RECIPIENT_INVALID,
        False,
    ),
    ([131049], tomorrow, _E.RATE_LIMITED, True),
    ([131047], rejected(_E.WINDOW_CLOSED), _E.WINDOW_CLOSED, False),
    (
        [100, 33, 131008, 131009, 131051, 131052, 131063, 132000, 132001, 132005, 132007, 132008],
        rejected(_E.INVALID_MESSAGE),
        _E.INVALID_MESSAGE,
        False,
    ),
    ([132012, 132015, 132016], rejected(_E.INVALID_MESSAGE), _E.INVALID_MESSAGE, False),
    ([131053], rejected(_E.MEDIA_MISSING), _E.MEDIA_MISSING, True),
]
LINES = [(code, check, error, later) for codes, check, error, later in ROWS for code in codes]


async def test_each_code_in_an_answer_means_what_metas_table_says(acme: Office) -> None:
    wrong = []
    for code, is_right, _, _ in LINES:
        await acme.order(errorRate=1, apiCode=str(code))
        outcome = await acme.call(message())
        assert not isinstance(outcome, Sent)
        if not is_right(outcome) or str(code) not in outcome.detail:
            wrong.append((code, outcome))
    assert wrong == []
    assert [call["accepted"] for call in await acme.truth()] == [False] * len(LINES)


async def test_each_code_in_a_receipt_means_what_metas_table_says(acme: Office) -> None:
    acme.takes_webhooks = False
    wrong = []
    for code, _, error, later in LINES:
        acme.webhooks.clear()
        await acme.order(receiptFailedRate=1, receiptFailedApiCode=str(code))
        assert isinstance(await acme.call(message()), Sent)
        await acme.simulator.webhooks.drained()
        (event,) = acme.providers[NAME].parse(acme.webhooks[-1].body)
        assert isinstance(event, PartReceipt)
        assert isinstance(event.receipt, Bounced)
        found = event.receipt.error
        if (found.code, found.retryable) != (error, later) or str(code) not in found.message:
            wrong.append((code, found))
    assert wrong == []


def test_the_table_has_no_line_that_is_not_tested() -> None:
    tested = {code for code, _, _, _ in LINES}
    assert set(MEANINGS) - tested == set()
    assert all(meaning(code) is not None for code in range(200, 300))
    assert meaning(199) is None
    assert meaning(300) is None


def test_each_line_has_words_and_each_kind_has_a_line() -> None:
    assert all(len(it.words) > 10 for it in MEANINGS.values())
    assert {it.kind for it in MEANINGS.values()} == set(Kind)


def test_an_unknown_code_in_a_receipt_keeps_metas_title() -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    error = failure(999999, "Something new", at)
    assert (error.code, error.message, error.retryable, error.at) == (
        ErrorCode.REJECTED,
        "999999: Something new",
        False,
        at,
    )
    assert failure(None, "WhatsApp gave no reason", at).message == "WhatsApp gave no reason"


# --- answers that a simulator does not give


async def answered(
    status: int, body: Any, *, headers: dict[str, str] | None = None, sent: OutboxMessage | None = None
) -> Outcome:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, content=content, headers=headers)

    adapters = providers(
        ProviderSettings(whatsapp_cloud_url="https://graph.test/v23.0"),
        credentials=FixedCredentials({"*": SECRETS}),
        transport=httpx.MockTransport(answer),
    )
    outcome = await adapters.send(NAME, sent or message(), limit=LIMIT)
    await adapters.close()
    return outcome


def error(code: Any, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": f"(#{code}) Something", "type": "OAuthException", "code": code, **fields}}


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 429, 500, 503])
async def test_the_code_decides_whatever_the_status_beside_it(status: int) -> None:
    outcome = await answered(status, error(130429))
    assert isinstance(outcome, Throttled)
    assert outcome.scope is Scope.ACCOUNT


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, {}, Unknown),
        (200, {"messages": []}, Unknown),
        (200, {"messages": [{}]}, Unknown),
        (200, {"messages": [{"id": ""}]}, Unknown),
        (200, {"messages": [{"id": 7}]}, Unknown),
        (200, {"messages": {"id": "wamid.x"}}, Unknown),
        (200, b"<html>", Unknown),
        (200, b"[" * 100_000, Unknown),
        (200, {"messages": [{"id": "wamid.x", "message_status": "accepted"}]}, Sent),
        (302, {}, Unknown),
        (400, {}, Rejected),
        (400, error(7_777_777), Rejected),
        (400, error(True), Rejected),
        (400, error(None), Rejected),
        (400, {"error": "no object"}, Rejected),
        (400, {"messages": [{"id": "wamid.x"}]}, Rejected),
        (401, {}, AuthFailed),
        (403, error("x"), AuthFailed),
        (408, {}, Unknown),
        (429, b"slow down", Throttled),
        (500, error(7_777_777), Unknown),
        (500, b"", Unknown),
        (502, b"<html>bad gateway</html>", Unknown),
        (504, {}, Unknown),
    ],
)
async def test_an_answer_without_a_known_code_is_judged_by_its_status(status: int, body: Any, expected: type) -> None:
    assert isinstance(await answered(status, body), expected)


async def test_a_code_that_is_written_as_a_text_is_a_code() -> None:
    assert isinstance(await answered(400, error("190")), AuthFailed)


async def test_a_wrong_phone_number_id_is_the_accounts_fault_and_fails_no_message() -> None:
    wrong = error(100, error_subcode=33, type="GraphMethodException")
    outcome = await answered(400, wrong)
    assert isinstance(outcome, AuthFailed)
    assert "phone number id" in outcome.detail
    assert isinstance(await answered(400, error(100, error_subcode=2494010)), Rejected)


async def test_a_file_code_for_a_text_is_a_rejection() -> None:
    outcome = await answered(400, error(131053))
    assert isinstance(outcome, Rejected)
    assert outcome.code is ErrorCode.MEDIA_MISSING


async def test_what_meta_adds_is_kept_because_it_says_what_to_correct() -> None:
    details = "body: number of localizable_params (1) does not match the expected number of params (2)"
    outcome = await answered(400, error(132000, error_data={"details": details}))
    assert isinstance(outcome, Rejected)
    assert details in outcome.detail
    assert "another number of placeholders" in outcome.detail


@pytest.mark.parametrize(
    "quoting",
    [
        {"message": f"Malformed access token {TOKEN}"},
        {"message": f"Malformed access token {TOKEN[:24]}..."},
        {"error_data": {"details": "the text 'my pin is 4711, keep it' is too long"}},
        {"error_data": {"details": "no such recipient 4915112345"}},
    ],
)
async def test_a_refusal_that_quotes_the_call_is_reported_without_the_quotation(quoting: dict[str, Any]) -> None:
    outcome = await answered(400, error(190, **quoting), sent=message(parts=(text("my pin is 4711, keep it"),)))
    assert not isinstance(outcome, Sent)
    for private in (TOKEN[:16], "4711", "4915112345"):
        assert private not in outcome.detail
    assert len(outcome.detail) < 400


async def test_a_refused_upload_is_reported_without_the_token(acme: Office) -> None:
    await acme.add_file()
    await acme.order(uploadErrorRate=1, apiCode="190")
    outcome = await acme.call(message(parts=(media(),)))
    assert isinstance(outcome, AuthFailed)
    assert TOKEN not in repr(outcome)
