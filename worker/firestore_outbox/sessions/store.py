"""The hot set and what is remembered of each session: read together, and written together by compare-and-set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from firestore_outbox.firestore.gateway import Conflict, Gateway, Snapshot
from firestore_outbox.firestore.values import Version
from firestore_outbox.firestore.writes import DELETE, WriteOp, create, update, upsert
from firestore_outbox.sessions.memory import Astray, Memory, Trouble
from firestore_outbox.sessions.requests import Step
from firestore_outbox.sessions.slots import HotSet, Waiting
from firestore_outbox.sessions.states import Entry, State

HOT_SET = "hotsets/default"


def session_path(account_id: str) -> str:
    return f"sessions/{account_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    hot: HotSet
    memory: Memory
    hot_version: Version | None
    """None: there is no document yet. The same for the next."""
    memory_version: Version | None


class SessionStore:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.compare_and_set = gateway.compare_and_set

    async def read(self, account_id: str) -> StoredSession:
        found = await self._gateway.get_all([HOT_SET, session_path(account_id)])
        hot, memory = found.get(HOT_SET), found.get(session_path(account_id))
        return StoredSession(
            hot=HotSet() if hot is None else hot_set(hot.data),
            memory=Memory() if memory is None else _memory(memory.data),
            hot_version=None if hot is None else hot.version,
            memory_version=None if memory is None else memory.version,
        )

    async def write(self, account_id: str, stored: StoredSession, step: Step) -> bool:
        """False: somebody else wrote in the meantime, or may have; look again."""
        writes = [*_hot_writes(stored, step), *_memory_writes(account_id, stored, step), *_dropped(stored, step)]
        return not writes or not isinstance(await self._gateway.commit(writes), Conflict)

    async def hot_set(self) -> HotSet:
        snapshot: Snapshot | None = await self._gateway.get(HOT_SET)
        return HotSet() if snapshot is None else hot_set(snapshot.data)


def _hot_writes(stored: StoredSession, step: Step) -> list[WriteOp]:
    if step.hot == stored.hot:
        return []
    fields = {
        "entries": {account_id: _entry_fields(entry) for account_id, entry in step.hot.entries.items()},
        "line": {account_id: _waiting_fields(waiting) for account_id, waiting in step.hot.line.items()},
    }
    return [_write(HOT_SET, fields, stored.hot_version)]


def _memory_writes(account_id: str, stored: StoredSession, step: Step) -> list[WriteOp]:
    if step.memory == stored.memory:
        return []
    fields = _memory_fields(step.memory)
    if stored.memory_version is None:
        fields = {name: value for name, value in fields.items() if value is not DELETE}
    return [_write(session_path(account_id), fields, stored.memory_version)]


def _dropped(stored: StoredSession, step: Step) -> list[WriteOp]:
    """Other accounts' memories were not read, so they are written blindly: only what cannot be wrong."""
    writes = []
    for account_id, left in step.dropped.items():
        fields: dict[str, Any] = {
            "provider": stored.hot.entries[account_id].provider,
            "astray": Astray.UNWANTED.value,
        }
        if left is not None:
            fields["stickyLeftSeconds"] = left.total_seconds()
        writes.append(upsert(session_path(account_id), fields))
    return writes


def _write(path: str, fields: Mapping[str, Any], version: Version | None) -> WriteOp:
    return create(path, fields) if version is None else update(path, fields, version=version)


# --- the documents


def hot_set(data: Mapping[str, Any]) -> HotSet:
    """Only the worker writes it, so what is there is believed."""
    return HotSet(
        entries={account_id: _entry(fields) for account_id, fields in data.get("entries", {}).items()},
        line={account_id: _waiting(fields) for account_id, fields in data.get("line", {}).items()},
    )


def _entry_fields(entry: Entry) -> dict[str, Any]:
    fields = {
        "provider": entry.provider,
        "state": entry.state.value,
        "until": entry.until,
        "lookAt": entry.look_at,
        "usedUntil": entry.used_until,
        "keepUntil": entry.keep_until,
        "turnSince": entry.turn_since,
        "hotSince": entry.hot_since,
        "stickyLeftSeconds": _seconds(entry.sticky_left),
        "sticky": entry.sticky,
        "doubted": entry.doubted,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _entry(fields: Mapping[str, Any]) -> Entry:
    return Entry(
        provider=fields["provider"],
        state=State(fields["state"]),
        until=fields["until"],
        look_at=fields["lookAt"],
        used_until=fields.get("usedUntil"),
        keep_until=fields.get("keepUntil"),
        turn_since=fields["turnSince"],
        hot_since=fields.get("hotSince"),
        sticky_left=_duration(fields.get("stickyLeftSeconds")),
        sticky=fields.get("sticky", False),
        doubted=fields.get("doubted", False),
    )


def _waiting_fields(waiting: Waiting) -> dict[str, Any]:
    fields = {
        "provider": waiting.provider,
        "since": waiting.since,
        "until": waiting.until,
        "sticky": waiting.sticky,
        "stickyLeftSeconds": _seconds(waiting.sticky_left),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _waiting(fields: Mapping[str, Any]) -> Waiting:
    return Waiting(
        provider=fields["provider"],
        since=fields["since"],
        until=fields["until"],
        sticky=fields.get("sticky", False),
        sticky_left=_duration(fields.get("stickyLeftSeconds")),
    )


def _memory_fields(memory: Memory) -> dict[str, Any]:
    fields = {
        "provider": memory.provider,
        "failures": memory.failures,
        "restarts": memory.restarts,
        "retryAt": memory.retry_at,
        "trouble": None if memory.trouble is None else memory.trouble.value,
        "stickyLeftSeconds": _seconds(memory.sticky_left),
        "astray": None if memory.astray is None else memory.astray.value,
    }
    return {name: DELETE if value is None else value for name, value in fields.items()}


def _memory(data: Mapping[str, Any]) -> Memory:
    trouble, astray = data.get("trouble"), data.get("astray")
    memory = Memory(
        provider=data.get("provider", ""),
        failures=data.get("failures", 0),
        restarts=data.get("restarts", 0),
        retry_at=data.get("retryAt"),
        sticky_left=_duration(data.get("stickyLeftSeconds")),
    )
    return replace(
        memory,
        trouble=None if trouble is None else Trouble(trouble),
        astray=None if astray is None else Astray(astray),
    )


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()


def _duration(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
