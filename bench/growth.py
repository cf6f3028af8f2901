"""Whether a message costs the same with a thousand queued documents and with a million.

    python -m bench.growth [--sizes 1000 10000 100000 1000000] [--small]

It fails when a message costs 10 % more reads or writes at one size than at another.

Method. Our Firestore emulator in a process of its own, with a data directory and the product's indexes. One account's
backlog grows from size to size; at each a new process, with the worker's code as production has it, sends 2,000
messages of it (50 at a time, a provider of 5 ms) and stops. Each message is handed to the provider once, which is
checked. Of the backlog only what is sent has its message document too. Reads and writes are counted in the client's
channel as Firestore bills them. A page is one query for 100 queued documents, a claim one commit that takes some of
them; their times are medians. The worker's memory is the most that its process ever held, the interpreter and all
libraries included; the server's is what it holds after the drain.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import resource
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

from google.cloud.firestore_v1 import types
from grpc import aio

from bench import places
from bench.counted import Count
from bench.drains import ACCOUNT, ProviderCalls, account, our_worker, request_id_of
from bench.places import Place
from bench.report import arguments, heading, keep, say
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.firestore.writes import create
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.local.product import INDEXES
from firestore_outbox.messages.store import MessageStore

SIZES = (1_000, 10_000, 100_000, 1_000_000)
SENT_AT_EACH = 2_000
PROJECT = "bench-growth"
DATABASE = f"projects/{PROJECT}/databases/(default)"
PROVIDER_SECONDS = 0.005
MOST_DIFFERENCE = 0.10
LOAD_AT_A_TIME, COMMITS_IN_FLIGHT = 500, 4
OLDEST = datetime(2026, 1, 1, tzinfo=UTC)
_CommitRequest: Any = types.CommitRequest.pb()
_Document: Any = types.Document.pb()


# --- the backlog


def _outbox_document(number: int) -> Any:
    """As a client writes it; each is due a millisecond after the one before."""
    request_id, to = request_id_of(number), f"+4917{number:08}"
    message = _Document(name=f"{DATABASE}/documents/{paths.outbox(request_id)}")
    fields, at = message.fields, OLDEST + timedelta(milliseconds=number)
    named = {
        "requestId": request_id,
        "accountId": ACCOUNT,
        "threadId": f"{ACCOUNT}__{to}",
        "to": to,
        "status": "queued",
        "createdBy": "bench",
    }
    for name, text in named.items():
        fields[name].string_value = text
    for name in ("createdAt", "nextAttemptAt"):
        fields[name].timestamp_value.FromDatetime(at)
    fields["attempts"].integer_value = 0
    part = fields["parts"].array_value.values.add().map_value.fields
    part["type"].string_value, part["text"].string_value = "text", "Your parcel is on its way. " * 4
    return message


async def load(channel: aio.Channel, first: int, end: int) -> None:
    commit = channel.unary_unary(
        "/google.firestore.v1.Firestore/Commit", request_serializer=_CommitRequest.SerializeToString
    )
    starts = iter(range(first, end, LOAD_AT_A_TIME))
    began = told = time.perf_counter()

    async def some() -> None:
        nonlocal told
        for start in starts:
            request = _CommitRequest(database=DATABASE)
            for number in range(start, min(start + LOAD_AT_A_TIME, end)):
                request.writes.add().update.CopyFrom(_outbox_document(number))
            await commit(request, metadata=(("authorization", "Bearer owner"),))
            if (now := time.perf_counter()) - told > 10:
                told = now
                say(f"  {start - first:,} of {end - first:,} written, {(start - first) / (now - began):,.0f} a second")

    await asyncio.gather(*(some() for _ in range(COMMITS_IN_FLIGHT)))


async def load_messages(gateway: Gateway, first: int, end: int) -> None:
    """What people see of those that will be sent."""
    for start in range(first, end, 100):
        writes = []
        for number in range(start, min(start + 100, end)):
            request_id, thread_id = request_id_of(number), f"{ACCOUNT}__+4917{number:08}"
            fields = {"requestId": request_id, "accountId": ACCOUNT, "threadId": thread_id, "status": "queued"}
            writes.append(create(paths.message(thread_id, request_id), fields))
        await gateway.commit(writes)


# --- one drain, in a process of its own


async def drain_some(place: Place, most: int) -> dict[str, Any]:
    count, calls = Count(), ProviderCalls(PROVIDER_SECONDS)
    stopping: list[asyncio.Task[None]] = []

    async def send(request_id: str) -> str:
        if len(calls.of) + 1 == most:
            stopping.append(asyncio.create_task(system.engine.stop()))
        return await calls.send(request_id)

    system = our_worker(place.client(PROJECT, count), place.queries(count), send)
    pages: list[float] = []
    claims: list[float] = []
    with (
        patch.object(MessageStore, "due", _timed(MessageStore.due, pages)),
        patch.object(MessageStore, "claim", _timed(MessageStore.claim, claims)),
    ):
        await system.waker.wake(outbox_lane(ACCOUNT))
        began = time.perf_counter()
        await system.engine.run(outbox_lane(ACCOUNT))
        seconds = time.perf_counter() - began
    await asyncio.gather(*stopping)
    await system.providers.close()
    sent = len(calls.of)
    calls.check(sent)
    return {
        "sent": sent,
        "perSecond": round(sent / seconds, 1),
        "reads": round(count.reads / sent, 3),
        "writes": round(count.writes / sent, 3),
        "pageMs": round(statistics.median(pages) * 1000, 2),
        "claimMs": round(statistics.median(claims) * 1000, 2),
        "messagesAClaim": round(sent / len(claims), 1),
        "workerMemoryMB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000, 1),
    }


def _timed(method: Callable[..., Awaitable[Any]], into: list[float]) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(method)
    async def timed(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        answer = await method(*args, **kwargs)
        into.append(time.perf_counter() - began)
        return answer

    return timed


async def one(address: str, most: int) -> None:
    async with places.open_channel(address) as channel:
        print(json.dumps(await drain_some(Place("ours", channel, address, lambda: None), most)))


# --- all sizes


async def measure(sizes: list[int], most: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    written = drained = shown = 0
    async with places.ours(durable=True, indexes=INDEXES) as place:
        gateway = Gateway(place.client(PROJECT, Count()))
        await gateway.commit([account()])
        for size in sorted(sizes):
            say(f"{size:,} queued")
            await load(place.channel, written, size + drained)
            written = size + drained
            # A drain sends a few more than it wants to: what was claimed already goes out.
            wanted = min(written, drained + most + 100)
            await load_messages(gateway, shown, wanted)
            shown = max(shown, wanted)
            row = await _drain_in_a_process(place.address, most)
            drained += row["sent"]
            memory = place.memory_mb()
            rows.append({"queued": size, **row, "serverMemoryMB": None if memory is None else round(memory)})
            say(f"  {rows[-1]}")
    return rows


async def _drain_in_a_process(address: str, most: int) -> dict[str, Any]:
    command = ["-m", "bench.growth", "--address", address, "--most", str(most)]
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    if process.returncode:
        raise SystemExit(process.returncode)
    row: dict[str, Any] = json.loads(output.splitlines()[-1])
    return row


def faults(rows: list[dict[str, Any]]) -> Iterator[str]:
    for what in ("reads", "writes"):
        costs = [row[what] for row in rows]
        if max(costs) > min(costs) * (1 + MOST_DIFFERENCE):
            yield f"{what} a message are not flat: {costs}"


def main() -> int:
    parser = arguments("A message's cost as the backlog grows to a million.")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="N", help="queued documents")
    parser.add_argument("--address", help=argparse.SUPPRESS)
    parser.add_argument("--most", type=int, default=SENT_AT_EACH, help="how many are sent at each size")
    options = parser.parse_args()
    if options.address:
        asyncio.run(one(options.address, options.most))
        return 0
    rows = asyncio.run(measure([300], 200) if options.small else measure(options.sizes, options.most))
    result = {
        **heading(f"{options.most:,} messages sent out of a backlog that grows", __doc__),
        "rows": rows,
        "faults": list(faults(rows)),
    }
    keep(result, "growth", options)
    for row in rows:
        print(", ".join(f"{name} {value:,}" for name, value in row.items()))
    for fault in result["faults"]:
        print(f"not good: {fault}", file=sys.stderr)
    return 1 if result["faults"] and not options.small else 0


if __name__ == "__main__":
    sys.exit(main())
