"""The clients: each writes one message as its users do, follows it by its own listener until it is read, and tells."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.cloud import firestore

from firestore_outbox.backend import batch as outbox
from firestore_outbox.local.dev import PROJECT, DevStack
from tests.client import node
from tests.patience import PATIENCE_SECONDS

SCRIPT = Path(__file__).parent / "send.mjs"
TEXT = "Your table is ready."


@dataclass(frozen=True, kw_only=True)
class Story:
    """What a client did and was shown. Times are of the machine's clock, in seconds."""

    provider: str
    account_id: str
    to: str
    uid: str
    request_id: str
    asked_at: float
    """Just before the write."""
    shown: tuple[tuple[str, float], ...]
    """Each state of the message, with the time at which the client's listener had it."""

    @property
    def thread_id(self) -> str:
        return f"{self.account_id}__{self.to}"

    @property
    def states(self) -> list[str]:
        return [state for state, _ in self.shown]


@dataclass(frozen=True, kw_only=True)
class Letter:
    """Who is to write to whom."""

    provider: str
    account_id: str
    to: str
    uid: str


async def by_web_sdk(stack: DevStack, letter: Letter, *, chromium: str | None) -> Story:
    """Through the chat page in this browser; without one, by the same client in Node."""
    world = {
        "chromium": chromium,
        "page": stack.page_url,
        "firestore": stack.firestore,
        "projectId": PROJECT,
        "accountId": letter.account_id,
        "to": letter.to,
        "uid": letter.uid,
        "text": TEXT,
    }
    told = await _run_node(world)
    shown = tuple((one["state"], one["at"] / 1000) for one in told["shown"])
    return _story(letter, told["requestId"], told["askedAt"] / 1000, shown)


async def _run_node(world: Mapping[str, Any]) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        node.require_node(),
        str(SCRIPT),
        cwd=node.ROOT,
        env={**os.environ, "WORLD": json.dumps(world)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            said, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, errors.decode(errors="replace")
    told: dict[str, Any] = json.loads(said)
    return told


async def by_python(db: firestore.Client, letter: Letter) -> Story:
    """A backend's batch. Google's client blocks, so all of it is in a thread."""
    return await asyncio.to_thread(_write_and_watch, db, letter)


def _write_and_watch(db: firestore.Client, letter: Letter) -> Story:
    request_id = outbox.new_request_id()
    shown: list[tuple[str, float]] = []
    is_read = threading.Event()

    def show(message: outbox.Message | None) -> None:
        if message is not None and (not shown or shown[-1][0] != message.status):
            shown.append((message.status, time.time()))
        if message is not None and message.status == "read":
            is_read.set()

    batch = db.batch()
    written = outbox.send_message(
        batch, db, request_id=request_id, account_id=letter.account_id, to=letter.to, uid=letter.uid, text=TEXT
    )
    stop = outbox.watch_message(db, written.thread_id, request_id, show)
    try:
        asked_at = time.time()
        batch.commit()
        assert is_read.wait(PATIENCE_SECONDS), f"it was not read; shown: {shown}"
    finally:
        stop()
    return _story(letter, request_id, asked_at, tuple(shown))


def _story(letter: Letter, request_id: str, asked_at: float, shown: tuple[tuple[str, float], ...]) -> Story:
    return Story(
        provider=letter.provider,
        account_id=letter.account_id,
        to=letter.to,
        uid=letter.uid,
        request_id=request_id,
        asked_at=asked_at,
        shown=shown,
    )
