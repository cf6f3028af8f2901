"""A flood of receipts for `bench.webhooks` and its small sister among the tests: what is planned, and what comes of it.

Messages are in every state in which a receipt can find them:

    sent, by the provider's id      the usual course
    sent, by our id                 the same, of a provider that echoes it
    sending, by our id              the receipt overtook our own `sent`, and settles it
    sending, by the provider's id   the id is not known yet: the receipt waits in Cloud Tasks until `sent` is written

Each has receipts of some of sent, delivered, read and failed; then as many are doubled as were asked for; then all are
shuffled. Most travel alone, as most providers send them, and some by the dozen.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import httpx
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import AsyncClient

from bench.places import pointed_at
from firestore_emulator.outgoing import HttpCall, HttpSender
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.firestore.writes import WriteOp, create, update
from firestore_outbox.local.dev import PROJECT, DevStack
from firestore_outbox.local.simulators.own import SIGNATURE_HEADER, signed
from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET

ACCOUNT = "flood"
DUPLICATES = 0.3
BY_THE_DOZEN = 0.2
"""The share of receipts that travel with others."""
DOZEN = 20
IN_FLIGHT = 16
DEADLINE = timedelta(seconds=30)
SETTLED_WITHIN_SECONDS = 240.0
LOOK_SECONDS = 0.25
STATES = ("sent, by the provider's id", "sent, by our id", "sending, by our id", "sending, by the provider's id")
_WEIGHTS = (60, 25, 10, 5)
_STORIES = (("sent", "delivered", "read"), ("sent", "delivered"), ("delivered", "read"), ("sent", "failed"), ("read",))
_RANK = {"sent": 0, "delivered": 1, "read": 2, "failed": 3}


@dataclass(frozen=True)
class Message:
    request_id: str
    state: str
    story: tuple[str, ...]

    @property
    def provider_id(self) -> str:
        return f"p-{self.request_id}"

    @property
    def thread_id(self) -> str:
        return f"{ACCOUNT}__+49{self.request_id}"

    @property
    def ends_as(self) -> str:
        return max(self.story, key=_RANK.__getitem__)

    def receipt(self, status: str) -> dict[str, Any]:
        event: dict[str, Any] = {"type": "receipt", "providerMessageId": self.provider_id, "status": status}
        event["at"] = _now().isoformat()
        if self.state.endswith("our id"):
            event["echo"] = f"{self.request_id}:0:1"
        if status == "failed":
            event["error"] = {"code": "recipient_invalid", "message": "The message could not be delivered."}
        return event


@dataclass(frozen=True)
class Plan:
    messages: list[Message]
    bodies: list[bytes]
    receipts: int
    duplicates: int


def plan(receipts: int, random: Random) -> Plan:
    """The number of receipts in all, doubled ones among them."""
    messages: list[Message] = []
    distinct: list[dict[str, Any]] = []
    while len(distinct) < receipts * (1 - DUPLICATES):
        state = random.choices(STATES, _WEIGHTS)[0]
        message = Message(f"request-{len(messages):05d}", state, random.choice(_STORIES))
        messages.append(message)
        distinct += [message.receipt(status) for status in message.story]
    doubled = random.choices(distinct, k=max(0, receipts - len(distinct)))
    events = [*distinct, *doubled]
    random.shuffle(events)
    return Plan(messages, list(_bodies(events)), len(events), len(doubled))


def _bodies(events: list[dict[str, Any]]) -> Iterator[bytes]:
    together = int(len(events) * BY_THE_DOZEN)
    alone = [[event] for event in events[together:]]
    dozens = [events[start : min(start + DOZEN, together)] for start in range(0, together, DOZEN)]
    every = max(1, len(alone) // max(1, len(dozens)))
    for number, one in enumerate(alone):
        if number % every == 0 and dozens:
            yield _body(dozens.pop())
        yield _body(one)
    yield from map(_body, dozens)


def _body(events: list[dict[str, Any]]) -> bytes:
    return json.dumps({"events": events}).encode()


# --- the flood


@dataclass
class Outcome:
    seconds: float = 0.0
    """From the first body to the last answer."""
    answers: Counter[int] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    """In seconds, of each answer."""
    wrong: dict[str, tuple[str, str]] = field(default_factory=dict)
    """requestId -> what it should be, and what it is."""
    settled_after_seconds: float = 0.0
    """From the last answer until every message was what it should be."""
    receipts: dict[str, float] = field(default_factory=dict)
    """What the worker counted: the receipts that went through Cloud Tasks."""

    def percentile(self, share: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


async def flood(stack: DevStack, planned: Plan, *, in_flight: int = IN_FLIGHT) -> Outcome:
    with pointed_at(stack.firestore):
        client = AsyncClient(project=PROJECT, credentials=AnonymousCredentials())
    gateway = Gateway(client)
    outcome = Outcome()
    try:
        await _load(gateway, planned.messages)
        await _warm_up(stack)
        await _pour(stack, gateway, planned, outcome, in_flight)
        await _settle(gateway, planned.messages, outcome)
        outcome.receipts = await _counted(stack)
    finally:
        client.close()
    return outcome


async def _load(gateway: Gateway, messages: Sequence[Message]) -> None:
    account = {"provider": "simulated", "status": "active", "pace": {"perMinute": 0}}
    await gateway.commit([create(paths.account(ACCOUNT), account)])
    for start in range(0, len(messages), 100):
        await gateway.commit([write for message in messages[start : start + 100] for write in _documents(message)])


def _documents(message: Message) -> list[WriteOp]:
    now = _now()
    identity = {
        "requestId": message.request_id,
        "accountId": ACCOUNT,
        "threadId": message.thread_id,
        "to": message.thread_id.partition("__")[2],
        "parts": [{"type": "text", "text": "hello"}],
        "createdAt": now,
    }
    outbox = {**identity, "nextAttemptAt": now, "attempts": 1}
    if message.state.startswith("sent"):
        done = {"status": "sent", "sentAt": now, "providerMessageId": message.provider_id}
        outbox, shown = {**outbox, **done}, {**identity, **done}
    else:
        lease = {"status": "sending", "claimedBy": "bench-1", "leaseUntil": now + timedelta(hours=1)}
        outbox, shown = {**outbox, **lease}, {**identity, "status": "queued"}
    path = paths.message(message.thread_id, message.request_id)
    return [create(paths.outbox(message.request_id), outbox), create(path, {**shown, "direction": "outbound"})]


async def _complete(gateway: Gateway, messages: Sequence[Message]) -> None:
    """The worker's own `sent`, which the receipts of these messages overtook."""
    done = {"status": "sent", "sentAt": _now()}
    for message in messages:
        fields = {**done, "providerMessageId": message.provider_id}
        path = paths.message(message.thread_id, message.request_id)
        await gateway.commit(
            [update(paths.outbox(message.request_id), fields, version=None), update(path, fields, version=None)]
        )


