"""Notifications of runs while the functions and the worker die: real processes, kill -9, and a webhook that fails.

Each kill comes at an event, not at a time: after a commit of an app, in the middle of a run, and while the webhook has
a notification in its hands and has not answered. After the last one the stack is left alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
import pytest_asyncio
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter

from firestore_emulator.processes import ProcessFailed
from firestore_outbox.local.dev import PROJECT, DevSettings, DevStack
from firestore_outbox.notifications.notification import ID_HEADER, SIGNATURE_HEADER
from firestore_outbox.providers.signature import is_genuine
from tests.system.acceptance.world import until

RUNS = 4
TARGETS = 3
KILLS_IN_HAND = 2
"""Notifications whose first call ends with the death of the worker that makes it."""
STARTS = 3
"""How often a part that was killed is started, if another process has its port for a moment."""
SECRET = "a secret of this test"
ENVIRONMENT = {
    "OUTBOX_CREDENTIALS": json.dumps({"*": {"token": "local", "webhookSecret": "local", "notifySecret": SECRET}}),
    "OUTBOX_LEASE_SECONDS": "5",
    "OUTBOX_SEND_TIMEOUT_SECONDS": "2",
    "OUTBOX_UNCERTAIN_SECONDS": "4",
    "OUTBOX_LOG_LEVEL": "WARNING",
}
"""The next worker takes over after seconds."""
ENDED = ("success", "partial", "failed", "cancelled")


class Killer:
    """kill -9 of one part at a time, and a new process in its place."""

    def __init__(self, stack: DevStack) -> None:
        self._stack = stack
        self._one_at_a_time = asyncio.Lock()

    async def kill(self, name: str) -> None:
        process = self._stack.processes[name]
        async with self._one_at_a_time:
            await process.kill()
            for left in reversed(range(STARTS)):
                try:
                    await process.start()
                    return
                except ProcessFailed:
                    if not left:
                        raise


class Receiver:
    """The server of the account's owner. It checks and keeps each call. The first calls of some notifications kill the
    worker and get no answer, the first calls of the others are answered 503, all later ones 204."""

    def __init__(self, killer: Killer) -> None:
        self._killer = killer
        self._server: asyncio.Server | None = None
        self.url = ""
        self.kills = 0
        self.bodies: dict[str, list[bytes]] = defaultdict(list)
        """By notification id, what came, in order."""
        self.accepted: set[str] = set()
        self.forged: list[str] = []

    async def __aenter__(self) -> Receiver:
        self._server = await asyncio.start_server(self._call, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/outbox"
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _call(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):  # the worker may be gone
            head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head.split("\r\n"))
            }
            body = await reader.readexactly(int(headers["content-length"]))
            status = await self._take(headers, body)
            if status is not None:
                writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
                await writer.drain()
        writer.close()

    async def _take(self, headers: dict[str, str], body: bytes) -> str | None:
        """The status of the answer; None: there is no worker left to answer."""
        notification_id = headers[ID_HEADER.lower()]
        if not is_genuine(headers[SIGNATURE_HEADER.lower()], body, SECRET, datetime.now(UTC)):
            self.forged.append(notification_id)
        is_first = notification_id not in self.bodies
        self.bodies[notification_id].append(body)
        if is_first and self.kills < KILLS_IN_HAND:
            self.kills += 1
            await self._killer.kill("worker")
            return None
        if is_first:
            return "503 Service Unavailable"
        self.accepted.add(notification_id)
        return "204 No Content"


@pytest_asyncio.fixture
async def stack() -> AsyncIterator[DevStack]:
    ports = dict.fromkeys(("firestore_port", "tasks_port", "functions_port", "worker_port", "provider_port"), 0)
    settings = DevSettings(**ports, environment=ENVIRONMENT, sweep_seconds=2)  # type: ignore[arg-type]  # ports are numbers
    async with DevStack(settings) as running:
        yield running


@pytest_asyncio.fixture
async def db(stack: DevStack) -> AsyncIterator[firestore.AsyncClient]:
    with pytest.MonkeyPatch.context() as patch:  # read once, when a client is made
        patch.setitem(os.environ, "FIRESTORE_EMULATOR_HOST", stack.firestore)
        client = firestore.AsyncClient(project=PROJECT, credentials=AnonymousCredentials())
    yield client
    client.close()


async def remind(db: firestore.AsyncClient, account_id: str) -> None:
    """A reminder as an app writes it, due now. The function `on_reminder_created` gets its event."""
    reminder_id = f"reminder-{secrets.token_hex(4)}"
    now = datetime.now(UTC)
    fields = {
        "accountId": account_id,
        "targets": [{"id": f"t{number}", "to": f"{reminder_id}-{number}@g.us"} for number in range(TARGETS)],
        "parts": [{"type": "text", "text": "The market opens at nine."}],
        "timezone": "UTC",
        "window": {"startHour": 0, "endHour": 24},
        "schedule": {"type": "once", "at": now},
        "missed": "runOnce",
        "status": "active",
        "createdAt": now,
    }
    await db.document(f"reminders/{reminder_id}").create(fields)


async def test_over_kills_of_function_and_worker_no_notification_is_lost_and_repeats_have_one_id(
    stack: DevStack, db: firestore.AsyncClient
) -> None:
    killer = Killer(stack)
    async with Receiver(killer) as receiver:
        account_id = f"acc-{secrets.token_hex(4)}"
        account: dict[str, Any] = {"provider": "simulated-idempotent", "status": "active", "pace": {"perMinute": 0}}
        await db.document(f"accounts/{account_id}").set({**account, "notify": {"webhook": receiver.url}})
        of_account = db.collection("runs").where(filter=FieldFilter("accountId", "==", account_id))

        async def ended() -> set[str]:
            runs = [(one.id, one.to_dict() or {}) async for one in of_account.stream()]
            return {run_id for run_id, run in runs if run["status"] in ENDED}

        async def begun() -> int:
            return int((await of_account.count().get())[0][0].value)

        async def accepted() -> int:
            return len(receiver.accepted)

        for number in range(1, RUNS + 1):
            await remind(db, account_id)
            if number % 2:
                await killer.kill("functions")
            await until(begun, partial(int.__le__, number), f"run {number}")
            if not number % 2:
                await killer.kill("worker")

        run_ids = await until(ended, lambda found: len(found) == RUNS, "the end of every run")
        await until(accepted, lambda count: count >= RUNS, "every notification")

        told = {notification_id: json.loads(bodies[0]) for notification_id, bodies in receiver.bodies.items()}
        assert not receiver.forged
        assert receiver.kills == KILLS_IN_HAND
        assert Counter(one["runId"] for one in told.values()) == dict.fromkeys(run_ids, 1), "one id for each run"
        assert {one["kind"] for one in told.values()} == {"run.ended"}
        assert all(one["id"] == notification_id for notification_id, one in told.items())
        assert all(len(set(bodies)) == 1 for bodies in receiver.bodies.values()), "a repeat is the same notification"
        assert all(len(bodies) >= 2 for bodies in receiver.bodies.values()), "each first call failed"
        assert receiver.accepted == set(told)
