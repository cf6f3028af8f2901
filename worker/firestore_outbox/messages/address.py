"""Addresses: what a provider calls a person or a group, and what we write into `to`.

A thread's id is `{accountId}__{to}`, and the security rules find the account in it. So an address has no slash and no
blank, and does not begin with an underscore: `a___x` is recipient `x` of the account `a_`. A sender whom the provider
names in another way is encoded, so that what they write is neither lost nor shown to another account:

    4915112345         4915112345         most are as they are
    _mallory           %5Fmallory         the first character, blanks, slashes and `%` as %XX
    %5Fmallory         %255Fmallory       and so is whatever looks encoded: no two senders share an address
    (too long)         %h and a SHA-256   cannot be answered

An answer to an encoded address goes to the sender's own name.
"""

from __future__ import annotations

import re
from hashlib import sha256
from urllib.parse import quote, unquote

LONGEST_ADDRESS = 256
"""Characters, as firestore.rules have it."""

_ADDRESS = re.compile(r"[^_/\s\ud800-\udfff][^/\s\ud800-\udfff]{0,255}")
_PLAIN = re.compile(r"[^_%/\s][^/\s]{0,255}")
_KEPT = "+@:.,;=!~*'()&$-_"
"""Characters that stay as they are in an encoded address, with letters and digits."""


def is_address(text: str) -> bool:
    """Whether it may stand in `to`."""
    return _ADDRESS.fullmatch(text) is not None


def address_of_sender(name: str) -> str:
    """What to write into `to` for a sender whom the provider calls by this name.

    Raises UnicodeError for half a surrogate pair.
    """
    if _PLAIN.fullmatch(name):
        name.encode()
        return name
    encoded = "".join(f"%{byte:02X}" for byte in name[:1].encode()) + quote(name[1:], safe=_KEPT)
    if name and len(encoded) <= LONGEST_ADDRESS:
        return encoded
    return f"%h{sha256(name.encode()).hexdigest()}"


def name_of_recipient(address: str) -> str:
    """What the provider calls the recipient: the inverse of `address_of_sender`."""
    if not address.startswith("%"):
        return address
    name = unquote(address)
    return name if "\ufffd" not in name and address_of_sender(name) == address else address
