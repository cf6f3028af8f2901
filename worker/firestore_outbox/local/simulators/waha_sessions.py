"""The sessions of the WAHA simulator: a small machine for each, that takes its time.

    STOPPED, FAILED --start--> STARTING --after startMs--> WORKING, or SCAN_QR_CODE if no phone is paired,
                                                           or FAILED for the next `failStarts` times
    any             --stop---> STOPPED
    any             --logout-> STOPPED, and not paired any more
    SCAN_QR_CODE    --scan---> STARTING --after startMs--> WORKING: 515 ends the first connection

A name that is used for the first time is a paired session that is WORKING: a person can send at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Status = Literal[
    "STOPPED", "STARTING", "SCAN_QR_CODE", "PASSKEY_REQUIRED", "PASSKEY_CONFIRMATION_REQUIRED", "WORKING", "FAILED"
]
DOWN: frozenset[str] = frozenset({"STOPPED", "FAILED"})


class SessionOrder(BaseModel):
    """What may be ordered at `PUT /_sim/waha/sessions/{name}`. Everything is optional."""

    model_config = ConfigDict(strict=True, extra="forbid")
    status: Status | None = None
    """At once, and until something else happens."""
    exists: bool | None = None
    paired: bool | None = None
    startMs: Annotated[int, Field(ge=0, le=86_400_000)] | None = None
    """How long a start takes."""
    waitMs: Annotated[int, Field(ge=0, le=86_400_000)] | None = None
    """How long a send waits for a session that is not WORKING."""
    failStarts: Annotated[int, Field(ge=0)] | None = None
    """This many starts end as FAILED."""
    contacts: Annotated[int, Field(ge=0, le=100_000)] | None = None
    """How many contacts the phone has."""
    scan: Literal[True] | None = None
    """A person scans the code, if the session shows one."""
    codeMs: Annotated[int, Field(ge=1, le=86_400_000)] | None = None
    """How long a code is shown before the next one takes its place."""
    loseCodes: Annotated[int, Field(ge=0)] | None = None
    """This many requests for a code are answered with 500."""


@dataclass
class Session:
    exists: bool = True
    paired: bool = True
    start_ms: int = 500
    wait_ms: int = 10_000
    fail_starts: int = 0
    contacts: int = 3
    code_ms: int = 20_000
    lose_codes: int = 0
    scans: int = 0
    """How often a phone was linked."""
    starts: int = 0
    """How often a start was carried out; the idempotent ones do not count."""
    stops: int = 0
    _status: Status = "WORKING"
    _next: tuple[Status, datetime] | None = None

    def status(self, now: datetime) -> Status:
        if self._next is not None and self._next[1] <= now:
            self._status, self._next = self._next[0], None
        return self._status

    def changes_at(self, now: datetime) -> datetime | None:
        self.status(now)
        return None if self._next is None else self._next[1]

    def start(self, now: datetime) -> list[tuple[Status, timedelta]]:
        """What the session will tell of itself, and when."""
        if self.status(now) not in DOWN:
            return []
        self.starts += 1
        ends = self._end_of_start()
        takes = timedelta(milliseconds=self.start_ms)
        self._status, self._next = "STARTING", (ends, now + takes)
        return [("STARTING", timedelta(0)), (ends, takes)]

    def stop(self, now: datetime) -> list[tuple[Status, timedelta]]:
        if self.status(now) == "STOPPED":
            return []
        self.stops += 1
        return self.put("STOPPED")

    def restart(self, now: datetime) -> list[tuple[Status, timedelta]]:
        return [*self.stop(now), *self.start(now)]

    def contact_page(self, offset: int, count: int) -> list[dict[str, str]]:
        """By the number, as the real one sorts them."""
        return [
            {"id": f"{49_151_100_000 + number}@c.us", "name": f"Contact {number}", "pushname": f"nick-{number}"}
            for number in range(offset, min(offset + count, self.contacts))
        ]

    def code(self, name: str, now: datetime) -> str | None:
        """The text of the QR code; None: the session shows none."""
        if self.status(now) != "SCAN_QR_CODE":
            return None
        return f"2@{name},{int(now.timestamp() * 1000) // self.code_ms},{'k' * 200}"

    def scan(self, now: datetime) -> list[tuple[Status, timedelta]]:
        if self.status(now) != "SCAN_QR_CODE":
            return []
        self.paired, self.scans = True, self.scans + 1
        takes = timedelta(milliseconds=self.start_ms)
        self._status, self._next = "STARTING", ("WORKING", now + takes)
        return [("STARTING", timedelta(0)), ("WORKING", takes)]

    def logout(self) -> list[tuple[Status, timedelta]]:
        self.paired = False
        return self.put("STOPPED")

    def put(self, status: Status) -> list[tuple[Status, timedelta]]:
        self._status, self._next = status, None
        return [(status, timedelta(0))]

    def _end_of_start(self) -> Status:
        if self.fail_starts > 0:
            self.fail_starts -= 1
            return "FAILED"
        return "WORKING" if self.paired else "SCAN_QR_CODE"


@dataclass
class SessionTable:
    sessions: dict[str, Session] = field(default_factory=dict)
    most_running: int = 0
    """The most that ever ran at once."""

    def __getitem__(self, name: str) -> Session:
        return self.sessions.setdefault(name, Session())

    def running(self, now: datetime) -> list[str]:
        """The names of those that cost memory."""
        return sorted(name for name, one in self.sessions.items() if one.exists and one.status(now) not in DOWN)

    def order(self, name: str, order: SessionOrder, now: datetime) -> list[tuple[Status, timedelta]]:
        session = self[name]
        session.code_ms = session.code_ms if order.codeMs is None else order.codeMs
        session.contacts = session.contacts if order.contacts is None else order.contacts
        session.lose_codes = session.lose_codes if order.loseCodes is None else order.loseCodes
        if order.exists is not None:
            session.exists = order.exists
        if order.paired is not None:
            session.paired = order.paired
        if order.startMs is not None:
            session.start_ms = order.startMs
        if order.waitMs is not None:
            session.wait_ms = order.waitMs
        if order.failStarts is not None:
            session.fail_starts = order.failStarts
        changes = [] if order.status is None else session.put(order.status)
        return [*changes, *(session.scan(now) if order.scan else [])]
