"""What the provider did, and what the adapter makes of it: over sockets and in process, the same."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

import httpx
import pytest

from firestore_outbox.local.simulators.simulator import ProviderSimulator
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.providers.built_in import ProviderSettings, providers
from firestore_outbox.providers.credentials import FixedCredentials
from firestore_outbox.providers.outcome import (
    AuthFailed,
    ErrorCode,
    NotConnected,
    Outcome,
    Rejected,
    Retryable,
    Scope,
    Sent,
    Throttled,
    Unknown,
)
from firestore_outbox.providers.registry import Providers
from firestore_outbox.providers.simulated.adapter import CAPABILITIES
from tests.patience import PATIENCE_SECONDS
from tests.providers.support import LIMIT, World, in_virtual_time, message, providers_at, text


@dataclass
class Link:
    simulator: ProviderSimulator
    providers: Providers
    control: httpx.AsyncClient

    async def order(self, **faults: Any) -> None:
        answer = await self.control.put("/_sim/faults", json=faults)
        assert answer.status_code == 200, answer.text

    async def send(self, message: OutboxMessage, name: str = "simulated") -> Outcome:
        return await self.providers.send(name, message, limit=LIMIT)

    async def calls(self) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = (await self.control.get("/_sim/calls")).json()
        return calls

    async def accepted(self) -> list[bool]:
        return [call["accepted"] for call in await self.calls()]


@pytest.fixture(params=["sockets", "in process"])
async def link(request: pytest.FixtureRequest) -> AsyncIterator[Link]:
    async with ProviderSimulator(random=Random(1)) as simulator:
        url, transport = "http://provider.test", None
        if request.param == "sockets":
            await simulator.start()
            url = simulator.url
        else:
            transport = simulator.transport
        adapters = providers_at(url, transport)
        async with httpx.AsyncClient(
            base_url=url, transport=transport, trust_env=False, timeout=PATIENCE_SECONDS
        ) as control:
            yield Link(simulator, adapters, control)
        await adapters.close()


async def test_an_accepted_message_is_sent_with_the_providers_id(link: Link) -> None:
    outcome = await link.send(message())
    assert isinstance(outcome, Sent)
    assert outcome.provider_message_id.startswith("sim-")
    call = (await link.calls())[0]
    assert {name: call[name] for name in ("requestId", "accountId", "to", "accepted", "part", "delivered")} == {
        "requestId": "request-1",
        "accountId": "acme",
        "to": "4915112345",
        "accepted": True,
        "part": 0,
        "delivered": 1,
    }


@pytest.mark.parametrize("scope", list(Scope))
async def test_a_throttle_names_its_scope_and_how_long_to_wait(link: Link, scope: Scope) -> None:
    await link.order(throttleRate=1, throttleScope=scope.value, retryAfterSeconds=7)
    outcome = await link.send(message())
    assert isinstance(outcome, Throttled)
    assert (outcome.scope, outcome.retry_after, outcome.parts_sent) == (scope, timedelta(seconds=7), 0)
    assert await link.accepted() == [False]


async def test_a_throttle_without_a_time_leaves_the_time_to_us(link: Link) -> None:
    await link.order(throttleRate=1, retryAfterSeconds=None)
    outcome = await link.send(message())
    assert isinstance(outcome, Throttled)
    assert outcome.retry_after is None


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("rejected", ErrorCode.REJECTED),
        ("invalid_message", ErrorCode.INVALID_MESSAGE),
        ("recipient_invalid", ErrorCode.RECIPIENT_INVALID),
        ("media_missing", ErrorCode.MEDIA_MISSING),
        ("window_closed", ErrorCode.WINDOW_CLOSED),
    ],
)
async def test_a_refusal_for_good_is_rejected_with_its_code(link: Link, code: str, expected: ErrorCode) -> None:
    await link.order(errorRate=1, errorCode=code)
    outcome = await link.send(message())
    assert isinstance(outcome, Rejected)
    assert outcome.code is expected
    assert await link.accepted() == [False]


@pytest.mark.parametrize("code", ["unauthorized", "account_blocked"])
async def test_a_refused_account_is_an_auth_failure(link: Link, code: str) -> None:
    await link.order(errorRate=1, errorCode=code)
    assert isinstance(await link.send(message()), AuthFailed)


async def test_an_overloaded_provider_processed_nothing_and_may_be_tried_again(link: Link) -> None:
    await link.order(errorRate=1, errorCode="overloaded")
    outcome = await link.send(message())
    assert isinstance(outcome, Retryable)
    assert outcome.code is ErrorCode.PROVIDER_UNAVAILABLE
    assert await link.accepted() == [False]


async def test_an_internal_error_is_unknown_whether_it_was_processed_or_not(link: Link) -> None:
    await link.order(errorRate=1, errorCode="internal")
    assert isinstance(await link.send(message("request-1")), Unknown)
    await link.order(acceptedErrorRate=1)
    assert isinstance(await link.send(message("request-2")), Unknown)
    assert await link.accepted() == [False, True]


async def test_a_lost_response_is_unknown_and_the_record_has_the_truth(link: Link) -> None:
    await link.order(lostResponseRate=1)
    outcome = await link.send(message())
    assert isinstance(outcome, Unknown)
    assert "lost" in outcome.detail
    assert await link.accepted() == [True]


async def test_after_faults_the_same_connections_work_again(link: Link) -> None:
    await link.order(lostResponseRate=1, forCalls=3)
    for number in range(3):
        assert isinstance(await link.send(message(f"request-{number}")), Unknown)
    assert isinstance(await link.send(message("request-9")), Sent)


async def test_a_session_that_is_down_is_not_connected_until_it_is_up(link: Link) -> None:
    await link.control.put("/_sim/accounts/acme", json={"session": "down"})
    assert isinstance(await link.send(message()), NotConnected)
    assert isinstance(await link.send(message(account_id="other")), Sent)
    await link.control.put("/_sim/accounts/acme", json={"session": "up"})
    assert isinstance(await link.send(message()), Sent)


async def test_revoked_credentials_are_an_auth_failure_of_that_account_alone(link: Link) -> None:
    await link.control.put("/_sim/accounts/acme", json={"credentials": "revoked"})
    assert isinstance(await link.send(message()), AuthFailed)
    assert isinstance(await link.send(message(account_id="other")), Sent)


async def test_an_invalid_recipient_is_rejected_and_others_are_not(link: Link) -> None:
    await link.order(invalidRecipients=["wrong"])
    outcome = await link.send(message(to="wrong"))
    assert isinstance(outcome, Rejected)
    assert outcome.code is ErrorCode.RECIPIENT_INVALID
    assert isinstance(await link.send(message(to="right")), Sent)


async def test_a_key_sent_twice_is_delivered_once_by_the_idempotent_provider_only(link: Link) -> None:
    first = await link.send(message(), "simulated-idempotent")
    assert await link.send(message(), "simulated-idempotent") == first
    assert await link.send(message("request-2")) != await link.send(message("request-2"))
    assert [(call["accepted"], call["delivered"]) for call in await link.calls()] == [
        (True, 1),
        (True, 0),
        (True, 1),
        (True, 1),
    ]


async def test_delivered_twice_shows_in_the_record_and_not_in_the_answer(link: Link) -> None:
    await link.order(deliverTwiceRate=1)
    assert isinstance(await link.send(message()), Sent)
    assert [call["delivered"] for call in await link.calls()] == [2]


async def test_parts_go_one_by_one_in_order_and_resume_after_those_already_sent(link: Link) -> None:
    parts = (text("one"), text("two"), text("three"))
    assert isinstance(await link.send(message(parts=parts, parts_sent=1)), Sent)
    assert [call["part"] for call in await link.calls()] == [1, 2]


async def test_an_account_id_with_odd_characters_arrives_as_it_is(link: Link) -> None:
    await link.send(message(account_id="a b?#%2F+ü"))
    assert [call["accountId"] for call in await link.calls()] == ["a b?#%2F+ü"]


# --- without a simulator at the other end


async def test_a_refused_connection_is_retryable_because_nothing_was_sent() -> None:
    with socket.socket() as bound:  # bound and not listening: no other process can take the port
        bound.bind(("127.0.0.1", 0))
        adapters = providers_at(f"http://127.0.0.1:{bound.getsockname()[1]}")
        outcome = await adapters.send("simulated", message(), limit=LIMIT)
        await adapters.close()
    assert isinstance(outcome, Retryable)
    assert outcome.code is ErrorCode.PROVIDER_UNAVAILABLE


async def test_a_connection_that_ends_in_the_middle_of_the_answer_is_unknown() -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b'HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\n{"providerM')
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(half, "127.0.0.1", 0)
    adapters = providers_at(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        assert isinstance(await adapters.send("simulated", message(), limit=LIMIT), Unknown)
    finally:
        await adapters.close()
        server.close()


@pytest.mark.parametrize(
    ("status", "body", "headers", "expected"),
    [
        (200, b"{}", {}, Unknown),
        (200, b"<html>", {}, Unknown),
        (200, b'{"providerMessageId": 7}', {}, Unknown),
        (202, b"[" * 100_000, {}, Unknown),
        (302, b"", {"Location": "http://elsewhere.test"}, Unknown),
        (400, b"", {}, Rejected),
        (401, b"", {}, AuthFailed),
        (403, b"[]", {}, AuthFailed),
        (404, b'{"error": null}', {}, Rejected),
        (408, b"", {}, Unknown),
        (409, b"", {}, Unknown),
        (429, b"", {}, Throttled),
        (429, b"", {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, Throttled),
        (500, b"", {}, Unknown),
        (502, b'{"error": {"code": "new_code"}}', {}, Unknown),
        (503, b"", {}, Unknown),
    ],
)
async def test_an_answer_without_a_code_that_we_know_goes_by_its_status(
    status: int, body: bytes, headers: dict[str, str], expected: type
) -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(status, content=body, headers=headers))
    outcome = await providers_at("http://provider.test", transport).send("simulated", message(), limit=LIMIT)
    assert isinstance(outcome, expected)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (httpx.ConnectError(""), Retryable),
        (httpx.ConnectTimeout(""), Retryable),
        (httpx.PoolTimeout(""), Retryable),
        (httpx.ReadTimeout(""), Unknown),
        (httpx.WriteTimeout(""), Unknown),
        (httpx.ReadError(""), Unknown),
        (httpx.WriteError(""), Unknown),
        (httpx.RemoteProtocolError(""), Unknown),
        (ZeroDivisionError(), Unknown),
    ],
)
async def test_only_a_failure_before_the_request_proves_that_nothing_was_processed(
    error: Exception, expected: type
) -> None:
    def fail(request: httpx.Request) -> httpx.Response:
        raise error

    adapters = providers_at("http://provider.test", httpx.MockTransport(fail))
    assert isinstance(await adapters.send("simulated", message(), limit=LIMIT), expected)


async def test_cancellation_passes_through() -> None:
    called = asyncio.Event()

    async def never(request: httpx.Request) -> httpx.Response:
        called.set()
        await asyncio.Event().wait()
        raise AssertionError

    adapters = providers_at("http://provider.test", httpx.MockTransport(never))
    sending = asyncio.create_task(adapters.send("simulated", message(), limit=LIMIT))
    await called.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending


@pytest.mark.parametrize(("name", "detail"), [("simulated", "no token"), ("whatsupp", "'whatsupp'")])
async def test_an_account_without_a_token_or_with_an_unknown_provider_is_an_auth_failure(
    name: str, detail: str
) -> None:
    adapters = providers(ProviderSettings(), credentials=FixedCredentials({}))
    outcome = await adapters.send(name, message(), limit=LIMIT)
    assert isinstance(outcome, AuthFailed)
    assert detail in outcome.detail


async def test_the_three_names_reach_each_branch_of_the_unknown_outcome() -> None:
    adapters = providers_at("http://provider.test")
    promises = {name: adapters[name].profile.capability for name in CAPABILITIES}
    assert {name: (it.resend_safe, it.echoes_request_id) for name, it in promises.items()} == {
        "simulated": (False, True),
        "simulated-idempotent": (True, True),
        "simulated-mute": (False, False),
    }


# --- in virtual time


@in_virtual_time()
async def test_an_answer_within_the_read_timeout_is_waited_for(world: World) -> None:
    world.order(latencyMs=9_900)
    assert isinstance(await world.send(), Sent)
    assert world.seconds() == 9.9


@in_virtual_time()
async def test_an_answer_after_the_read_timeout_is_unknown_though_accepted(world: World) -> None:
    world.order(latencyMs=10_100)
    assert isinstance(await world.send(), Unknown)
    assert world.seconds() == 10.0
    assert [call["accepted"] for call in world.calls] == [True]


@in_virtual_time()
async def test_an_answer_that_never_comes_is_unknown_at_the_limit_of_the_call(world: World) -> None:
    world.order(hangRate=1)
    assert isinstance(await world.providers.send("simulated", message(), limit=timedelta(seconds=3)), Unknown)
    assert world.seconds() == 3.0
    assert [call["accepted"] for call in world.calls] == [True]


@in_virtual_time()
async def test_an_unreachable_provider_in_process_is_retryable(world: World) -> None:
    world.simulator.transport.refuses_connections = True
    assert isinstance(await world.send(), Retryable)
    assert world.calls == []
