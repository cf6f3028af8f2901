"""The contract itself: outcomes of a send, webhooks, and secrets that stay secret. Subclass what applies to you."""

from __future__ import annotations

from datetime import timedelta

import pytest

from firestore_outbox.adapter_testing.harness import (
    REQUEST,
    WORDS,
    AdapterUnderTest,
    Harness,
    hidden_in,
    simulate,
)
from firestore_outbox.adapter_testing.service import Behaviour
from firestore_outbox.providers.outcome import (
    AuthFailed,
    ErrorCode,
    Outcome,
    Rejected,
    Retryable,
    Sent,
    Throttled,
    Unknown,
)
from firestore_outbox.providers.protocol import PartReceipt, Unrecognised
from firestore_outbox.providers.registry import Received, Refused
from firestore_outbox.receipts.rules import Arrived

UNREADABLE = (b"", b"{", b"[]", b"7", b'{"events": 7}', b"\xff", b"[" * 10_000)


class SendingContract:
    """For every adapter."""

    def test_an_accepted_message_is_sent_with_an_id_and_called_once(self, adapter: AdapterUnderTest) -> None:
        async def story(harness: Harness) -> None:
            outcome = await harness.send()
            assert isinstance(outcome, Sent)
            assert outcome.provider_message_id
            assert harness.accepted == [True]

        simulate(adapter, story)

    def test_several_parts_are_several_calls_and_the_last_ones_id_is_kept(self, adapter: AdapterUnderTest) -> None:
        async def story(harness: Harness) -> None:
            outcome = await harness.send(parts=3)
            assert isinstance(outcome, Sent)
            assert harness.accepted == [True] * 3
            assert outcome.provider_message_id == harness.service.calls[-1].provider_message_id

        simulate(adapter, story)

    def test_a_throttle_says_how_long_to_wait_and_nothing_was_accepted(self, adapter: AdapterUnderTest) -> None:
        async def story(harness: Harness) -> None:
            await harness.service.behave(Behaviour.THROTTLES)
            outcome = await harness.send()
            assert isinstance(outcome, Throttled)
            assert (outcome.scope, outcome.parts_sent) == (harness.service.throttled_scope, 0)
            assert outcome.retry_after == harness.service.throttled_for
            assert outcome.scope in harness.provider.profile.throttle_scopes, "the profile names the scope"
            assert not any(harness.accepted)

        simulate(adapter, story)

    def test_a_refusal_for_good_is_rejected(self, adapter: AdapterUnderTest) -> None:
        async def story(harness: Harness) -> None:
            await harness.service.behave(Behaviour.REFUSES)
            assert isinstance(await harness.send(), Rejected)
            assert not any(harness.accepted)

        simulate(adapter, story)

    def test_revoked_credentials_are_an_auth_failure(self, adapter: AdapterUnderTest) -> None:
        async def story(harness: Harness) -> None:
            await harness.service.behave(Behaviour.REVOKED)
            assert isinstance(await harness.send(), AuthFailed)
            assert not any(harness.accepted)

        simulate(adapter, story)

    def test_an_account_without_credentials_is_an_auth_failure_without_a_call(self, adapter: AdapterUnderTest) -> None:
        async def story(harness: Harness) -> None:
            outcome = await harness.send()
            assert isinstance(outcome, AuthFailed)
            assert any(name in outcome.detail for name in adapter.secrets), "it names a secret that is missing"
            assert not (await harness.check()).works
            assert harness.network.calls == 0

        simulate(adapter, story, secrets={})

    def test_a_lost_answer_is_unknown_although_the_message_was_accepted(self, adapter: AdapterUnderTest) -> None:
        async def story(harness: Harness) -> None:
            await harness.service.behave(Behaviour.LOSES_ANSWERS)
            assert isinstance(await harness.send(), Unknown)
            assert harness.accepted == [True]

        simulate(adapter, story)

    def test_an_answer_that_never_comes_is_unknown_at_the_limit_of_the_call(self, adapter: AdapterUnderTest) -> None:
        async def story(harness: Harness) -> None:
            await harness.service.behave(Behaviour.NEVER_ANSWERS)
            began = harness.clock()
            assert isinstance(await harness.send(limit=timedelta(seconds=5)), Unknown)
            assert harness.clock() - began <= timedelta(seconds=5)
            assert harness.accepted == [True]

        simulate(adapter, story)

    def test_no_connection_proves_that_nothing_was_processed(self, adapter: AdapterUnderTest) -> None:
        async def story(harness: Harness) -> None:
            harness.network.is_cut = True
            outcome = await harness.send()
            assert isinstance(outcome, Retryable)
            assert outcome.code is ErrorCode.PROVIDER_UNAVAILABLE
            assert harness.accepted == []
            before = harness.network.calls
            checked = await harness.check()
            assert not checked.works or harness.network.calls == before, "a check that got no answer has not succeeded"

        simulate(adapter, story)

    @pytest.mark.parametrize("how", [how for how in Behaviour if how is not Behaviour.ACCEPTS])
    def test_neither_an_outcome_nor_the_log_quotes_a_secret_or_the_message(
        self,
        adapter: AdapterUnderTest,
        how: Behaviour,
        caplog: pytest.LogCaptureFixture,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        outcomes: list[Outcome] = []
        hidden: list[str] = [WORDS]

        async def story(harness: Harness) -> None:
            hidden.extend(hidden_in(adapter, harness.provider))
            await harness.service.behave(how)
            outcomes.extend([await harness.send(), await harness.send(limit=timedelta(0))])

        with caplog.at_level("DEBUG"):
            simulate(adapter, story)
        said = repr(outcomes) + caplog.text + "".join(capsys.readouterr())
        assert [secret for secret in hidden if secret in said] == []


class WebhookContract:
    """For an adapter whose service posts receipts or what people write."""

    def test_the_receipts_of_a_sent_message_are_genuine_and_find_it(self, adapter: AdapterUnderTest) -> None:
        async def story(harness: Harness) -> None:
            sent = await harness.send()
            assert isinstance(sent, Sent)
            progress = set()
            for call in await harness.service.webhooks():
                received = await harness.receive(call.headers, call.body)
                assert isinstance(received, Received)
                for event in received.events:
                    if isinstance(event, PartReceipt) and isinstance(event.receipt, Arrived):
                        if event.correlation is None:
                            assert event.receipt.provider_message_id == sent.provider_message_id
                        else:
                            assert (event.request_id, event.correlation.is_last) == (REQUEST, True)
                        progress.add(event.receipt.progress)
            assert harness.service.reports <= progress

        simulate(adapter, story)

    def test_a_webhook_that_was_changed_or_is_not_signed_is_refused(self, adapter: AdapterUnderTest) -> None:
        async def story(harness: Harness) -> None:
            await harness.send()
            call = next(iter(await harness.service.webhooks()))
            assert isinstance(await harness.receive(call.headers, call.body), Received)
            assert isinstance(await harness.receive(call.headers, call.body + b" "), Refused)
            assert isinstance(await harness.receive({}, call.body), Refused)

        simulate(adapter, story)

    @pytest.mark.parametrize("body", UNREADABLE)
    def test_a_signed_body_that_cannot_be_read_is_unrecognised_and_raises_nothing(
        self, adapter: AdapterUnderTest, body: bytes
    ) -> None:
        async def story(harness: Harness) -> None:
            received = await harness.receive(harness.service.sign(body), body)
            assert isinstance(received, Received)
            assert all(isinstance(event, Unrecognised) for event in received.events)

        simulate(adapter, story)
