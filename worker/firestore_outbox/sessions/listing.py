"""A shard of the hot set as people and programs are shown it: which accounts have a slot, and which wait, in order."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from firestore_outbox.sessions.slots import HotSet
from firestore_outbox.sessions.states import Rules, State

WAITING = "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRow:
    shard: str
    """The shard's document."""
    account_id: str
    provider: str
    state: str
    """A state of the session, or `waiting`."""
    since: datetime
    """Since when the account has the slot, or waits for one."""
    until: datetime | None
    """Until when there is a reason to keep it; None while it waits or goes down."""
    use: str
    """`in use`, `warm` or `sticky`; of a waiting account `due` or `sticky`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    rows: tuple[SlotRow, ...]
    """Those with a slot by name, then the queue in its order."""
    total: int
    free: int


def listed(shard: str, hot: HotSet, now: datetime, rules: Rules) -> Slots:
    """One shard, which may use `rules.slots`."""
    current = hot.as_of(now)
    rows = []
    for account_id, entry in sorted(current.entries.items()):
        is_leaving = entry.state is State.DISCONNECTING
        use = "in use" if entry.in_use(now) else "sticky" if entry.sticky else "warm"
        rows.append(
            SlotRow(
                shard=shard,
                account_id=account_id,
                provider=entry.provider,
                state=entry.state.value,
                since=entry.turn_since,
                until=None if is_leaving else entry.kept_until(now),
                use="" if is_leaving else use,
            )
        )
    for sticky in (False, True):
        for account_id in current.in_order(sticky=sticky):
            waiting = current.line[account_id]
            use = "sticky" if sticky else "due"
            rows.append(
                SlotRow(
                    shard=shard,
                    account_id=account_id,
                    provider=waiting.provider,
                    state=WAITING,
                    since=waiting.since,
                    until=None,
                    use=use,
                )
            )
    return Slots(rows=tuple(rows), total=rules.slots, free=max(0, current.free(rules)))


def counted(hot: HotSet) -> dict[str, int]:
    """State -> accounts, for the gauge. Every state is there, so that one that empties goes to 0."""
    counts = dict.fromkeys([state.value for state in State if state is not State.COLD], 0)
    for entry in hot.entries.values():
        counts[entry.state.value] += 1
    return {**counts, WAITING: len(hot.line)}
