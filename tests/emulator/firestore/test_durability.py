"""What was acknowledged is there, whatever happens to the process; what was not is there as a whole or not at all.

OUTBOX_CRASH_ROUNDS sets how often the server is killed (4 when it is not set).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from grpc import aio

from firestore_emulator.database import DatabaseUnusable
from firestore_emulator.documents.names import Location, location_of
from firestore_emulator.emulator import DATABASE_FILE, FirestoreEmulator
from firestore_emulator.queries.structured_query import parse_query
from firestore_emulator.storage.engine import Engine
from tests.conformance.backends import Backend, Place
from tests.conformance.wire import REQUESTS, Proto, Stamp, fields_of, query, stamp
from tests.emulator.firestore.crash import QUERIES, Client, State, Tally
from tests.emulator.firestore.receiver import Event, receiving
from tests.emulator.firestore.support import by_scanning, everything, parsed, paths, put
from tests.emulator.firestore.test_events import definition
from tests.emulator.process import emulator_process
from tests.patience import PATIENCE_SECONDS

ROUNDS = int(os.environ.get("OUTBOX_CRASH_ROUNDS", "4"))
CLIENTS = 4
PROJECT = "crash"


@asynccontextmanager
async def connected(address: str) -> AsyncIterator[Backend]:
    # A pool of its own: a connection that died with an earlier server must not be found again.
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
    async with aio.insecure_channel(address, options) as channel:
        yield Backend(Place("grpc", channel, address), project=PROJECT)


# --- kill -9 at random moments


@pytest.mark.timeout(600 + ROUNDS * 30)
async def test_every_acknowledged_write_is_there_however_often_the_server_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = Random(20300101)
    tally = Tally()
    clients = [Client(number, Random(rng.random()), tally) for number in range(CLIENTS)]
    for _ in range(ROUNDS):
        async with emulator_process("--data", str(tmp_path)) as server, connected(server.firestore) as backend:
            await check(backend, clients, tally)
            before = tally.acknowledged
            async with connected_clients(server.firestore) as backends:
                working = [asyncio.create_task(client.work(one)) for client, one in zip(clients, backends, strict=True)]
                await until_acknowledged(tally, before + rng.randrange(1, 150))
                await server.kill()
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await asyncio.gather(*working)
            assert tally.acknowledged > before
    async with emulator_process("--data", str(tmp_path)) as server, connected(server.firestore) as backend:
        await check(backend, clients, tally)
    check_file(tmp_path / DATABASE_FILE)
    with capsys.disabled():
        print(
            f"\n  killed {ROUNDS} times: {tally.acknowledged} commits acknowledged and found again, "
            f"{tally.in_doubt} in doubt, {tally.conflicts} conflicts, {tally.queries} queries"
        )


@asynccontextmanager
async def connected_clients(address: str) -> AsyncIterator[list[Backend]]:
    async with connected(address) as a, connected(address) as b, connected(address) as c, connected(address) as d:
        yield [a, b, c, d]


async def until_acknowledged(tally: Tally, count: int) -> None:
    """The moment depends on progress and not on a clock: the same on a slow machine."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while tally.acknowledged < count:
            tally.progress.clear()
            await tally.progress.wait()


async def check(backend: Backend, clients: list[Client], tally: Tally) -> None:
    documents = await by_name(backend, {path for client in clients for path in known_paths(client)})
    stored: dict[str, State] = {path: fields_of(document) for path, document in documents.items()}
    for client in clients:
        client.settle(stored)
    await check_counters(backend, clients)
    await check_indexes(backend, documents)
    await check_times(backend, documents, tally)


def known_paths(client: Client) -> set[str]:
    return client.acknowledged.keys() | client.under_way.keys() | client.added


async def by_name(backend: Backend, wanted: Iterable[str]) -> dict[str, Proto]:
    """Read by their names, which goes through no index."""
    request = REQUESTS["BatchGetDocuments"](database=backend.database)
    request.documents.extend(backend.name(path) for path in sorted(wanted))
    answers = await backend.call("BatchGetDocuments", request)
    return {backend.path(answer.found.name): answer.found for answer in answers if answer.HasField("found")}


async def check_counters(backend: Backend, clients: list[Client]) -> None:
    """Each counter was raised in the commit that made the ledger entry, so the two agree, whatever was in doubt."""
    for ledger in ("counted", "swapped"):
        entries = set(await backend.paths(query(ledger)))
        acknowledged = {entry for client in clients for entry in client.added if entry.startswith(ledger)}
        assert acknowledged <= entries
        counter = await by_name(backend, [f"shared/{ledger}"])
        count = counter[f"shared/{ledger}"].fields["n"].integer_value if counter else 0
        assert count == len(entries)
        for client in clients:
            client.added |= {entry for entry in entries if entry.startswith(f"{ledger}/{client.number}-")}


