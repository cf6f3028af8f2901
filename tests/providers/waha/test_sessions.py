"""Sessions at WAHA: asked for, started, stopped, and told of."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from firestore_outbox.providers.outcome import AuthFailed, NotConnected, Retryable, Throttled, Unknown
from firestore_outbox.providers.protocol import Checked, SessionChanged, SessionState
from tests.providers.support import LIMIT
from tests.providers.waha.support import KEY, Answering, World, adapter, credentials, in_virtual_time


@in_virtual_time
async def test_a_session_is_started_takes_its_time_and_is_stopped(world: World) -> None:
    await world.order_session(status="STOPPED", startMs=2000)
    assert await world.session("state") is SessionState.DOWN
    assert await world.session("start") is SessionState.STARTING
    assert await world.session("state") is SessionState.STARTING
    await asyncio.sleep(2)
    assert await world.session("state") is SessionState.UP
    assert await world.session("stop") is SessionState.DOWN
    assert await world.session("state") is SessionState.DOWN


@in_virtual_time
async def test_starting_and_stopping_twice_does_no_harm(world: World) -> None:
    await world.order_session(status="STOPPED")
    for order in ("start", "start", "stop", "stop"):
        await world.session(order)
    shown = (await world.control.get("/_sim/waha/sessions")).json()["sessions"]["acme"]
    assert (shown["starts"], shown["stops"]) == (1, 1)


@in_virtual_time
async def test_a_start_may_fail_and_a_later_one_succeed(world: World) -> None:
    await world.order_session(status="STOPPED", failStarts=1, startMs=100)
    await world.session("start")
    await asyncio.sleep(0.1)
    assert await world.session("state") is SessionState.BROKEN
    await world.session("start")
    await asyncio.sleep(0.1)
    assert await world.session("state") is SessionState.UP


@in_virtual_time
async def test_a_session_without_a_phone_asks_for_one(world: World) -> None:
    await world.order_session(status="STOPPED", paired=False, startMs=100)
    await world.session("start")
    await asyncio.sleep(0.1)
    assert await world.session("state") is SessionState.NEEDS_PAIRING


@in_virtual_time
async def test_a_session_that_does_not_exist_needs_a_person(world: World) -> None:
    await world.order_session(exists=False)
    assert await world.session("state") is SessionState.NEEDS_PAIRING
    assert await world.session("start") is SessionState.NEEDS_PAIRING


@in_virtual_time
async def test_the_webhook_tells_of_each_change(world: World) -> None:
    await world.order_session(status="STOPPED", startMs=1000)
    await world.simulator.webhooks.drained()
    await world.session("start")
    events = await world.events()
    assert all(isinstance(event, SessionChanged) for event in events)
    told = [(event.detail, event.connected) for event in events if isinstance(event, SessionChanged)]
    assert told == [("STOPPED", False), ("STARTING", False), ("WORKING", True)]


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (401, {"statusCode": 401, "message": "Unauthorized"}, AuthFailed),
        (404, {}, AuthFailed),
        (429, {}, Throttled),
        (422, {"status": "STARTING", "expected": ["WORKING"]}, NotConnected),
        (500, {}, Unknown),
        (200, {"status": "SOMETHING_NEW"}, Unknown),
        (200, b"<html>", Unknown),
    ],
)
async def test_an_answer_that_names_no_state_is_an_outcome(status: int, body: Any, expected: type) -> None:
    answer = await adapter(Answering(status, body)).sessions.state("acme", credentials(), limit=LIMIT)
    assert isinstance(answer, expected)


async def test_an_order_that_is_taken_without_naming_a_state_is_believed() -> None:
    sessions = adapter(Answering(201, {})).sessions
    assert await sessions.start("acme", credentials(), limit=LIMIT) is SessionState.STARTING
    assert await sessions.stop("acme", credentials(), limit=LIMIT) is SessionState.DOWN


async def test_the_orders_go_to_the_sessions_own_address_with_the_key() -> None:
    gateway = Answering(201, {"status": "STARTING"})
    sessions = adapter(gateway).sessions
    await sessions.start("acme", credentials(), limit=LIMIT)
    await sessions.stop("acme", credentials(), limit=LIMIT)
    await sessions.state("acme", credentials(), limit=LIMIT)
    assert [(request.method, request.url.path) for request in gateway.asked] == [
        ("POST", "/waha/api/sessions/acme/start"),
        ("POST", "/waha/api/sessions/acme/stop"),
        ("GET", "/waha/api/sessions/acme"),
    ]
    assert {request.headers["x-api-key"] for request in gateway.asked} == {KEY}


@in_virtual_time
async def test_a_gateway_out_of_reach_is_an_outcome_and_no_exception(world: World) -> None:
    world.simulator.transport.refuses_connections = True
    assert isinstance(await world.session("start"), Retryable)


# --- check


async def checked(status: int, body: Any, **changes: str) -> Checked:
    return await adapter(Answering(status, body)).check("acme", credentials(**changes), limit=LIMIT)


@pytest.mark.parametrize(
    ("status", "body", "works", "words"),
    [
        (200, {"status": "WORKING"}, True, "up"),
        (200, {"status": "STOPPED"}, True, "down"),
        (200, {"status": "SCAN_QR_CODE"}, True, "must be paired"),
        (404, {"message": "Session not found"}, True, "must be paired"),
        (401, {}, False, "the API key is refused"),
        (404, {}, False, "no WAHA at the account's baseUrl"),
        (500, {}, False, "failed"),
    ],
)
async def test_credentials_are_tried_with_a_look_at_the_session(
    status: int, body: Any, works: bool, words: str
) -> None:
    result = await checked(status, body)
    assert result.works is works
    assert words in result.detail
    assert KEY not in result.detail


@pytest.mark.parametrize("changes", [{"apiKey": ""}, {"baseUrl": "nonsense"}])
async def test_credentials_that_cannot_work_are_reported_before_any_call(changes: dict[str, str]) -> None:
    result = await checked(200, {"status": "WORKING"}, **changes)
    assert not result.works
