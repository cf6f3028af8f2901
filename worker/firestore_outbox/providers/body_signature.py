"""Webhooks signed over their raw body alone, in hexadecimal; and the header that holds a signature.

There is no time in such a MAC, so a recorded request can be replayed for ever. Nothing comes of it: a receipt moves a
message forward or not at all, and an inbound message is stored once.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

_HEXADECIMAL = frozenset("0123456789abcdef")


def is_signed(value: str | None, raw_body: bytes, secret: str, *, algorithm: str = "sha256", prefix: str = "") -> bool:
    """Whether `value` is the prefix and the HMAC of the body. In constant time; never raises."""
    if value is None or not secret:
        return False
    expected = prefix + hmac.new(secret.encode(), raw_body, getattr(hashlib, algorithm)).hexdigest()
    return hmac.compare_digest(expected.encode(), value.encode(errors="replace"))


def has_form(value: str | None, *, algorithm: str = "sha256", prefix: str = "") -> bool:
    """Whether `value` could be a signature of some body: the prefix and as many hexadecimal digits as it must have."""
    if value is None or not value.startswith(prefix):
        return False
    digits = value.removeprefix(prefix)
    return len(digits) == 2 * hashlib.new(algorithm).digest_size and set(digits) <= _HEXADECIMAL


def only(headers: Mapping[str, str], name: str) -> str | None:
    """The header of that name, in whatever case. None if it is missing, or there twice: which one should count?"""
    wanted = name.lower()
    found = [value for given, value in headers.items() if given.lower() == wanted]
    return found[0] if len(found) == 1 else None
