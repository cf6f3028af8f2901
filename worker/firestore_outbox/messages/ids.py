"""Which ids are allowed: the one rule for each, as firestore.rules has it.

    accountId    1 to 128 characters, no slash, never `__`; not `.`, `..` or `*`
    requestId    8 to 128 of A-Z, a-z, 0-9, `_` and `-`; Firestore keeps `__…__` for itself
    reminderId   1 to 100 of A-Z, a-z, 0-9, `_` and `-`, beginning with a letter or a digit
    threadId     `{accountId}__{to}`

A thread names exactly one account: an account has no `__` inside, and an address (address.py) has no `_` in front. So
the first `__` that no further `_` follows separates the two, and `a___x` is recipient `x` of the account `a_`.

No document can be named `.` or `..`, and `*` is the credentials' entry for every account without one of its own, so
the security rules need not know these three: no such account exists.

This module uses the standard library alone: backends import it without the worker and its libraries.
"""

from __future__ import annotations

import re

LONGEST_DOCUMENT_ID = 1_500
"""UTF-8 bytes, as Firestore limits them."""

_REQUEST_ID = re.compile(r"(?!__.*__\Z)[A-Za-z0-9_-]{8,128}")
_ACCOUNT_ID = re.compile(r"(?!.*__)(?!(?:\.|\.\.|\*)\Z)[^/\ud800-\udfff]{1,128}", re.DOTALL)
_REMINDER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_RESERVED = re.compile(r"\.|\.\.|__.*__", re.DOTALL)
_BEFORE_ADDRESS = re.compile(r"__(?=[^_])")


def is_request_id(text: str) -> bool:
    return _REQUEST_ID.fullmatch(text) is not None


def is_account_id(text: str) -> bool:
    return _ACCOUNT_ID.fullmatch(text) is not None


def is_reminder_id(text: str) -> bool:
    return _REMINDER_ID.fullmatch(text) is not None


def is_document_id(text: str) -> bool:
    """Whether Firestore takes it as a document's name. What other rules allow is narrower; a person's uid, a run's id
    and a provider's message id have this one alone."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:  # half a surrogate pair
        return False
    return 0 < size <= LONGEST_DOCUMENT_ID and "/" not in text and _RESERVED.fullmatch(text) is None


def thread_id_of(account_id: str, to: str) -> str:
    """The id of the conversation of an account with an address."""
    return f"{account_id}__{to}"


def account_of(thread_id: str) -> str:
    """The account that a thread's id names; the whole text, if it names no recipient."""
    return _BEFORE_ADDRESS.split(thread_id, maxsplit=1)[0]


def recipient_of(thread_id: str) -> str:
    """The address that a thread's id names; empty, if it names none."""
    return thread_id.removeprefix(account_of(thread_id)).removeprefix("__")
