"""What really happened: every version of every document, and every attempt that reached for the provider."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from firestore_emulator.storage.engine import Change, Engine
from firestore_emulator.virtual_time import VirtualClock
from firestore_outbox.firestore.values import from_fields
from firestore_outbox.local.simulation.processes import Process
from firestore_outbox.local.simulators.core import ProviderCore
from firestore_outbox.local.simulators.record import Call
from firestore_outbox.messages.model import OutboxMessage


@dataclass(frozen=True, slots=True)
class Seen:
    """A document after a commit."""

    at: datetime
    path: str
    data: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """A claim that went on to call the provider."""

    at: datetime
    process: str
    account_id: str
    thread_id: str
    request_id: str
    number: int
    claimed_by: str | None
    skew: timedelta
    """By how much the clock of its process was ahead."""


class Truth:
    def __init__(self, engine: Engine, provider: ProviderCore, clock: VirtualClock, project: str) -> None:
        self._clock = clock
        self._provider = provider
        self.changes: list[Seen] = []
        self._latest: dict[str, dict[str, Any]] = {}
        self._by_collection: defaultdict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        self._waiting: list[asyncio.Future[None]] = []
        self.attempts: list[Attempt] = []
        self.accepted: list[tuple[str, str]] = []
        """(process, requestId) of each attempt that its process knows to have been accepted."""
        self.dead: list[Process] = []
        self.redriven: set[str] = set()
        """requestIds that an operator put back into the queue, or wanted to: a decision to send once more."""
        self.given_up: set[str] = set()
        """requestIds of doubts that an operator ended as failed, whatever became of them."""
        self.opted_out: list[tuple[datetime, str, str]] = []
        """(when the operator's command had ended, accountId, address)"""
        self.conversations: list[tuple[datetime, str]] = []
        """When the application was given which conversation."""
        self.notes: list[tuple[datetime, str]] = []
        """What the scenario did, for the trace."""
        engine.after_commit.append(self._committed)

    @property
    def calls(self) -> list[Call]:
        return self._provider.record.calls()

    def latest(self) -> dict[str, dict[str, Any]]:
        """Every document as it is now."""
        return self._latest

    def collection(self, name: str) -> Mapping[str, dict[str, Any]]:
        """The documents of a collection at the top, as they are now, by their ids."""
        return self._by_collection[name]

    async def stirs(self, within_seconds: float) -> None:
        """Returns with the next commit, or when so much time has gone by without one."""
        loop = asyncio.get_running_loop()
        stirred: asyncio.Future[None] = loop.create_future()
        self._waiting.append(stirred)
        enough = loop.call_later(within_seconds, _set, stirred)
        try:
            await stirred
        finally:
            enough.cancel()

    def note(self, words: str) -> None:
        self.notes.append((self._clock(), words))

    def attempt(self, message: OutboxMessage, process: str, skew: timedelta) -> None:
        self.attempts.append(
            Attempt(
                self._clock(),
                process,
                message.account_id,
                message.thread_id,
                message.request_id,
                message.attempts,
                message.claimed_by,
                skew,
            )
        )

    def _committed(self, changes: Sequence[Change], commit_micros: int) -> None:
        at = self._clock()
        for change in changes:
            segments = change.location.segments
            path = "/".join(segments)
            data = None if change.new is None else from_fields(change.new.fields)
            self.changes.append(Seen(at, path, data))
            here = self._by_collection[segments[0]] if len(segments) == 2 else {}
            if data is None:
                self._latest.pop(path, None)
                here.pop(segments[1], None)
            else:
                self._latest[path] = data
                here[segments[1]] = data
        waiting, self._waiting = self._waiting, []
        for stirred in waiting:
            _set(stirred)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
