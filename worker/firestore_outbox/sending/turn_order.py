"""The order in which a turn's candidates go, from plan to plan, and what the lane keeps of it for the next turn."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from datetime import datetime

from firestore_outbox.lane.pacing import Cap
from firestore_outbox.lane.state import Lane
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.sending.precedence import (
    LATELY,
    Candidate,
    Precedence,
    Ranked,
    after_claims,
    ranked,
    urgent_cap,
)


class TurnOrder:
    def __init__(self, lane: Lane, urgent_per_minute: float) -> None:
        self._urgent_per_minute = urgent_per_minute
        self._precedence = Precedence(since_bulk=lane.since_bulk, urgent_tat=lane.urgent_tat)
        self._cap: Cap | None = None
        self._last = Ranked((), {})
        """The ranking that the present plan was made from."""

    def ranked(
        self, candidates: Sequence[Candidate], pace: Cap | None, lane: Lane, in_flight: Set[str], now: datetime
    ) -> Sequence[Candidate]:
        """`candidates` in the order of their times; `lane` with the holds that are in force."""
        self._cap = urgent_cap(self._urgent_per_minute, pace)
        blocked = in_flight | lane.holds.keys()
        self._last = ranked(candidates, self._precedence, self._cap, blocked=blocked, now=now)
        return self._last.candidates

    def claimed(self, claims: Sequence[OutboxMessage], now: datetime) -> None:
        """These go, of the last ranking. A claim that is refused counts as well: others go a little earlier."""
        self._precedence = after_claims(self._precedence, self._last, claims, self._cap, now)

    def expects_urgent(self, now: datetime) -> bool:
        """Whether the account sent an urgent message lately: only then the lane is looked at before each place."""
        tat = self._precedence.urgent_tat
        return tat is not None and now - tat < LATELY

    def kept(self, lane: Lane) -> Lane:
        """The lane as it is released."""
        return replace(lane, since_bulk=self._precedence.since_bulk, urgent_tat=self._precedence.urgent_tat)
