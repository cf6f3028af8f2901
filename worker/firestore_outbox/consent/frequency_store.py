"""What recipients got of marketing runs: `accounts/{accountId}/frequency/{address}`, for accounts with a frequency cap.

A page of targets reads the documents of its addresses, and writes them in the commit that makes the targets, each under
the version that was read. So a page that is made again counts nothing twice, and of two runs that make targets for one
address at the same time the second one reads what the first one counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from firestore_outbox.consent.frequency import Admitted, Capped, Counted, Counting, judge
from firestore_outbox.consent.words import key_of
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway, Snapshot
from firestore_outbox.firestore.writes import WriteOp, create, update
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode


class Tally:
    """Of one try to commit a page: what its recipients got before, and what they get now."""

    def __init__(self, account_id: str, counting: Counting, found: Mapping[str, Snapshot]) -> None:
        self._account_id = account_id
        self._counting = counting
        self._found = found
        self._now: dict[str, Admitted] = {}

    def admits(self, address: str) -> bool:
        """Counts the target, if it is within the cap."""
        path = frequency_path(self._account_id, address)
        before = self._now[path].counted if path in self._now else _counted(self._found.get(path))
        judged = judge(before, self._counting)
        if isinstance(judged, Capped):
            return False
        self._now[path] = judged
        return True

    def writes(self) -> list[WriteOp]:
        return [self._write(path, admitted) for path, admitted in self._now.items()]

    def _write(self, path: str, admitted: Admitted) -> WriteOp:
        fields = _fields(admitted, admitted.expires_at(self._counting.cap))
        found = self._found.get(path)
        return create(path, fields) if found is None else update(path, fields, version=found.version)


@dataclass(frozen=True, slots=True)
class Frequency:
    gateway: Gateway

    async def tally(self, account_id: str, counting: Counting, addresses: Iterable[str]) -> Tally:
        """One read for each address."""
        wanted = dict.fromkeys(frequency_path(account_id, address) for address in addresses)
        return Tally(account_id, counting, await self.gateway.get_all(list(wanted)))


def frequency_path(account_id: str, address: str) -> str:
    """The same for all ways to write a phone number."""
    return paths.frequency(account_id, key_of(address))


def frequency_capped(at: datetime) -> DeliveryError:
    sentence = "the recipient got as many marketing messages lately as the account allows"
    return DeliveryError(code=ErrorCode.FREQUENCY_CAPPED, message=sentence, retryable=False, at=at)


def _fields(admitted: Admitted, expires_at: datetime) -> dict[str, Any]:
    return {"counted": [{"at": one.at, "runId": one.run_id} for one in admitted.counted], "expireAt": expires_at}


def _counted(found: Snapshot | None) -> tuple[Counted, ...]:
    listed = [] if found is None else found.data.get("counted") or []
    return tuple(Counted(at=one["at"], run_id=one["runId"]) for one in listed)
