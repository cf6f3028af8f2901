"""A steady stream of messages for `bench.latency` and its short sister among the tests, and what comes of it."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any

import httpx
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import AsyncClient

from bench.places import pointed_at, tree_cpu_seconds
from firestore_outbox.backend import batch as outbox
from firestore_outbox.local.dev import PROJECT, DevStack

WARM_UP = 40
ACCOUNTS, RECIPIENTS = 5, 40
"""Recipients of each account."""
SEED = 11
PATIENCE_SECONDS = 240.0
LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Kind:
    rate: float
    """Messages a second."""
    provider_ms: int = 0
    """How long the provider takes to answer."""

    def __str__(self) -> str:
        slow = f", the provider takes {self.provider_ms} ms" if self.provider_ms else ""
        return f"{self.rate:g} a second{slow}"


WARM_UP_KIND = Kind(20.0)


@dataclass(frozen=True)
class Message:
    request_id: str
    account_id: str
    to: str
    asked_at: float
    """Just before its commit."""
    stored_at: float
    """When the commit was acknowledged."""


@dataclass
class Run:
    """Times are of the machine's clock, in seconds."""

    kind: Kind
    messages: list[Message] = field(default_factory=list)
    calls: dict[str, list[float]] = field(default_factory=dict)
    """By requestId, when the provider was called."""
    seconds: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)
    """By process."""
    others_busy: float | None = None
    most_late: float = 0.0
    """By how much the writer fell behind its own plan."""

    @property
    def latencies(self) -> list[float]:
        return sorted(self.calls[m.request_id][0] - m.asked_at for m in self.messages if m.request_id in self.calls)

    @property
    def commits(self) -> list[float]:
        return sorted(m.stored_at - m.asked_at for m in self.messages)

    @property
    def lost(self) -> int:
        return sum(message.request_id not in self.calls for message in self.messages)

    @property
    def repeated(self) -> int:
        return sum(len(times) > 1 for times in self.calls.values())

    @property
    def misordered(self) -> int:
        """Of those whose predecessor in the thread was stored before they were written."""
        count = 0
        last: dict[tuple[str, str], Message] = {}
        for message in sorted(self.messages, key=lambda m: m.asked_at):
            thread = (message.account_id, message.to)
            before, last[thread] = last.get(thread), message
            if before is None or before.stored_at > message.asked_at:
                continue
            if {before.request_id, message.request_id} <= self.calls.keys():
                count += self.calls[message.request_id][0] < self.calls[before.request_id][0]
        return count

    @property
    def faults(self) -> list[str]:
        found = {"lost": self.lost, "sent twice": self.repeated, "out of order": self.misordered}
        return [f"at {self.kind} {count} messages were {what}" for what, count in found.items() if count]


def percentile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


# --- one run


async def measure(stack: DevStack, kind: Kind, seconds: float) -> Run:
    """Writes for so long at this rate, and returns when the provider has been called for each, or never will be."""
    with pointed_at(stack.firestore):
        db = AsyncClient(project=PROJECT, credentials=AnonymousCredentials())
    run = Run(kind)
    random = Random(SEED)
    try:
        await _set_latency(stack, kind.provider_ms)
        account_ids = [await _account(db) for _ in range(ACCOUNTS)]
        await _write(db, account_ids, Run(WARM_UP_KIND), random, count=WARM_UP)
        await _all_called(stack, account_ids, WARM_UP)
        cpu_before, busy_before, started = _cpu_of(stack), _busy_seconds(), time.monotonic()
        await _write(db, account_ids, run, random, count=max(1, round(kind.rate * seconds)))
        calls = await _all_called(stack, account_ids, WARM_UP + len(run.messages))
        run.seconds = time.monotonic() - started
        run.cpu = {name: cpu - cpu_before[name] for name, cpu in _cpu_of(stack).items()}
        if busy_before is not None and (busy := _busy_seconds()) is not None:
            others = busy - busy_before - sum(run.cpu.values())
            run.others_busy = max(0.0, others / run.seconds / (os.cpu_count() or 1))
    finally:
        db.close()
    written = {message.request_id for message in run.messages}
    for call in calls:
        if call["requestId"] in written:
            run.calls.setdefault(call["requestId"], []).append(datetime.fromisoformat(call["at"]).timestamp())
    return run


async def _set_latency(stack: DevStack, millis: int) -> None:
    async with httpx.AsyncClient(base_url=stack.provider_url, trust_env=False, timeout=30) as http:
        (await http.put("/_sim/faults", json={"latencyMs": millis} if millis else {})).raise_for_status()


async def _account(db: AsyncClient) -> str:
    account_id = f"bench-{secrets.token_hex(4)}"
    await db.document(f"accounts/{account_id}").set(
        {"provider": "simulated", "status": "active", "pace": {"perMinute": 0}}
    )
    return account_id


async def _write(db: AsyncClient, account_ids: list[str], run: Run, random: Random, *, count: int) -> None:
    at = time.monotonic()
    async with asyncio.TaskGroup() as writes:
        for number in range(count):
            at += random.expovariate(run.kind.rate)
            await asyncio.sleep(max(0.0, at - time.monotonic()))
            run.most_late = max(run.most_late, time.monotonic() - at)
            account_id = account_ids[number % len(account_ids)]
            to = f"+49170{number // len(account_ids) % RECIPIENTS:04d}"
            writes.create_task(_write_one(db, account_id, to, run))


async def _write_one(db: AsyncClient, account_id: str, to: str, run: Run) -> None:
    request_id = outbox.new_request_id()
    batch = db.batch()
    outbox.send_message(batch, db, request_id=request_id, account_id=account_id, to=to, uid="bench", text="hello")
    asked_at = time.time()
    await batch.commit()
    run.messages.append(Message(request_id, account_id, to, asked_at, time.time()))


async def _all_called(stack: DevStack, account_ids: list[str], count: int) -> list[dict[str, Any]]:
    """The calls of these accounts, once there are `count` and no webhook is on its way; or what there is in the end."""
    ends = time.monotonic() + PATIENCE_SECONDS
    async with httpx.AsyncClient(base_url=stack.provider_url, trust_env=False, timeout=30) as http:
        while True:
            health = (await http.get("/_sim/health")).json()
            calls = [call for call in (await http.get("/_sim/calls")).json() if call["accountId"] in account_ids]
            if (len(calls) >= count and not health["webhooksPending"]) or time.monotonic() > ends:
                return calls
            await asyncio.sleep(LOOK_SECONDS)


def _cpu_of(stack: DevStack) -> dict[str, float]:
    """Processor time so far, by process, where the system tells it."""
    named = {"google": "emulators"}
    used = {named.get(name, name): tree_cpu_seconds(process.pid) for name, process in stack.processes.items()}
    return {name: seconds for name, seconds in used.items() if seconds is not None} | {"writer": time.process_time()}


def _busy_seconds() -> float | None:
    """Of all processors and everybody on them, where the system tells it."""
    try:
        with open("/proc/stat", encoding="ascii") as stat:
            user, nice, system, _idle, _waiting, *interrupts = map(int, stat.readline().split()[1:8])
    except OSError:
        return None
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")
