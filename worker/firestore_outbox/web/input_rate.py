"""How many calls one address may make, so that one caller cannot take an endpoint from the others."""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime, timedelta

from firestore_outbox.lane.pacing import Cap

MOST_ADDRESSES = 10_000
"""Callers that one process remembers. The one that called longest ago is forgotten first."""


class InputRate:
    """How many calls each address may make. In this process alone: an instance more lets as many in again."""

    def __init__(self) -> None:
        self._tats: OrderedDict[tuple[str, str], datetime] = OrderedDict()

    def wait(self, kind: str, address: str, per_minute: float, now: datetime) -> timedelta | None:
        """None: the call may come in. Otherwise how long to wait."""
        cap = Cap.per_minute(per_minute, burst=max(1, round(per_minute / 6)))
        assert cap is not None, "a source has a rate above 0"
        tat = max(now, self._tats.pop((kind, address), now))
        if tat - cap.tolerance > now:
            self._tats[kind, address] = tat
            return tat - cap.tolerance - now
        self._tats[kind, address] = tat + cap.interval
        while len(self._tats) > MOST_ADDRESSES:
            self._tats.popitem(last=False)
        return None
