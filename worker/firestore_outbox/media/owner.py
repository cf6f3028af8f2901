"""Which accounts get a copy of a file from the place that all accounts shared before version 0.2.

A file there has no owner. What is known is which accounts have uploaded it to their provider, and which accounts'
messages and reminders name it. An account that names a file of another account must not get it this way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Named:
    """An account's message or reminder names a file."""

    account_id: str
    media_id: str
    has_uploaded: bool
    """The account has an upload document for it."""


@dataclass(frozen=True, slots=True)
class GiveTo:
    account_id: str
    media_id: str


@dataclass(frozen=True, slots=True)
class Unclear:
    """Several accounts name it, and nothing shows whose it is: a person adds it to the right ones."""

    media_id: str
    account_ids: tuple[str, ...]


def owners(named: Iterable[Named]) -> list[GiveTo | Unclear]:
    """An account that has uploaded a file has it. Without one, a file that a single account names is that account's."""
    by_file: dict[str, dict[str, bool]] = defaultdict(dict)
    for one in named:
        accounts = by_file[one.media_id]
        accounts[one.account_id] = accounts.get(one.account_id, False) or one.has_uploaded
    decisions: list[GiveTo | Unclear] = []
    for media_id, accounts in sorted(by_file.items()):
        uploaders = sorted(account_id for account_id, has_uploaded in accounts.items() if has_uploaded)
        others = tuple(sorted(accounts.keys() - set(uploaders)))
        if not uploaders and len(others) == 1:
            uploaders, others = [*others], ()
        decisions += [GiveTo(account_id, media_id) for account_id in uploaders]
        if others:
            decisions.append(Unclear(media_id, others))
    return decisions
