"""The hot set and what is remembered of each session: read together, and written together by compare-and-set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from firestore_outbox.firestore.gateway import Conflict, Gateway, Snapshot
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.values import Version
from firestore_outbox.firestore.writes import DELETE, SERVER_TIME, WriteOp, create, delete, update, upsert
from firestore_outbox.providers.protocol import Contact
from firestore_outbox.sessions.layout import Layout
from firestore_outbox.sessions.memory import Astray, Memory, Shown, Trouble
from firestore_outbox.sessions.requests import Step
from firestore_outbox.sessions.sets import ONE_SET, Sets
from firestore_outbox.sessions.shares import Balanced, of_shard
from firestore_outbox.sessions.slots import HotSet, Waiting
from firestore_outbox.sessions.states import Entry, State


def session_path(account_id: str) -> str:
    return f"sessions/{account_id}"


def current_path(account_id: str) -> str:
    """What members see of the account's session."""
    return f"accounts/{account_id}/session/current"


def contact_path(account_id: str, address: str) -> str:
    return f"accounts/{account_id}/contacts/{address}"


def code_path(account_id: str) -> str:
    """The code that an owner scans."""
    return f"accounts/{account_id}/session/qr"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredShard:
    layout: Layout
    number: int
    hot: HotSet
    version: Version | None
    """None: there is no document yet."""

    @property
    def path(self) -> str:
        return self.layout.document(self.number)

    @property
    def name(self) -> str:
        """For people and gauges."""
        return self.path.partition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """An account's memory, and the shard that it belongs to."""

    shard: StoredShard
    memory: Memory
    memory_version: Version | None
    """None: there is no document yet."""

    @property
    def hot(self) -> HotSet:
        return self.shard.hot


class SessionStore:
    def __init__(self, gateway: Gateway, sets: Sets = ONE_SET) -> None:
        self._gateway = gateway
        self._sets = sets
        self.compare_and_set = gateway.compare_and_set

    async def read(self, account_id: str) -> StoredSession:
        layout = await self._sets.of(account_id)
        number = layout.shard_of(account_id)
        found = await self._gateway.get_all([layout.document(number), session_path(account_id)])
        memory = found.get(session_path(account_id))
        return StoredSession(
            shard=_shard(layout, number, found),
            memory=Memory() if memory is None else _memory(memory.data),
            memory_version=None if memory is None else memory.version,
        )

    async def write(self, account_id: str, stored: StoredSession, step: Step) -> bool:
        """False: another worker wrote in the meantime, or may have; look again."""
        writes = [
            *_hot_writes(stored.shard, step.hot),
            *_memory_writes(account_id, stored, step),
            *_shown_writes(account_id, stored, step),
            *_dropped({other: stored.hot.entries[other].provider for other in step.dropped}, step.dropped),
        ]
        return not writes or not isinstance(await self._gateway.commit(writes), Conflict)

    async def contacts(self, account_id: str, limit: int, after: str | None = None) -> list[Snapshot]:
        """By address, behind `after`."""
        query = Find(
            collection=f"accounts/{account_id}/contacts",
            order_by=("__name__",),
            limit=limit,
            start_after=None if after is None else (contact_path(account_id, after),),
        )
        return await self._gateway.find(query)

    async def add_contacts(self, account_id: str, contacts: Sequence[Contact]) -> None:
        """The same contact twice is one document."""
        await self._gateway.commit([_contact(account_id, contact) for contact in contacts])

    async def show_code(self, account_id: str, code: str, expires_at: datetime) -> None:
        await self._gateway.commit([upsert(code_path(account_id), {"code": code, "expiresAt": expires_at})])

    async def pair(self, layout: Layout, number: int) -> tuple[StoredShard, StoredShard]:
        """The first shard of a set, and another one."""
        found = await self._gateway.get_all([layout.document(0), layout.document(number)])
        return _shard(layout, 0, found), _shard(layout, number, found)

    async def write_pair(self, first: StoredShard, other: StoredShard, made: Balanced) -> bool:
        """False: another worker wrote in the meantime."""
        writes = [*_hot_writes(first, made.first), *_hot_writes(other, made.other)]
        entries = {**first.hot.entries, **other.hot.entries}
        writes += _dropped({account_id: entry.provider for account_id, entry in entries.items()}, made.dropped)
        return not writes or not isinstance(await self._gateway.commit(writes), Conflict)

    async def shards(self) -> list[StoredShard]:
        """Every shard of every set, in order; then those that hold slots from a layout before."""
        every = [(layout, number) for layout in self._sets.all for number in range(layout.shards)]
        found = await self._gateway.get_all([layout.document(number) for layout, number in every])
        shards = [_shard(layout, number, found) for layout, number in every]
        before = [
            (shard.layout, int(number))
            for shard in shards
            for number in sorted(shard.hot.given)
            if int(number) >= shard.layout.shards
        ]
        found = await self._gateway.get_all([layout.document(number) for layout, number in before])
        return shards + [_shard(layout, number, found) for layout, number in before]


