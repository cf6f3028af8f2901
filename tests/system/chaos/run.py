"""One run: clients write, faults happen, quiet returns, and the judge looks at what is left."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from google.cloud.firestore import AsyncClient

from tests.system.chaos.clients import ACCOUNTS, Clients
from tests.system.chaos.evidence import at_rest, gathered
from tests.system.chaos.judge import Evidence, breaches
from tests.system.chaos.plan import plan
from tests.system.chaos.stack import LINKS, ChaosStack
from tests.system.chaos.tempo import tempo_of
from tests.system.chaos.trouble import Done, Trouble

PROVIDER_FAULTS = {
    "latencyMs": 20,
    "latencyJitterMs": 60,
    "throttleRate": 0.005,
    "throttleScope": "recipient",
    "errorRate": 0.02,
    "acceptedErrorRate": 0.005,
    "lostResponseRate": 0.01,
    "hangRate": 0.002,
    "receiptDelayMs": 300,
    "receiptDuplicateRate": 0.1,
    "receiptShuffle": True,
}
"""It loses answers and doubles receipts, but each receipt comes in the end: what is in doubt then cannot be known."""
CONCURRENCY = 4
PROGRESS_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    seed: int
    minutes: float
    """Of faults. Starting before them and coming to rest after them take their own time."""
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    options: Options
    done: Done
    evidence: Evidence
    breaches: tuple[str, ...]
    at_rest_seconds: float
    """From the last fault until nothing was left to do."""


async def run(options: Options, directory: Path, say: Callable[[str], None]) -> Outcome:
    seconds, tempo = options.minutes * 60, tempo_of(options.minutes)
    faults = plan(options.seed, seconds, tempo, LINKS)
    say(f"seed {options.seed}: {len(faults)} faults in {seconds:g} s, leases of {tempo.lease_seconds:g} s")
    async with ChaosStack(directory, tempo) as stack, stack.client("us") as ours:
        await _make_accounts(ours)
        await stack.order_faults(PROVIDER_FAULTS)
        async with stack.client("clients") as theirs:
            clients, trouble = Clients(theirs, ACCOUNTS, Random(options.seed)), Trouble(stack, say)
            progress = asyncio.create_task(_progress(stack, clients, say))
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(clients.write(options.messages, seconds))
                    both.create_task(trouble.make(faults))
            finally:
                progress.cancel()
        say("all faults are over")
        quiet = time.monotonic()
        rested = await at_rest(stack, ours, say)
        took = time.monotonic() - quiet
        evidence = await gathered(stack, ours, clients.written)
    found = [] if rested else [f"lost: it did not come to rest within {tempo.patience_seconds:g} s"]
    found += [f"died: {part} ended by itself; its log is in {directory}" for part in trouble.done.died]
    found += breaches(evidence)
    if len(clients.written) != options.messages:
        found.append(f"counts: {options.messages} were to be written, and {len(clients.written)} were")
    return Outcome(options=options, done=trouble.done, evidence=evidence, breaches=tuple(found), at_rest_seconds=took)


async def _progress(stack: ChaosStack, clients: Clients, say: Callable[[str], None]) -> None:
    while True:
        await asyncio.sleep(PROGRESS_SECONDS)
        calls = stack.record.read_bytes().count(b"\n") if stack.record.exists() else 0
        say(f"{len(clients.written)} messages were written, and the provider was called {calls} times")


async def _make_accounts(client: AsyncClient) -> None:
    for account in ACCOUNTS:
        await client.document(f"accounts/{account.account_id}").set(
            {
                "provider": account.provider,
                "status": "active",
                "pace": {"perMinute": 0},
                "concurrency": CONCURRENCY,
                "onUncertain": "hold",
            }
        )
