"""What sealing costs: processor time, bytes, and calls to Cloud KMS, beside the same messages in clear.

    python -m bench.sealing [--small]

It fails when one account asks Cloud KMS more often than once for each process and five minutes.

Method. Steps: processor time of sealing a text, which a backend in Python does, and of opening it with the key at hand,
which the worker does; the median of rounds. Bytes: the outbox document of a new message, as Firestore counts it. The
product: all of it on virtual time in one process, with Firestore, two workers, the functions and the provider, 400
messages of one account at once, in clear and sealed in alternating rounds; processor time is the median of the rounds
and includes the sealing. Calls to Cloud KMS are counted at the stand-in, from the first message on, in three
loads: all at once from one account, 40 a minute from one account for an hour, and one from each of many accounts.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx
from starlette.applications import Starlette

from bench.report import arguments, heading, keep, say
from bench.virtual import NO_RECEIPTS, Counted, in_virtual_time
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.size import document_size
from firestore_outbox.firestore.values import to_proto
from firestore_outbox.firestore.writes import SERVER_TIME
from firestore_outbox.local.kms import KmsStandIn
from firestore_outbox.local.provider_urls import LOCAL_KMS_KEY
from firestore_outbox.messages.enqueue import NewMessage, batch
from firestore_outbox.sealing.envelope import (
    checked_envelope,
    new_private_key,
    opened,
    private_key_of,
    public_key_of,
    seal_parts,
)
from firestore_outbox.sealing.kms import Kms
from firestore_outbox.sealing.service import FRESH

LENGTHS = (40, 400, 4_000)
"""Characters of a text; messages of the product have the second."""
ROUNDS, PER_ROUND = 9, 200
PRODUCT_ROUNDS, AT_ONCE = 5, 400
PER_MINUTE, MINUTES = 40, 60
MANY = 200
ACCOUNT, TO = "shop", "+491700000000"
MILLION = 1_000_000


class CountedKms(Kms):
    """The real client of Cloud KMS, on the stand-in, without a socket."""

    def __init__(self) -> None:
        self.stand_in = KmsStandIn(None)
        super().__init__("kms", transport=httpx.ASGITransport(Starlette(routes=self.stand_in.routes())))


def parts_of(length: int) -> list[dict[str, str]]:
    return [{"type": "text", "text": "x" * length}]


# --- the steps


def cpu_microseconds(work: Callable[[], Any], rounds: int) -> float:
    """Of one call, the median of the rounds."""
    spent = []
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(PER_ROUND):
            work()
        spent.append((time.process_time() - start) / PER_ROUND)
    return statistics.median(spent) * MILLION


def steps(length: int, rounds: int) -> dict[str, Any]:
    raw = new_private_key()
    key, private = {"keyVersion": 1, "publicKey": public_key_of(raw)}, private_key_of(raw)

    def seal() -> Any:
        return seal_parts(parts_of(length), account_id=ACCOUNT, request_id="request-1", key=key)

    (sealed,) = seal()

    def open_() -> Any:
        envelope = checked_envelope(sealed["ciphertext"], ACCOUNT, "request-1")
        return opened(envelope, private, account_id=ACCOUNT, request_id="request-1", version=1, index=0)

    assert open_() == parts_of(length)[0]
    return {
        "characters": length,
        "sealMicroseconds": round(cpu_microseconds(seal, rounds), 1),
        "openMicroseconds": round(cpu_microseconds(open_, rounds), 1),
        "bytesInClear": _bytes_of(parts_of(length)),
        "bytesSealed": _bytes_of([sealed]),
    }


def _bytes_of(parts: list[dict[str, Any]]) -> int:
    """The outbox document of a new message with these parts."""
    new = NewMessage(request_id="request-1", account_id=ACCOUNT, to=TO, parts=parts, created_by="bench")
    write = batch(new)[-1]
    now = datetime.now(UTC)
    fields = {name: now if value is SERVER_TIME else value for name, value in write.fields.items()}
    return document_size(paths.outbox("request-1"), to_proto(fields).map_value.fields)


# --- the product


@dataclass(frozen=True, slots=True)
class Seen:
    cpu_seconds: float
    kms_calls: int
    reads: int
    writes: int
    sent: int


Load = Callable[[Counted, bool], Awaitable[int]]
"""Sends, and returns how many. True: sealed."""


async def _send(world: Counted, number: int, account_id: str, key: Any) -> None:
    request_id, parts = f"{account_id}-request-{number:06d}", parts_of(LENGTHS[1])
    if key is not None:
        parts = seal_parts(parts, account_id=account_id, request_id=request_id, key=key)
    new = NewMessage(
        request_id=request_id, account_id=account_id, to=f"+49170{number:07d}", parts=parts, created_by="bench"
    )
    await world.client.system.gateway.commit(batch(new))


async def _key(world: Counted, account_id: str, is_sealed: bool) -> Any:
    await world.account(account_id, concurrency=50)
    if not is_sealed:
        return None
    sealing = world.client.system.sealing
    assert sealing is not None
    stored = await sealing.keys.create(account_id, LOCAL_KMS_KEY)
    return {"keyVersion": stored.version, "publicKey": stored.public_key}


def measured(prepare: Callable[[Counted, bool], Awaitable[Callable[[], Awaitable[int]]]], is_sealed: bool) -> Seen:
    kms = CountedKms()

    async def body(world: Counted) -> Seen:
        world.provider.faults = NO_RECEIPTS
        send = await prepare(world, is_sealed)
        calls = kms.stand_in.calls
        world.reset()
        start = time.process_time()
        count = await send()
        await world.until(lambda: world.sent() == count)
        spent = time.process_time() - start
        return Seen(spent, kms.stand_in.calls - calls, world.reads, world.writes, count)

    return in_virtual_time(body, release=kms)


def at_once(count: int) -> Any:
    async def prepare(world: Counted, is_sealed: bool) -> Callable[[], Awaitable[int]]:
        key = await _key(world, ACCOUNT, is_sealed)

        async def send() -> int:
            await asyncio.gather(*(_send(world, number, ACCOUNT, key) for number in range(count)))
            return count

        return send

    return prepare


def at_a_pace(minutes: int) -> Any:
    async def prepare(world: Counted, is_sealed: bool) -> Callable[[], Awaitable[int]]:
        key = await _key(world, ACCOUNT, is_sealed)

        async def send() -> int:
            for number in range(PER_MINUTE * minutes):
                await _send(world, number, ACCOUNT, key)
                await asyncio.sleep(60 / PER_MINUTE)
            return PER_MINUTE * minutes

        return send

    return prepare


def one_each(accounts: int) -> Any:
    async def prepare(world: Counted, is_sealed: bool) -> Callable[[], Awaitable[int]]:
        names = [f"shop-{number}" for number in range(accounts)]
        keys = {name: await _key(world, name, is_sealed) for name in names}

        async def send() -> int:
            await asyncio.gather(*(_send(world, 0, name, keys[name]) for name in names))
            return accounts

        return send

    return prepare


def kms_row(name: str, load: Any) -> dict[str, Any]:
    seen = measured(load, True)
    say(f"{name}: {seen.kms_calls} calls to Cloud KMS for {seen.sent} messages")
    return {
        "load": name,
        "messages": seen.sent,
        "kmsCalls": seen.kms_calls,
        "kmsCallsAMessage": round(seen.kms_calls / seen.sent, 4),
        "kmsCallsAMillion": round(seen.kms_calls / seen.sent * MILLION),
    }


def product(rounds: int, count: int) -> dict[str, Any]:
    spent: dict[bool, list[Seen]] = {False: [], True: []}
    for number in range(1, rounds + 1):
        for is_sealed in (False, True):
            seen = measured(at_once(count), is_sealed)
            spent[is_sealed].append(seen)
            say(
                f"round {number}: {'sealed' if is_sealed else 'in clear'}: {seen.cpu_seconds / count * 1e3:.2f} ms each"
            )
    clear, sealed = (statistics.median(one.cpu_seconds for one in spent[which]) for which in (False, True))
    return {
        "messages": count,
        "cpuMillisecondsInClear": round(clear / count * 1e3, 3),
        "cpuMillisecondsSealed": round(sealed / count * 1e3, 3),
        "ratio": round(sealed / clear, 3),
        "readsInClear": spent[False][0].reads,
        "readsSealed": spent[True][0].reads,
        "writesInClear": spent[False][0].writes,
        "writesSealed": spent[True][0].writes,
    }


def main() -> int:
    options = arguments("What sealing costs, beside the same messages in clear.").parse_args()
    rounds, product_rounds, count = (1, 1, 20) if options.small else (ROUNDS, PRODUCT_ROUNDS, AT_ONCE)
    minutes, many = (2, 5) if options.small else (MINUTES, MANY)
    measured_steps = [steps(length, rounds) for length in LENGTHS]
    whole = product(product_rounds, count)
    kms = [
        kms_row(f"{count} at once, one account", at_once(count)),
        kms_row(f"{PER_MINUTE} a minute for {minutes} minutes, one account", at_a_pace(minutes)),
        kms_row(f"one from each of {many} accounts", one_each(many)),
    ]
    result = heading("what sealing costs, beside the same messages in clear", __doc__) | {
        "steps": measured_steps,
        "product": whole,
        "kms": kms,
        "keyMinutes": FRESH.total_seconds() / 60,
    }
    keep(result, "sealing", options)
    processes = 3  # two workers, one instance of the functions
    windows = -(-minutes * 60 // FRESH.total_seconds()) + 1
    if kms[0]["kmsCalls"] > processes or kms[1]["kmsCalls"] > processes * windows:
        say("an account asks Cloud KMS more often than once for each process and five minutes")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
