"""The priority of a message: which of an account's messages goes first. sending/precedence.py decides.

This module uses the standard library alone: backends import it without the worker and its libraries.
"""

from __future__ import annotations

from enum import StrEnum


class Priority(StrEnum):
    """Most urgent first."""

    URGENT = "urgent"
    """A one-time code: ahead of everything of its account, under a cap of its own."""
    NORMAL = "normal"
    """What people write. A document without the field is normal, unless a run made it."""
    BULK = "bulk"
    """What a run made: it lets people's messages go first, and keeps a share of the account's pace."""


def is_priority(value: str) -> bool:
    return value in _NAMES


def priority_of(given: object, *, is_of_run: bool) -> Priority:
    """`given` as the document has it. A value that is not ours, or of a later release, counts as none: a message is not
    lost for it."""
    if isinstance(given, str) and is_priority(given):
        return Priority(given)
    return Priority.BULK if is_of_run else Priority.NORMAL


_NAMES = frozenset(one.value for one in Priority)