async def check_indexes(backend: Backend, documents: dict[str, Proto]) -> None:
    located = {location_of(document): document for document in documents.values()}
    for label, structured in QUERIES.items():
        expected = by_scanning(located, parse_query(Location(backend.database, ()), structured))
        assert await backend.paths(structured) == [backend.path(one.name) for one in expected], label


async def check_times(backend: Backend, documents: dict[str, Proto], tally: Tally) -> None:
    """A commit after the crash is later than everything before it."""
    newest = max((stamp(document.update_time) for document in documents.values()), default=Stamp(0))
    answer = await backend.commit(REQUESTS["Commit"](writes=[{"delete": backend.name("other/never")}]).writes[0])
    assert stamp(answer.commit_time) > max(newest, tally.latest)
    tally.latest = stamp(answer.commit_time)


def check_file(path: Path) -> None:
    """The file by itself: sound, and no index entry too many or too few."""
    engine = Engine(path)
    assert engine.storage.database.rows("PRAGMA integrity_check") == [("ok",)]
    stored = everything(engine)
    for shape, number in engine.storage.entries._shapes.items():
        kept = {key for (key,) in engine.storage.database.rows("SELECT key FROM entries WHERE shape=?", (number,))}
        wanted = [
            key for location, one in stored.items() if holds(shape, location) for key in shape.entries(location, one)
        ]
        assert kept == set(wanted)
    engine.close()


def holds(shape: Any, location: Any) -> bool:
    return shape.collection_id in (None, location.collection_id)


# --- events and triggers


async def test_an_event_that_was_not_taken_when_the_server_was_killed_is_sent_again(tmp_path: Path) -> None:
    async with receiving() as receiver:
        options = ("--data", str(tmp_path), "--functions", receiver.address)
        never = asyncio.Event()

        async def hang(event: Event) -> int:
            await never.wait()
            return 204

        receiver.answer = hang
        async with emulator_process(*options) as server, connected(server.firestore) as backend:
            async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as client:
                url = f"http://{server.firestore}/emulator/v1/projects/{PROJECT}/eventarcTrigger?eventarcTriggerId=t"
                answer = await client.post(url, json=definition("created", "outbox/{id}"))
            assert answer.status_code == 200
            await backend.seed({"outbox/1": {"n": 1}, "outbox/2": {"n": 2}, "other/1": {}})
            await receiver.until(lambda events: len(events) == 2)
            await server.kill()
        first = {event.document: event.headers["ce-id"] for event in receiver.events}
        receiver.events.clear()
        receiver.answer = taken
        async with emulator_process(*options) as server, connected(server.firestore) as backend:
            await receiver.until(lambda events: len(events) == 2)
            assert {event.document: event.headers["ce-id"] for event in receiver.events} == first
            await backend.seed({"outbox/3": {"n": 3}})
            await receiver.until(lambda events: len(events) == 3)
            assert receiver.events[-1].value == {"n": 3}, "the trigger itself was kept"


async def taken(event: Event) -> int:
    return 200


# --- without a crash


async def test_a_clean_stop_keeps_documents_times_and_indexes(tmp_path: Path) -> None:
    async def one_life() -> list[bytes]:
        async with emulator_process("--data", str(tmp_path)) as server, connected(server.firestore) as backend:
            if not await backend.exists("c/0"):
                await backend.seed({f"c/{number}": {"n": number % 7} for number in range(50)})
            documents = await backend.documents(query("c", order=["-n"], limit=30))
            assert await server.terminate() == 0
        return [document.SerializeToString(deterministic=True) for document in documents]

    first = await one_life()
    assert len(first) == 30
    assert await one_life() == first


def test_without_a_directory_nothing_is_kept_and_nothing_is_written(tmp_path: Path) -> None:
    engine = Engine()
    put(engine, "c/1", {})
    engine.close()
    fresh = Engine()
    assert paths(fresh.run(parsed(query("c")))) == []
    fresh.close()
    assert list(tmp_path.iterdir()) == []


def test_a_directory_has_one_owner_at_a_time(tmp_path: Path) -> None:
    first = FirestoreEmulator(tmp_path)
    with pytest.raises(DatabaseUnusable, match="in use by another process"):
        FirestoreEmulator(tmp_path)
    first.engine.close()
    FirestoreEmulator(tmp_path).engine.close()


def test_a_file_that_is_no_database_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / DATABASE_FILE).write_bytes(b"this is no database, and it is longer than a header" * 100)
    with pytest.raises(DatabaseUnusable, match=DATABASE_FILE):
        FirestoreEmulator(tmp_path)
