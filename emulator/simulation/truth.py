"""What really happened: every version of every document, and every attempt that reached for the provider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from emulator.firestore.engine import Change, Engine
from emulator.providers.core import ProviderCore
from emulator.providers.record import Call
from emulator.simulation.processes import Process
from emulator.virtual_time import VirtualClock
from worker.domain.message import OutboxMessage
from worker.store.values import from_fields


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
        self.attempts: list[Attempt] = []
        self.accepted: list[tuple[str, str]] = []
        """(process, requestId) of each attempt that its process knows to have been accepted."""
        self.dead: list[Process] = []
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
            path = "/".join(change.location.segments)
            data = None if change.new is None else from_fields(change.new.fields)
            self.changes.append(Seen(at, path, data))
            if data is None:
                self._latest.pop(path, None)
            else:
                self._latest[path] = data
