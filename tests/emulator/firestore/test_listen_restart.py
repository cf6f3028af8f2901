"""Google's own client goes on watching over a restart of the server, and misses nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.rpc.server import Server
from tests.conformance.wire import delete, set_
from tests.emulator.firestore.support import commit, name
from tests.patience import PATIENCE_SECONDS


@asynccontextmanager
async def _served(data: Path, port: int) -> AsyncIterator[tuple[FirestoreEmulator, Server]]:
    emulator = FirestoreEmulator(data)
    await emulator.start()
    server = await Server.start(emulator.service, port=port)
    try:
        yield emulator, server
    finally:
        await server.stop(grace_seconds=0)
        await emulator.stop()


class _Watching:
    """What the client shows; it calls back in a thread of its own."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._last: dict[str, object] | None = None

    def took(self, snapshots: list[firestore.DocumentSnapshot], changes: object, read_time: object) -> None:
        with self._news:
            self._last = {snapshot.id: snapshot.get("x") for snapshot in snapshots}
            self._news.notify_all()

    async def shows(self, **wanted: object) -> None:
        def wait() -> None:
            with self._news:
                assert self._news.wait_for(lambda: self._last == wanted, PATIENCE_SECONDS), f"it shows {self._last}"

        await asyncio.to_thread(wait)


async def test_a_watching_client_sees_what_changed_over_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching = _Watching()
    async with _served(tmp_path, 0) as (emulator, server):
        monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", server.address)
        client = firestore.Client(project="p", credentials=AnonymousCredentials())
        commit(emulator.engine, *(set_(name(f"c/{path}"), {"x": 1}) for path in "abd"))
        watch = client.collection("c").on_snapshot(watching.took)
        await watching.shows(a=1, b=1, d=1)
    async with _served(tmp_path, server.port) as (emulator, _):
        try:
            commit(emulator.engine, delete(name("c/a")), set_(name("c/b"), {"x": 2}), set_(name("c/n"), {"x": 3}))
            await watching.shows(b=2, d=1, n=3)
            commit(emulator.engine, set_(name("c/b"), {"x": 4}))
            await watching.shows(b=4, d=1, n=3)
        finally:
            # While there is a server: without one this client reconnects for ever, as fast as it can.
            await asyncio.to_thread(watch.unsubscribe)
