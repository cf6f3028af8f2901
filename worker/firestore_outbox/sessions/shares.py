"""Slots that move from one shard of a hot set to another. Theory in docs/sessions.md.

A shard's document says how many slots it holds, and a shard never uses more than it holds. The first shard holds what
it has not given away. A slot moves in one commit of both documents, on the versions that were read. So the slots of all
shards together are never more than the set has, whatever the workers believe about the layout, and there is no step
between the two documents at which a crash could fall.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from firestore_outbox.sessions.layout import Layout
from firestore_outbox.sessions.slots import HotSet, preempted, settled
from firestore_outbox.sessions.states import Rules, State


def usable(hot: HotSet, shard: int, layout: Layout) -> int:
    """How many sessions of the shard may be up now."""
    holds = layout.slots - sum(hot.given.values()) if shard == 0 else hot.held
    return max(0, min(layout.share(shard), holds))


def unbalanced(hot: HotSet, shard: int, layout: Layout) -> list[int]:
    """Shards whose slots should move, as far as one shard's document says: it lacks slots, or holds too many; or the
    first shard has given slots to a shard that should not have them."""
    if shard != 0:
        return [shard] if hot.held != layout.share(shard) else []
    return [other for other in sorted(map(int, hot.given)) if hot.given[str(other)] > layout.share(other)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Balanced:
    """The first shard and another one, after slots moved between them."""

    first: HotSet
    other: HotSet
    wake: frozenset[str]
    """Accounts whose session lane has something to do now."""
    dropped: Mapping[str, timedelta | None]
    """Accounts whose sessions must be stopped by their own lanes, which do not see these entries; and what was left of
    their budgets."""


def balanced(first: HotSet, other: HotSet, shard: int, layout: Layout, now: datetime, rules: Rules) -> Balanced:
    """Move slots until the other shard has its share, as far as free ones go. An account of the other shard whose
    session is up in the first one moves with its slot; other strays lose theirs once they are not in use."""
    slots = other.held
    at_first = layout.slots - sum(count for name, count in first.given.items() if name != str(shard)) - slots
    moved: set[str] = set()
    while slots < layout.share(shard) and at_first > layout.share(0):
        if at_first <= len(first.entries):
            own = [account for account in sorted(first.entries) if layout.shard_of(account) == shard]
            movable = [account for account in own if account not in other.entries]
            if not movable:
                break
            moved.add(movable[0])
            other = other.with_entry(movable[0], first.entries[movable[0]]).not_in_line(movable[0])
            first = first.without_entry(movable[0])
        slots, at_first = slots + 1, at_first - 1
    slots -= max(0, min(slots - layout.share(shard), slots - len(other.entries)))
    given = {name: count for name, count in first.given.items() if name != str(shard)}
    first = replace(first, given={**given, str(shard): slots} if slots else given)
    other = replace(other, held=slots)
    first, first_strays = _drained(first, 0, layout, now, rules)
    other, other_strays = _drained(other, shard, layout, now, rules)
    first_made = settled(first, now, layout.rules(rules, 0, usable(first, 0, layout)))
    other_made = settled(other, now, layout.rules(rules, shard, usable(other, shard, layout)))
    strays = {**first_strays, **other_strays}
    return Balanced(
        first=first_made.hot,
        other=other_made.hot,
        wake=first_made.wake | other_made.wake | moved | strays.keys(),
        dropped={**strays, **first_made.dropped, **other_made.dropped},
    )


def _drained(
    hot: HotSet, shard: int, layout: Layout, now: datetime, rules: Rules
) -> tuple[HotSet, dict[str, timedelta | None]]:
    """Without the places in line of other shards' accounts, and with their idle sessions marked; what is left of their
    budgets. Their own lanes look at another shard, so the slot stays taken until the time to stop a session ends."""
    hot, strays = of_shard(hot, shard, layout), dict[str, timedelta | None]()
    for account_id, entry in hot.entries.items():
        is_idle = entry.state is not State.DISCONNECTING and not entry.in_use(now)
        if is_idle and layout.shard_of(account_id) != shard:
            hot = preempted(hot, account_id, now, replace(rules, sticky_slots=0))
            strays[account_id] = hot.entries[account_id].sticky_left
    return hot, strays


def of_shard(hot: HotSet, shard: int, layout: Layout) -> HotSet:
    """Without the places in line of accounts that belong to another shard: they ask again there."""
    line = {account: waiting for account, waiting in hot.line.items() if layout.shard_of(account) == shard}
    return hot if len(line) == len(hot.line) else replace(hot, line=line)
