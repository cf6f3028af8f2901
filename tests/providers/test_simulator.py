"""The simulator's own side: faults in words, the record of calls, accounts, the core without a loop."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from firestore_emulator import virtual_time
from firestore_outbox.local.simulators.core import Answer, Cut, Hang, ProviderCore, Verdict
from firestore_outbox.local.simulators.faults import NO_FAULTS, Faults
from firestore_outbox.local.simulators.record import Record
from firestore_outbox.providers.outcome import Sent, Throttled
from tests.providers.support import START, World, in_virtual_time, message

CONTRACT = {
    "latencyMs": 20,
    "throttleRate": 0.1,
    "errorRate": 0,
    "lostResponseRate": 1,
    "receiptDelayMs": 500,
    "receiptDuplicateRate": 0.25,
    "receiptShuffle": True,
}


def core(seed: int = 1, **faults: Any) -> ProviderCore:
    it = ProviderCore(Record(), clock=lambda: START, random=Random(seed))
    it.faults = Faults(**faults)
    return it


def call(it: ProviderCore, request_id: str = "request-1", *, account: str = "acme", **fields: Any) -> Verdict:
    body = {"requestId": request_id, "to": "49151", "part": {"type": "text", "text": "x"}} | fields
    return it.receive(account, "Bearer t", json.dumps(body).encode())


# --- the core


def test_the_same_seed_gives_the_same_verdicts() -> None:
    faults = {"throttleRate": 0.3, "errorRate": 0.3, "lostResponseRate": 0.3, "deliverTwiceRate": 0.3}

    def story(seed: int) -> list[Verdict]:
        it = core(seed, latencyJitterMs=100, receiptShuffle=True, **faults)
        return [call(it, f"request-{number}") for number in range(50)]

    assert story(4) == story(4)
    assert story(4) != story(5)


@pytest.mark.parametrize(
    ("faults", "then", "delivered"),
    [
        ({}, Answer, 1),
        ({"lostResponseRate": 1.0}, Cut, 1),
        ({"hangRate": 1.0}, Hang, 1),
        ({"acceptedErrorRate": 1.0}, Answer, 1),
        ({"deliverTwiceRate": 1.0}, Answer, 2),
        ({"throttleRate": 1.0}, Answer, 0),
        ({"errorRate": 1.0}, Answer, 0),
    ],
)
def test_what_is_reported_and_what_happened_are_two_things(faults: dict[str, Any], then: type, delivered: int) -> None:
    verdict = call(core(**faults))
    assert isinstance(verdict.then, then)
    assert (verdict.call.accepted, verdict.call.delivered) == (delivered > 0, delivered)
    assert len(verdict.deliveries) == delivered


def test_rates_are_kept_over_many_calls() -> None:
    it = core(throttleRate=0.25)
    refused = sum(not call(it, f"request-{number}").call.accepted for number in range(2_000))
    assert 400 < refused < 600


def test_faults_for_some_calls_end_by_themselves_and_count_down() -> None:
    it = core(errorRate=1, forCalls=2)
    assert [call(it).call.accepted for _ in range(2)] == [False, False]
    assert it.faults == NO_FAULTS
    assert call(it).call.accepted


def test_faults_for_some_accounts_leave_the_others_alone() -> None:
    it = core(errorRate=1, accounts=("acme",), forCalls=1)
    assert call(it, account="other").call.accepted
    assert it.faults.forCalls == 1
    assert not call(it, account="acme").call.accepted


def test_latency_is_drawn_between_its_bounds() -> None:
    it = core(latencyMs=100, latencyJitterMs=50)
    latencies = [call(it).latency for _ in range(100)]
    assert min(latencies) >= timedelta(milliseconds=100)
    assert max(latencies) <= timedelta(milliseconds=150)
    assert len(set(latencies)) > 50


def test_a_key_counts_within_its_account_only() -> None:
    it = core()
    assert call(it, idempotencyKey="k").call.delivered == 1
    assert call(it, idempotencyKey="k").call.delivered == 0
    assert call(it, idempotencyKey="k", account="other").call.delivered == 1


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"\xff", b'{"requestId": "r"}', b'{"requestId": 1, "to": "x", "part": {}}', b"[" * 50_000],
)
def test_a_malformed_call_is_refused_and_recorded_too(body: bytes) -> None:
    it = core()
    verdict = it.receive("acme", "Bearer t", body)
    assert isinstance(verdict.then, Answer)
    assert verdict.then.status == 400
    assert [recorded.accepted for recorded in it.record.calls()] == [False]


@pytest.mark.parametrize("authorization", ["", "Bearer ", "Bearer"])
def test_a_call_without_a_token_is_unauthorized(authorization: str) -> None:
    body = json.dumps({"requestId": "r", "to": "49151", "part": {}}).encode()
    verdict = core().receive("acme", authorization, body)
    assert isinstance(verdict.then, Answer)
    assert verdict.then.status == 401


def test_many_calls_at_once_in_virtual_time_replay_exactly_from_a_seed() -> None:
    faults = {"throttleRate": 0.1, "lostResponseRate": 0.1, "hangRate": 0.1, "latencyMs": 50, "latencyJitterMs": 400}

    def replay(seed: int) -> tuple[Any, ...]:
        async def story() -> tuple[Any, ...]:
            world = World(seed=seed)
            world.order(**faults, receiptShuffle=True, receiptDelayMs=2_000, receiptDuplicateRate=0.3)
            outcomes = await asyncio.gather(*(world.send(message(f"request-{number}")) for number in range(40)))
            await world.simulator.webhooks.drained()
            heard = [(call.url, call.body, call.headers["X-Simulated-Signature"]) for call in world.inbox.heard]
            seconds = world.seconds()
            await world.close()
            return outcomes, world.calls, heard, seconds

        return virtual_time.run(story(), seed=seed, start=START)

    assert replay(8) == replay(8)
    assert replay(8) != replay(9)


# --- faults over HTTP


@in_virtual_time()
async def test_the_contracts_faults_are_taken_and_an_empty_order_resets_them(world: World) -> None:
    answer = await world.http.put("/_sim/faults", json=CONTRACT)
    assert answer.status_code == 200
    shown = (await world.http.get("/_sim/faults")).json()
    assert {name: shown[name] for name in CONTRACT} == CONTRACT
    assert (await world.http.put("/_sim/faults", json={})).json() == NO_FAULTS.model_dump(mode="json")


@in_virtual_time()
async def test_an_order_replaces_the_one_before_it(world: World) -> None:
    await world.http.put("/_sim/faults", json={"latencyMs": 5})
    await world.http.put("/_sim/faults", json={"errorRate": 0.5})
    assert (await world.http.get("/_sim/faults")).json()["latencyMs"] == 0


BAD_ORDERS: list[tuple[Any, str]] = [
    ({"throttleRate": 1.5}, "throttleRate is 1.5"),
    ({"errorRate": -0.1}, "errorRate is -0.1"),
    ({"lostResponseRate": "0.5"}, "lostResponseRate is '0.5'"),
    ({"lostResponseRate": True}, "lostResponseRate is True"),
    ({"latencyMs": -1}, "latencyMs is -1"),
    ({"latencyMs": 1.5}, "latencyMs is 1.5"),
    ({"latencyMs": None}, "latencyMs is None"),
    ({"receiptShuffle": 1}, "receiptShuffle is 1"),
    ({"throttleScope": "world"}, "throttleScope is 'world'"),
    ({"errorCode": "boom"}, "errorCode is 'boom'"),
    ({"forCalls": 0}, "forCalls is 0"),
    ({"accounts": "acme"}, "accounts is 'acme'"),
    ({"latencyms": 5}, "latencyms is no fault; known are latencyMs"),
    ([], "must be a JSON object"),
    (None, "must be a JSON object"),
]


@pytest.mark.parametrize(("order", "words"), BAD_ORDERS)
def test_a_bad_order_is_refused_in_words_and_changes_nothing(order: Any, words: str) -> None:
    @in_virtual_time()
    async def story(world: World) -> None:
        world.order(latencyMs=7)
        answer = await world.http.put("/_sim/faults", content=json.dumps(order).encode())
        assert answer.status_code == 400
        assert words in answer.json()["error"]["message"]
        assert world.simulator.core.faults.latencyMs == 7

    story()


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"errorRate": NaN}', b"[" * 50_000])
def test_an_order_that_is_no_json_is_refused(body: bytes) -> None:
    @in_virtual_time()
    async def story(world: World) -> None:
        assert (await world.http.put("/_sim/faults", content=body)).status_code == 400

    story()


# --- the record, accounts, health


@in_virtual_time()
async def test_calls_are_listed_oldest_first_and_filtered_by_account(world: World) -> None:
    await world.send(message("request-1"))
    world.order(throttleRate=1)
    assert isinstance(await world.send(message("request-2", account_id="other")), Throttled)
    world.order()
    assert isinstance(await world.send(message("request-3")), Sent)
    calls = (await world.http.get("/_sim/calls")).json()
    assert [(it["requestId"], it["accepted"]) for it in calls] == [
        ("request-1", True),
        ("request-2", False),
        ("request-3", True),
    ]
    assert calls[0]["at"] == START.isoformat()
    mine = (await world.http.get("/_sim/calls", params={"accountId": "acme"})).json()
    assert [it["requestId"] for it in mine] == ["request-1", "request-3"]


@in_virtual_time()
async def test_deleting_the_calls_forgets_the_keys_too(world: World) -> None:
    await world.send(name="simulated-idempotent")
    assert (await world.http.delete("/_sim/calls")).status_code == 204
    assert (await world.http.get("/_sim/calls")).json() == []
    await world.send(name="simulated-idempotent")
    assert [it["delivered"] for it in world.calls] == [1]


@in_virtual_time()
async def test_health_tells_how_many_webhooks_are_under_way(world: World) -> None:
    world.order(receiptDelayMs=1_000)
    await world.send()
    assert (await world.http.get("/_sim/health")).json() == {"status": "ok", "webhooksPending": 1}
    await world.simulator.webhooks.drained()
    assert (await world.http.get("/_sim/health")).json() == {"status": "ok", "webhooksPending": 0}


@in_virtual_time()
async def test_an_accounts_state_is_shown_and_each_half_changes_alone(world: World) -> None:
    path = "/_sim/accounts/acme"
    assert (await world.http.get(path)).json() == {"session": "up", "credentials": "valid"}
    await world.http.put(path, json={"session": "down"})
    assert (await world.http.put(path, json={"credentials": "revoked"})).json() == {
        "session": "down",
        "credentials": "revoked",
    }
    assert (await world.http.put(path, json={"session": "sideways"})).status_code == 400
    assert (await world.http.put(path, json={"colour": "red"})).status_code == 400


@pytest.mark.parametrize(
    "order",
    [
        {},
        {"accountId": "acme", "from": "1"},
        {"accountId": "acme", "from": "1", "text": "x", "parts": []},
        {"accountId": "acme", "text": "x"},
        {"accountId": "acme", "from": "1", "text": "x", "at": "yesterday"},
        {"accountId": "acme", "from": "1", "text": "x", "colour": "red"},
    ],
)
def test_a_bad_inbound_order_is_refused(order: dict[str, Any]) -> None:
    @in_virtual_time()
    async def story(world: World) -> None:
        assert (await world.http.post("/_sim/inbound", json=order)).status_code == 400
        assert world.inbox.heard == []

    story()
