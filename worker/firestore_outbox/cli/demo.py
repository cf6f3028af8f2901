"""The scripted run: messages over several accounts through a provider that misbehaves, watched to their end.

Everything is real but the provider: processes, sockets, events, tasks, webhooks.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import httpx
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from firestore_outbox.cli.output import console, show_json, show_table
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import upsert
from firestore_outbox.messages.enqueue import NewMessage
from firestore_outbox.settings import Settings
from firestore_outbox.web.serve import system_from_environment
from firestore_outbox.wiring import System

FAULTS = {
    "latencyMs": 15,
    "throttleRate": 0.01,
    "errorRate": 0.03,
    "lostResponseRate": 0.01,
    "receiptDelayMs": 50,
    "receiptDuplicateRate": 0.1,
    "receiptShuffle": True,
}
RECIPIENTS = 40
"""For each account."""
WRITERS = 20
GIVE_UP_SECONDS = 55.0
LOOK_SECONDS = 0.5
LOOK_AT = 100
"""Messages, in one request."""
ENDS = ("sent", "failed", "skipped", "cancelled")
SHOWN_ENDS = ("read", "failed", "skipped", "cancelled")


@dataclass(frozen=True, slots=True)
class Outcome:
    messages: int
    seconds: float
    statuses: Counter[str]
    shown: Counter[str]
    calls: list[dict[str, Any]]
    reads: float
    writes: float

    @property
    def duplicates(self) -> int:
        times = Counter[tuple[str, int]]()
        for call in self.calls:
            times[call["requestId"], call.get("part", 0)] += int(call.get("delivered", call["accepted"]))
        return sum(count - 1 for count in times.values() if count > 1)

    @property
    def lost(self) -> int:
        return self.messages - sum(self.statuses[status] for status in ENDS)

    def as_dict(self) -> dict[str, Any]:
        reached = {"delivered": self.shown["delivered"] + self.shown["read"], "read": self.shown["read"]}
        return {
            "messages": self.messages,
            "seconds": round(self.seconds, 1),
            "sent": self.statuses["sent"],
            **reached,
            "failed": self.statuses["failed"],
            "retries": len(self.calls) - len({(call["requestId"], call.get("part", 0)) for call in self.calls}),
            "duplicates": self.duplicates,
            "lost": self.lost,
            "readsPerMessage": round(self.reads / self.messages, 3),
            "writesPerMessage": round(self.writes / self.messages, 3),
        }


async def run_demo(*, messages: int, accounts: int, official: bool, as_json: bool) -> bool:
    """False: a message was lost or doubled, or not all of them came to an end in time."""
    from firestore_outbox.local.dev import DevSettings, DevStack

    settings = DevSettings(
        firestore_port=0,
        tasks_port=0,
        functions_port=0,
        worker_port=0,
        provider_port=0,
        official=official,
        sweep_seconds=5,
        environment={"OUTBOX_LOG_LEVEL": "WARNING", "OUTBOX_UNCERTAIN_SECONDS": "10"},
    )
    if not as_json:
        console.print("starting Firestore, Cloud Tasks, functions, a worker and a provider …")
    async with DevStack(settings) as stack:
        os.environ.update(stack.environment)  # the client library finds its emulator by this and by nothing else
        async with system_from_environment(Settings.from_environment(stack.environment)) as system:
            outcome = await _run(system, stack.provider_url, stack.worker_url, messages, accounts, as_json)
    summary = outcome.as_dict()
    if as_json:
        show_json(summary)
    else:
        show_table(list(summary), [list(summary.values())], "")
    good = outcome.lost == 0 and outcome.duplicates == 0
    if not as_json:
        console.print(
            "nothing was lost, and nothing was sent twice"
            if good
            else "a message was lost, doubled or unfinished: see the table"
        )
    return good


async def _run(
    system: System, provider_url: str, worker_url: str, messages: int, accounts: int, as_json: bool
) -> Outcome:
    async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
        (await http.put(f"{provider_url}/_sim/faults", json=FAULTS)).raise_for_status()
        await system.gateway.commit(
            [
                upsert(
                    paths.account(_account(n)),
                    {"provider": "simulated", "status": "active", "pace": {"perMinute": 0}, "concurrency": 20},
                )
                for n in range(accounts)
            ]
        )
        looks = _Shown(messages, accounts)
        started = time.monotonic()
        writing = asyncio.create_task(_write(system, messages, accounts))
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            disable=as_json or not console.is_terminal,
        ) as progress:
            bars = {name: progress.add_task(name, total=messages) for name in ("sent", "delivered", "read")}
            while True:
                statuses, shown = await _statuses(system.gateway), await looks.counts(system.gateway)
                ended = sum(statuses[status] for status in ENDS)
                reached = {"read": shown["read"], "delivered": shown["delivered"] + shown["read"]}
                reached["sent"] = statuses["sent"]
                for name, bar in bars.items():
                    progress.update(bar, completed=reached[name])
                if ended == messages and shown["read"] == statuses["sent"]:
                    break
                if time.monotonic() - started > GIVE_UP_SECONDS:
                    break
                await asyncio.sleep(LOOK_SECONDS)
        await writing
        seconds = time.monotonic() - started
        calls = (await http.get(f"{provider_url}/_sim/calls")).json()
        text = (await http.get(f"{worker_url}/metrics")).text
    return Outcome(messages, seconds, statuses, shown, calls, _metric(text, "read"), _metric(text, "write"))


async def _write(system: System, messages: int, accounts: int) -> None:
    """As clients would: many at once, each message its own batch."""
    numbers = iter(range(messages))

    async def client() -> None:
        for n in numbers:
            await system.enqueue(_message(n, accounts))

    await asyncio.gather(*(client() for _ in range(WRITERS)))


def _message(n: int, accounts: int) -> NewMessage:
    return NewMessage(
        request_id=f"demo-{n:08d}",
        account_id=_account(n % accounts),
        to=f"+4915{n // accounts % RECIPIENTS:08d}",
        parts=[{"type": "text", "text": f"hello, this is message {n}"}],
        created_by="demo",
    )


async def _statuses(gateway: Gateway) -> Counter[str]:
    async def count(status: str) -> int:
        return await gateway.count(Find(collection=paths.OUTBOX, where=(("status", "==", status),)))

    return Counter({status: await count(status) for status in ENDS})


class _Shown:
    """How far people see the messages. A count over all threads would need an index that nothing else uses, so the
    messages are read, oldest first, and a message is not read again once it cannot change."""

    def __init__(self, messages: int, accounts: int) -> None:
        wanted = (_message(n, accounts) for n in range(messages))
        self._open = [paths.message(one.thread_id, one.request_id) for one in wanted]
        self._ended = Counter[str]()

    async def counts(self, gateway: Gateway) -> Counter[str]:
        looked, still, seen = 0, list[str](), Counter[str]()
        while looked < len(self._open):
            page = self._open[looked : looked + LOOK_AT]
            looked += len(page)
            found = await gateway.get_all(page)
            shown = {path: str(found[path].data.get("status")) if path in found else "" for path in page}
            unended = [path for path in page if shown[path] not in SHOWN_ENDS]
            still += unended
            seen.update(shown[path] for path in unended)
            self._ended.update(shown[path] for path in page if shown[path] in SHOWN_ENDS)
            if len(unended) == len(page):  # those behind it are hardly further
                break
        self._open[:looked] = still
        return self._ended + seen


def _account(n: int) -> str:
    return f"shop-{n + 1}"


def _metric(text: str, kind: str) -> float:
    pattern = rf'^outbox_firestore_operations_total\{{[^}}]*kind="{kind}"[^}}]*\}} ([0-9.e+]+)$'
    found = re.search(pattern, text, re.MULTILINE)
    return float(found[1]) if found else float("nan")
