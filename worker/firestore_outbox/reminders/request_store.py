"""Requests of members, as Firestore has them, and the mark on the run or reminder that some are waiting.

The mark `asked` is `{since, latest}`: the arrival of the oldest request that may be waiting, and the last one that was
announced. A lane without a mark does not look for requests, so runs without requests pay nothing for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from firestore_outbox.firestore.compare_and_set import AGAIN, Again
from firestore_outbox.firestore.gateway import Conflict, Gateway, Snapshot
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.values import Version
from firestore_outbox.firestore.writes import DELETE, WriteOp, delete, update
from firestore_outbox.reminders.requests import Asked, Outcome

MARK = "asked"
PAGE = 100


@dataclass(frozen=True, slots=True)
class Waiting:
    """The requests since the mark: the first one without an outcome, and those that were applied."""

    first: Snapshot | None
    applied: tuple[tuple[Asked, datetime], ...]


class RequestStore:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def announce(self, parent: str, request_id: str, created_at: datetime) -> bool:
        """Mark the run or reminder. False: it does not exist.

        Every new request changes the mark, so a lane that is about to take the mark away looks again first.
        """

        async def attempt() -> bool | Again:
            found = await self._gateway.get(parent)
            if found is None:
                return False
            since = marked_since(found.data)
            mark = {"since": created_at if since is None else min(since, created_at), "latest": request_id}
            result = await self._gateway.commit([update(parent, {MARK: mark}, version=found.version)])
            return AGAIN if isinstance(result, Conflict) else True

        return await self._gateway.compare_and_set(attempt)

    async def waiting(self, parent: str, since: datetime) -> Waiting:
        query = Find(
            collection=f"{parent}/requests",
            where=(("createdAt", ">=", since),),
            order_by=("createdAt",),
            limit=PAGE,
        )
        applied: list[tuple[Asked, datetime]] = []
        while found := await self._gateway.find(query):
            for one in found:
                if "outcome" not in one.data:
                    return Waiting(one, tuple(applied))
                if one.data["outcome"] == Outcome.APPLIED:
                    applied.append((Asked(one.data["action"]), one.data["createdAt"]))
            if len(found) < PAGE:
                break
            last = found[-1].data["createdAt"]
            query = Find(
                collection=query.collection,
                where=(("createdAt", ">", last),),
                order_by=("createdAt",),
                limit=PAGE,
            )
        return Waiting(None, tuple(applied))

    async def clear(self, parent: str, version: Version) -> bool:
        """Take the mark away. False: something changed, perhaps by a new request."""
        result = await self._gateway.commit([update(parent, {MARK: DELETE}, version=version)])
        return not isinstance(result, Conflict)

    async def write(self, outcome: WriteOp, others: tuple[WriteOp, ...] = ()) -> bool:
        return not isinstance(await self._gateway.commit([*others, outcome]), Conflict)

    async def delete_all(self, parent: str) -> None:
        while found := await self._gateway.find(
            Find(collection=f"{parent}/requests", order_by=("__name__",), limit=PAGE)
        ):
            await self._gateway.commit([delete(one.path) for one in found])


def marked_since(data: Mapping[str, Any]) -> datetime | None:
    """None: no request waits."""
    mark = data.get(MARK)
    since = mark.get("since") if isinstance(mark, dict) else None
    return since if isinstance(since, datetime) else None


def outcome_of(path: str, outcome: Outcome, at: datetime, reason: str | None = None) -> WriteOp:
    fields: dict[str, Any] = {"outcome": outcome.value, "outcomeAt": at}
    if reason is not None:
        fields["outcomeReason"] = reason
    return update(path, fields, version=None)
