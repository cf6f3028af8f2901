"""A message as people see it: its two documents together, and its life in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Something that happened to a message."""

    at: datetime
    what: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    outbox: Mapping[str, Any]
    shown: Mapping[str, Any] | None
    """The message document in its thread; None: a message of a run that has not been sent."""
    moments: tuple[Moment, ...]
    """In order."""


@dataclass(frozen=True, slots=True)
class MessageStatusOf:
    gateway: Gateway

    async def __call__(self, request_id: str) -> dict[str, Any] | None:
        """What is known of it; None: there is no such message. Two reads."""
        found = await self._documents(request_id)
        if found is None:
            return None
        data, message = found[0].data, None if found[1] is None else found[1].data
        fields = {
            "requestId": request_id,
            "status": data.get("status"),
            "message": None if message is None else message.get("status"),
            "accountId": data.get("accountId"),
            "to": data.get("to"),
            "attempts": data.get("attempts"),
            "nextAttemptAt": data.get("nextAttemptAt"),
            "providerMessageId": data.get("providerMessageId"),
            "sentAt": data.get("sentAt"),
            "deliveredAt": None if message is None else message.get("deliveredAt"),
            "readAt": None if message is None else message.get("readAt"),
            "lastError": data.get("lastError"),
        }
        return {name: value for name, value in fields.items() if value is not None or name == "message"}

    async def view(self, request_id: str) -> MessageView | None:
        """With its life; None: there is no such message. Two reads."""
        found = await self._documents(request_id)
        if found is None:
            return None
        outbox, shown = found[0].data, None if found[1] is None else found[1].data
        moments = sorted(_moments(outbox, shown or {}), key=lambda moment: moment.at)
        return MessageView(outbox=outbox, shown=shown, moments=tuple(moments))

    async def _documents(self, request_id: str) -> tuple[Snapshot, Snapshot | None] | None:
        outbox = await self.gateway.get(paths.outbox(request_id))
        if outbox is None:
            return None
        thread_id = str(outbox.data.get("threadId"))
        is_usable = thread_id and "/" not in thread_id
        return outbox, await self.gateway.get(paths.message(thread_id, request_id)) if is_usable else None


def _moments(outbox: Mapping[str, Any], shown: Mapping[str, Any]) -> Iterator[Moment]:
    error, attempts = outbox.get("lastError"), outbox.get("attempts") or 0
    written_by = outbox.get("createdBy") or ("a run" if outbox.get("runId") else "")
    rows = (
        (outbox.get("createdAt"), "Written", f"by {written_by}" if written_by else ""),
        (outbox.get("sentAt"), "Accepted by the provider", _provider_id(outbox)),
        (shown.get("deliveredAt"), "Delivered", "the provider's receipt"),
        (shown.get("readAt"), "Read", "the provider's receipt"),
        (shown.get("failedAt"), "Failed", ""),
    )
    for at, what, detail in rows:
        if isinstance(at, datetime):
            yield Moment(at=at, what=what, detail=detail)
    if isinstance(error, Mapping) and isinstance(error.get("at"), datetime):
        detail = f"{error.get('code')}: {error.get('message')}"
        yield Moment(at=error["at"], what=f"Attempt {attempts} did not succeed", detail=detail)
    if outbox.get("status") == "sending" and isinstance(outbox.get("leaseUntil"), datetime):
        detail = f"by {outbox.get('claimedBy')}"
        yield Moment(at=outbox["leaseUntil"], what="The claim of the attempt in flight ends", detail=detail)
    if outbox.get("status") in ("queued", "uncertain") and isinstance(outbox.get("nextAttemptAt"), datetime):
        what = "May be sent" if outbox["status"] == "queued" else "The wait for a receipt ends"
        yield Moment(at=outbox["nextAttemptAt"], what=what)


def _provider_id(outbox: Mapping[str, Any]) -> str:
    name = outbox.get("providerMessageId")
    return f"as {name}" if name else ""
