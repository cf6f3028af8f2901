"""A small world in virtual time for the tests of a user's handlers: one account, one person who writes, and events."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from firestore_emulator.virtual_time import run
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import create
from firestore_outbox.handlers.ingest import NotTaken
from firestore_outbox.handlers.registration import load
from firestore_outbox.local.pytest_plugin import ACCOUNT, PERSON, HandlersRan, SentMessage
from firestore_outbox.local.simulation.network import NO_BAD_LUCK
from firestore_outbox.local.simulation.world import World
from firestore_outbox.settings import Settings

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
SWEEP_SECONDS = 60
_ACCOUNT = {"provider": "simulated", "timezone": "UTC", "status": "active", "pace": {"perMinute": 0}}

Events = Sequence[tuple[str, str, Mapping[str, Any]]]


def ran(module: str, messages: Sequence[str], events: Events, limits: str, minutes: float) -> HandlersRan:
    main = _ran(module, messages, events, limits, timedelta(minutes=minutes))
    return run(main, seed=1, start=START, time_limit=timedelta(days=400))


async def _ran(module: str, messages: Sequence[str], events: Events, limits: str, lasts: timedelta) -> HandlersRan:
    world = World(1, settings=Settings(limits=limits), luck=NO_BAD_LUCK, handlers=load(module))
    await world.start()
    sweeps = asyncio.create_task(_sweep(world))
    try:
        ends = world.clock() + lasts
        await world.client.system.gateway.commit([create(paths.account(ACCOUNT), _ACCOUNT)])
        for number, (kind, key, data) in enumerate(events):
            taken = await world.functions[0].system.events.event(kind, f"event-{number}", data, key)
            if isinstance(taken, NotTaken):
                raise ValueError(taken.sentence)
        for text in messages:
            world.webhooks.post("simulated", ACCOUNT, _written(world, text))
            await asyncio.sleep(1)
        await asyncio.sleep((ends - world.clock()).total_seconds())
        return _seen(world)
    finally:
        sweeps.cancel()
        await world.stop()


async def _sweep(world: World) -> None:
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        await world.sweep()


def _written(world: World, text: str) -> dict[str, Any]:
    return {
        "type": "inbound",
        "providerMessageId": world.provider.new_message_id(),
        "from": PERSON,
        "at": world.clock().isoformat(),
        "parts": [{"type": "text", "text": text}],
    }


def _seen(world: World) -> HandlersRan:
    stored = world.truth.collection("outbox")
    order = dict.fromkeys(attempt.request_id for attempt in world.truth.attempts)
    sent = [stored[request_id] for request_id in order if stored[request_id].get("sentAt") is not None]
    return HandlersRan(
        sent=[SentMessage(account_id=one["accountId"], to=one["to"], parts=tuple(one["parts"])) for one in sent],
        dead_letters=[str(job["error"]) for job in world.truth.collection("jobs").values()],
    )
