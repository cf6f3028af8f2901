"""`sweeps/{step}`: where a sweep that could not reach the end goes on. None of it exists while a minute is enough."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.firestore.writes import DELETE, upsert
from firestore_outbox.lane.store import Behind

LANES = "lanes"
ACCOUNTS = "accounts"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountsCursor:
    """How far the search for accounts with due messages came."""

    after: str = ""
    """The last account of the slow round through all of them."""
    swept_at: datetime | None = None
    """The beginning of the last sweep that looked at all recent messages. None: none did."""
    bounds: tuple[str, ...] = ()
    """Accounts between which the next sweep searches in parallel."""


class LanesCursor:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def read(self) -> Behind | None:
        stored = await self._gateway.get(paths.sweep(LANES))
        at, after = (None, None) if stored is None else (stored.data.get("at"), stored.data.get("after"))
        return (at, after) if isinstance(at, datetime) and isinstance(after, str) else None

    async def write(self, place: Behind | None) -> None:
        at, after = (DELETE, DELETE) if place is None else place
        await self._gateway.commit([upsert(paths.sweep(LANES), {"at": at, "after": after})])


class SweepCursors:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.lanes = LanesCursor(gateway)

    async def accounts(self) -> AccountsCursor:
        stored = await self._gateway.get(paths.sweep(ACCOUNTS))
        if stored is None:
            return AccountsCursor()
        data = stored.data
        return AccountsCursor(
            after=data.get("after", ""), swept_at=data.get("sweptAt"), bounds=tuple(data.get("bounds", ()))
        )

    async def keep_accounts(self, cursor: AccountsCursor) -> None:
        fields = {
            "after": cursor.after,
            "sweptAt": DELETE if cursor.swept_at is None else cursor.swept_at,
            "bounds": list(cursor.bounds),
        }
        await self._gateway.commit([upsert(paths.sweep(ACCOUNTS), fields)])
