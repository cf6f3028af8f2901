"""What `outbox dev` prints while it runs: what becomes of messages, and every warning and error, in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

Tell = Callable[[str], None]

IMPORTANT = frozenset({"WARNING", "ERROR", "CRITICAL"})
_OF_MESSAGES: Mapping[str, str] = {
    "attempt_ended": "{status:<10} {requestId}  account {accountId}",
    "message_refused": "refused    {requestId}  account {accountId}: {field}",
    "handler_started": "handler    {lane} runs with {events} events",
    "handler_finished": "handler    {lane} is done",
    "run_ended": "run        {runId} ended: {status}",
}
"""Action -> its line. The others are printed from WARNING on."""
QUIET = frozenset({"sweep_found"})
"""Warnings that mean nothing on a laptop, where a restart drops tasks."""
LONGEST_DETAIL = 300


def shown(part: str, raw: str, zone: tzinfo | None = None) -> str | None:
    """The line for a person; None: nothing worth reading. `raw` is a line of the part's log; times are shown in `zone`,
    the machine's own if there is none."""
    try:
        line = json.loads(raw)
    except ValueError:
        return f"{part}: {raw}" if raw.strip() and not raw.startswith(" ") else None
    if not isinstance(line, dict):
        return None
    action = str(line.get("action"))
    if (form := _OF_MESSAGES.get(action)) is not None:
        return form.format_map(_Lenient(line)) + _what_came_of_it(line, zone)
    if line.get("severity") not in IMPORTANT or action in QUIET:
        return None
    detail = {name: value for name, value in line.items() if name not in _ELSEWHERE and value is not None}
    told = json.dumps(detail, default=str)[:LONGEST_DETAIL] if detail else ""
    return f"! {part}: {line.get('message')} ({action}) {told}".rstrip()


def _what_came_of_it(line: Mapping[str, Any], zone: tzinfo | None) -> str:
    """Of an attempt that did not end with `sent`: why, and when the next one is."""
    code = f": {line['code']}" if line.get("code") else ""
    try:
        return f"{code}; again at {datetime.fromisoformat(line['againAt']).astimezone(zone):%H:%M:%S}"
    except (KeyError, TypeError, ValueError):
        return code


_ELSEWHERE = frozenset({"severity", "message", "action", "exception"})


class _Lenient(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "-"


class LogTail:
    """The ends of some log files, as they grow."""

    def __init__(self, logs: Mapping[str, Path]) -> None:
        self._logs = logs
        self._read: dict[str, int] = {}

    def skip(self) -> None:
        """Forget what is there already."""
        for name, path in self._logs.items():
            self._read[name] = path.stat().st_size if path.exists() else 0

    def new_lines(self) -> Iterator[tuple[str, str]]:
        """(part, line) of what was written since the last call. A line that has no end yet waits for it."""
        for name, path in self._logs.items():
            if not path.exists():
                continue
            with path.open("rb") as file:
                file.seek(self._read.get(name, 0))
                text = file.read()
            whole, end, _ = text.rpartition(b"\n")
            self._read[name] = self._read.get(name, 0) + len(whole) + len(end)
            for line in whole.decode(errors="replace").splitlines():
                yield name, line

    def tell(self, tell: Tell, now: datetime) -> None:
        for part, raw in self.new_lines():
            if (line := shown(part, raw, now.tzinfo)) is not None:
                tell(f"{now:%H:%M:%S}  {line}")
