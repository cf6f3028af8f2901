"""Events that wait for a handler: `inbox/{kind}:{key}/events/{eventId}`, and what people wrote in a conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Protocol
from urllib.parse import quote

from firestore_outbox.clock import Clock
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Conflict, Gateway, Snapshot
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import SERVER_TIME, create
from firestore_outbox.lane.ref import LaneRef
from firestore_outbox.messages.ids import account_of, is_document_id
from firestore_outbox.messages.new_documents import SEALED

MOST_A_RUN = 300
"""Events that one run takes. The lane runs again for the rest."""
KEPT = timedelta(days=30)
"""How long the TTL policy lets a handled event stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    id: str
    at: datetime
    """The server's time of its write."""
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundText:
    """A message that a person wrote."""

    id: str
    at: datetime
    """The server's time of its write."""
    sent_at: datetime
    """When it was sent, by the provider's clock."""
    parts: tuple[Mapping[str, Any], ...]
    is_sealed: bool = False
    """Whether it is stored sealed. The answers of such a run are sealed too."""

    @property
    def text(self) -> str:
        """Its text, or the caption of its file; empty if it has neither."""
        return next((str(part.get("text") or part.get("caption")) for part in self.parts if _has_text(part)), "")


class SealedParts(Protocol):
    """sealing/service.py. Both raise Unavailable."""

    async def open_parts(
        self, account_id: str, message_id: str, parts: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]: ...

    async def seal(
        self, account_id: str, request_id: str, parts: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]: ...


class EventStore:
    def __init__(self, gateway: Gateway, clock: Clock, sealed: SealedParts | None = None) -> None:
        """`sealed` opens and seals for sealed accounts; None: their messages stay as they are stored."""
        self._gateway = gateway
        self._clock = clock
        self._sealed = sealed

    async def add(self, ref: LaneRef, event_id: str, data: Mapping[str, Any]) -> bool:
        """False: an event of this id came before."""
        fields = {"data": dict(data), "at": SERVER_TIME, "expireAt": self._clock() + KEPT}
        result = await self._gateway.commit([create(f"{_events(ref)}/{_safe(event_id)}", fields)])
        return not isinstance(result, Conflict)

    async def events(self, ref: LaneRef, since: datetime | None, limit: int) -> list[Event]:
        return [_event(one) for one in await self._gateway.find(_from("at", _events(ref), since, limit))]

    async def events_named(self, ref: LaneRef, ids: Sequence[str]) -> list[Event]:
        found = await self._gateway.get_all([f"{_events(ref)}/{one}" for one in ids]) if ids else {}
        return [_event(one) for one in found.values()]

    async def messages_named(self, thread_id: str, ids: Sequence[str]) -> list[InboundText]:
        found = await self._gateway.get_all([paths.message(thread_id, one) for one in ids]) if ids else {}
        return [await self._opened(thread_id, one) for one in found.values()]

    async def messages(self, thread_id: str, since: datetime | None, limit: int) -> list[InboundText]:
        """What people wrote. Messages stored before 0.2 have no `storedAt`, and are not found."""
        collection = f"{paths.thread(thread_id)}/{paths.MESSAGES}"
        found = await self._gateway.find(_from("storedAt", collection, since, limit))
        return [await self._opened(thread_id, one) for one in found]

    async def _opened(self, thread_id: str, found: Snapshot) -> InboundText:
        message = _inbound(found)
        if self._sealed is None or not message.is_sealed:
            return message
        parts = await self._sealed.open_parts(account_of(thread_id), found.id, message.parts)
        return replace(message, parts=tuple(parts), is_sealed=True)

    async def sealed(
        self, account_id: str, request_id: str, parts: Sequence[Mapping[str, Any]]
    ) -> Sequence[Mapping[str, Any]]:
        """An answer in a sealed conversation."""
        return parts if self._sealed is None else await self._sealed.seal(account_id, request_id, parts)


def _event(found: Snapshot) -> Event:
    return Event(id=found.id, at=found.data["at"], data=found.data.get("data", {}))


def _inbound(found: Snapshot) -> InboundText:
    data = found.data
    parts = tuple(data.get("parts", ()))
    is_sealed = any(part.get("type") == SEALED for part in parts)
    return InboundText(id=found.id, at=data["storedAt"], sent_at=data["createdAt"], parts=parts, is_sealed=is_sealed)


def _from(field: str, collection: str, since: datetime | None, limit: int) -> Find:
    where = () if since is None else ((field, ">=", since),)
    return Find(collection=collection, where=where, order_by=(field,), limit=limit)


def _events(ref: LaneRef) -> str:
    return f"inbox/{ref.kind}:{ref.key}/events"


def _has_text(part: Mapping[str, Any]) -> bool:
    return bool(part.get("text") or part.get("caption"))


def _safe(event_id: str) -> str:
    """An id from outside, made safe for a path."""
    safe = quote(event_id, safe="")
    return safe if len(safe) <= paths.LONGEST_NAME and is_document_id(safe) else sha256(event_id.encode()).hexdigest()
