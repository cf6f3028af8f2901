"""The whole outbox with a WAHA account: messages in Firestore, a session that is woken for them, receipts, the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random
from typing import Any
from urllib.parse import urlsplit

import httpx
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.services.firestore import FirestoreAsyncClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcAsyncIOTransport

from firestore_emulator import virtual_time
from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.outgoing import Answered, HttpCall
from firestore_emulator.rpc.inprocess import InProcessChannel
from firestore_emulator.tasks.emulator import TasksEmulator
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import create
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.lane.tasks import CloudTasks
from firestore_outbox.local.simulators.faults import parse_faults
from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET, ProviderSimulator
from firestore_outbox.messages.enqueue import NewMessage, batch
from firestore_outbox.operations.why import Cause
from firestore_outbox.providers.built_in import ProviderSettings, providers
from firestore_outbox.providers.credentials import WEBHOOK_SECRET, FixedCredentials
from firestore_outbox.sessions.store import SessionStore
from firestore_outbox.settings import Settings
from firestore_outbox.web.tasks import TaskEndpoint
from firestore_outbox.wiring import System, assemble
from tests.sessions.world import START, _NoTokens

CREDENTIALS = {
    "*": {"baseUrl": "http://sim/waha", "apiKey": "key", "session": "{accountId}", WEBHOOK_SECRET: DEFAULT_SECRET}
}


class World:
    """One worker that is also the functions."""

    def __init__(self, settings: Settings) -> None:
        self.clock = virtual_time.VirtualClock()
        self.settings = settings
        self.firestore = FirestoreEmulator(clock=self.clock)
        self.tasks = TasksEmulator(clock=self.clock, send=self._task, queues=[settings.queue_name], random=Random(1))
        self.tasks._dispatcher._issuer = _NoTokens()  # type: ignore[assignment]  # no part of the test checks them
        self.simulator = ProviderSimulator(
            webhook="http://functions/{provider}/{accountId}", clock=self.clock, random=Random(1), send=self._webhook
        )
        self.control = httpx.AsyncClient(transport=self.simulator.transport, base_url="http://sim")
        client = AsyncClient(project=settings.project, credentials=AnonymousCredentials())
        transport = FirestoreGrpcAsyncIOTransport(channel=InProcessChannel([self.firestore.service]))
        client._firestore_api_internal = FirestoreAsyncClient(transport=transport)
        self.system: System = assemble(
            settings,
            client=client,
            tasks=CloudTasks.over(InProcessChannel([self.tasks.service]), settings, self.clock),
            providers=providers(
                ProviderSettings(), credentials=FixedCredentials(CREDENTIALS), transport=self.simulator.transport
            ),
            owner="worker",
            clock=self.clock,
            random=Random(1),
        )

    async def _task(self, call: HttpCall) -> Answered:
        answer = await TaskEndpoint.of(self.system).answer(urlsplit(call.url).path, call.body, call.headers)
        return Answered(answer.status)

    async def _webhook(self, call: HttpCall) -> Answered:
        name, account_id = call.url.split("/")[-2:]
        return Answered((await self.system.webhook.take(name, account_id, call.headers, call.body)).value)

    async def account(self, account_id: str = "acme", **fields: Any) -> None:
        data = {"provider": "waha", "timezone": "UTC", "status": "active", "pace": {"perMinute": 0}, **fields}
        await self.system.gateway.commit([create(paths.account(account_id), data)])
        await self.order(account_id, status="STOPPED", startMs=3000)

    async def order(self, account_id: str, **order: Any) -> None:
        await self.control.put(f"/_sim/waha/sessions/{account_id}", json=order)

    async def send(self, request_id: str, account_id: str = "acme", **options: Any) -> None:
        new = NewMessage(
            request_id=request_id,
            account_id=account_id,
            to="4915112345",
            parts=[{"type": "text", "text": "hello"}],
            created_by="u",
            **options,
        )
        await self.system.gateway.commit(batch(new))
        await self.system.waker.wake(outbox_lane(account_id))

    async def document(self, path: str) -> dict[str, Any]:
        snapshot = await self.system.gateway.get(path)
        assert snapshot is not None
        return snapshot.data

    async def status(self, request_id: str) -> str:
        return str((await self.document(paths.outbox(request_id)))["status"])

    async def shown(self, request_id: str, account_id: str = "acme") -> dict[str, Any]:
        return await self.document(paths.message(f"{account_id}__4915112345", request_id))

    async def running(self) -> list[str]:
        running: list[str] = (await self.control.get("/_sim/waha/sessions")).json()["running"]
        return running

    async def places(self) -> str:
        return str((await SessionStore(self.system.gateway).shards())[0].hot)

    async def until(self, condition: Callable[[], Awaitable[bool]], within: float = 600) -> float:
        began = self.clock()
        while not await condition():
            passed = (self.clock() - began).total_seconds()
            assert passed < within, f"not within {within} s: {await self.places()}"
            await asyncio.sleep(0.25)
        return (self.clock() - began).total_seconds()

    async def until_status(self, request_id: str, *statuses: str, within: float = 600) -> float:
        async def reached() -> bool:
            return await self.status(request_id) in statuses

        return await self.until(reached, within)

    async def sweep(self) -> None:
        while True:
            await asyncio.sleep(60)
            await self.system.sweep.run()


def simulate(story: Callable[[World], Awaitable[None]], **settings: Any) -> None:
    async def main() -> None:
        world = World(Settings(sticky_hours=0, **settings))
        await world.firestore.start()
        await world.tasks.start()
        sweeping = asyncio.create_task(world.sweep())
        try:
            await story(world)
        finally:
            sweeping.cancel()
            await world.control.aclose()
            await world.system.providers.close()
            await world.simulator.stop()
            await world.tasks.stop(timedelta(0))
            await world.firestore.stop()

    logging.disable(logging.ERROR)
    try:
        virtual_time.run(main(), seed=1, start=START, time_limit=timedelta(days=10))
    finally:
        logging.disable(logging.NOTSET)


def test_a_message_wakes_the_session_is_sent_and_read_and_the_session_sleeps_again() -> None:
    async def story(world: World) -> None:
        await world.account()
        await world.send("request-1")
        took = await world.until_status("request-1", "sent")
        assert 3 <= took < 6

        async def is_read() -> bool:
            return bool((await world.shown("request-1"))["status"] == "read")

        await world.until(is_read, 30)
        assert (await world.document(paths.outbox("request-1")))["attempts"] == 1

        async def is_cold() -> bool:
            return not await world.running() and await world.places() == "- | -"

        assert await world.until(is_cold) < 130

    simulate(story)


def test_the_session_is_not_started_for_a_message_that_is_due_tomorrow() -> None:
    async def story(world: World) -> None:
        await world.account()
        await world.send("request-1", send_at=world.clock() + timedelta(hours=20))
        await asyncio.sleep(3600)
        assert await world.running() == []
        assert await world.places() == "- | -"
        await asyncio.sleep(19 * 3600 + 30)
        assert await world.status("request-1") == "sent"

    simulate(story)


def test_the_session_is_not_started_for_a_paused_account() -> None:
    async def story(world: World) -> None:
        await world.account(status="paused")
        await world.send("request-1")
        await asyncio.sleep(600)
        assert await world.places() == "- | -"

    simulate(story)


def test_more_accounts_than_places_all_get_their_turn() -> None:
    async def story(world: World) -> None:
        accounts = [f"account-{number}" for number in range(9)]
        for account_id in accounts:
            await world.account(account_id)
        for number, account_id in enumerate(accounts):
            await world.send(f"request-{number}", account_id)
        for number in range(9):
            await world.until_status(f"request-{number}", "sent")
        shown = (await world.control.get("/_sim/waha/sessions")).json()
        assert shown["mostRunning"] == 2
        documents = [await world.document(paths.outbox(f"request-{number}")) for number in range(9)]
        assert {document["attempts"] for document in documents} == {1}

    simulate(story, hot_sessions=2)


def test_a_paced_account_keeps_its_session_between_two_messages() -> None:
    async def story(world: World) -> None:
        await world.account(pace={"perMinute": 2})
        for number in range(4):
            await world.send(f"request-{number}")
        await world.until_status("request-3", "sent")
        assert (await world.control.get("/_sim/waha/sessions")).json()["sessions"]["acme"]["starts"] == 1

    simulate(story)


def test_a_session_that_falls_while_messages_go_out_is_brought_up_and_none_is_in_doubt() -> None:
    async def story(world: World) -> None:
        await world.account()
        await world.send("request-1")
        await world.until_status("request-1", "sent")
        await world.order("acme", status="FAILED", waitMs=0)
        await world.send("request-2")
        assert await world.until_status("request-2", "sent", within=120) < 60

    simulate(story)


def test_refused_credentials_park_the_account_though_the_session_never_came_up() -> None:
    async def story(world: World) -> None:
        await world.account()
        await world.control.put("/_sim/accounts/acme", json={"credentials": "revoked"})
        await world.send("request-1")

        async def is_parked() -> bool:
            return bool((await world.document("accounts/acme"))["status"] == "parked")

        assert await world.until(is_parked) < 10
        assert await world.status("request-1") == "queued"

    simulate(story)


def test_a_send_that_was_never_answered_is_settled_by_the_receipt_of_the_foretold_id() -> None:
    async def story(world: World) -> None:
        await world.account()
        world.simulator.core.faults = parse_faults({"lostResponseRate": 1, "receiptDelayMs": 20_000})
        await world.send("request-1")
        await world.until_status("request-1", "uncertain", within=30)
        await world.until_status("request-1", "sent", within=60)
        assert len(world.simulator.core.record.calls()) == 1

    simulate(story)


# --- why a message waits


async def explained(world: World, request_id: str = "request-1") -> str:
    answer = await world.system.explain(request_id)
    assert answer is not None
    return answer.sentence


def test_why_says_that_a_session_must_be_paired() -> None:
    async def story(world: World) -> None:
        await world.account()
        await world.order("acme", status="STOPPED", paired=False, startMs=500)
        await world.send("request-1")
        for seconds in (30, 300):
            await asyncio.sleep(seconds)
            answer = await world.system.explain("request-1")
            assert answer is not None
            assert (answer.reasons[0].cause, answer.earliest) == (Cause.SESSION, None)
            assert answer.sentence.startswith("The account's session is not paired with its phone. Pair it")

    simulate(story)


def test_why_says_that_a_session_is_connecting_and_then_that_the_message_was_sent() -> None:
    async def story(world: World) -> None:
        await world.account()
        await world.send("request-1")
        await asyncio.sleep(1)
        assert (await explained(world)).startswith("The account's session is connecting; that may take until ")
        await world.until_status("request-1", "sent")
        assert (await explained(world)).startswith("It was sent at ")

    simulate(story)


def test_why_says_that_a_session_did_not_come_up_and_when_it_is_tried_again() -> None:
    async def story(world: World) -> None:
        await world.account()
        await world.order("acme", status="STOPPED", startMs=80_000)
        await world.send("request-1")
        await asyncio.sleep(75)
        answer = await world.system.explain("request-1")
        assert answer is not None
        assert "did not come up in time; it is tried again at" in answer.sentence
        assert answer.earliest is not None
        assert answer.earliest > world.clock()

    simulate(story)


def test_why_says_how_many_accounts_are_before_it_for_a_place() -> None:
    async def story(world: World) -> None:
        for number in range(3):
            await world.account(f"account-{number}")
            await world.order(f"account-{number}", status="STOPPED", startMs=50_000)
        for number in range(3):
            await world.send(f"request-{number}", f"account-{number}")
            await asyncio.sleep(1)
        assert await explained(world, "request-1") == (
            "The account's session is next for a slot; all slots are in use."
        )
        assert await explained(world, "request-2") == (
            "All slots for sessions are in use, and 1 account is before this one."
        )

    simulate(story, hot_sessions=1)
