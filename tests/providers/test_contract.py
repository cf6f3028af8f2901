"""What every adapter does, over all of them: outcomes of a send, webhooks, and that secrets stay secret.

What a provider's own words mean is in the directory of each provider.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from firestore_outbox.local.simulators.app import FORMS
from firestore_outbox.local.simulators.own import OWN
from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET
from firestore_outbox.providers.credentials import Credentials
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
from firestore_outbox.providers.protocol import PartReceipt, Unrecognised
from firestore_outbox.providers.registry import Received, Refused
from firestore_outbox.receipts.rules import Arrived
from tests.providers.contract import ADAPTERS, HIDDEN, SECRETS, WORDS, World, simulate
from tests.providers.support import LIMIT

NAMES_NO_TIME = {"whatsapp_cloud"}
"""Meta's throttles have a code and no time to wait."""

every_adapter = pytest.mark.parametrize("name", ADAPTERS)


def test_every_built_in_adapter_is_here() -> None:
    async def story(world: World) -> None:
        built_in = {name for name in world.providers.names if not name.startswith("simulated-")}
        assert built_in == set(ADAPTERS)

    simulate("simulated", story)


# --- sending


@every_adapter
def test_an_accepted_message_is_sent_with_an_id_and_called_once(name: str) -> None:
    async def story(world: World) -> None:
        outcome = await world.send()
        assert isinstance(outcome, Sent)
        assert outcome.provider_message_id
        assert world.accepted == [True]

    simulate(name, story)


@every_adapter
def test_a_throttle_says_how_long_to_wait_and_nothing_was_accepted(name: str) -> None:
    async def story(world: World) -> None:
        world.order(throttleRate=1, throttleScope="account", retryAfterSeconds=7)
        outcome = await world.send()
        assert isinstance(outcome, Throttled)
        told = None if name in NAMES_NO_TIME else timedelta(seconds=7)
        assert (outcome.scope, outcome.retry_after, outcome.parts_sent) == (Scope.ACCOUNT, told, 0)
        assert not any(world.accepted)

    simulate(name, story)


@every_adapter
def test_a_refusal_for_good_is_rejected(name: str) -> None:
    async def story(world: World) -> None:
        world.order(errorRate=1, errorCode="recipient_invalid")
        assert isinstance(await world.send(), Rejected)
        assert not any(world.accepted)

    simulate(name, story)


@every_adapter
def test_revoked_credentials_are_an_auth_failure(name: str) -> None:
    async def story(world: World) -> None:
        await world.revoke()
        assert isinstance(await world.send(), AuthFailed)
        assert not any(world.accepted)

    simulate(name, story)


@every_adapter
def test_an_account_without_credentials_is_an_auth_failure_without_a_call(name: str) -> None:
    async def story(world: World) -> None:
        outcome = await world.send()
        assert isinstance(outcome, AuthFailed)
        assert any(secret in outcome.detail for secret in SECRETS), "it names what is missing"
        assert world.network.calls == 0

    simulate(name, story, **dict.fromkeys(SECRETS))


@every_adapter
def test_a_lost_answer_is_unknown_although_the_message_was_accepted(name: str) -> None:
    async def story(world: World) -> None:
        world.order(lostResponseRate=1)
        assert isinstance(await world.send(), Unknown)
        assert world.accepted == [True]

    simulate(name, story)


@every_adapter
def test_an_answer_that_never_comes_is_unknown_at_the_limit_of_the_call(name: str) -> None:
    async def story(world: World) -> None:
        world.order(hangRate=1)
        began = world.clock()
        assert isinstance(await world.send(limit=timedelta(seconds=5)), Unknown)
        assert world.clock() - began <= timedelta(seconds=5)
        assert world.accepted == [True]

    simulate(name, story)


@every_adapter
def test_no_connection_proves_that_nothing_was_processed(name: str) -> None:
    async def story(world: World) -> None:
        world.network.is_cut = True
        outcome = await world.send()
        assert isinstance(outcome, Retryable)
        assert outcome.code is ErrorCode.PROVIDER_UNAVAILABLE
        assert world.accepted == []
        checked = await world.providers.check(name, "acme", Credentials(SECRETS), limit=LIMIT)
        assert checked.works is (name == "simulated"), "the simulator's own adapter asks no one"

    simulate(name, story)


@every_adapter
def test_several_parts_are_several_calls_and_the_last_ones_id_is_kept(name: str) -> None:
    async def story(world: World) -> None:
        outcome = await world.send(parts=3)
        assert isinstance(outcome, Sent)
        calls = world.simulator.core.record.calls()
        assert [call.part for call in calls] == [0, 1, 2]
        assert outcome.provider_message_id == calls[-1].provider_message_id

    simulate(name, story)


# --- webhooks


@every_adapter
def test_the_receipts_of_a_sent_message_are_genuine_and_tell_that_it_was_read(name: str) -> None:
    async def story(world: World) -> None:
        await world.send()
        progress = set()
        for call in await world.webhooks():
            received = await world.receive(dict(call.headers), call.body)
            assert isinstance(received, Received)
            for event in received.events:
                if isinstance(event, PartReceipt) and isinstance(event.receipt, Arrived):
                    progress.add(event.receipt.progress.value)
        assert {"delivered", "read"} <= progress

    simulate(name, story)


@every_adapter
def test_a_webhook_that_was_changed_or_is_not_signed_is_refused(name: str) -> None:
    async def story(world: World) -> None:
        await world.send()
        call = (await world.webhooks())[0]
        assert isinstance(await world.receive(dict(call.headers), call.body), Received)
        assert isinstance(await world.receive(dict(call.headers), call.body + b" "), Refused)
        assert isinstance(await world.receive({}, call.body), Refused)

    simulate(name, story)


@every_adapter
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b'{"events": 7}', b"\xff", b"[" * 10_000])
def test_a_signed_body_that_cannot_be_read_is_unrecognised_and_raises_nothing(name: str, body: bytes) -> None:
    async def story(world: World) -> None:
        headers = FORMS.get(name, OWN).headers(DEFAULT_SECRET, body, world.clock())
        received = await world.receive(dict(headers), body)
        assert isinstance(received, Received)
        assert all(isinstance(event, Unrecognised) for event in received.events)

    simulate(name, story)


# --- secrets


@every_adapter
@pytest.mark.parametrize(
    "faults",
    [
        {"errorRate": 1, "errorCode": "rejected"},
        {"errorRate": 1, "errorCode": "invalid_message"},
        {"throttleRate": 1},
        {"lostResponseRate": 1},
        {"latencyMs": 60_000},
    ],
    ids=["rejected", "invalid", "throttled", "lost", "late"],
)
def test_neither_an_outcome_nor_the_log_quotes_a_secret_or_the_message(
    name: str, faults: dict[str, object], caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes: list[Outcome] = []

    async def story(world: World) -> None:
        world.order(**faults)
        outcomes.append(await world.send())
        await world.revoke()
        outcomes.append(await world.send())
        outcomes.extend([await world.send(limit=timedelta(0))])

    with caplog.at_level("DEBUG", logger="firestore_outbox"):
        simulate(name, story)
    told = repr(outcomes) + caplog.text + "".join(capsys.readouterr())
    for hidden in (*HIDDEN, WORDS):
        assert hidden not in told
