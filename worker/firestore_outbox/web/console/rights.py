"""What a person may do in the console. Owner, agent and viewer come from the account's member document; an operator,
named by the custom claim `outboxOperator`, may do everything.

The rights of members on messages and runs are those of the HTTP API and the security rules (accounts/roles.py); the
table adds what only the console and the command line offer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from firestore_outbox.accounts.roles import MAY, Action, Role

OPERATOR_CLAIM = "outboxOperator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person who has signed in."""

    uid: str
    email: str | None = None
    is_operator: bool = False


class Right(StrEnum):
    """The value is what the console calls it."""

    LOOK = "look at it"
    CANCEL_OWN = "cancel a message that you wrote"
    CANCEL_OTHERS = "cancel a message that a colleague or a run wrote"
    SETTLE = "settle an uncertain message"
    REDRIVE = "send a failed message again"
    REDRIVE_ALL = "send all failed messages of an account again"
    REMIND = "add, pause and resume reminders, and try failed targets again"
    STEER_RUN = "pause, resume or cancel a run"
    STEER_ACCOUNT = "pause or resume an account"
    ADMINISTER = "change the settings, members and session of an account"
    OPERATE = "see and change what belongs to no account"


_OWNERS = frozenset({Role.OWNER})
_SENDERS = _OWNERS | {Role.AGENT}

RIGHTS: Mapping[Right, frozenset[Role]] = {
    Right.LOOK: MAY[Action.READ],
    Right.CANCEL_OWN: MAY[Action.CANCEL_OWN],
    Right.CANCEL_OTHERS: MAY[Action.CANCEL_OTHERS],
    Right.SETTLE: _SENDERS,
    Right.REDRIVE: _SENDERS,
    Right.REDRIVE_ALL: _OWNERS,
    Right.REMIND: MAY[Action.REMIND],
    Right.STEER_RUN: MAY[Action.STEER_RUN],
    Right.STEER_ACCOUNT: _OWNERS,
    Right.ADMINISTER: MAY[Action.ADMINISTER],
    Right.OPERATE: frozenset(),
}


def allows(person: Person, role: object, right: Right) -> bool:
    """`role` is what the member document says, which may be anything; None: there is no member document."""
    return person.is_operator or (isinstance(role, str) and role in RIGHTS[right])


def needed(right: Right) -> str:
    """For a refusal: who may do this."""
    names = [f"{'an' if role[0] in 'aeiou' else 'a'} {role}" for role in Role if role in RIGHTS[right]]
    return " or ".join([*names, "an operator"])
