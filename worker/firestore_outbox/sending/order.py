"""Which messages may go now without overtaking within their thread.

Messages of a thread go one at a time, in the order in which they first came due. A message that was tried and waits for
its next attempt holds back the later ones of its own thread, and of no other. The hold names it: its `nextAttemptAt`
has moved behind those of its successors, which would otherwise pass it the moment the hold elapsed.

    thread                                     who may go
    has a message in flight                    none
    held until later                           none
    hold elapsed, its message is here          that message alone
    hold elapsed, its message is gone          the first in order; the hold is void
    hold elapsed, without a name               the first in order
    not held                                   the first in order

What the caller owes: the candidates are in order and, up to the last one, complete; and each document named by an
elapsed hold is among them if it is still queued or uncertain (fetch it by its id if the query did not bring it).
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime

from firestore_outbox.lane.state import ThreadHold
from firestore_outbox.messages.model import OutboxMessage


@dataclass(frozen=True, slots=True)
class HoldsNow:
    """The holds of a lane, sorted by what they mean at this moment."""

    shut: Mapping[str, datetime]
    """Threads that no message may use, and until when."""
    named: Mapping[str, str]
    """Threads that only the message named may use."""
    void: frozenset[str]
    """Threads whose hold has nothing to wait for any more: drop it from the lane."""


def named_by_elapsed(holds: Mapping[str, ThreadHold], now: datetime) -> list[str]:
    """The documents that must be among the candidates."""
    return [hold.request_id for hold in holds.values() if hold.request_id is not None and hold.until <= now]


def holds_now(holds: Mapping[str, ThreadHold], present: Set[str], now: datetime) -> HoldsNow:
    """`present` are those named by elapsed holds that are among the candidates, and go on."""
    shut: dict[str, datetime] = {}
    named: dict[str, str] = {}
    void: list[str] = []
    for thread_id, hold in holds.items():
        if hold.until > now:
            shut[thread_id] = hold.until
        elif hold.request_id is not None and hold.request_id in present:
            named[thread_id] = hold.request_id
        else:
            void.append(thread_id)
    return HoldsNow(shut=shut, named=named, void=frozenset(void))


def waits_for_another(message: OutboxMessage, holds: HoldsNow, *, busy: Set[str]) -> bool:
    """Whether another message of its thread goes first. `busy` are the threads in flight, and those claimed just now.

    A thread that is shut is not asked about here: that is a time (`HoldsNow.shut`), not another message.
    """
    return message.thread_id in busy or holds.named.get(message.thread_id, message.request_id) != message.request_id
