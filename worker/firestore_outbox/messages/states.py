"""The states of a message, and what may follow what. Pure.

The life of an outbox document is TRANSITIONS below: a pair that is not in the table is an error in the program, and
raises. What a crash leaves behind in each state:

    queued      nothing is in doubt; the sweep wakes the lane
    sending     perhaps sent: an unknown outcome, settled by the lane's next holder (sending/recover.py) or a receipt
    uncertain   perhaps sent, and known to be so: settled by a receipt, or by the account's `onUncertain`
    the others  ends; nothing is left to do, except that a provider may fail what it had accepted, and an operator
                may put a failed message back into the queue

The message document's status moves forward only: queued < sent < delivered < read; failed, skipped and cancelled are
ends, and a failure does not undo a delivery (`advances`).
"""

from __future__ import annotations

from enum import StrEnum


class OutboxStatus(StrEnum):
    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    UNCERTAIN = "uncertain"


class MessageStatus(StrEnum):
    """The status of a thread's message document."""

    QUEUED = "queued"
    SENT = "sent"
    DELIVERED = "delivered"
    READ = "read"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


class Event(StrEnum):
    CLAIM = "claim"
    CONFIRM = "confirm"
    """The provider accepted it, by its answer or by a receipt."""
    RETRY = "retry"
    REJECT = "reject"
    EXPIRE = "expire"
    """Too late to send: the deadline passed or the window closed."""
    CANCEL = "cancel"
    DOUBT = "doubt"
    REDRIVE = "redrive"
    DEFER = "defer"
    """Its window closed, and it goes on when the window opens again."""


_S, _E = OutboxStatus, Event

TRANSITIONS: dict[tuple[OutboxStatus, Event], OutboxStatus] = {
    (_S.QUEUED, _E.CLAIM): _S.SENDING,
    (_S.QUEUED, _E.CANCEL): _S.CANCELLED,
    (_S.QUEUED, _E.EXPIRE): _S.SKIPPED,
    (_S.QUEUED, _E.DEFER): _S.QUEUED,
    (_S.QUEUED, _E.REJECT): _S.FAILED,
    (_S.QUEUED, _E.CONFIRM): _S.SENT,  # a receipt of an earlier attempt
    (_S.SENDING, _E.CONFIRM): _S.SENT,
    (_S.SENDING, _E.RETRY): _S.QUEUED,
    (_S.SENDING, _E.REJECT): _S.FAILED,
    (_S.SENDING, _E.EXPIRE): _S.SKIPPED,
    (_S.SENDING, _E.DOUBT): _S.UNCERTAIN,
    (_S.UNCERTAIN, _E.CONFIRM): _S.SENT,
    (_S.UNCERTAIN, _E.REJECT): _S.FAILED,
    (_S.UNCERTAIN, _E.RETRY): _S.QUEUED,
    (_S.UNCERTAIN, _E.DOUBT): _S.UNCERTAIN,  # the wait has ended: held for a person
    (_S.SENT, _E.REJECT): _S.FAILED,  # accepted, and failed by the provider later
    (_S.FAILED, _E.REDRIVE): _S.QUEUED,
    (_S.UNCERTAIN, _E.REDRIVE): _S.QUEUED,  # a person decided to send it again
}

ENDED = frozenset({_S.SENT, _S.FAILED, _S.SKIPPED, _S.CANCELLED})

SHOWN_AS: dict[OutboxStatus, MessageStatus] = {
    _S.QUEUED: MessageStatus.QUEUED,
    _S.SENDING: MessageStatus.QUEUED,
    _S.UNCERTAIN: MessageStatus.QUEUED,
    _S.SENT: MessageStatus.SENT,
    _S.FAILED: MessageStatus.FAILED,
    _S.SKIPPED: MessageStatus.SKIPPED,
    _S.CANCELLED: MessageStatus.CANCELLED,
}
"""What people see of an outbox status: a message in flight or in doubt is still `queued` to them."""

SHOWN_ENDS = frozenset({MessageStatus.FAILED, MessageStatus.SKIPPED, MessageStatus.CANCELLED})

_RANK = {MessageStatus.QUEUED: 0, MessageStatus.SENT: 1, MessageStatus.DELIVERED: 2, MessageStatus.READ: 3}


class IllegalTransition(Exception):
    """A pair that TRANSITIONS does not have: an error in the program, never in the data."""


def advances(current: MessageStatus, to: MessageStatus) -> bool:
    """Whether `to` is forward of `current`. Ends are left by nothing; a delivery is not undone by a failure."""
    if current not in _RANK:
        return False
    if to not in _RANK:
        return _RANK[current] <= _RANK[MessageStatus.SENT]
    return _RANK[to] > _RANK[current]
