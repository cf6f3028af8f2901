"""Account documents, and the caps that lanes share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from worker.domain.account import Account, AccountStatus, InvalidAccount, parse_account
from worker.domain.outcome import DeliveryError
from worker.domain.pacing import Block, Cap, pushed, reserve
from worker.store import paths
from worker.store.gateway import Conflict, Gateway, Version, create, update
from worker.store.messages import error_fields

TRIES = 8


class AccountStore:
    def __init__(self, gateway: Gateway, *, per_minute: float, concurrency: int) -> None:
        self._gateway = gateway
        self._per_minute = per_minute
        self._concurrency = concurrency

    async def read(self, account_id: str) -> Account | InvalidAccount:
        snapshot = await self._gateway.get(paths.account(account_id))
        if snapshot is None:
            return InvalidAccount(account_id=account_id, sentence=f"accounts/{account_id} does not exist.")
        return parse_account(account_id, snapshot.data, per_minute=self._per_minute, concurrency=self._concurrency)

    async def park(self, account_id: str, error: DeliveryError, *, since: Version) -> None:
        """Until a person resumes it. Nothing happens if somebody changed it after `since`, the time of the claim: what
        was refused may be mended by now, and if not, the next attempt tells."""
        snapshot = await self._gateway.get(paths.account(account_id))
        if snapshot is None or snapshot.version > since:
            return
        fields = {"status": AccountStatus.PARKED.value, "parkedBecause": error_fields(error)}
        await self._gateway.commit([update(paths.account(account_id), fields, version=snapshot.version)])

    async def set_status(self, account_id: str, status: AccountStatus) -> bool:
        """False: there is no such account."""
        result = await self._gateway.commit([update(paths.account(account_id), {"status": status.value}, version=None)])
        return not isinstance(result, Conflict)


@dataclass(frozen=True, slots=True)
class SharedLimit:
    """One of `limits/{name}`: what it allows, and a way to reserve a block of it."""

    gateway: Gateway
    name: str
    cap: Cap

    async def reserve(self, sends: int, now: datetime, mine: Block | None, *, longest: timedelta) -> Block | datetime:
        """A block; or, if it would lie further ahead than `longest`, nothing and the time to ask again.

        It begins no earlier than the cap's tolerance from now, which allows its use at once, and leaves time for the
        claim that comes before the call.
        """
        for _ in range(TRIES):
            snapshot = await self.gateway.get(paths.limit(self.name))
            stored = None if snapshot is None else snapshot.data.get("tat")
            block = reserve(self.cap, stored, now=now + self.cap.tolerance, sends=sends, mine=mine)
            usable_at = block.tat - self.cap.tolerance
            if usable_at > now + longest:
                return usable_at - longest / 2
            if snapshot is None:
                op = create(paths.limit(self.name), {"tat": block.until, "burst": self.cap.burst})
            else:
                op = update(paths.limit(self.name), {"tat": block.until}, version=snapshot.version)
            if not isinstance(await self.gateway.commit([op]), Conflict):
                return block
        return now + self.cap.interval * TRIES  # others were faster too often

    async def pause(self, until: datetime) -> None:
        """Nothing of this limit goes before then."""
        for _ in range(TRIES):
            snapshot = await self.gateway.get(paths.limit(self.name))
            stored = None if snapshot is None else snapshot.data.get("tat")
            tat = pushed(self.cap, stored, until=until)
            if snapshot is None:
                op = create(paths.limit(self.name), {"tat": tat, "burst": self.cap.burst})
            else:
                op = update(paths.limit(self.name), {"tat": tat}, version=snapshot.version)
            if not isinstance(await self.gateway.commit([op]), Conflict):
                return