def _shard(layout: Layout, number: int, found: Mapping[str, Snapshot]) -> StoredShard:
    snapshot = found.get(layout.document(number))
    hot = HotSet() if snapshot is None else of_shard(hot_set(snapshot.data), number, layout)
    return StoredShard(layout=layout, number=number, hot=hot, version=None if snapshot is None else snapshot.version)


def _hot_writes(stored: StoredShard, hot: HotSet) -> list[WriteOp]:
    """What a set with one shard does not use is not written: its document is that of a release before shards."""
    if hot == stored.hot:
        return []
    fields: dict[str, Any] = {
        "entries": {account_id: _entry_fields(entry) for account_id, entry in hot.entries.items()},
        "line": {account_id: _waiting_fields(waiting) for account_id, waiting in hot.line.items()},
    }
    if hot.held != stored.hot.held:
        fields["held"] = hot.held
    if hot.given != stored.hot.given:
        fields["given"] = hot.given
    return [_write(stored.path, fields, stored.version)]


def _memory_writes(account_id: str, stored: StoredSession, step: Step) -> list[WriteOp]:
    if step.memory == stored.memory:
        return []
    fields = _memory_fields(step.memory)
    if stored.memory_version is None:
        fields = {name: value for name, value in fields.items() if value is not DELETE}
    return [_write(session_path(account_id), fields, stored.memory_version)]


def _shown_writes(account_id: str, stored: StoredSession, step: Step) -> list[WriteOp]:
    """The code goes when it is of no use any more."""
    before, after = stored.memory, step.memory
    is_same = after.shown is before.shown and after.contacts_next == before.contacts_next
    if after.shown is None or is_same:
        return []
    fields: dict[str, Any] = {"state": after.shown.value, "updatedAt": SERVER_TIME}
    if after.contacts_next != before.contacts_next:
        fields |= {"contacts": after.contacts, "contactsDone": after.contacts_next is None}
    current = upsert(current_path(account_id), fields)
    return [current, delete(code_path(account_id))] if stored.memory.shown is Shown.SCAN else [current]


def _contact(account_id: str, contact: Contact) -> WriteOp:
    fields = {"name": contact.name, "pushName": contact.push_name, "picture": contact.picture}
    known = {name: DELETE if value is None else value for name, value in fields.items()}
    return upsert(contact_path(account_id, contact.address), {**known, "updatedAt": SERVER_TIME})


def _dropped(providers: Mapping[str, str], dropped: Mapping[str, timedelta | None]) -> list[WriteOp]:
    """Other accounts' memories were not read, so they are written blindly: only what cannot be wrong."""
    writes = []
    for account_id, left in dropped.items():
        fields: dict[str, Any] = {"provider": providers[account_id], "astray": Astray.UNWANTED.value}
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
        held=data.get("held", 0),
        given=data.get("given", {}),
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
        "contactsNext": memory.contacts_next,
        "contacts": memory.contacts or None,
        "pairUntil": memory.pair_until,
        "logout": memory.logout or None,
        "shown": None if memory.shown is None else memory.shown.value,
    }
    return {name: DELETE if value is None else value for name, value in fields.items()}


def _memory(data: Mapping[str, Any]) -> Memory:
    trouble, astray, shown = data.get("trouble"), data.get("astray"), data.get("shown")
    memory = Memory(
        provider=data.get("provider", ""),
        failures=data.get("failures", 0),
        restarts=data.get("restarts", 0),
        retry_at=data.get("retryAt"),
        sticky_left=_duration(data.get("stickyLeftSeconds")),
        contacts_next=data.get("contactsNext"),
        contacts=data.get("contacts", 0),
        pair_until=data.get("pairUntil"),
        logout=data.get("logout", False),
    )
    return replace(
        memory,
        trouble=None if trouble is None else Trouble(trouble),
        astray=None if astray is None else Astray(astray),
        shown=None if shown is None else Shown(shown),
    )


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()


def _duration(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
