"""The contract suite finds the faults that adapters have: each of these adapters fails one of its tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from acme_outbox import Acme
from firestore_outbox import (
    AuthFailed,
    Capability,
    Checked,
    Credentials,
    ErrorCode,
    OutboxMessage,
    Outcome,
    PartReceipt,
    Profile,
    Rejected,
    Retryable,
    Sent,
    Unknown,
    WebhookEvent,
)
from firestore_outbox.adapter_testing import AdapterUnderTest, Behaviour, SendingContract, WebhookContract
from test_acme import SECRETS, AcmeService


class TakesSilenceForFailure(Acme):
    """Its messages may be delivered twice."""

    async def _call(self, *args: Any) -> httpx.Response | Retryable | Unknown:
        answer = await super()._call(*args)
        if isinstance(answer, Unknown):
            return Retryable(code=ErrorCode.PROVIDER_TIMEOUT, detail=answer.detail)
        return answer


class QuotesTheAnswer(Acme):
    async def send(self, message: OutboxMessage, credentials: Credentials, *, limit: timedelta) -> Outcome:
        outcome = await super().send(message, credentials, limit=limit)
        text = getattr(message.parts[0], "text", "")
        return Rejected(code=ErrorCode.REJECTED, detail=text) if isinstance(outcome, Rejected) else outcome


class QuotesTheKey(Acme):
    async def send(self, message: OutboxMessage, credentials: Credentials, *, limit: timedelta) -> Outcome:
        outcome = await super().send(message, credentials, limit=limit)
        key = credentials.get("apiKey")
        return AuthFailed(detail=f"unknown key {key}") if isinstance(outcome, AuthFailed) and key else outcome


class SendsWithoutACredential(Acme):
    async def send(self, message: OutboxMessage, credentials: Credentials, *, limit: timedelta) -> Outcome:
        given = credentials if credentials.get("apiKey") else Credentials({"apiKey": "none"})
        return await super().send(message, given, limit=limit)


class KeepsTheFirstId(Acme):
    async def send(self, message: OutboxMessage, credentials: Credentials, *, limit: timedelta) -> Outcome:
        outcome = await super().send(message, credentials, limit=limit)
        return Sent(provider_message_id="acme-0") if isinstance(outcome, Sent) else outcome


class NamesNoThrottleScope(Acme):
    profile = Profile(
        capability=Capability(resend_safe=False, echoes_request_id=True),
        part_types=frozenset({"text"}),
        media=None,
        throttle_scopes=frozenset(),
        secrets=Acme.profile.secrets,
    )


class ChecksNothing(Acme):
    async def check(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> Checked:
        await super().check(account_id, credentials, limit=limit)
        return Checked(works=True, detail="fine")


class BelievesEveryone(Acme):
    def verify(self, headers: Mapping[str, str], raw_body: bytes, secret: str, *, now: datetime) -> bool:
        return True


class ForgetsTheMessage(Acme):
    def parse(self, raw_body: bytes) -> tuple[WebhookEvent, ...]:
        receipts = [event.receipt for event in super().parse(raw_body) if isinstance(event, PartReceipt)]
        return tuple(PartReceipt(receipt=replace(one, provider_message_id=None), correlation=None) for one in receipts)


def adapter(of: type[Acme]) -> AdapterUnderTest:
    return AdapterUnderTest(provider=of, secrets=SECRETS, service=AcmeService)


SENDING, WEBHOOKS = SendingContract(), WebhookContract()
FAULTS: list[tuple[type[Acme], Callable[[AdapterUnderTest], None]]] = [
    (TakesSilenceForFailure, SENDING.test_a_lost_answer_is_unknown_although_the_message_was_accepted),
    (TakesSilenceForFailure, SENDING.test_an_answer_that_never_comes_is_unknown_at_the_limit_of_the_call),
    (SendsWithoutACredential, SENDING.test_an_account_without_credentials_is_an_auth_failure_without_a_call),
    (KeepsTheFirstId, SENDING.test_several_parts_are_several_calls_and_the_last_ones_id_is_kept),
    (NamesNoThrottleScope, SENDING.test_a_throttle_says_how_long_to_wait_and_nothing_was_accepted),
    (ChecksNothing, SENDING.test_no_connection_proves_that_nothing_was_processed),
    (BelievesEveryone, WEBHOOKS.test_a_webhook_that_was_changed_or_is_not_signed_is_refused),
    (ForgetsTheMessage, WEBHOOKS.test_the_receipts_of_a_sent_message_are_genuine_and_find_it),
]


@pytest.mark.parametrize(("faulty", "contract"), FAULTS, ids=[f"{one.__name__}-{two.__name__}" for one, two in FAULTS])
def test_a_faulty_adapter_fails(faulty: type[Acme], contract: Callable[[AdapterUnderTest], None]) -> None:
    contract(adapter(Acme))
    with pytest.raises(AssertionError):
        contract(adapter(faulty))


@pytest.mark.parametrize(("leaking", "how"), [(QuotesTheAnswer, Behaviour.REFUSES), (QuotesTheKey, Behaviour.REVOKED)])
def test_an_adapter_that_quotes_a_secret_or_the_message_fails(
    leaking: type[Acme], how: Behaviour, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    contract = SENDING.test_neither_an_outcome_nor_the_log_quotes_a_secret_or_the_message
    contract(adapter(Acme), how, caplog, capsys)
    with pytest.raises(AssertionError):
        contract(adapter(leaking), how, caplog, capsys)
