"""The client's batch under firestore.rules: our emulator beside Google's.

    python -m bench.rules [--small]

A message is one commit of three documents, each judged by its rules, which read the member document and look at what
the commit leaves behind. Decisions a second are documents judged; it fails when ours is behind.

Method. Both servers are processes of their own, loaded by one process over gRPC on one connection, by the same calls,
as a signed-in agent. Requests are serialized before the clock starts, every message has an id and a thread of its own,
and every answer must be a success. Rounds alternate between the servers, after one that is thrown away; figures are
medians of the rounds. `evaluationMs` is processor time: what judging one such batch takes inside our emulator.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
import zlib
from contextlib import ExitStack
from typing import Any

import httpx
from google.protobuf import json_format
from grpc import aio

from bench import report
from bench.report import say
from firestore_emulator.documents.protos import CommitRequest, Write
from firestore_emulator.documents.writes import check_write
from firestore_emulator.official import OfficialEmulator
from firestore_emulator.pytest_plugin import serving, unsigned_token
from firestore_emulator.rpc.service import Call
from firestore_emulator.rules.guard import Guard
from firestore_emulator.storage.engine import Engine
from firestore_outbox.local.product import RULES

PROJECT = "demo-rules"
ROOT = f"projects/{PROJECT}/databases/(default)/documents"
COMMIT = "/google.firestore.v1.Firestore/Commit"
AGENT = (("authorization", f"Bearer {unsigned_token({'sub': 'ann', 'user_id': 'ann'})}"),)
OWNER = (("authorization", "Bearer owner"),)
AT_ONCE = 16
DOCUMENTS = 3
"""In one batch."""


def _text(value: str) -> dict[str, Any]:
    return {"stringValue": value}


def _write(path: str, fields: dict[str, Any], *times: str, merged: bool = False) -> Any:
    write: dict[str, Any] = {"update": {"name": f"{ROOT}/{path}", "fields": fields}}
    write["updateTransforms"] = [{"fieldPath": name, "setToServerValue": "REQUEST_TIME"} for name in times]
    if merged:
        write["updateMask"] = {"fieldPaths": list(fields)}
    return json_format.ParseDict(write, Write())


def batch(request_id: str) -> list[Any]:
    """What client/outbox.js writes for a message to a new contact."""
    to = f"+49{zlib.crc32(request_id.encode()):010}"
    thread = f"shop__{to}"
    parts = {"arrayValue": {"values": [{"mapValue": {"fields": {"type": _text("text"), "text": _text("hello")}}}]}}
    ids = {name: _text(value) for name, value in (("requestId", request_id), ("accountId", "shop"), ("to", to))}
    ids |= {"threadId": _text(thread), "parts": parts, "status": _text("queued")}
    shown = {"accountId": _text("shop"), "to": _text(to), "lastMessageText": _text("hello")}
    entry = {**ids, "createdBy": _text("ann"), "attempts": {"integerValue": "0"}}
    return [
        _write(f"threads/{thread}", shown, "lastMessageAt", merged=True),
        _write(f"threads/{thread}/messages/{request_id}", {**ids, "direction": _text("outbound")}, "createdAt"),
        _write(f"outbox/{request_id}", entry, "createdAt", "nextAttemptAt"),
    ]


def _request(writes: list[Any]) -> bytes:
    data: bytes = CommitRequest(database=ROOT.removesuffix("/documents"), writes=writes).SerializeToString()
    return data


async def _prepare(address: str, channel: aio.Channel, source: str) -> None:
    member = [_write("accounts/shop", {}), _write("accounts/shop/members/ann", {"role": _text("agent")})]
    await channel.unary_unary(COMMIT)(_request(member), metadata=OWNER)
    body = {"rules": {"files": [{"name": "firestore.rules", "content": source}]}}
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        url = f"http://{address}/emulator/v1/projects/{PROJECT}:securityRules"
        (await http.put(url, json=body, headers={"content-type": "application/json"})).raise_for_status()


async def _round(channel: aio.Channel, name: str, batches: int) -> tuple[float, float]:
    """Decisions a second, and the median latency of a batch in milliseconds."""
    requests = [_request(batch(f"{name}-{number:06}")) for number in range(batches)]
    commit = channel.unary_unary(COMMIT)
    latencies: list[float] = []

    async def send() -> None:
        while requests:
            request = requests.pop()
            started = time.perf_counter()
            await commit(request, metadata=AGENT)
            latencies.append(time.perf_counter() - started)

    started = time.perf_counter()
    await asyncio.gather(*(send() for _ in range(AT_ONCE)))
    seconds = time.perf_counter() - started
    return batches * DOCUMENTS / seconds, statistics.median(latencies) * 1000


def evaluation_ms(source: str, batches: int) -> float:
    """Processor time of judging one batch, drafting and reading included."""
    engine = Engine()
    guard = Guard(engine)
    database = ROOT.removesuffix("/documents")
    member = _write("accounts/shop/members/ann", {"role": _text("agent")})
    engine.store(engine.draft([check_write(member, database)]))
    guard.load(source)
    writes = [check_write(write, database) for write in batch("bench-evaluation")]
    call = Call(metadata=dict(AGENT))

    def judge() -> None:
        enforcer = guard.enforcer(call, database)
        assert enforcer is not None
        enforcer.writes(writes, engine.now_micros())

    judge()
    rounds = []
    for _ in range(5):
        started = time.process_time()
        for _ in range(batches):
            judge()
        rounds.append((time.process_time() - started) / batches * 1000)
    engine.close()
    return min(rounds)


async def measure(source: str, *, rounds: int, batches: int) -> dict[str, Any]:
    figures: dict[str, list[tuple[float, float]]] = {"ours": [], "official": []}
    with ExitStack() as stack:
        addresses = {
            "ours": stack.enter_context(serving()),
            "official": stack.enter_context(OfficialEmulator.start(environ=_environment())).host,
        }
        channels = {name: aio.insecure_channel(address) for name, address in addresses.items()}
        for name, channel in channels.items():
            await _prepare(addresses[name], channel, source)
        for number in range(rounds + 1):
            for name, channel in channels.items():
                figure = await _round(channel, f"{name}-{number}", batches)
                if number:
                    figures[name].append(figure)
        for channel in channels.values():
            await channel.close()
    result: dict[str, Any] = {
        name: {
            "decisionsPerSecond": round(statistics.median(one[0] for one in found)),
            "batchMs": round(statistics.median(one[1] for one in found), 2),
        }
        for name, found in figures.items()
    }
    ratios = [ours[0] / theirs[0] for ours, theirs in zip(figures["ours"], figures["official"], strict=True)]
    return result | {"ratio": round(statistics.median(ratios), 2)}


def _environment() -> dict[str, str]:
    """Without a host: a Firestore that runs already might be ours."""
    return {name: value for name, value in os.environ.items() if name != "FIRESTORE_EMULATOR_HOST"}


def main() -> int:
    options = report.arguments("The client's batch under firestore.rules, on both emulators.").parse_args()
    assert RULES is not None, "this measures the repository's own rules"
    source = RULES.read_text(encoding="utf-8")
    rounds, batches = (1, 20) if options.small else (7, 400)
    figures = asyncio.run(measure(source, rounds=rounds, batches=batches))
    figures["evaluationMs"] = round(evaluation_ms(source, 20 if options.small else 200), 3)
    report.keep(report.heading("the client's batch under firestore.rules", __doc__) | figures, "rules", options)
    print(json.dumps(figures, indent=2))
    if figures["ratio"] < 1:
        say("behind Google's emulator: decisions a second")
    return 1 if figures["ratio"] < 1 and not options.small else 0


if __name__ == "__main__":
    sys.exit(main())
