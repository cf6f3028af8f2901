"""The client's batch under firestore.rules: our emulator beside Google's.

    python -m bench.rules [--small]

A message is one commit of three documents. The rules judge each of them: they read the member document and look at the
documents that the commit leaves behind. A decision is one document judged. The command fails if our emulator makes
fewer decisions a second than Google's, or if judging one batch takes a millisecond of processor time.

Method. Each server is a process of its own. One client process sends the same calls to both over gRPC, on one
connection each, as a signed-in agent. Requests are serialized before the clock starts, each message has its own id and
thread, and each answer must be a success. Rounds alternate between the servers after one warm-up round; figures are
medians of the rounds. `evaluationMs` is the processor time that judging one such batch takes inside our emulator, with
drafting the writes and reading the member document: the fastest of many short rounds, because other processes on the
machine slow the rest.
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
from dataclasses import dataclass
from typing import Any

import httpx
from google.protobuf import json_format
from grpc import aio

from bench import report
from bench.report import say
from firestore_emulator.documents.protos import CommitRequest, Write
from firestore_emulator.documents.writes import check_write
from firestore_emulator.official import EmulatorMissing, OfficialEmulator
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
BATCHES_A_ROUND = 20
"""Of `evaluation_ms`: some 10 ms, which other processes often leave alone."""
MOST_EVALUATION_MS = 1.0
"""Processor time for one batch; a longer evaluation fails the measurement."""


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


@dataclass(frozen=True, kw_only=True)
class Round:
    decisions_per_second: float
    median_ms: float
    """From sending a batch to its answer, with AT_ONCE batches under way; so is the next."""
    p99_ms: float


async def _round(channel: aio.Channel, name: str, batches: int) -> Round:
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
    latencies.sort()
    return Round(
        decisions_per_second=batches * DOCUMENTS / seconds,
        median_ms=statistics.median(latencies) * 1000,
        p99_ms=latencies[int(len(latencies) * 0.99)] * 1000,
    )


def evaluation_ms(source: str, rounds: int) -> float:
    """Processor time of judging one batch, with drafting its writes and reading the member document."""
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
    measured = []
    for _ in range(rounds):
        started = time.process_time()
        for _ in range(BATCHES_A_ROUND):
            judge()
        measured.append((time.process_time() - started) / BATCHES_A_ROUND * 1000)
    engine.close()
    return min(measured)


async def measure(source: str, *, rounds: int, batches: int, is_small: bool) -> dict[str, Any]:
    """The figures of each server. A small run, and one without Google's emulator, measures ours alone."""
    figures: dict[str, list[Round]] = {}
    missing = "not asked for" if is_small else None
    with ExitStack() as stack:
        addresses = {"ours": stack.enter_context(serving())}
        try:
            if not is_small:
                google = stack.enter_context(OfficialEmulator.start(environ=_environment()))
                addresses["googlesEmulator"] = google.host
        except EmulatorMissing as error:
            missing = str(error)
            say(f"Google's emulator was not measured: {missing}")
        channels = {name: aio.insecure_channel(address) for name, address in addresses.items()}
        for name, channel in channels.items():
            await _prepare(addresses[name], channel, source)
        for number in range(rounds + 1):
            for name, channel in channels.items():
                figure = await _round(channel, f"{name}-{number}", batches)
                if number:
                    figures.setdefault(name, []).append(figure)
        for channel in channels.values():
            await channel.close()
    result: dict[str, Any] = {name: _medians(found) for name, found in figures.items()}
    if missing is not None:
        return result | {"googlesEmulator": {"notMeasured": missing}}
    ratios = [
        ours.decisions_per_second / theirs.decisions_per_second
        for ours, theirs in zip(figures["ours"], figures["googlesEmulator"], strict=True)
    ]
    return result | {"ratio": round(statistics.median(ratios), 2)}


def _medians(rounds: list[Round]) -> dict[str, float]:
    return {
        "decisionsPerSecond": round(statistics.median(one.decisions_per_second for one in rounds)),
        "batchMs": round(statistics.median(one.median_ms for one in rounds), 2),
        "batchP99Ms": round(statistics.median(one.p99_ms for one in rounds), 2),
    }


def _environment() -> dict[str, str]:
    """The environment without the host of a Firestore that runs already: that one might be ours."""
    return {name: value for name, value in os.environ.items() if name != "FIRESTORE_EMULATOR_HOST"}


def main() -> int:
    options = report.arguments("The client's batch under firestore.rules, on both emulators.").parse_args()
    assert RULES is not None, "this measures the repository's own rules"
    source = RULES.read_text(encoding="utf-8")
    rounds, batches = (1, 20) if options.small else (7, 400)
    figures = asyncio.run(measure(source, rounds=rounds, batches=batches, is_small=options.small))
    figures["evaluationMs"] = round(evaluation_ms(source, 5 if options.small else 150), 3)
    report.keep(report.heading("the client's batch under firestore.rules", __doc__) | figures, "rules", options)
    print(json.dumps(figures, indent=2))
    if options.small:
        return 0
    faults = []
    if figures.get("ratio", 1) < 1:
        faults.append("our emulator makes fewer decisions a second than Google's")
    if figures["evaluationMs"] >= MOST_EVALUATION_MS:
        faults.append(f"judging one batch takes {figures['evaluationMs']} ms of processor time")
    for fault in faults:
        say(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
