"""The plan of the account, at the moment of a claim. An account without a limit passes without a read.

Units are counted when a turn of a limited account first wants to claim, and reserved in memory from then on: the lane
has one holder, so nothing else claims meanwhile. A takeover counts anew and sees what the holder before it left in
flight. A message whose earlier attempt may have been delivered holds its unit while it waits in the queue, so it is
claimed again without another one. What is reserved only ever errs on the safe side, and is counted again before a
message is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from firestore_outbox.accounts.account import Account
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.plans.plan import Plan, Room, Undecided, UsedUp, allows, plan_of, sentence
from firestore_outbox.plans.usage import Counts
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode
from firestore_outbox.sending.plan import Ending, Skip

LOOK_AGAIN = timedelta(seconds=60)
"""While messages in doubt hold the last units: their receipts take about as long."""


@dataclass(frozen=True, slots=True)
class Admitted:
    claims: tuple[OutboxMessage, ...]
    """Of what was planned, in its order; at least one."""


@dataclass(frozen=True, slots=True)
class AfterCalls:
    """Calls of this turn hold the last units: wait until one ends."""


@dataclass(frozen=True, slots=True)
class LookAgain:
    at: datetime


@dataclass(frozen=True, slots=True)
class Over:
    """The plan is used up."""

    endings: tuple[Ending, ...]


class Quota:
    def __init__(self, counts: Counts, known: Mapping[str, Plan]) -> None:
        self._counts = counts
        self._known = known
        self._counted: tuple[Plan, Mapping[datetime, int]] | None = None
        """What the units below were counted for: the plan, and the windows that were current then."""
        self._units = 0

    async def admit(
        self, account: Account, claims: Sequence[OutboxMessage], now: datetime, *, has_calls: bool
    ) -> Admitted | AfterCalls | LookAgain | Over:
        plan = plan_of(self._known, account.plan.at(now))
        if plan is None:
            return Admitted(tuple(claims))
        doubted = [message for message in claims if message.maybe_sent]
        if doubted and (len(doubted) == len(claims) or self._units < 1):
            return Admitted(tuple(doubted))  # each of them holds a unit already
        if self._counted != (plan, plan.windows(now)) or self._units < 1:
            if has_calls:
                return AfterCalls()
            room = allows(plan, await self._counts.of(account.account_id, plan, now), now)
            match room:
                case Room(units=units):
                    self._counted, self._units = (plan, plan.windows(now)), units
                case Undecided():
                    return LookAgain(now + LOOK_AGAIN)
                case UsedUp(limit=limit):
                    return Over(tuple(_ended(message, sentence(plan, limit), now) for message in claims))
                case _:
                    assert_never(room)
        new = [message for message in claims if not message.maybe_sent][: self._units]
        self._units -= len(new)
        return Admitted(tuple(message for message in claims if message.maybe_sent or message in new))


def _ended(message: OutboxMessage, words: str, now: datetime) -> Ending:
    error = DeliveryError(code=ErrorCode.QUOTA_EXCEEDED, message=words, retryable=True, at=now)
    return Skip(message.skipped(error))
