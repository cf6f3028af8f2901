"""Which member of an account may do what: one table for the HTTP API, as firestore.rules have it for clients.

A test reads the rules, docs/rules.md and this table, and they must agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Role(StrEnum):
    OWNER = "owner"
    AGENT = "agent"
    VIEWER = "viewer"


class Action(StrEnum):
    """What is done with an account's documents. The value is the row of the table in docs/rules.md."""

    READ = "read threads, messages, outbox documents, runs, reminders of the account"
    SEND = "send a message, now or later"
    REMIND = "add a reminder, and try again what failed in its runs"
    CHANGE_REMINDER = "pause, resume, edit or remove a reminder"
    CANCEL_OWN = "cancel a message that one wrote oneself"
    CANCEL_OTHERS = "cancel a message that a colleague or a run wrote"
    STEER_RUN = "pause, resume or cancel a run"
    """A run's messages have no author, so it takes the role that may cancel each of them. A pause is no less: the
    messages of a run that stays paused are skipped when its window closes."""
    ADMINISTER = "change settings, members and the session of the account, and read its action log"


_OWNERS = frozenset({Role.OWNER})
_SENDERS = _OWNERS | {Role.AGENT}
_MEMBERS = _SENDERS | {Role.VIEWER}

MAY: Mapping[Action, frozenset[Role]] = {
    Action.READ: _MEMBERS,
    Action.SEND: _SENDERS,
    Action.REMIND: _SENDERS,
    Action.CHANGE_REMINDER: _SENDERS,
    Action.CANCEL_OWN: _SENDERS,
    Action.CANCEL_OTHERS: _OWNERS,
    Action.STEER_RUN: _OWNERS,
    Action.ADMINISTER: _OWNERS,
}


def may(role: object, action: Action) -> bool:
    """`role` is what the member document says, which may be anything; None: there is no member document."""
    return isinstance(role, str) and role in MAY[action]


def takes(action: Action) -> str:
    """For a refusal: who may do this."""
    names = [f"{'an' if role[0] in 'aeiou' else 'a'} {role}" for role in Role if role in MAY[action]]
    return " or ".join(names)
