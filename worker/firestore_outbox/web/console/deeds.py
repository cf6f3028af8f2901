"""An action: what it acts on, the right that it takes, and what it does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from firestore_outbox.messages.ids import is_account_id
from firestore_outbox.web.console.rights import Person, Right
from firestore_outbox.web.console.screens import Console

Form = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is acted on, as it is stored now."""

    id: str
    account_id: str | None
    """Whose it is; None: no account's, so that it takes an operator."""
    right: Right


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A sentence for the person and for the log of actions."""

    sentence: str
    is_done: bool = True
    to: str | None = None
    """The page to go to; None: the one that the form names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A page instead of an outcome: a form with its faults, or what would happen. Nothing was changed, so nothing is
    logged."""

    template: str
    title: str
    section: str
    data: Mapping[str, Any]


def not_done(because: str, to: str | None = None) -> Outcome:
    """`because` with or without its full stop."""
    return Outcome(sentence=f"{because[:1].upper()}{because[1:].rstrip('.')}.", is_done=False, to=to)


Find = Callable[[Console, Person, str], Awaitable[Subject | None]]
Do = Callable[[Console, Person, Subject, Form], Awaitable[Outcome | Shown]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    action: str
    """The name in the log of actions, such as `message.cancel`."""
    path: str
    """Such as `/messages/{id}/cancel`."""
    find: Find
    do: Do
    most_bytes: int = 64 * 1024
    """Of the form."""
    notes_itself: bool = False
    """What it does writes its own entry of the log, of this name, in one commit with the change."""


def account_with(right: Right) -> Find:
    """An account that is acted on, whose member needs this right."""

    async def find(console: Console, person: Person, account_id: str) -> Subject | None:
        exists = is_account_id(account_id) and await console.system.accounts.route(account_id) is not None
        return Subject(id=account_id, account_id=account_id, right=right) if exists else None

    return find
