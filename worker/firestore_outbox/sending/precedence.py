"""Which of the messages that may go now goes first.

    urgent   ahead of everything of its account, as long as the cap for urgent messages has room; else it is normal
    normal   ahead of bulk; but of every BULK_EVERY messages that go while bulk waits, one is bulk
    bulk     what runs made

Order within a thread is kept: a message takes the earlier ones of its thread along, which then count as its own
priority. Nothing here makes an account faster: the order changes who takes the next place of the pace, and the pace
decides when that is.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from firestore_outbox.lane.pacing import Block, Cap, Gate
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.priority import Priority
from firestore_outbox.messages.validation import InvalidMessage
from firestore_outbox.providers.outcome import Scope

BULK_EVERY = 4
"""While bulk messages wait, at least one of this many messages is bulk: a run goes on, at a quarter of the pace, beside
people who write without a pause."""
LATELY = timedelta(days=1)
"""For this long after an urgent message the holder of the lane expects another one beside bulk (ahead.py)."""
URGENT_BURST = 3
"""How many urgent messages may go one after the other after a rest; then at the cap's rate."""
_ENDLESS = timedelta(days=1)
_RANK = {Priority.URGENT: 0, Priority.NORMAL: 1, Priority.BULK: 2}

Candidate = OutboxMessage | InvalidMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Precedence:
    """What earlier messages leave to the next decision. The lane keeps it between turns."""

    since_bulk: int = 0
    """Messages that went before bulk since the last bulk one, while bulk waited."""
    urgent_tat: datetime | None = None
    """The end of what urgent messages have used of their cap (lane/pacing.py)."""


@dataclass(frozen=True, slots=True)
class Ranked:
    candidates: Sequence[Candidate]
    """In the order in which they go."""
    as_: dict[str, Priority]
    """requestId -> the priority that it goes with: its own, or that of a later message of its thread. Empty: all are
    of one priority."""


def urgent_cap(per_minute: float, account: Cap | None) -> Cap | None:
    """The cap for urgent messages: as configured, and at most half of the account's pace. None: none may go ahead."""
    cap = Cap.per_minute(per_minute, burst=URGENT_BURST)
    if cap is None or account is None:
        return cap
    return replace(cap, interval=max(cap.interval, 2 * account.interval))


def ranked(
    candidates: Sequence[Candidate], precedence: Precedence, cap: Cap | None, *, blocked: Set[str], now: datetime
) -> Ranked:
    """`candidates` in the order of their times, as order.py asks for them. `cap` is that of urgent messages. `blocked`
    are the threads that are busy or held: neither the cap nor the share of bulk waits for them."""
    if not _is_mixed(candidates):
        return Ranked(candidates, {})
    as_ = _capped(candidates, _taken_along(candidates), _urgent_room(precedence, cap, now), blocked)
    by_priority: dict[Priority, list[Candidate]] = {priority: [] for priority in Priority}
    for candidate in candidates:
        by_priority[as_.get(candidate.request_id, Priority.URGENT)].append(candidate)  # a malformed one ends in passing
    normal, bulk = by_priority[Priority.NORMAL], by_priority[Priority.BULK]
    return Ranked([*by_priority[Priority.URGENT], *_shared(normal, bulk, precedence.since_bulk, blocked)], as_)


def after_claims(
    precedence: Precedence, ranking: Ranked, claims: Sequence[OutboxMessage], cap: Cap | None, now: datetime
) -> Precedence:
    """`claims` are those of `ranking` that go now, in its order."""
    if not ranking.as_ and not any(one.priority is Priority.URGENT for one in claims):
        return precedence
    bulk_waits = Priority.BULK in ranking.as_.values()
    for message in claims:
        went_as = ranking.as_.get(message.request_id, message.priority)
        since_bulk = 0 if went_as is Priority.BULK or not bulk_waits else precedence.since_bulk + 1
        precedence = replace(precedence, since_bulk=since_bulk)
        if went_as is Priority.URGENT and cap is not None:
            precedence = replace(precedence, urgent_tat=_gate(precedence, cap, now).after_send(now).block.tat)
    return precedence


def _is_mixed(candidates: Sequence[Candidate]) -> bool:
    found = {one.priority for one in candidates if isinstance(one, OutboxMessage)}
    return len(found) > 1


def _taken_along(candidates: Sequence[Candidate]) -> dict[str, Priority]:
    """The priority of each, or of a later one of its thread, whichever is more urgent."""
    of_thread: dict[str, Priority] = {}
    found: dict[str, Priority] = {}
    for one in reversed(candidates):
        if isinstance(one, OutboxMessage):
            best = min(one.priority, of_thread.get(one.thread_id, one.priority), key=_RANK.__getitem__)
            of_thread[one.thread_id] = found[one.request_id] = best
    return found


def _capped(
    candidates: Sequence[Candidate], found: dict[str, Priority], room: int, blocked: Set[str]
) -> dict[str, Priority]:
    """Urgent ones for which there is no room are normal. Of a thread, the earlier ones have the room."""
    capped: dict[str, Priority] = {}
    for one in candidates:
        if isinstance(one, OutboxMessage):
            is_urgent = found[one.request_id] is Priority.URGENT
            capped[one.request_id] = Priority.NORMAL if is_urgent and room <= 0 else found[one.request_id]
            room -= is_urgent and one.thread_id not in blocked
    return capped


def _shared(
    normal: Sequence[Candidate], bulk: Sequence[Candidate], since_bulk: int, blocked: Set[str]
) -> list[Candidate]:
    """Normal ones first, with a bulk one at each place that is bulk's: one that can go, and is not behind a normal one
    of its thread."""
    if not normal or not bulk:
        return [*normal, *bulk]
    shut = {*blocked, *(one.thread_id for one in normal if isinstance(one, OutboxMessage))}
    shares = iter([one for one in bulk if isinstance(one, OutboxMessage) and one.thread_id not in shut])
    order: list[Candidate] = []
    placed: set[str] = set()
    for one in normal:
        if since_bulk >= BULK_EVERY - 1 and (share := next(shares, None)) is not None:
            order.append(share)
            placed.add(share.request_id)
            since_bulk = 0
        order.append(one)
        since_bulk += 1
    return [*order, *(one for one in bulk if one.request_id not in placed)]


def _urgent_room(precedence: Precedence, cap: Cap | None, now: datetime) -> int:
    return 0 if cap is None else _gate(precedence, cap, now).room(now)


def _gate(precedence: Precedence, cap: Cap, now: datetime) -> Gate:
    tat = precedence.urgent_tat or now
    return Gate(scope=Scope.ACCOUNT, cap=cap, block=Block(tat=tat, until=max(tat, now) + _ENDLESS))
