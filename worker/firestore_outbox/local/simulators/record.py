"""The truth: every call that was seen, oldest first.

With a file, a call is written there before it is answered, so the truth outlives a process that is killed: the
operating system keeps what was handed to it. A line cut short by the kill was never answered for, and is dropped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    request_id: str
    account_id: str
    to: str
    at: datetime
    accepted: bool
    part: int
    delivered: int
    """How often this call made the message arrive: 0 if refused or deduplicated, 2 if delivered twice."""
    idempotency_key: str | None = None
    provider_message_id: str | None = None

    def shown(self) -> dict[str, Any]:
        return {
            "requestId": self.request_id,
            "accountId": self.account_id,
            "to": self.to,
            "at": self.at.isoformat(),
            "accepted": self.accepted,
            "part": self.part,
            "delivered": self.delivered,
        }


class Record:
    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._calls: list[Call] = []
        self._file: int | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            self._calls = list(_read(path, self._file))

    def add(self, call: Call) -> None:
        if self._file is not None:
            line = json.dumps(asdict(call) | {"at": call.at.isoformat()}) + "\n"
            os.write(self._file, line.encode())
        self._calls.append(call)

    def calls(self, account_id: str | None = None) -> list[Call]:
        return [call for call in self._calls if account_id in (None, call.account_id)]

    def clear(self) -> None:
        self._calls = []
        if self._file is not None:
            os.ftruncate(self._file, 0)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _read(path: Path, file: int) -> Iterator[Call]:
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.ftruncate(file, whole)
    for line in content[:whole].splitlines():
        fields = json.loads(line)
        yield Call(**fields | {"at": datetime.fromisoformat(fields["at"])})