async def _warm_up(stack: DevStack) -> None:
    """An instance that serves already: a cold start is another measurement."""
    sender = HttpSender()
    for _ in range(5):
        await _post(sender, stack, _body([]))
    await sender.close()


async def _pour(stack: DevStack, gateway: Gateway, planned: Plan, outcome: Outcome, in_flight: int) -> None:
    waiting = enumerate(planned.bodies)
    unknown = [message for message in planned.messages if message.state == STATES[3]]
    sender = HttpSender()

    async def pour() -> None:
        for number, body in waiting:
            if number == len(planned.bodies) // 2:
                tasks.create_task(_complete(gateway, unknown))
            started = time.perf_counter()
            status = await _post(sender, stack, body)
            outcome.latencies.append(time.perf_counter() - started)
            outcome.answers[status] += 1

    started = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(in_flight):
            tasks.create_task(pour())
    outcome.seconds = time.perf_counter() - started  # with the last of `unknown`, which is a part of the flood
    await sender.close()


async def _post(sender: HttpSender, stack: DevStack, body: bytes) -> int:
    headers = {"Content-Type": "application/json", SIGNATURE_HEADER: signed(DEFAULT_SECRET, body, _now())}
    url = f"http://127.0.0.1:{stack.ports['functions']}/simulated/{ACCOUNT}"
    answer = await sender(HttpCall(method="POST", url=url, headers=headers, body=body, deadline=DEADLINE))
    return answer.status


async def _settle(gateway: Gateway, messages: Sequence[Message], outcome: Outcome) -> None:
    started = time.perf_counter()
    while True:
        outcome.wrong = await _wrong(gateway, messages)
        outcome.settled_after_seconds = time.perf_counter() - started
        if not outcome.wrong or outcome.settled_after_seconds > SETTLED_WITHIN_SECONDS:
            return
        await asyncio.sleep(LOOK_SECONDS)


async def _wrong(gateway: Gateway, messages: Sequence[Message]) -> dict[str, tuple[str, str]]:
    """What people see, and what an operator sees."""
    shown = {message.request_id: paths.message(message.thread_id, message.request_id) for message in messages}
    stored = {message.request_id: paths.outbox(message.request_id) for message in messages}
    found: dict[str, Any] = {}
    everything = [*shown.values(), *stored.values()]
    for start in range(0, len(everything), 500):
        found |= await gateway.get_all(everything[start : start + 500])
    status = {path: str(snapshot.data.get("status")) for path, snapshot in found.items()}
    wrong = {}
    for message in messages:
        wanted = (message.ends_as, "failed" if message.ends_as == "failed" else "sent")
        is_now = (status.get(shown[message.request_id], "-"), status.get(stored[message.request_id], "-"))
        if wanted != is_now:
            wrong[message.request_id] = ("/".join(wanted), "/".join(is_now))
    return wrong


async def _counted(stack: DevStack) -> dict[str, float]:
    async with httpx.AsyncClient(trust_env=False) as http:
        text = (await http.get(f"{stack.worker_url}/metrics")).text
    lines = [line for line in text.splitlines() if line.startswith("outbox_receipts_total{")]
    return {line.split('changed="')[1].split('"')[0]: float(line.rpartition(" ")[2]) for line in lines}


def _now() -> datetime:
    return datetime.now(UTC)
